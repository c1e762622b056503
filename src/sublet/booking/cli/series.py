"""`booking`: one request at recurring times."""

from __future__ import annotations

from typing import Any

import click

from sublet.booking.calls import series as calls
from sublet.booking.cli.asking import split
from sublet.booking.cli.wishes import document, send_files, wishes
from sublet.booking.views.series import BookingAsk, BookingView
from sublet.cli.command import CommandGroup, Example, command
from sublet.cli.instants import read_coming
from sublet.cli.keys import key_option
from sublet.cli.output import Output, table
from sublet.cli.prompts import ask_yes_or_no
from sublet.kernel.texts import count_text

EVERY = "mon 09:00-12:00 Europe/Berlin"
LATER = "Take it with: sublet booking accept {id}"


@click.group("booking", cls=CommandGroup, epilog=Example("sublet booking list"))
def booking() -> None:
    """Book a request at recurring times: a course every Monday, a run every night, seats of a workshop."""


@command(
    "create",
    f"sublet booking create --every '{EVERY}' --count 10 --interactive lab",
    "sublet booking create --every 'daily 02:00-04:00' --count 30 -- python nightly.py",
)
@click.option("--every", required=True, metavar="WHEN", help="Days, hours and zone; without a zone, that of here.")
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="How many times.")
@click.option("--until", metavar="WHEN", help="No time begins then or later.")
@click.option("--except", "without", multiple=True, metavar="DAY", help="Not on this day: 2026-12-24. Can be repeated.")
@click.option("--seats", type=click.IntRange(min=1), default=1, metavar="N", help="Sessions at each time.")
@click.option("--for-group", metavar="GROUP", default="", help="Let each member of this group take a seat.")
@click.option("--some", is_flag=True, help="Take the times that fit; without it, all or none.")
@click.option("--yes", is_flag=True, help="Accept it at once.")
@key_option
@wishes
@click.argument("file", required=False, metavar="[FILE|-]")
@click.argument("words", nargs=-1, metavar="[-- COMMAND…]", type=click.UNPROCESSED)
def create(
    out: Output,
    every: str,
    count: int | None,
    until: str | None,
    without: tuple[str, ...],
    seats: int,
    for_group: str,
    some: bool,
    yes: bool,
    key: str | None,
    file: str | None,
    words: tuple[str, ...],
    **given: Any,
) -> None:
    """Hold a session for each time, show them, and accept them all at once.

    The hours say when each session begins and how long it lasts, in local time of the zone, also across
    daylight-saving changes. Only platforms that can be booked are used. All sessions have to fit, unless --some takes
    those that do.
    """
    if given["start"] or given["time"]:
        raise click.UsageError("--every says when each begins and how long it lasts: leave out --start and --time.")
    link = out.link()
    request = send_files(out, link, document(out, *split(file, words), given, local=link.address.local))
    ask = BookingAsk(
        every=_pin(every),
        request=request,
        name=str(request.get("name") or ""),
        count=count,
        until=read_coming(until) or "",
        without=without,
        seats=seats,
        fit="some" if some else "all",
        group=for_group,
    )
    view = link.do(calls.propose(ask, key))
    if not yes and out.can_ask and out.for_people:
        for line in draw_seats(view):
            out.note(line)
        yes = ask_yes_or_no(f"Take {_count(view, 'offered')}?", LATER.format(id=view.short), default=True)
    show(out, link.do(calls.accept(view.id)) if yes else view)
    if out.for_people and not yes:
        out.note(f"Held until {view.expires.astimezone():%H:%M:%S}. {LATER.format(id=view.short)}")


def _pin(every: str) -> str:
    from sublet.client.documents import with_local_starts  # slow to load: it reads time zones

    return str(with_local_starts({"start": every})["start"])


def _count(view: BookingView, state: str) -> str:
    return count_text(sum(seat.state == state for seat in view.seats), "session")


