"""Options that several commands share, or that were renamed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


class RenamedOption(click.Option):
    """An option whose former names still work; help and completion show only the current one."""

    def __init__(self, declarations: Sequence[str] | None = None, *, former: Sequence[str], **settings: Any) -> None:
        """Set the option's former names, in addition to the usual arguments."""
        super().__init__(declarations, **settings)
        self.former = list(former)

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Let the parser accept the former names, too."""
        super().add_to_parser(parser, ctx)
        parser.add_option(obj=self, opts=self.former, dest=self.name, action="store", nargs=self.nargs)


def reason_option(help: str, *, required: bool = False) -> Callable[[F], F]:
    """Return the option `--reason`, which was `--why` in some commands."""
    given = {"required": True} if required else {"default": ""}
    return click.option("--reason", cls=RenamedOption, former=["--why"], metavar="TEXT", help=help, **given)
