"""A script that runs many commands in one exec of a remote `sh`, and the parser of its output.

Both output streams carry random marks, so that the output of a login shell's startup files is skipped; bytes are kept
as they are. Nothing is written to the remote disk. The remote machine needs a POSIX sh with head, cat and base64;
timeout is used if it exists.
"""

from __future__ import annotations

import base64
import os
import re
import secrets
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sublet.kernel.errors import PlatformRefused
from sublet.reach.port import Command, Outcome

# Every login shell can read this (sh, csh and fish alike): no "!", no backslash, no newline. Each script is preceded by
# its length and its end mark, so a script that was cut short isn't run.
LISTEN = (
    'exec sh -c \'cd; while read -r n k; do s=$(head -c "$n"); case $s in *"$k") (eval "$s");; *) exit 1;; esac; done\''
)

_WHOLE = 1 << 18  # bytes of stdin embedded in the script, so that they arrive completely or not at all
_SHORT = 1 << 14  # bytes of a script that is sent in the exec's own command line, which is one packet
_PRELUDE = """\
export TZ=UTC LC_ALL=C
unset CDPATH
if command -v timeout >/dev/null 2>&1; then t() { timeout -k 5 "$@"; }; else t() { shift; (exec "$@"); }; fi
m() { printf '%s:%s:%s;' MARK "$1" "$2"; printf '%s:%s:;' MARK "$1" >&2; }
r() { i=$1; shift; t "$@"; m "$i" $?; }
m 0 0
"""


@dataclass(frozen=True)
class Batch:
    """Commands written as a script for the remote `sh`."""

    commands: Sequence[Command[Any]]
    mark: bytes = field(default_factory=lambda: secrets.token_hex(16).encode())

    def pieces(self) -> Iterator[bytes]:
        """Yield the remote side's stdin: the script with its length and end mark, then each large stdin."""
        script = self.script()
        yield b"%d %s\n%s" % (len(script), self._end, script)
        for command in self.commands:
            if len(command.stdin) > _WHOLE:
                yield command.stdin

    def line(self) -> str | None:
        """Return the batch as one command line for a login shell, or None if it is too long or a command reads stdin.

        A command line saves a round trip, but everyone on that machine can see it, and stdin may be secret.
        """
        script = self.script()
        if len(script) > _SHORT or any(command.stdin for command in self.commands):
            return None
        return f"""exec sh -c 'cd; eval "$(echo {base64.b64encode(script).decode()} | base64 -d)"'"""

    def script(self) -> bytes:
        """Return the script that runs the commands; this is the only place where arguments are quoted."""
        lines = [_PRELUDE.replace("MARK", self.mark.decode())]
        lines += [_line(index, command) for index, command in enumerate(self.commands, 1)]
        return encode("".join(lines)) + b"#" + self._end

    def has_begun(self, stdout: bytes | bytearray) -> bool:
        """Whether the remote `sh` has started to run the batch."""
        return self._mark(0) in stdout

    def over(self, stream: bytes | bytearray, since: int = 0) -> bool:
        """Whether a stream is complete; everything before `since` has already been searched."""
        last = self._mark(len(self.commands))
        at = stream.find(last, max(0, since - len(last) - 4))  # a mark ends with up to three digits and ";"
        return at >= 0 and stream.find(b";", at) >= 0

    def strip_marks(self, stream: bytes) -> bytes:
        """Return a stream without the marks, for a person to read."""
        return re.sub(re.escape(self.mark) + rb":[0-9]+:[0-9]*;", b"", stream)

    def read(self, stdout: bytes | bytearray, stderr: bytes | bytearray) -> list[Outcome]:
        """Parse the commands' outcomes, in order, from two complete streams."""
        return [
            Outcome(int(code), out, err)
            for (out, code), (err, _) in zip(self._parts(stdout), self._parts(stderr), strict=True)
        ]

    @property
    def _end(self) -> bytes:
        return self.mark + b"end"

    def _mark(self, index: int) -> bytes:
        return self.mark + b":%d:" % index

    def _parts(self, stream: bytes | bytearray) -> list[tuple[bytes, bytes]]:
        parts: list[tuple[bytes, bytes]] = []
        start = 0
        for index in range(len(self.commands) + 1):
            mark = self._mark(index)
            at = stream.index(mark, start)
            end = stream.index(b";", at)
            parts.append((bytes(stream[start:at]), bytes(stream[at + len(mark) : end])))
            start = end + 1
        return parts[1:]


def write_stream_line(argv: Sequence[str]) -> str:
    """Return a command line for any login shell that prints "ready" and then runs a command which reads a stream."""
    script = encode(f"export TZ=UTC LC_ALL=C; echo ready; exec {shlex.join(argv)}")
    return f"""exec sh -c 'cd; eval "$(echo {base64.b64encode(script).decode()} | base64 -d)"'"""


def encode(text: str) -> bytes:
    """Encode text as the file system does; raise PlatformRefused if it can't be encoded."""
    try:
        return os.fsencode(text)
    except UnicodeEncodeError as error:
        raise PlatformRefused(f"{error.object[error.start : error.end]!r} can't be written as UTF-8.") from error


def _line(index: int, command: Command[Any]) -> str:
    run = f"r {index} {command.seconds} {shlex.join(command.argv)}"
    if not command.stdin:
        return f"{run} </dev/null\n"
    if len(command.stdin) > _WHOLE:
        source = f"head -c {len(command.stdin)}"
    else:
        source = f"printf %s {base64.b64encode(command.stdin).decode()} | base64 -d"
    return f"{source} | {{ {run}; cat >/dev/null; }}\n"  # drain the rest if the command doesn't read all of its stdin