def draw_seats(view: BookingView) -> list[str]:
    """Draw the times of a booking; seats that share a time and a state are one line."""
    lines: dict[tuple[str, str, str, str, str], list[str]] = {}
    for seat in sorted(view.seats, key=lambda seat: seat.start):  # a moved session is last in the list
        start, end = seat.start.astimezone(), seat.end.astimezone()
        key = (f"{start:%a %Y-%m-%d}", f"{start:%H:%M}-{end:%H:%M}", seat.state, seat.why, seat.taker)
        lines.setdefault(key, []).append(seat.session[:8])
    rows = [
        (*key[:3], str(len(ids)), " ".join([*ids[:3], *(["…"] if ids[3:] else [])]), key[4], key[3])
        for key, ids in lines.items()
    ]
    return table(("DAY", "TIME", "STATE", "SEATS", "SESSION", "TAKEN BY", "WHY"), rows)


def show(out: Output, view: BookingView) -> None:
    """Show a booking with its times."""
    head = f"{view.short} {view.name}: {view.every}, {view.state}"
    out.show(view, lambda: [head, *draw_seats(view)], lambda: [view.short])


@command("list", "sublet booking list")
def list_bookings(out: Output) -> None:
    """List your bookings, the newest first."""
    view = out.link().do(calls.bookings())
    rows = [(each.short, each.name, each.every, each.state, _count(each, "booked")) for each in view.items]
    head = ("BOOKING", "NAME", "EVERY", "STATE", "SESSIONS")
    out.show(view, lambda: table(head, rows) if rows else [], lambda: (each.short for each in view.items))
    if out.for_people and view.open:
        out.note("For members of your groups; take a seat with `sublet booking claim BOOKING`:")
        others = [
            (each.short, each.name, each.every, each.organiser, str(sum(not seat.taker for seat in each.seats)))
            for each in view.open
        ]
        for line in table(("BOOKING", "NAME", "EVERY", "OF", "FREE SEATS"), others):
            out.note(line)
    elif out.for_people and not rows:
        out.note("You have no bookings. Make one with: sublet booking create")


@command("show", "sublet booking show 3f2a9c1d")
@click.argument("id", metavar="BOOKING")
def show_booking(out: Output, id: str) -> None:
    """Show the times of a booking, and the session at each."""
    show(out, out.link().do(calls.booking(id)))


@command("accept", "sublet booking accept 3f2a9c1d")
@click.argument("id", metavar="BOOKING")
def accept(out: Output, id: str) -> None:
    """Accept all sessions of a booking, or none."""
    show(out, out.link().do(calls.accept(id)))


@command("skip", "sublet booking skip 3f2a9c1d 2026-12-24")
@click.argument("id", metavar="BOOKING")
@click.argument("day", metavar="DAY")
def skip(out: Output, id: str, day: str) -> None:
    """Leave out one day: its sessions are cancelled."""
    show(out, out.link().do(calls.skip(id, day)))


@command("move", "sublet booking move 3f2a9c1d 2026-12-24 '2026-12-23 09:00'")
@click.argument("id", metavar="BOOKING")
@click.argument("day", metavar="DAY")
@click.argument("to", metavar="WHEN")
def move(out: Output, id: str, day: str, to: str) -> None:
    """Move one day's sessions to another time; if there is no room, nothing changes."""
    show(out, out.link().do(calls.move(id, day, read_coming(to) or to)))


@command("claim", "sublet booking claim 3f2a9c1d", "sublet booking claim 3f2a9c1d 2026-12-14")
@click.argument("id", metavar="BOOKING")
@click.argument("day", metavar="[DAY]", required=False, default="")
def claim(out: Output, id: str, day: str) -> None:
    """Take a seat of your group's booking, at all future times or on one day. It becomes your own session."""
    show(out, out.link().do(calls.claim(id, day)))


@command("release", "sublet booking release 3f2a9c1d")
@click.argument("id", metavar="BOOKING")
@click.argument("day", metavar="[DAY]", required=False, default="")
def release(out: Output, id: str, day: str) -> None:
    """Release the seats of your booking that nobody has taken, at all future times or on one day."""
    show(out, out.link().do(calls.release(id, day)))


@command("cancel", "sublet booking cancel 3f2a9c1d")
@click.argument("id", metavar="BOOKING")
def cancel(out: Output, id: str) -> None:
    """Cancel all future sessions of a booking."""
    show(out, out.link().do(calls.cancel(id)))


for each_command in (create, list_bookings, show_booking, accept, skip, move, claim, release, cancel):
    booking.add_command(each_command)
