"""The agent: the one process on the login host, between frames on its channel and files in the spool.

It is sent as text, never installed. The spool is a lease's directory on the file system that the login host and the
nodes share. Every file in it appears by rename, and repeating an order is safe:

    ask/N      node N asks for its configuration        ans/N.tar  the answer
    alive/N    node N's heartbeat: a counter            in/N/A.tar attempt A for node N, taken by rename
    out/A.tar  the result of attempt A                  out/A.bad  it couldn't be run;  out/A.off: it was stopped
    live/A.out output of attempt A, while it runs       kill/A     order to stop attempt A
                                                        kill/A.gently  order to ask its job to end
    fence/E    results of node epoch E are void         lease      the near side's heartbeat: a counter
    stop/N     order to node N to end                   agent      the nonce of the current agent

Where the disk has no room for a counter, the name of an empty file beside it has the counter, alive/N.C or lease.C: a
rename needs no room. Anything else that couldn't be written is written as soon as there is room.
"""

from __future__ import annotations

import collections
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from sublet.annexes.split.frames import MARK, SLICE, decode, encode, file_pieces, lengths, write_whole
from sublet.annexes.split.spool_files import GENTLY, forget, forget_pulses, names, pulse, read

PARTS = ("in", "out", "kill", "alive", "ask", "ans", "live", "fence", "stop", "tmp")
ENDINGS = (".tar", ".bad", ".off")
OURS = ("put", "ans", "w")  # prefixes of an agent's partial files; its nonce follows
TICK = 0.5  # seconds between checks of heartbeats and questions
SLOW = 0.5  # seconds between checks when nothing has happened for a while
QUIET = 10.0  # seconds without an event after which checks become slower


