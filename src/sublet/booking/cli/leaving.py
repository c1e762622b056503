"""Ctrl-C while a session is followed: cancel it, or let it go on; or it has ended meanwhile."""

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
    """Do as is answered, and where nobody can be asked let it go on, as after a second Ctrl-C.

    If it has ended by itself meanwhile, nothing is done: it is returned as it is then.
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
    """How it is now; as it was last, if the service doesn't say."""
    try:
        return link.do(sessions.session(session.id))
    except SubletError:
        return session


def _tell_that_it_goes_on(out: Output, session: SessionView) -> None:
    left = f"; its time ends {away(session.until, datetime.now(UTC))}" if session.until else ""
    out.note(f"{session.short} goes on{left}.")
    out.note(f"{'Connect to it' if session.kind == 'interactive' else 'Follow it'} with: sublet {command_for(session)}")
    out.note(f"Stop it with: sublet cancel {session.short}")
