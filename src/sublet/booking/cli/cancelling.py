"""`cancel`: stop sessions by their ids, or all that filters select."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from sublet.booking.calls import sessions
from sublet.booking.cli.session_filters import PAGE, filter_options, filters_of, list_sessions
from sublet.booking.cli.sessions import draw_sessions
from sublet.booking.model.phases import CLIENT_MOVES, Phase
from sublet.booking.views.moves import CancelView
from sublet.booking.views.sessions import SessionView
from sublet.cli.command import command
from sublet.cli.options import reason_option
from sublet.cli.output import Output
from sublet.cli.prompts import ask_yes_or_no
from sublet.kernel.texts import count_text

if TYPE_CHECKING:
    from sublet.client.link import Link

CANCELLABLE = tuple(phase for phase, moves in CLIENT_MOVES.items() if Phase.CANCELLED in moves)


@command(
    "cancel",
    "sublet cancel 3f2a 77b1",
    "sublet cancel --person anna@example.org --platform keeling --reason 'maintenance tonight'",
)
@click.argument("session", nargs=-1)
@filter_options
@reason_option("Why; the owner of a session sees it.")
@click.option("--dry-run", is_flag=True, help="Only say which sessions would be cancelled.")
@click.option("--yes", "-y", is_flag=True, help="Don't ask before several are cancelled.")
def cancel(out: Output, session: tuple[str, ...], reason: str, dry_run: bool, yes: bool, **chosen: Any) -> int:
    """Cancel sessions: the ones you name, or all that the options select."""
    filters = filters_of(chosen)
    if bool(session) == bool(filters):
        raise click.UsageError("Name sessions, or choose them by options such as --person and --platform; not both.")
    link = out.link()
    if dry_run:
        named = link.do(sessions.cancel_all(session, reason, dry_run=True)).cancelled if session else ()
        _tell(out, named if session else _choose_sessions(link, filters), dry_run=True)
        return 0
    if session:
        _show(out, [link.do(sessions.cancel(name, reason)) for name in session])
        return 0
    found = _choose_sessions(link, filters)
    if not found:
        _tell(out, found)
        return 0
    if not yes and not _agree(out, found):
        return 1
    done = _cancel_all(link, found, reason)
    _show(out, done.cancelled)
    if done.over:
        out.note(f"{count_text(len(done.over), 'session')} had ended meanwhile.")
    return 0


def _show(out: Output, views: Sequence[SessionView]) -> None:
    out.show(views, lambda: (f"{v.short} {_describe_cancelled(v)}" for v in views), lambda: (v.short for v in views))


def _choose_sessions(link: Link, filters: dict[str, Any]) -> tuple[SessionView, ...]:
    """Return the active sessions that the filters select; offers too, if that phase is named."""
    if "phase" in filters:
        if filters["phase"] not in CANCELLABLE:
            raise click.UsageError(f"Only what is {', '.join(CANCELLABLE)} can be cancelled, not {filters['phase']}.")
        return list_sessions(link, **filters).items
    active = list_sessions(link, active=True, **filters).items
    return tuple(view for view in active if view.phase in CANCELLABLE)


def _tell(out: Output, chosen: Sequence[SessionView], dry_run: bool = False) -> None:
    out.show(
        chosen, lambda: draw_sessions(chosen, datetime.now(UTC), owners=True), lambda: (view.short for view in chosen)
    )
    would = f"{count_text(len(chosen), 'session')} would be cancelled."
    out.note(would if dry_run else "No session under way matches.")


def _agree(out: Output, chosen: Sequence[SessionView]) -> bool:
    people = {view.person for view in chosen}
    whose = next(iter(people)) if len(people) == 1 else f"{len(people)} people"
    for line in draw_sessions(chosen, datetime.now(UTC), owners=True):
        out.note(line)
    return ask_yes_or_no(f"Cancel {count_text(len(chosen), 'session')} of {whose}?", "Agree with --yes.")


def _cancel_all(link: Link, chosen: Sequence[SessionView], reason: str) -> CancelView:
    """Cancel exactly the sessions that were shown, in as many calls as necessary."""
    ids = [view.id for view in chosen]
    parts = [link.do(sessions.cancel_all(ids[at : at + PAGE], reason)) for at in range(0, len(ids), PAGE)]
    return CancelView(
        cancelled=tuple(view for part in parts for view in part.cancelled),
        over=tuple(view for part in parts for view in part.over),
    )


def _describe_cancelled(view: SessionView) -> str:
    return "is cancelled." if view.phase == Phase.CANCELLED else f"is being cancelled; it is {view.phase} now."
