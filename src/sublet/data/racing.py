"""Chooses which of several addresses of the same content to try first, and which to try in parallel."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from sublet.booking.model.request import Data
from sublet.movers.port import Mover, Progress

MOST_ASKED = 8  # addresses of one file that are probed beforehand, or tried in parallel
QUIET = 1.5  # seconds: a server that can't tell the size within this time has answered all the same
Source = tuple[Mover, Data]
Bring = Callable[[Source, Progress], Awaitable[str]]  # returns why the source failed, or an empty string


@dataclass(frozen=True)
class OrderedSources:
    """The addresses of a file, by how their servers answered when asked for its size."""

    prompt: Sequence[Source]  # answered, best first; tried one after another
    silent: Sequence[Source]  # did not answer; tried in parallel, since any of them may be merely slow

    @property
    def all(self) -> list[Source]:
        """All addresses, in the order in which to try them."""
        return [*self.prompt, *self.silent]


@dataclass
class SilentHosts:
    """Remembers hosts that did not answer, so that later files of the same data don't wait for them again."""

    hosts: set[str] = field(default_factory=set)

    async def order(self, sources: Sequence[Source]) -> OrderedSources:
        """Probe the addresses, and order them so that hosts that answer come first."""
        if len(sources) < 2:
            return OrderedSources(sources, ())
        known = [source for source in sources if _host(source) in self.hosts]
        others = [source for source in sources if source not in known]
        asked, rest = others[:MOST_ASKED], others[MOST_ASKED:]
        answers = await asyncio.gather(*(_ask(source) for source in asked))
        answering = [source for source, (size, _) in zip(asked, answers, strict=True) if size is not None]
        dumb = [(source, seconds) for source, (size, seconds) in zip(asked, answers, strict=True) if size is None]
        refusing = [source for source, seconds in dumb if seconds < QUIET]
        silent = [source for source, seconds in dumb if seconds >= QUIET]
        self.hosts.update(_host(source) for source in silent)
        return OrderedSources([*answering, *refusing, *rest], [*silent, *known])


async def _ask(source: Source) -> tuple[int | None, float]:
    """Return the size that a source reports, or None, and how many seconds the answer took."""
    mover, replica = source
    began = monotonic()
    return await mover.measure(replace(replica, size=None)), monotonic() - began


def _host(source: Source) -> str:
    return urlsplit(source[1].location).netloc


async def race(sources: Sequence[Source], bring: Bring, progress: Progress) -> tuple[Source | None, list[str]]:
    """Bring a file from the first address that delivers anything; return that address, and why others failed.

    The others are then stopped, and tried again if the first one fails after all.
    """
    failures: list[str] = []
    left = list(sources)
    while left:
        heat = _Heat(left[:MOST_ASKED], bring, progress)
        winner, failed = await heat.run()
        failures += failed.values()
        if winner is not None:
            return winner, failures
        left = [source for number, source in enumerate(left) if number not in failed]
    return None, failures


class _Heat:
    """One round of a race: several addresses in parallel."""

    def __init__(self, sources: Sequence[Source], bring: Bring, progress: Progress) -> None:
        self._sources, self._bring, self._progress = sources, bring, progress
        self._first: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def _listen(self, number: int) -> Progress:
        def hear(done: int, total: int | None) -> None:
            if done and not self._first.done():
                self._first.set_result(number)
            if self._first.done() and self._first.result() == number:
                self._progress(done, total)

        return hear

    async def run(self) -> tuple[Source | None, dict[int, str]]:
        """Return the address that brought the file, if any, and why others failed, by their numbers."""
        tasks: dict[int, asyncio.Future[str]] = {
            number: asyncio.ensure_future(self._bring(source, self._listen(number)))
            for number, source in enumerate(self._sources)
        }
        failed: dict[int, str] = {}
        try:
            while len(failed) < len(tasks) and not self._first.done():
                waiting: list[asyncio.Future[Any]] = [task for task in tasks.values() if not task.done()]
                await asyncio.wait([*waiting, self._first], return_when=asyncio.FIRST_COMPLETED)
                for number, task in tasks.items():
                    if task.done() and number not in failed:
                        if not task.result():
                            return self._sources[number], failed
                        failed[number] = task.result()
            if not self._first.done():
                return None, failed
            leader = self._first.result()
            await self._stop(tasks, but=leader)
            if not (why := await tasks[leader]):
                return self._sources[leader], failed
            return None, {**failed, leader: why}
        finally:
            await self._stop(tasks)

    async def _stop(self, tasks: dict[int, asyncio.Future[str]], but: int | None = None) -> None:
        others = [task for number, task in tasks.items() if number != but and not task.done()]
        for task in others:
            task.cancel()
        if others:
            await asyncio.wait(others)
