"""Attempts on their way to the spool; one that finds no room there waits for it, and is given up after a while."""

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
    """All that is sent and not yet stored."""

    def __init__(
        self,
        turn: Callable[[Frames], None],
        spool: str,
        patience: float,
        give_up: Callable[[str, str], None],
        gone: Callable[[str], None],
    ) -> None:
        """`turn` has frames take their turn on the channel; `give_up` is told a name and the reason; `gone` a name."""
        self._turn, self._spool, self._give_up, self._gone = turn, spool, give_up, gone
        self._again = Retries("files of {} wait to be stored on the cluster", patience)
        self._present: dict[str, object] = {}  # what is being sent of each; what was sent before stops

    def words(self) -> str:
        """What waits for room, if anything does."""
        return self._again.words()

    def put(self, attempt: OpenAttempt) -> None:
        """Send one, from its beginning."""
        self._present[attempt.name] = present = object()
        self._turn(self._frames(attempt, present, asyncio.get_running_loop()))

    def note_unstored(self, attempt: OpenAttempt, why: str) -> None:
        """The spool could not take it."""
        if not self._comes_again(attempt, why):
            self._give_up(attempt.name, f"its files could not be written into {self._spool} on the cluster: {why}")

    def _comes_again(self, attempt: OpenAttempt, why: str) -> bool:
        self._present.pop(attempt.name, None)
        return self._again.later(attempt.name, why, lambda: self.put(attempt))

    def _unread(self, attempt: OpenAttempt, present: object, sandbox: Outgoing) -> None:
        """It can't be read here; without the directory of its starter there is no job any more."""
        if attempt.stage is not AttemptStage.QUEUED or self._present.get(attempt.name) is not present:
            return
        if not os.path.isdir(attempt.scratch):
            self._gone(attempt.name)
        elif not (sandbox.is_scarce and self._comes_again(attempt, sandbox.failure)):
            self._give_up(attempt.name, f"its files could not be read here: {sandbox.failure}")

    def forget(self, name: str) -> None:
        """It is stored, or nobody wants it."""
        self._present.pop(name, None)
        self._again.forget(name)

    def stop(self) -> None:
        """The channel is gone; on the next one all begins anew."""
        self._present.clear()
        self._again.stop()

    def _frames(
        self, attempt: OpenAttempt, present: object, loop: asyncio.AbstractEventLoop
    ) -> Generator[tuple[dict[str, Any], bytes], None, None]:
        """Its frames; once it was given up nothing more of it is sent, so that no node can begin it then."""
        header = {"op": "put", "attempt": attempt.name, "node": attempt.node}
        sandbox = Outgoing(attempt.job_ad, attempt.sandbox, attempt.scratch)
        with contextlib.closing(sandbox.frames(header)) as frames:
            for frame in frames:
                if attempt.stage is not AttemptStage.QUEUED or self._present.get(attempt.name) is not present:
                    return
                yield frame
        if sandbox.failure:
            loop.call_soon_threadsafe(self._unread, attempt, present, sandbox)
