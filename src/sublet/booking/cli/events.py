"""`events`: past events, and new ones as they happen."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import click

from sublet.booking.calls.events import event_stream
from sublet.booking.calls.events import events as so_far
from sublet.booking.views.events import EventView
from sublet.cli.command import command
from sublet.cli.output import Output
from sublet.cli.texts import with_local_times
from sublet.client.following import Patience
from sublet.client.link import Link
from sublet.kernel.errors import ServiceUnreachable
from sublet.kernel.views import plain, read


@command("events", "sublet events -f 3f2a")
@click.option("--follow", "-f", is_flag=True, help="Keep showing new events.")
@click.option("--after", type=click.IntRange(min=0), default=0, metavar="ID", help="Only those after this one.")
@click.argument("session", required=False)
def events(out: Output, follow: bool, after: int, session: str | None) -> None:
    """Show what happened, to all sessions or to one, oldest first. With --json, one event a line."""
    link = out.link()
    for event in _coming(link, session or "", after) if follow else _past(link, session or "", after):
        click.echo(_line(out, event))


def _past(link: Link, session: str, after: int) -> Iterator[EventView]:
    while page := link.do(so_far(session, after, 1000)).items:
        yield from page
        after = page[-1].id


def _coming(link: Link, session: str, after: int) -> Iterator[EventView]:
    """Yield events as they happen, and reconnect if the stream breaks; each event's data is a single line."""
    patience = Patience()
    while True:
        waiting = b""
        try:
            for piece in link.stream(event_stream(session, after)):
                patience.note_answer()
                *lines, waiting = (waiting + piece).split(b"\n")
                for line in lines:
                    if line.startswith(b"data:"):
                        event = read(EventView, json.loads(line.removeprefix(b"data:")))
                        after = event.id
                        yield event
        except ServiceUnreachable as error:
            time.sleep(patience.broke(error).seconds)
        else:
            return


def _line(out: Output, event: EventView) -> str:
    if out.json:
        return json.dumps(plain(event), ensure_ascii=False)
    if out.quiet:
        return f"{event.id} {event.kind} {event.session}"
    at = event.time.astimezone()
    clock = f"{at:%H:%M:%S}" if at.date() == datetime.now(UTC).astimezone().date() else f"{at:%Y-%m-%d %H:%M:%S}"
    return f"{clock}  {event.session[:8]}  {event.kind}{'  ' if event.detail else ''}{with_local_times(event.detail)}"
