"""A shell in the session's working directory, over HTTP and WebSocket. Travels with the job: standard library only.

There is one shell per session: whoever comes (back) with the secret sees its last output and continues in it; when the
shell exits, the session is over. On the WebSocket, bytes are input and output; a text message is JSON with `rows` and
`cols`.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import pty
import re
import signal
import socket
import struct
import termios
import threading
from contextlib import suppress
from importlib.resources import files

from sublet.kinds.inside import gate
from sublet.kinds.inside.websocket import BINARY, CLOSE, WebSocket

KEPT = 256 * 1024  # bytes of past output that a new visitor sees
SLOW = 10.0  # seconds after which a visitor who doesn't read is disconnected
TERMINAL = re.compile(r"[a-z0-9.-]{1,32}\Z")
HEEDED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)  # reset to their defaults, as nohup ignores them
POLICY = "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'"


class Shell:
    """The shell on its terminal, and its visitors."""

    def __init__(self) -> None:
        """Prepare the shell, which starts with its first visitor, who sets the terminal type."""
        self.lock = threading.Lock()
        self.pid = self.terminal = 0
        self.past = b""
        self.visitors: list[WebSocket] = []
        self.ended = threading.Event()

    def welcome(self, visitor: WebSocket, terminal: str) -> None:
        """Show a visitor the past output, and from now on all new output."""
        with self.lock:
            if not self.pid:
                self.start(terminal if TERMINAL.match(terminal) else "dumb")
            if self.past:
                visitor.send(BINARY, self.past)
            self.visitors.append(visitor)

    def start(self, terminal: str) -> None:
        """Start the person's shell."""
        self.pid, self.terminal = pty.fork()
        if not self.pid:
            shell = os.environ.get("SHELL") or "/bin/sh"
            os.environ.update(TERM=terminal, PS1="\\w \\$ " if shell.endswith("bash") else "$ ")
            signal.pthread_sigmask(signal.SIG_SETMASK, [])
            for number in HEEDED:
                signal.signal(number, signal.SIG_DFL)
            try:
                os.execv(shell, [shell, "-i"])  # noqa: S606 (no shell between us and the shell)
            finally:
                os._exit(127)
        threading.Thread(target=self.pump, daemon=True).start()

    def pump(self) -> None:
        """Pass on the output until the shell ends."""
        while True:
            try:
                data = os.read(self.terminal, 65536)
            except OSError as why:
                if why.errno == errno.EINTR:
                    continue
                break  # EIO: the other end is closed
            if not data:
                break
            with self.lock:
                self.past = (self.past + data)[-KEPT:]
                for visitor in list(self.visitors):
                    try:
                        visitor.send(BINARY, data)
                    except OSError:  # gone, or too slow: a partial message can't be repaired
                        self.visitors.remove(visitor)
                        with suppress(OSError):
                            visitor.visitor.shutdown(socket.SHUT_RDWR)
        self.ended.set()

    def type(self, data: bytes) -> None:
        """Pass on a visitor's input."""
        while data and not self.ended.is_set():
            data = data[os.write(self.terminal, data) :]

    def resize(self, message: bytes) -> None:
        """Set the window size from a visitor's message; anything else is ignored."""
        with suppress(ValueError, KeyError, TypeError, struct.error, OSError):
            wanted = json.loads(message)
            size = struct.pack("HHHH", int(wanted["rows"]), int(wanted["cols"]), 0, 0)
            fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, size)

    def leave(self, visitor: WebSocket) -> None:
        """Remove a visitor; the shell continues."""
        with self.lock:
            if visitor in self.visitors:
                self.visitors.remove(visitor)

    def hang_up(self) -> None:
        """End the shell as if its terminal was closed."""
        if not self.pid:
            os._exit(128 + signal.SIGTERM)
        os.kill(self.pid, signal.SIGHUP)

    def farewell(self) -> int:
        """Tell all visitors that the shell has ended; return 0 if it exited, whatever its last command returned."""
        with self.lock:
            for visitor in self.visitors:
                with suppress(OSError):
                    visitor.send(CLOSE, struct.pack("!H", 1000) + b"the shell has ended")
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return 0 if code >= 0 else 128 - code


def handle(visitor: socket.socket, door: gate.Door, shell: Shell) -> None:
    """Handle one request: the page, the WebSocket, or neither."""
    head = gate.read_head(visitor)
    if head is None:
        visitor.sendall(gate.answer(400, "Not HTTP.\n"))
    elif not door.admits(head):
        visitor.sendall(gate.answer(403, gate.AWAY))
    elif welcome := door.welcome(head):
        visitor.sendall(welcome)
    elif head.path == door.base + "ws" and head.upgrades:
        attend(visitor, head, shell)
    elif head.path == door.base:
        page = files("sublet.kinds.inside").joinpath("shell_page.html").read_text(encoding="utf-8")
        visitor.sendall(gate.answer(200, page, ("Content-Security-Policy", POLICY), type="text/html"))
    else:
        visitor.sendall(gate.answer(404, "There is only the shell here.\n"))


def attend(visitor: socket.socket, head: gate.Head, shell: Shell) -> None:
    """Pass a visitor's input to the shell until they leave."""
    web = WebSocket(visitor, head)
    visitor.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", int(SLOW), 0))
    shell.welcome(web, head.query.get("term", "dumb"))
    try:
        while message := web.receive():
            kind, data = message
            shell.type(data) if kind == BINARY else shell.resize(data)
    finally:
        shell.leave(web)


def main() -> int:
    """Serve the shell on $SUBLET_PORT until it exits."""
    secret, base = os.environ.pop("SUBLET_SECRET"), os.environ.pop("SUBLET_BASE_URL")
    door, shell = gate.Door(secret, base), Shell()
    port = int(os.environ.pop("SUBLET_PORT"))
    serve = threading.Thread(target=gate.serve, args=(port, lambda visitor: handle(visitor, door, shell)), daemon=True)
    signal.signal(signal.SIGTERM, lambda number, frame: shell.hang_up())
    serve.start()
    while not shell.ended.wait(1.0) and serve.is_alive():
        pass
    return shell.farewell() if shell.ended.is_set() else 1
