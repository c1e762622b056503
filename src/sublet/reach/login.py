"""A login to a remote host, which a person opens with their own ssh and which everything else then shares."""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
from asyncio.subprocess import DEVNULL
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

from sublet.kernel.descriptors import restore_limit
from sublet.kernel.errors import PlatformRefused, PlatformUnreachable, SubletError
from sublet.kernel.short_paths import remove_links
from sublet.reach.asking import ask_ssh, master
from sublet.reach.batch import LISTEN, Batch
from sublet.reach.certificates import expires, find_expired
from sublet.reach.channel import Channel, Cut
from sublet.reach.prompts import Prompter, answering
from sublet.reach.record import LoginRecord, new_record, read_record
from sublet.reach.refusals import read_refusal
from sublet.reach.ssh import CHANNELS, SshReach
from sublet.reach.target import Target, private
from sublet.reach.visit import Visit, open_door

_PATIENCE = 300.0  # seconds that a person has to answer all questions
_WORDS = 1 << 16  # bytes of ssh's output that are read


class Login:
    """A login to one host as one user; platforms use its `reach` while the login is open."""

    def __init__(
        self,
        host: str,
        *,
        control: Path,
        platform: str = "",
        user: str = "",
        port: int = 0,
        options: Mapping[str, str] | None = None,
        shared: bool = True,
        at_once: int = CHANNELS,
    ) -> None:
        """Describe the login; `shared` is False where the centre forbids one connection for many commands."""
        self.target = Target(platform or host, host, control, user, port, options or {})
        self.shared = shared
        self.reach = SshReach(self.target, at_once)
        self._hears: Callable[[], str] = str

    async def open(self, prompter: Prompter | None = None, seconds: float = _PATIENCE) -> LoginRecord:
        """Open the login, asking through `prompter` or else in the terminal; a login that is already open is kept."""
        self._check_shared()
        if (pid := await self._standing()) is None:
            if prompter is None:
                await self._open_in_terminal(seconds)
            else:
                await self._open_by(prompter, seconds)
            pid = await master(self.target)
        if pid is None:
            raise PlatformUnreachable(platform=self.reach.name, why="the login was closed as soon as it was open")
        record = new_record(self.target, pid)
        if (before := read_record(self.target.record)) is None or (before.host, before.pid) != (record.host, pid):
            record.write(self.target.record)
        return read_record(self.target.record) or record

    @property
    def said(self) -> str:
        """The output of ssh and the centre so far, while a prompter opens a login."""
        return self._hears()

    async def check(self) -> bool:
        """Whether the login is open on this machine; nothing is sent to the remote side."""
        return self.reach.visit is not None or self.target.door.exists() or await master(self.target) is not None

    async def close(self) -> None:
        """Close the login and everything that uses it."""
        if self.target.socket.exists():
            await ask_ssh(self.target.to_close())
        for path in (self.target.socket, self.target.record):
            path.unlink(missing_ok=True)
        if self.target.control.is_dir() and not any(self.target.control.iterdir()):
            remove_links(self.target.control)

    @contextlib.asynccontextmanager
    async def once(self, prompter: Prompter | None = None, seconds: float = _PATIENCE) -> AsyncIterator[SshReach]:
        """Sign in once without sharing the connection; `reach` uses this login while the block runs."""
        private(self.target.control)
        async with contextlib.AsyncExitStack() as stack:
            variables = (
                await stack.enter_async_context(answering(prompter, self.target.socket.parent)) if prompter else {}
            )
            channel = await Channel.open(
                self.target.to_visit(LISTEN), environment={**os.environ, **variables}, alone=prompter is not None
            )
            stack.push_async_callback(channel.kill)
            with self._hearing(lambda: channel.complaint):
                await self._greet(channel, seconds)
            self.reach.visit = visit = Visit(channel)
            try:
                async with open_door(visit, self.target.door):
                    yield self.reach
                await channel.close()
            finally:
                self.reach.visit = None

    async def stay(self, prompter: Prompter | None = None, quiet: float = 90.0) -> None:
        """Sign in once and keep the login open for the service until it has been unused for `quiet` seconds."""
        async with self.once(prompter) as reach:
            if reach.visit is not None:
                await reach.visit.quiet(quiet)

    async def expires(self) -> datetime | None:
        """Return when the last certificate that ssh would offer expires, or None if none expires."""
        return await expires(self.target)

    async def _standing(self) -> int | None:
        """Return the pid of the process that holds the login open; if there is none, remove its old socket."""
        private(self.target.control)
        pid = await master(self.target)
        if pid is None:
            self.target.socket.unlink(missing_ok=True)
        return pid

    async def _open_by(self, prompter: Prompter, seconds: float) -> None:
        async with answering(prompter, self.target.socket.parent) as variables:
            with tempfile.TemporaryFile() as words:  # not a pipe: the background process would keep it open
                process = await asyncio.create_subprocess_exec(
                    *self.target.to_open(),
                    stdin=DEVNULL,
                    stdout=DEVNULL,
                    stderr=words,
                    env={**os.environ, **variables},
                    start_new_session=True,
                )
                restore_limit(process.pid)
                with self._hearing(lambda: _all_of(words.fileno())):
                    code = await _wait(process, seconds)
                answer = _all_of(words.fileno())
        if code is None:
            raise PlatformUnreachable(platform=self.reach.name, why=f"no login within {seconds:.0f} s")
        if code:
            raise await self._refusal(answer)

    @contextlib.contextmanager
    def _hearing(self, hears: Callable[[], str]) -> Iterator[None]:
        self._hears = hears
        try:
            yield
        finally:
            self._hears = str

    async def _open_in_terminal(self, seconds: float) -> None:
        process = await asyncio.create_subprocess_exec(*self.target.to_open())
        code = await _wait(process, seconds)
        if code is None:
            raise PlatformUnreachable(platform=self.reach.name, why=f"no login within {seconds:.0f} s")
        if code:
            raise PlatformRefused(
                f"There is no login to {self.reach.name}: ssh said why above.",
                hint=f"Try the same by hand: ssh {self.target.host}",
            )

    async def _greet(self, channel: Channel, seconds: float) -> None:
        try:
            await channel.exchange(Batch(()), seconds)
        except TimeoutError as error:
            raise PlatformUnreachable(platform=self.reach.name, why=f"no login within {seconds:.0f} s") from error
        except Cut as cut:
            raise await self._refusal(cut.words) from cut

    async def _refusal(self, words: str) -> SubletError:
        error = read_refusal(self.reach.name, self.target.host, words)
        end = await find_expired(self.target) if isinstance(error, PlatformRefused) else None
        if end is None:
            return error
        return PlatformRefused(
            f"{error.message} The certificate expired on {end:%Y-%m-%d %H:%M} UTC.",
            hint=f"Get a new certificate from the centre, then: sublet system login {self.reach.name}",
            host_key=error.values.get("host_key"),
        )

    def _check_shared(self) -> None:
        if not self.shared:
            raise PlatformRefused(
                f"{self.reach.name} allows no connection that is shared by many commands.",
                hint=f"Sign in once for everything that waits: sublet system login {self.reach.name}",
            )


def _all_of(file: int) -> str:
    """Return a file's content without moving its position, which the writing process shares."""
    return os.pread(file, _WORDS, 0).decode("utf-8", "replace")


async def _wait(process: asyncio.subprocess.Process, seconds: float) -> int | None:
    try:
        async with asyncio.timeout(seconds):
            return await process.wait()
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            process.kill()
            await asyncio.shield(process.wait())