class SpoolAgent:
    """Translates frames to files, and files to frames."""

    def __init__(self, spool: str, nonce: str, poll: float, channel: BinaryIO) -> None:
        """Serve one spool; `channel` takes the frames."""
        self.spool, self.nonce, self.poll, self.channel = spool, nonce, poll, channel
        self.turns: collections.deque[Iterator[tuple[dict[str, Any], bytes]]] = collections.deque()
        self.waiting = threading.Event()
        self.sent: set[str] = set()
        self.shown: dict[str, int] = {}
        self.beats: dict[str, str] = {}
        self.pulses: dict[str, str] = {}
        self.asked: dict[str, str] = {}
        self.unwritten: dict[str, bytes] = {}  # small files for which the disk had no room
        self.pulsing = True  # an earlier agent may have left a pulse
        self.busy = time.monotonic()
        self.orders: dict[str, Callable[[dict[str, Any], bytes], None]] = {
            "put": self._put,
            "kill": self._kill,
            "ack": self._ack,
            "again": self._send_again,
            "lease": self._lease,
            "fence": self._fence,
            "answer": self._answer,
            "stop": self._stop,
            "clean": self._clean,
        }

    def path(self, *names: str) -> str:
        """Return a path in the spool."""
        return os.path.join(self.spool, *names)

    def begin(self) -> None:
        """Create missing directories, and become the current agent."""
        try:
            os.mkdir(self.spool)  # not its parent, which is gone when the lease is over
        except FileExistsError:
            if os.lstat(self.spool).st_uid not in (os.geteuid(), 0):  # files in it are executed
                raise PermissionError(self.spool + " belongs to someone else") from None
        for part in PARTS:
            os.makedirs(self.path(part), exist_ok=True)
        self._sweep()
        self._write("agent", self.nonce.encode())
        self.send({"op": "hello", "host": os.uname().nodename, "python": list(sys.version_info[:2])})

    def _sweep(self) -> None:
        """Remove partial files of an earlier agent."""
        for name in names(self.path("tmp")):
            kind, _, rest = name.partition(".")
            if kind in OURS and not rest.startswith(self.nonce + "."):
                forget(self.path("tmp", name))

    # Outgoing frames

    def send(self, header: dict[str, Any], body: bytes = b"") -> None:
        """Send a frame."""
        self.turns.append(iter([(header, body)]))
        self.waiting.set()

    def send_file(self, header: dict[str, Any], path: str) -> None:
        """Send a file in turn with others, so that a long one doesn't delay a short one."""
        self.turns.append(file_pieces(header, path))
        self.waiting.set()

    def write_frames(self) -> None:
        """Write frames for ever, taking turns."""
        while True:
            if not self.turns:
                self.waiting.wait(1)
                self.waiting.clear()
                continue
            turn = self.turns.popleft()
            frame = next(turn, None)
            if frame:
                self.channel.write(encode(*frame))
                self.channel.flush()
                self.turns.append(turn)

    # Incoming frames

    def read_frames(self, source: BinaryIO) -> None:
        """Read frames until the channel ends."""
        while True:
            start = source.read(8)
            if len(start) < 8:
                return
            words, body = lengths(start)
            header = decode(source.read(words))
            self.busy = time.monotonic()
            self.orders[header["op"]](header, source.read(body))

    def _put(self, header: dict[str, Any], body: bytes) -> None:
        name, node = header["attempt"], str(header["node"])
        part = self.path("tmp", "put." + self.nonce + "." + name)
        try:
            if add(part, header["offset"], body) and header["last"]:
                os.makedirs(self.path("in", node), exist_ok=True)
                os.rename(part, self.path("in", node, name + ".tar"))
                self.send({"op": "stored", "attempt": name})
        except OSError as error:
            forget(part)
            self.send({"op": "unstored", "attempt": name, "why": error.strerror or str(error)})

    def _kill(self, header: dict[str, Any], body: bytes) -> None:
        name = header["attempt"]
        self._write("kill/" + name + (GENTLY if header.get("gently") else ""), b"")
        forget(self.path("tmp", "put." + self.nonce + "." + name))  # no more of it comes
        if forget(self.path("in", str(header["node"]), name + ".tar")):
            self._write("out/" + name + ".off", b"")  # no node has started it

    def _ack(self, header: dict[str, Any], body: bytes) -> None:
        name = header["attempt"]
        for ending in ENDINGS:
            forget(self.path("out", name + ending))
            self.sent.discard(name + ending)
        for stream in ("out", "err"):
            forget(self.path("live", name + "." + stream))
            self.shown.pop(name + "." + stream, None)
        for order in (name, name + GENTLY):
            forget(self.path("kill", order))
        forget(self.path("tmp", "put." + self.nonce + "." + name))
        forget(self.path("tmp", "taken." + name + ".tar"))  # a node that died may have left it

    def _send_again(self, header: dict[str, Any], body: bytes) -> None:
        self.sent.difference_update([header["attempt"] + ending for ending in ENDINGS])

    def _lease(self, header: dict[str, Any], body: bytes) -> None:
        for name, content in list(self.unwritten.items()):
            self._write(name, content)
        if not self._write("lease", str(header["count"]).encode()):
            pulse(self.spool, "lease", header["count"])
            self.pulsing = True
        elif self.pulsing:
            forget_pulses(self.spool, "lease")
            self.pulsing = False

    def _fence(self, header: dict[str, Any], body: bytes) -> None:
        self._write("fence/" + header["epoch"], b"")

    def _answer(self, header: dict[str, Any], body: bytes) -> None:
        node = str(header["node"])
        part = self.path("tmp", "ans." + self.nonce + "." + node)
        try:
            if add(part, header["offset"], body) and header["last"]:
                os.rename(part, self.path("ans", node + ".tar"))
                forget(self.path("ask", node))
        except OSError:
            forget(part)
            self.asked.pop(node, None)  # so that the question is sent again

    def _stop(self, header: dict[str, Any], body: bytes) -> None:
        self._write("stop/" + str(header["node"]), b"")

    def _clean(self, header: dict[str, Any], body: bytes) -> None:
        shutil.rmtree(self.spool, ignore_errors=True)
        self.send({"op": "cleaned", "left": os.path.exists(self.spool)})

    def _write(self, name: str, content: bytes) -> bool:
        """Write a small file, or keep it until there is room; return whether it was written now."""
        part = self.path("tmp", "w." + self.nonce + "." + name.replace("/", "_"))
        self.unwritten.pop(name, None)
        try:
            write_whole(self.path(name), content, part)
        except OSError:
            forget(part)
            if os.path.isdir(self.spool):  # otherwise nobody is left to read it
                self.unwritten[name] = content
            return False
        return True

    # Events in the spool

    def look(self) -> None:
        """Watch the spool until another agent has taken over, or the spool is gone."""
        ticked = 0.0
        while True:
            now = time.monotonic()
            self._results()
            if now - ticked >= TICK:
                ticked = now
                self._tick()
                if read(self.path("agent")) not in (self.nonce, None):
                    return
            time.sleep(self.poll if now - self.busy < QUIET else max(self.poll, SLOW))

    def _results(self) -> None:
        for name in names(self.path("out")):
            if name not in self.sent and name[-4:] in ENDINGS:
                self.sent.add(name)
                self.busy = time.monotonic()
                header = {"op": "out", "attempt": name[:-4], "end": name[-3:]}
                self.send_file(header, self.path("out", name))

    def _tick(self) -> None:
        beats, beaten = {}, []
        for name in names(self.path("alive")):
            node, _, count = name.partition(".")
            if count and count != self.pulses.get(node):
                self.pulses[node] = count
                beaten.append(node)
            beat = None if count else read(self.path("alive", node))
            if beat and beat != self.beats.get(node):
                self.beats[node] = beats[node] = beat
        self.send({"op": "tick", "beats": beats, "pulses": beaten})
        for node in names(self.path("ask")):
            asked = read(self.path("ask", node))
            if asked and asked != self.asked.get(node):
                self.asked[node] = asked
                self.send({"op": "ask", "node": node, "asked": asked})
        for name in names(self.path("live")):
            self._show(name)

    def _show(self, name: str) -> None:
        at = self.shown.get(name, 0)
        try:
            with open(self.path("live", name), "rb") as file:
                file.seek(at)
                new = file.read(SLICE)
        except OSError:
            return
        if new:
            self.shown[name] = at + len(new)
            self.send({"op": "live", "attempt": name[:-4], "stream": name[-3:], "offset": at}, new)


def add(part: str, offset: int, body: bytes) -> bool:
    """Append bytes to a partial file; return False if earlier bytes are missing because there was no room."""
    if offset and (not os.path.exists(part) or os.path.getsize(part) != offset):
        return False
    with open(part, "ab" if offset else "wb") as file:
        file.write(body)
    return True


def main(settings: dict[str, Any]) -> None:
    """Serve the channel on stdin and stdout; nothing else may write to it."""
    os.umask(0o077)
    channel = os.fdopen(os.dup(1), "wb", 0)
    os.dup2(2, 1)
    agent = SpoolAgent(settings["spool"], settings["nonce"], settings["poll"], channel)
    agent.begin()
    channel.write(b"\n" + MARK + settings["nonce"].encode() + b"\n")
    for work in (agent.write_frames, agent.look):
        threading.Thread(target=_or_end, args=(work,), daemon=True).start()
    _or_end(lambda: agent.read_frames(sys.stdin.buffer))


def _or_end(work: Callable[[], None]) -> None:
    """Run some work and end the process with it: ssh is gone, the disk fails, or a newer agent is there."""
    try:
        work()
    except BaseException as error:
        sys.stderr.write(f"agent: {type(error).__name__}: {error}\n")
        os._exit(1)
    os._exit(0)
