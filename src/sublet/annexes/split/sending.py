"""Attempts that are being sent to the spool; if there is no room, an attempt waits, and is given up after a while."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Generator
from typing import Any

from sublet.annexes.split.channel import Frames
from sublet.annexes.split.ledger import AttemptStage, OpenAttempt
from sublet.annexes.split.parcels import Outgoing
from sublet.annexes.split.retries import Retries


class Sending:
    """All attempts that are being sent, and not stored yet."""

    def __init__(
        self,
        turn: Callable[[Frames], None],
        spool: str,
        patience: float,
        give_up: Callable[[str, str], None],
        gone: Callable[[str], None],
    ) -> None:
        """`turn` queues frames on the channel; `give_up` gets a name and the reason; `gone` gets a name."""
        self._turn, self._spool, self._give_up, self._gone = turn, spool, give_up, gone
        self._again = Retries("files of {} wait to be stored on the cluster", patience)
        self._present: dict[str, object] = {}  # the current transfer of each attempt; earlier ones stop

    def words(self) -> str:
        """Describe the attempts that wait for room, if any."""
        return self._again.words()

    def put(self, attempt: OpenAttempt) -> None:
        """Send an attempt from its beginning."""
        self._present[attempt.name] = present = object()
        self._turn(self._frames(attempt, present, asyncio.get_running_loop()))

    def note_unstored(self, attempt: OpenAttempt, why: str) -> None:
        """Retry an attempt that the spool couldn't store, or give it up."""
        if not self._comes_again(attempt, why):
            self._give_up(attempt.name, f"its files could not be written into {self._spool} on the cluster: {why}")

    def _comes_again(self, attempt: OpenAttempt, why: str) -> bool:
        self._present.pop(attempt.name, None)
        return self._again.later(attempt.name, why, lambda: self.put(attempt))

    def _unread(self, attempt: OpenAttempt, present: object, sandbox: Outgoing) -> None:
        """Handle an attempt that can't be read here; without its starter's directory the job is gone."""
        if attempt.stage is not AttemptStage.QUEUED or self._present.get(attempt.name) is not present:
            return
        if not os.path.isdir(attempt.scratch):
            self._gone(attempt.name)
        elif not (sandbox.is_scarce and self._comes_again(attempt, sandbox.failure)):
            self._give_up(attempt.name, f"its files could not be read here: {sandbox.failure}")

    def forget(self, name: str) -> None:
        """Forget an attempt that is stored, or no longer wanted."""
        self._present.pop(name, None)
        self._again.forget(name)

    def stop(self) -> None:
        """Stop all transfers, since the channel is gone; they begin again on the next one."""
        self._present.clear()
        self._again.stop()

    def _frames(
        self, attempt: OpenAttempt, present: object, loop: asyncio.AbstractEventLoop
    ) -> Generator[tuple[dict[str, Any], bytes], None, None]:
        """Yield an attempt's frames; they stop once the attempt is given up, so that no node can start it."""
        header = {"op": "put", "attempt": attempt.name, "node": attempt.node}
        sandbox = Outgoing(attempt.job_ad, attempt.sandbox, attempt.scratch)
        with contextlib.closing(sandbox.frames(header)) as frames:
            for frame in frames:
                if attempt.stage is not AttemptStage.QUEUED or self._present.get(attempt.name) is not present:
                    return
                yield frame
        if sandbox.failure:
            loop.call_soon_threadsafe(self._unread, attempt, present, sandbox)
