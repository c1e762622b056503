"""Notification of new events to everyone who watches: one query of the database serves all of them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import structlog

from sublet.booking.model.events import Event
from sublet.kernel.errors import SubletError
from sublet.store.store import Store
from sublet.store.tx import Tx

log = structlog.get_logger()

LOOK = 1.0  # seconds between two queries: another process may have written something
BATCH = 1000


def _after(id: int, tx: Tx) -> list[Event]:
    return tx.events.after(id, limit=BATCH)


@dataclass(eq=False, slots=True)
class Bell:
    """A signal that wakes one watcher when there is something new."""

    _rung: asyncio.Event = field(default_factory=asyncio.Event)

    def ring(self) -> None:
        """Wake the watcher."""
        self._rung.set()

    def clear(self) -> None:
        """Reset the bell; the caller reads the new events after this."""
        self._rung.clear()

    async def wait(self, seconds: float) -> bool:
        """Wait until the bell rings or the time is up; return whether it rang."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        return self._rung.is_set()


@dataclass
class EventFeed:
    """One poller of new events, which runs while anyone watches and rings the bells of the watchers concerned."""

    _bells: dict[tuple[str, str], set[Bell]] = field(default_factory=dict)  # person, or session → its watchers
    _woken: asyncio.Event = field(default_factory=asyncio.Event)
    _task: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def listen(self, store: Store, *, person: str = "", session: str = "") -> Iterator[Bell]:
        """Yield a bell that rings for events of a session, or else of a person; read events only after this."""
        key, bell = ("session", session) if session else ("person", person), Bell()
        self._bells.setdefault(key, set()).add(bell)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(store), name="event feed")
        try:
            yield bell
        finally:
            self._bells[key].discard(bell)
            if not self._bells[key]:
                del self._bells[key]

    def wake(self) -> None:
        """Look for new events at once, because this process wrote some."""
        self._woken.set()

    async def close(self) -> None:
        """Stop polling."""
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, store: Store) -> None:
        last: int | None = None
        while self._bells:
            self._woken.clear()
            try:
                last = await self._look(store, last)
            except (SubletError, OSError) as error:
                log.warning("feed.failed", why=str(error))
                self._ring_all()  # so that each watcher meets the error itself, and ends or retries
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK):
                    await self._woken.wait()

    async def _look(self, store: Store, last: int | None) -> int:
        """Ring the bells for events after the last one seen, or all bells if there is none; return the newest event."""
        if last is None:
            newest = await store.read(lambda tx: tx.events.newest())
            self._ring_all()
            return newest
        at = last
        while some := await store.read(partial(_after, at)):
            for event in some:
                for key in (("person", event.person), ("session", event.session)):
                    for bell in self._bells.get(key, ()):
                        bell.ring()
            at = some[-1].id
            if len(some) < BATCH:
                break
        return at

    def _ring_all(self) -> None:
        for bells in self._bells.values():
            for bell in bells:
                bell.ring()
