"""Ctrl-C while a session is followed: cancel the session, or leave it running."""

from __future__ import annotations

from datetime import UTC, datetime

import click

from sublet.booking.calls import sessions
from sublet.booking.cli.connecting import command_for
from sublet.booking.model.phases import OVER
from sublet.booking.views.sessions import SessionView
from sublet.cli.interrupts import Interrupts
from sublet.cli.output import Output
from sublet.cli.prompts import ask_meanwhile
from sublet.cli.texts import away
from sublet.client.link import Link
from sublet.kernel.errors import SubletError

CHOICES = ("c", "d")  # cancel, detach


def settle_interrupt(out: Output, link: Link, session: SessionView, interrupts: Interrupts) -> SessionView | None:
    """Cancel the session or leave it running, as the person answers; if nobody answers, leave it running.

    If the session has ended meanwhile, return it as it is now; else None.
    """
    answer = _ask(link, session, interrupts) if out.can_ask else "d"
    now = _look(link, session)
    if answer == "c" and now.phase not in OVER:
        try:
            link.do(sessions.cancel(session.id))
        except SubletError:
            now = _look(link, session)
            if now.phase not in OVER:
                raise
    if now.phase in OVER:
        out.note(f"{now.short} has ended meanwhile.")
        return now
    if answer == "c":
        out.note(f"{now.short} is cancelled.")
    else:
        _tell_that_it_goes_on(out, now)
    return None


def _ask(link: Link, session: SessionView, interrupts: Interrupts) -> str:
    question = f"\n{session.short}: cancel it (c), or detach and let it go on (d)?"
    try:
        interrupts.release()
        return ask_meanwhile(question, CHOICES, "c", lambda: _look(link, session).phase in OVER) or "d"
    except (click.Abort, KeyboardInterrupt):
        return "d"
    finally:
        interrupts.hold()


def _look(link: Link, session: SessionView) -> SessionView:
    """Return the session as it is now, or as last seen if the service doesn't answer."""
    try:
        return link.do(sessions.session(session.id))
    except SubletError:
        return session


def _tell_that_it_goes_on(out: Output, session: SessionView) -> None:
    left = f"; its time ends {away(session.until, datetime.now(UTC))}" if session.until else ""
    out.note(f"{session.short} goes on{left}.")
    out.note(f"{'Connect to it' if session.kind == 'interactive' else 'Follow it'} with: sublet {command_for(session)}")
    out.note(f"Stop it with: sublet cancel {session.short}")
