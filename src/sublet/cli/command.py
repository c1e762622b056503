"""What all commands share: --json, --quiet, -v, and a help text that ends with an example."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from sublet.cli.output import Output
from sublet.kernel.empty_names import refuse_empty
from sublet.kernel.errors import BadRequest

COMPLETING = "_SUBLET_COMPLETE"  # the environment variable of shell completion
AFTER = "sublet.after"  # key in a context's meta: the number of words after --
FREE_TEXTS = frozenset({"words", "reason", "note", "answer", "title", "description"})  # may be empty in any command
F = TypeVar("F", bound=Callable[..., Any])
SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Example(str):
    """The example at the end of a help text."""

    __slots__ = ()

    def __new__(cls, *lines: str) -> Example:
        """Make an example of one or more command lines."""
        return super().__new__(cls, "\b\nExample:\n" + "\n".join(f"  {line}" for line in lines))


def common_options() -> list[click.Option]:
    """Return new instances of the options that every command has."""
    return [
        click.Option(["--json"], is_flag=True, help="Print JSON."),
        click.Option(["--quiet", "-q"], is_flag=True, help="Print only what a script needs."),
        click.Option(["--verbose", "-v"], is_flag=True, help="Print more details."),
    ]


def with_options(function: F, options: Sequence[Callable[[F], F]]) -> F:
    """Add options to a command, listed in this order in its help."""
    for option in reversed(options):
        function = option(function)
    return function


def output_of(ctx: click.Context) -> Output:
    """Return the output that the options of this command, or of a group before it, ask for."""
    before = ctx.obj if isinstance(ctx.obj, Output) else Output()
    asked = {name: ctx.params.pop(name) or getattr(before, name) for name in ("json", "quiet", "verbose")}
    return Output(**asked)


def refuse_empty_values(
    ctx: click.Context, parameters: Iterable[click.Parameter], may_be_empty: Collection[str]
) -> None:
    """Raise BadRequest if a typed value is empty: as a script's variable that is unset, it must not mean all."""
    if ctx.resilient_parsing:
        return
    for parameter in parameters:
        name = parameter.name or ""
        if name in may_be_empty or ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE:
            continue
        value = ctx.params.get(name)
        texts = [text for text in (value if isinstance(value, tuple) else (value,)) if isinstance(text, str)]
        if isinstance(parameter, click.Argument):
            refuse_empty(*texts)
        elif not all(text.strip() for text in texts):
            hint = "Give it a value, or leave it out; in a script, a variable may be unset."
            raise BadRequest(f"The value of {max(parameter.opts, key=len)} is empty.", hint=hint)


def add_completion(parameter: click.Parameter) -> None:
    """Complete a parameter's values by its name if its type provides none."""
    of_type = parameter.shell_complete

    def complete(ctx: click.Context, incomplete: str) -> list[Any]:
        from sublet.cli.completing import complete as by_name

        return of_type(ctx, incomplete) or by_name(ctx, parameter, incomplete)

    vars(parameter)["shell_complete"] = complete


class Word(click.Command):
    """A command with the common options and an output."""

    def __init__(self, *args: Any, may_be_empty: Collection[str] = (), **settings: Any) -> None:
        """Add the common options at the end, and shell completion of values; name options whose value may be empty."""
        super().__init__(*args, **settings)
        self.may_be_empty = FREE_TEXTS.union(may_be_empty)
        self.params += common_options()
        if COMPLETING in os.environ:
            for parameter in self.params:
                add_completion(parameter)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Record how many words follow --, which click doesn't."""
        if "--" in args:
            ctx.meta[AFTER] = len(args) - args.index("--") - 1
        try:
            rest = super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx  # click omits it if a value is missing, and the hint needs the command
            raise
        refuse_empty_values(ctx, self.params, self.may_be_empty)
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        """Make the output that the options ask for, and run the command."""
        ctx.obj = output_of(ctx)
        return super().invoke(ctx)


LONGEST_SENTENCE = 300  # characters


class CommandGroup(click.Group):
    """A group of commands; the common options can be given before and after the subcommand."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        """Add the common options at the end."""
        settings.setdefault("context_settings", SETTINGS)
        super().__init__(*args, **settings)
        self.params += common_options()

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse empty values of the group's own options."""
        rest = super().parse_args(ctx, args)
        refuse_empty_values(ctx, self.params, FREE_TEXTS)
        return rest

    def invoke(self, ctx: click.Context) -> Any:
        """Make the output that the options ask for, and run the subcommand."""
        ctx.obj = output_of(ctx)
        return super().invoke(ctx)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List each command with the whole first sentence of its help, wrapped."""
        known = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [(name, command.get_short_help_str(limit=LONGEST_SENTENCE)) for name, command in known if command]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


class DefaultGroup(CommandGroup):
    """A group with a default command, for words that name no subcommand."""

    def __init__(self, *args: Any, default: str, **settings: Any) -> None:
        """Set the name of the default command."""
        super().__init__(*args, **settings)
        self.default = default

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert the default command's name if no subcommand was typed."""
        plain = ("--json", "--quiet", "-q", "--verbose", "-v")
        first = next((number for number, word in enumerate(args) if word not in plain), len(args))
        if first < len(args) and args[first] not in ("--help", "-h", *self.commands):
            args = [*args[:first], self.default, *args[first:]]
        return super().parse_args(ctx, args)


class Lazy(CommandGroup):
    """A group whose commands are imported on use: name → module, and the command's name in it."""

    def __init__(self, *args: Any, where: Mapping[str, str], **settings: Any) -> None:
        """Set where the commands are."""
        super().__init__(*args, **settings)
        self.where = where

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names."""
        return sorted(self.where)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of this name, or None."""
        if cmd_name not in self.where:
            return None
        file, _, name = self.where[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(f"sublet.{file}"), name or cmd_name)
        return command


def command(name: str, *example: str, **settings: Any) -> Callable[[Callable[..., Any]], Word]:
    """Return a decorator that makes a function a command with this example; its first argument is the output."""
    settings.setdefault("context_settings", SETTINGS)

    def made(function: Callable[..., Any]) -> Word:
        return click.command(name, cls=Word, epilog=Example(*example), **settings)(click.pass_obj(function))

    return made
