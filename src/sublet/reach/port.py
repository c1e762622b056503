"""What a platform asks of a way to a machine: run these words, move these files, read this part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from sublet.kernel.errors import PlatformRefused

T = TypeVar("T")
Progress = Callable[[int, int | None], None]  # bytes so far, bytes in all if known


@dataclass(frozen=True)
class Outcome:
    """What a command answered: its exit code (127: there is no such command) and what it printed."""

    code: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        """What it printed, as text; bytes that are no UTF-8 are kept as surrogates, as in a file's name."""
        return self.stdout.decode("utf-8", "surrogateescape")

    @property
    def complaint(self) -> str:
        """Its own words about what went wrong, else its exit code."""
        printed = self.stderr.decode("utf-8", "replace").strip() or self.stdout.decode("utf-8", "replace").strip()
        return printed or f"it ended with exit code {self.code}"


@dataclass(frozen=True)
class Command(Generic[T]):
    """Words to run, what they read, how to read their answer, and how long they may take."""

    argv: tuple[str, ...]
    reader: Callable[[Outcome], T]
    stdin: bytes = b""  # up to 256 KiB it comes whole or the command isn't run; a longer one may be cut with the line
    seconds: int = 60  # then it is stopped, and the answer is PlatformUnreachable
    calls: int = 0  # how often it calls the scheduler there, for who keeps a pace

    def __post_init__(self) -> None:
        """Refuse words that no system can run: a name that reads as an option or as a variable, a zero byte."""
        name = self.argv[0] if self.argv else ""
        if not name or name.startswith("-") or "=" in name:
            raise PlatformRefused(f"{name!r} is not the name of a command.")
        if any("\0" in word for word in self.argv):
            raise PlatformRefused(f"A word of {name} has a zero byte in it.", hint="Take it out.")


def as_is(outcome: Outcome) -> Outcome:
    """The outcome itself: for a caller that looks at the exit code."""
    return outcome


def read_printed(outcome: Outcome) -> str:
    """What a command printed, if it succeeded; else PlatformRefused with its own words."""
    if outcome.code:
        raise PlatformRefused(outcome.complaint)
    return outcome.text


class Reach(Protocol):
    """A way to one machine. It raises PlatformUnreachable, PlatformRefused and LoginNeeded only.

    Commands start in the person's home directory, and paths are relative to it. They run with TZ=UTC and LC_ALL=C.
    """

    name: str

    async def run(self, command: Command[T]) -> T:
        """Run one command."""
        ...

    async def run_all(self, commands: Sequence[Command[Any]]) -> list[Any]:
        """Run them one after another in one exec, whatever the others' exit codes.

        Readers see the outcomes after all have run; the first error of a reader is raised then. A caller that needs
        every answer reads them with `as_is`.
        """
        ...

    async def send(self, source: Path, target: str, progress: Progress) -> None:
        """Bring a file or a directory there, each file whole or not at all; goes on where a try before stopped."""
        ...

    async def fetch(self, source: str, target: Path, progress: Progress) -> None:
        """Bring a file or a directory from there, each file whole or not at all; goes on where a try before stopped."""
        ...

    async def tunnel(self, name: str, host: str, port: int) -> str:
        """Where a server on a machine behind it is reached from here: `unix:/…` or `http://…`; made if need be."""
        ...

    async def untunnel(self, name: str) -> None:
        """Let go of that way."""
        ...

    async def read(self, path: str, offset: int, limit: int) -> bytes:
        """Part of a file there; empty beyond its end; PlatformRefused where it can't be read."""
        ...

    async def close(self) -> None:
        """Let go of what this reach holds; a person's login stays open."""
        ...
