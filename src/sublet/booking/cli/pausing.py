"""Pausing sessions: pause, resume."""

from __future__ import annotations

from collections.abc import Callable

import click

from sublet.booking.calls import moves
from sublet.booking.views.moves import PauseView
from sublet.cli.command import command
from sublet.cli.output import Output
from sublet.client.call import Call


@command("pause", "sublet pause 3f2a")
@click.argument("session", nargs=-1, required=True)
def pause(out: Output, session: tuple[str, ...]) -> None:
    """Pause sessions: hold waiting ones in their queue, stop running ones. Their time limits keep running."""
    _move(out, session, moves.pause, "is paused")


@command("resume", "sublet resume 3f2a")
@click.argument("session", nargs=-1, required=True)
def resume(out: Output, session: tuple[str, ...]) -> None:
    """Resume paused sessions."""
    _move(out, session, moves.resume, "goes on")


def _move(out: Output, names: tuple[str, ...], call: Callable[[str], Call[PauseView]], verb: str) -> None:
    link = out.link()
    answers = [link.do(call(name)) for name in names]
    lines = [f"{answer.session.short} {verb}: {answer.how}." for answer in answers]
    out.show(answers, lambda: lines, lambda: (answer.session.short for answer in answers))
