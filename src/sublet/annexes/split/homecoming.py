"""Results that are being received; if there is no room here, a result stays in the spool and is sent again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from sublet.annexes.split.kept import RelayMemory
from sublet.annexes.split.ledger import OPEN, Ledger, OpenAttempt
from sublet.annexes.split.parcels import Incoming
from sublet.annexes.split.retries import Retries

LOST = "it ended, and its results could not be brought back: "


class Homecoming:
    """All results that are being received."""

    def __init__(
        self,
        kept: RelayMemory,
        patience: float,
        order: Callable[[dict[str, Any]], None],
        delivered: Callable[[OpenAttempt], Awaitable[None]],
        failed: Callable[[str, str, str], None],
    ) -> None:
        """`order` sends the agent an order; `failed` gets a name, the reason, and why results are lost, if they are."""
        self._ledger: Ledger = kept.ledger
        self._kept, self._order, self._delivered, self._failed = kept, order, delivered, failed
        self._again = Retries("results of {} wait to be stored here", patience)
        self._coming: dict[str, Incoming | None] = {}

    def words(self) -> str:
        """Describe the results that wait for room, if any."""
        return self._again.words()

    async def hear(self, header: dict[str, Any], body: bytes) -> None:
        """Take the next bytes of a result; a result that is no longer wanted is read to its end, and dropped."""
        name = header["attempt"]
        self._ledger.arriving.add(name)
        if header["offset"] == 0:
            await self._drop(self._coming.pop(name, None))
            accepted = self._ledger.accepts(name)
            self._coming[name] = Incoming(self._ledger.attempts[name].scratch, name) if accepted else None
        coming = self._coming.get(name)
        if coming:
            await asyncio.to_thread(coming.take, body)
        if header["last"]:
            self._coming.pop(name, None)
            await self._came(name, coming, header["end"] == "bad")

    async def stop(self) -> None:
        """Drop partial results, since the channel is gone; on the next one they are sent again."""
        self._again.stop()
        while self._coming:
            await self._drop(self._coming.popitem()[1])

    async def _drop(self, coming: Incoming | None) -> None:
        if coming:
            await asyncio.to_thread(coming.drop)

    async def _came(self, name: str, coming: Incoming | None, bad: bool) -> None:
        """Handle a complete result, and let the far side delete it unless it has to be sent again."""
        if coming:
            await asyncio.to_thread(self._settle, name, coming, bad)
            if coming.is_scarce and self._comes_again(name, coming.failure):
                return
            await self._tell(name, coming, bad)
        elif self._ledger.is_given_up(name):
            self._kept.forget(name)
        self._ledger.arriving.discard(name)
        self._again.forget(name)
        self._order({"op": "ack", "attempt": name})

    def _settle(self, name: str, coming: Incoming, bad: bool) -> None:
        """Finish unpacking, and move the files to their place if the job still waits for them."""
        coming.finish()
        attempt = self._ledger.attempts.get(name)
        if not bad and not coming.failure and attempt and attempt.stage in OPEN:
            coming.settle(attempt.sandbox, attempt.scratch)
        coming.read_words()
        coming.drop()

    def _comes_again(self, name: str, why: str) -> bool:
        attempt = self._ledger.attempts.get(name)
        wanted = attempt is not None and attempt.stage in OPEN
        return wanted and self._again.later(name, why, lambda: self._order({"op": "again", "attempt": name}))

    async def _tell(self, name: str, coming: Incoming, bad: bool) -> None:
        """Report a result to its job, unless that was given up meanwhile; a job that has ended isn't run again."""
        if bad and not coming.failure:
            report = coming.said
            why = "; ".join([report["failure"] or "it could not be started", *report["starter.log"].splitlines()[-1:]])
            self._failed(name, why, report["unsent"])
        elif coming.failure:
            self._failed(name, coming.failure, "" if bad else LOST + coming.failure)
        elif attempt := self._ledger.note_delivered(name):
            await self._delivered(attempt)
