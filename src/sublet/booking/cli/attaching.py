"""`attach`: the terminal of a shell session, in this terminal."""

from __future__ import annotations

import json
import os
import signal
import sys
import termios
import threading
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

import click

from sublet.booking.calls import sessions
from sublet.booking.cli.connecting import SHELL, open_ways, ready_lines
from sublet.booking.model.phases import NOT_YET, OVER, Phase
from sublet.booking.views.sessions import SessionView
from sublet.cli.command import command
from sublet.cli.output import Output
from sublet.cli.progress import Progress
from sublet.cli.texts import away
from sublet.client.waiting import patiently
from sublet.kernel.errors import NotAllowedNow, ServiceUnreachable, SubletError

if TYPE_CHECKING:
    from websockets.sync.client import ClientConnection

AWAY = b"\x1d"  # Ctrl-]
PIECE = 4096
LOOK_EVERY = 0.5  # seconds


@command("attach", "sublet attach 3f2a")
@click.argument("session")
def attach(out: Output, session: str) -> None:
    """Open the terminal of a shell session. Ctrl-] leaves it running; `exit` ends it.

    Start one with `sublet run --detach --interactive shell`. For a JupyterLab the address is printed. If the session
    hasn't started yet, this waits for it.
    """
    view = _when_ready(out, session)
    ways = open_ways(view)
    if ways and all(way.kind != SHELL for way in ways):
        *words, address = ready_lines(view)
        for line in words if out.for_people else ():
            out.note(line)
        out.show(view, lambda: [address], lambda: [address])
        return
    from websockets.exceptions import WebSocketException  # slow to load, and only needed here
    from websockets.sync.client import connect

    try:
        with connect(terminal_of(view), open_timeout=20, proxy=None, max_size=None) as socket:
            out.note(f"connected to {view.short}; Ctrl-] leaves")
            left = converse(socket)
    except (OSError, WebSocketException) as error:
        raise ServiceUnreachable(address=view.page or view.short, why=str(error) or type(error).__name__) from error
    out.note(f"\nleft {view.short}; it goes on" if left else f"\n{view.short} has ended")


def _when_ready(out: Output, name: str) -> SessionView:
    """Wait until the session can be connected to, or is over, and return it."""
    link, progress = out.link(), Progress(wanted=out.for_people)
    view = link.do(sessions.session(name))
    try:
        while view.phase in NOT_YET:
            now = datetime.now(UTC)
            start = f"; starts {away(view.start, now)}" if view.start and view.start > now else ""
            progress.show(f"{view.short}: {view.condition or 'waiting for it to start'}{start}")
            time.sleep(LOOK_EVERY)
            view = patiently(link, sessions.session(view.id))
    finally:
        progress.end()
    return view


def terminal_of(view: SessionView) -> str:
    """Return the WebSocket address of a session's shell, with its secret."""
    if not view.connectors and view.phase != Phase.AVAILABLE:
        hint = f"See why with: sublet explain {view.short}" if view.phase in OVER else ""
        raise NotAllowedNow(
            f"{view.short} is {view.phase}: there is nothing to attach to.", hint=hint, session=view.short
        )
    for way in view.connectors:
        place = urlsplit(way.location)
        if way.kind == SHELL and place.netloc:
            scheme = "wss" if place.scheme == "https" else "ws"
            term = quote(os.environ.get("TERM") or "dumb")
            return f"{scheme}://{place.netloc}{place.path.rstrip('/')}/ws?{place.query}&term={term}"
    raise SubletError(f"{view.short} has no shell.", hint=f"See what it is with: sublet status {view.short}")


def converse(socket: ClientConnection) -> bool:
    """Connect the terminal to a shell until either ends; return True if the person left, False if the shell ended."""
    left = threading.Event()
    with raw_terminal(lambda: _tell_size(socket)):
        _tell_size(socket)
        typing = threading.Thread(target=_type, args=(socket, left), daemon=True)
        typing.start()
        for message in socket:
            sys.stdout.buffer.write(message.encode() if isinstance(message, str) else message)
            sys.stdout.buffer.flush()
    return left.is_set()


def _type(socket: ClientConnection, left: threading.Event) -> None:
    from websockets.exceptions import ConnectionClosed  # loaded by now

    while typed := os.read(sys.stdin.fileno(), PIECE):
        before, away, _ = typed.partition(AWAY)
        with suppress(ConnectionClosed):  # the shell may just have ended
            socket.send(before)
        if away:
            break
    left.set()
    socket.close()


def _tell_size(socket: ClientConnection) -> None:
    with suppress(OSError):  # without a terminal there is no size
        size = os.get_terminal_size(sys.stdin.fileno())
        socket.send(json.dumps({"rows": size.lines, "cols": size.columns}))


@contextmanager
def raw_terminal(resized: Callable[[], None]) -> Iterator[None]:
    """Put the terminal into raw mode, call `resized` when its size changes, and restore it afterwards."""
    if not sys.stdin.isatty():
        yield
        return
    before = termios.tcgetattr(sys.stdin)
    handler: Any = signal.signal(signal.SIGWINCH, lambda *_: resized())
    try:
        tty.setraw(sys.stdin, termios.TCSADRAIN)  # keeps keys that were pressed while connecting
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
        signal.signal(signal.SIGWINCH, handler)
