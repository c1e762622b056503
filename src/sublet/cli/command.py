"""What every command has: --json, --quiet, -v, and help that ends in an example."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import click

from sublet.cli.output import Output

COMPLETING = "_SUBLET_COMPLETE"  # set in the environment by a shell that wants words completed
AFTER = "sublet.after"  # in a context's meta: how many words were typed after --
F = TypeVar("F", bound=Callable[..., Any])
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Example(str):
    """The example that ends a help text."""

    __slots__ = ()

    def __new__(cls, *lines: str) -> Example:
        """One or more lines that can be typed."""
        return super().__new__(cls, "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines))


def common_options() -> list[click.Option]:
    """The options that every command takes, anew for each."""
    return [
        click.Option(["--json"], is_flag=True, help="Print JSON."),
        click.Option(["--quiet", "-q"], is_flag=True, help="Print only what a script needs."),
        click.Option(["--verbose", "-v"], is_flag=True, help="Print more details."),
    ]


def with_options(function: F, options: Sequence[Callable[[F], F]]) -> F:
    """A command with these options, which its help lists in this order."""
    for option in reversed(options):
        function = option(function)
    return function


def output_of(ctx: click.Context) -> Output:
    """The output that was asked for, here or in a word before."""
    before = ctx.obj if isinstance(ctx.obj, Output) else Output()
    asked = {name: ctx.params.pop(name) or getattr(before, name) for name in ("json", "quiet", "verbose")}
    return Output(**asked)


def add_completion(parameter: click.Parameter) -> None:
    """Let a parameter whose own type knows no values be completed by its name."""
    of_type = parameter.shell_complete

    def complete(ctx: click.Context, incomplete: str) -> list[Any]:
        from sublet.cli.completing import complete as by_name

        return of_type(ctx, incomplete) or by_name(ctx, parameter, incomplete)

    vars(parameter)["shell_complete"] = complete


class Word(click.Command):
    """A command that draws as it is told."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        """Like any other, with the common options at the end, and with values that a shell can complete."""
        super().__init__(*args, **settings)
        self.params += common_options()
        if COMPLETING in os.environ:
            for parameter in self.params:
                add_completion(parameter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Remember how much stands after --, which click would forget."""
        if "--" in args:
            ctx.meta[AFTER] = len(args) - args.index("--") - 1
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # click leaves it out where a value is missing, and the hint names the command
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Make the output that was asked for, before or after the command's name, and run."""
        ctx.obj = output_of(ctx)
        return super().invoke(ctx)


LONGEST_SENTENCE = 300  # characters


class CommandGroup(click.Group):
    """Commands under one noun; the common options count before and after."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        """Like any other, with the common options at the end."""
        settings.setdefault("context_settings", SETTINGS)
        super().__init__(*args, **settings)
        self.params += common_options()

    def invoke(self, ctx: click.Context) -> Any:
        """Make the output that was asked for, and run."""
        ctx.obj = output_of(ctx)
        return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Each command with the whole first sentence of its help, in as many lines as that takes."""
        known = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [(name, command.get_short_help_str(limit=LONGEST_SENTENCE)) for name, command in known if command]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class DefaultGroup(CommandGroup):
    """Commands under one noun; what names none of them is of the one that is meant without a name."""

    def __init__(self, *args: Any, default: str, **settings: Any) -> None:
        """`default` is the name of that one."""
        super().__init__(*args, **settings)
        self.default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the name in, where none was typed."""
        plain = ("--json", "--quiet", "-q", "--verbose", "-v")
        first = next((number for number, word in enumerate(args) if word not in plain), len(args))
        if first < len(args) and args[first] not in ("--help", "-h", *self.commands):
            args = [*args[:first], self.default, *args[first:]]
        return super().parse_args(ctx, args)


class Lazy(CommandGroup):
    """Commands under one noun that are loaded when they are typed: name → the file that has it, and its name there."""

    def __init__(self, *args: Any, where: Mapping[str, str], **settings: Any) -> None:
        """Know where they are."""
        super().__init__(*args, **settings)
        self.where = where

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names."""
        return sorted(self.where)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of this name."""
        if cmd_name not in self.where:
            return None
        file, _, name = self.where[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(f"sublet.{file}"), name or cmd_name)
        return command


def command(name: str, *example: str, **settings: Any) -> Callable[[Callable[..., Any]], Word]:
    """Make a function a command whose help ends in this example; it is given the output first."""
    settings.setdefault("context_settings", SETTINGS)

    def made(function: Callable[..., Any]) -> Word:
        return click.command(name, cls=Word, epilog=Example(*example), **settings)(click.pass_obj(function))

    return made
