"""The port that platforms use to run commands and transfer files on a machine."""

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
    """A command's exit code (127: there is no such command) and output."""

    code: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        """The command's output as text; invalid UTF-8 is kept as surrogates, as in file names."""
        return self.stdout.decode("utf-8", "surrogateescape")

    @property
    def complaint(self) -> str:
        """The command's own error message, or else its exit code."""
        printed = self.stderr.decode("utf-8", "replace").strip() or self.stdout.decode("utf-8", "replace").strip()
        return printed or f"it ended with exit code {self.code}"


@dataclass(frozen=True)
class Command(Generic[T]):
    """A command to run: its arguments, stdin, time limit, and the reader of its outcome."""

    argv: tuple[str, ...]
    reader: Callable[[Outcome], T]
    stdin: bytes = b""  # up to 256 KiB arrive completely or nothing is run; more may be cut off
    seconds: int = 60  # after which the command is stopped, and PlatformUnreachable is raised
    calls: int = 0  # how many calls to the scheduler it makes, for rate limits

    def __post_init__(self) -> None:
        """Refuse arguments that no system can run: a name that looks like an option or a variable, or a zero byte."""
        name = self.argv[0] if self.argv else ""
        if not name or name.startswith("-") or "=" in name:
            raise PlatformRefused(f"{name!r} is not the name of a command.")
        if any("\0" in word for word in self.argv):
            raise PlatformRefused(f"A word of {name} has a zero byte in it.", hint="Take it out.")


def as_is(outcome: Outcome) -> Outcome:
    """Return the outcome itself, for callers that check the exit code."""
    return outcome


def read_printed(outcome: Outcome) -> str:
    """Return a command's output, or raise PlatformRefused with its message if it failed."""
    if outcome.code:
        raise PlatformRefused(outcome.complaint)
    return outcome.text


class Reach(Protocol):
    """Access to one machine; it raises only PlatformUnreachable, PlatformRefused and LoginNeeded.

    Commands start in the person's home directory, and paths are relative to it. They run with TZ=UTC and LC_ALL=C.
    """

    name: str

    async def run(self, command: Command[T]) -> T:
        """Run one command."""
        ...

    async def run_all(self, commands: Sequence[Command[Any]]) -> list[Any]:
        """Run the commands one after another in one exec, whatever the others' exit codes.

        Readers get the outcomes after all commands have run, and the first error of a reader is raised. A caller that
        needs every answer uses the reader `as_is`.
        """
        ...

    async def send(self, source: Path, target: str, progress: Progress) -> None:
        """Send a file or a directory, each file completely or not at all; resume an interrupted attempt."""
        ...

    async def fetch(self, source: str, target: Path, progress: Progress) -> None:
        """Fetch a file or a directory, each file completely or not at all; resume an interrupted attempt."""
        ...

    async def tunnel(self, name: str, host: str, port: int) -> str:
        """Return a local address (`unix:/…` or `http://…`) of a server behind the machine; open a tunnel if needed."""
        ...

    async def untunnel(self, name: str) -> None:
        """Close the tunnel."""
        ...

    async def read(self, path: str, offset: int, limit: int) -> bytes:
        """Read part of a file; empty beyond its end. Raise PlatformRefused if it can't be read."""
        ...

    async def close(self) -> None:
        """Release the resources of this reach; a person's login stays open."""
        ...
