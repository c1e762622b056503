"""Commands on another machine over OpenSSH, through one shared connection that a person opened."""

from __future__ import annotations

import asyncio
import contextlib
import random
import re
import time
from collections.abc import AsyncIterator
from datetime import datetime

from sublet.kernel.errors import LoginNeeded, PlatformRefused, PlatformUnreachable, SubletError
from sublet.reach.asking import configuration, master
from sublet.reach.batch import LISTEN, Batch, write_stream_line
from sublet.reach.certificates import find_expired
from sublet.reach.channel import Channel, Cut, NotSent
from sublet.reach.port import Outcome
from sublet.reach.record import elsewhere
from sublet.reach.refusals import BUSY, last_words
from sublet.reach.shell import ShellReach
from sublet.reach.target import Target
from sublet.reach.tunnels import NoConnection, Tunnels
from sublet.reach.visit import Visit, through_door

CHANNELS = 4  # sshd allows 10 by default; the person's own terminals may share the connection
STREAMS = 2  # channels in addition to these, for large streams
_SSH_ITSELF = 255  # the exit code when ssh itself fails
_PAUSES = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8)  # seconds between attempts while no channel is free
_ALONE = re.compile(r"exchange_identification|banner exchange|UNKNOWN port")  # there was no connection to share
_FRESH = 30.0  # seconds for which "the host answers" is cached
_AWAY = 5.0  # seconds for which "the host doesn't answer" is cached


class SshReach(ShellReach):
    """Commands on another machine, by default four at a time, over an open login; LoginNeeded if there is none."""

    def __init__(self, target: Target, at_once: int = CHANNELS) -> None:
        """Use a target's shared connection, which a Login opens."""
        super().__init__(target.platform)
        self.target = target
        self.visit: Visit | None = None  # an unshared login that everything uses while it is open
        self._tunnels = Tunnels(target)
        self._free = asyncio.Semaphore(at_once)
        self._streams = asyncio.Semaphore(STREAMS)
        self._answered = (-_FRESH, True)
        self._certificate: tuple[float, datetime | None] = (-_FRESH, None)

    async def exchange(self, batch: Batch, seconds: float) -> list[Outcome]:
        """Run a batch on the machine; retry while its sshd has no free channel."""
        try:
            if self.visit is not None:
                return await self.visit.exchange(batch, seconds)
            if self.target.door.exists():
                return await through_door(self.target.door, batch, seconds)
            async with self._free:
                return await self._patiently(batch, seconds)
        except TimeoutError as error:
            raise PlatformUnreachable(platform=self.name, why=f"no answer within {seconds:.0f} s") from error
        except Cut as cut:
            raise await self._meaning(cut) from cut

    async def pour(self, argv: tuple[str, ...], pieces: AsyncIterator[bytes]) -> Outcome | None:
        """Run a program that reads a stream, on its own channel; return None if there is no shared connection."""
        if self.visit is not None or self.target.door.exists() or not self.target.socket.exists():
            return None
        async with self._streams:
            channel = await Channel.open(self.target.to_use(write_stream_line(argv)))
            try:
                outcome = await channel.pour(pieces)
            finally:
                await channel.kill()
        if outcome is not None and outcome.code == _SSH_ITSELF:
            why = f"the connection was cut: {last_words(outcome.complaint)}"
            raise PlatformUnreachable(platform=self.name, why=why)
        return outcome

    async def tunnel(self, name: str, host: str, port: int) -> str:
        """Return the local socket of a tunnel through the shared connection."""
        if self.visit is not None or self.target.door.exists():
            why = "a connection that isn't shared carries no tunnel"
            raise PlatformRefused(platform=self.name, why=why)
        try:
            return f"unix:{await self._tunnels.open(name, host, port)}"
        except NoConnection as none:
            raise await self._meaning(NotSent(str(none) or "there is no shared connection")) from none

    async def untunnel(self, name: str) -> None:
        """Close a tunnel."""
        await self._tunnels.close(name)

    async def _patiently(self, batch: Batch, seconds: float) -> list[Outcome]:
        for pause in _PAUSES:
            try:
                return await self._over_shared(batch, seconds)
            except Cut as cut:
                if cut.begun or not BUSY.search(cut.words):
                    raise
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - only to keep the tries apart
        return await self._over_shared(batch, seconds)

    async def _over_shared(self, batch: Batch, seconds: float) -> list[Outcome]:
        if not self.target.socket.exists():
            raise NotSent("there is no shared connection")
        line = batch.line()
        channel = await Channel.open(self.target.to_use(line or LISTEN))
        try:
            outcomes = await channel.exchange(batch, seconds, is_sent=line is not None, last=True)
            await channel.close()
        finally:
            await channel.kill()
        return outcomes

    async def _meaning(self, cut: Cut) -> SubletError:
        if BUSY.search(cut.words) and not cut.begun:
            return PlatformUnreachable(platform=self.name, why="it has no channel free on the shared connection")
        if not isinstance(cut, NotSent) and (cut.begun or not _ALONE.search(cut.words)):
            if (
                not cut.begun and cut.code is not None and 0 <= cut.code != 255
            ):  # ssh itself ends with 255, or is killed
                return PlatformRefused(platform=self.name, why=f"its shell ended early: {last_words(cut.words)}")
            # The commands may have been run, so signing in and repeating them isn't safe.
            return PlatformUnreachable(platform=self.name, why=f"the connection was cut: {last_words(cut.words)}")
        if self.visit is None and await master(self.target) is not None:
            return PlatformUnreachable(platform=self.name, why=last_words(cut.words))
        if self.target.record.exists() and not await self._answers():
            return PlatformUnreachable(platform=self.name, why=f"{self.target.host} does not answer")
        return elsewhere(self.target) or await self._describe_lapse()

    async def _describe_lapse(self) -> LoginNeeded:
        """Return LoginNeeded, naming the certificate if it has expired."""
        when, end = self._certificate
        if time.monotonic() - when >= _FRESH:
            end = await find_expired(self.target, named=True)
            self._certificate = (time.monotonic(), end)
        if end is None:
            return LoginNeeded(platform=self.name)
        return LoginNeeded(
            f"The certificate for {self.name} expired on {end:%Y-%m-%d %H:%M} UTC.",
            hint=f"Get a new one from the centre, then: sublet system login {self.name}",
        )

    async def _answers(self) -> bool:
        """Whether the host answers at all; a host behind a jump host or a proxy is assumed to."""
        when, answered = self._answered
        if time.monotonic() - when >= (_FRESH if answered else _AWAY):
            answered = await _greets(self.target)
            self._answered = (time.monotonic(), answered)
        return answered


async def _greets(target: Target) -> bool:
    settings = await configuration(target)
    if any(settings.get(key, ["none"]) != ["none"] for key in ("proxyjump", "proxycommand")):
        return True
    try:
        async with asyncio.timeout(5):
            reader, writer = await asyncio.open_connection(settings["hostname"][0], int(settings["port"][0]))
            try:
                return (await reader.readline()).startswith(b"SSH-")
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()
    except (OSError, TimeoutError, KeyError, ValueError):
        return False
