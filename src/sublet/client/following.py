"""How long things are followed: pure state, moved on by the link that waits and by the one that awaits."""

from __future__ import annotations

import codecs
import time
from collections.abc import Generator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from sublet.booking.calls import sessions
from sublet.booking.model.phases import OVER
from sublet.booking.views.sessions import SessionView
from sublet.client.call import Call, HttpAnswer
from sublet.kernel.errors import NotOverYet, ServiceUnreachable

T = TypeVar("T")
Timeout = float | timedelta  # seconds, or a duration
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
Decoder = codecs.getincrementaldecoder("utf-8")
TRIES = 20  # without a byte between them, before a lost connection is an error: half a minute


@dataclass(frozen=True)
class Pause:
    """Wait so many seconds."""

    seconds: float


Steps = Generator[Call[Any] | Pause, Any, T]  # yields what is to be done, is sent the answers, returns the outcome


def until_over(id: str, timeout: Timeout | None) -> Steps[SessionView]:
    """Look at a session, ever less often, until it is over."""
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
    deadline = None if seconds is None else time.monotonic() + seconds
    pause = FIRST_PAUSE
    while True:
        session: SessionView = yield sessions.session(id)
        if session.phase in OVER:
            return session
        left = LONGEST_PAUSE if deadline is None else deadline - time.monotonic()
        if left <= 0:
            raise NotOverYet(phase=session.phase, seconds=seconds, session=session.short, id=session.id)
        yield Pause(min(pause, left))
        pause = min(pause * 1.3, LONGEST_PAUSE)


class Patience:
    """How often a service that is away, because it is restarted say, is tried again."""

    def __init__(self) -> None:
        """It has answered so far."""
        self._tries = 0

    def note_answer(self) -> None:
        """It is there."""
        self._tries = 0

    def broke(self, error: ServiceUnreachable) -> Pause:
        """It is not: how long to wait before it is tried again."""
        self._tries += 1
        if self._tries > TRIES:
            raise error
        return Pause(min(FIRST_PAUSE * 2**self._tries, LONGEST_PAUSE))


def retry_reads(steps: Steps[T]) -> Steps[T]:
    """The same steps, whose calls that only look are done again while the service is away for a moment."""
    answer: Any = None
    while True:
        try:
            step = steps.send(answer)
        except StopIteration as done:
            outcome: T = done.value
            return outcome
        is_read = isinstance(step, Call) and step.method == "GET"
        answer = (yield from retry(step)) if isinstance(step, Call) and is_read else (yield step)


def retry(call: Call[T]) -> Steps[T]:
    """One call, done again while the service is away for a moment."""
    patience = Patience()
    while True:
        try:
            answer: T = yield call
            return answer
        except ServiceUnreachable as error:
            pause = patience.broke(error)
        yield pause


class Following:
    """What a session prints, from an offset on, across lost connections, until there can't be more."""

    def __init__(self, id: str, stream: str = "stdout", offset: int = 0) -> None:
        """Nothing has been seen yet."""
        self.id, self.stream, self.offset = id, stream, offset
        self.over = False
        self._patience = Patience()

    @property
    def call(self) -> Call[HttpAnswer]:
        """Go on from where it is."""
        return sessions.follow(self.id, self.stream, self.offset)

    @property
    def rest(self) -> Call[HttpAnswer]:
        """What is left when a stream has ended, and whether that was all."""
        return sessions.logs(self.id, self.stream, self.offset)

    def saw(self, piece: bytes) -> bytes:
        """These bytes came."""
        self.offset += len(piece)
        self._patience.note_answer()
        return piece

    def end_stream(self, rest: HttpAnswer) -> bytes:
        """A stream has ended, and this was left; if the session is over, so is this."""
        self.over = rest.headers.get("sublet-ended", "").lower() == "true"
        return self.saw(rest.body)

    def broke(self, error: ServiceUnreachable) -> Pause:
        """The connection was lost: how long to wait before it is tried again."""
        return self._patience.broke(error)
