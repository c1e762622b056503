"""The logic of waiting and following as pure state, which both clients drive."""

from __future__ import annotations

import codecs
import math
import time
from collections.abc import Generator
from dataclasses import dataclass
from datetime import timedelta
from numbers import Real
from typing import Any, TypeVar

from sublet.booking.calls import sessions
from sublet.booking.model.amounts import quote_value
from sublet.booking.model.phases import OVER
from sublet.booking.views.sessions import SessionView
from sublet.client.call import Call, HttpAnswer
from sublet.kernel.errors import BadRequest, NotOverYet, ServiceUnreachable

T = TypeVar("T")
Timeout = float | timedelta  # seconds, or a duration
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
Decoder = codecs.getincrementaldecoder("utf-8")
TRIES = 20  # reconnections without receiving anything before an error: about half a minute


@dataclass(frozen=True)
class Pause:
    """A step that waits for some seconds."""

    seconds: float


Steps = Generator[Call[Any] | Pause, Any, T]  # yields what to do, receives the answers, returns the result


def read_timeout(timeout: Timeout | None) -> float | None:
    """Return a timeout in seconds; raise BadRequest for anything else, as the text of a duration."""
    seconds = timeout.total_seconds() if isinstance(timeout, timedelta) else timeout
    if seconds is not None and (not isinstance(seconds, Real) or math.isnan(seconds)):  # NumPy's numbers are Real
        raise BadRequest(
            detail=f"timeout: {quote_value(timeout)} is no number of seconds",
            hint="For ten minutes: timeout=600, or timeout=timedelta(minutes=10).",
        )
    return seconds


def until_over(id: str, timeout: Timeout | None) -> Steps[SessionView]:
    """Poll a session, with growing pauses, until it has ended."""
    seconds = read_timeout(timeout)
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
    """The backoff for a service that is away temporarily, such as during a restart."""

    def __init__(self) -> None:
        """Start without failures."""
        self._tries = 0

    def note_answer(self) -> None:
        """Reset the backoff, because the service answered."""
        self._tries = 0

    def broke(self, error: ServiceUnreachable) -> Pause:
        """Return the pause before the next try; raise the error after too many."""
        self._tries += 1
        if self._tries > TRIES:
            raise error
        return Pause(min(FIRST_PAUSE * 2**self._tries, LONGEST_PAUSE))


def retry_reads(steps: Steps[T]) -> Steps[T]:
    """Return the same steps, with their GET calls retried while the service is away temporarily."""
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
    """Return the steps of one call that is retried while the service is away temporarily."""
    patience = Patience()
    while True:
        try:
            answer: T = yield call
            return answer
        except ServiceUnreachable as error:
            pause = patience.broke(error)
        yield pause


class Following:
    """The output of a session, followed from an offset on, across lost connections, until it is complete."""

    def __init__(self, id: str, stream: str = "stdout", offset: int = 0) -> None:
        """Start at the offset."""
        self.id, self.stream, self.offset = id, stream, offset
        self.over = False
        self._patience = Patience()

    @property
    def call(self) -> Call[HttpAnswer]:
        """The call that streams the output from the current offset."""
        return sessions.follow(self.id, self.stream, self.offset)

    @property
    def rest(self) -> Call[HttpAnswer]:
        """The call for the output that is left after a stream has ended, and whether it is complete."""
        return sessions.logs(self.id, self.stream, self.offset)

    def saw(self, piece: bytes) -> bytes:
        """Advance the offset by received bytes; return them."""
        self.offset += len(piece)
        self._patience.note_answer()
        return piece

    def end_stream(self, rest: HttpAnswer) -> bytes:
        """Handle the end of a stream; return the remaining output, and stop following if the session has ended."""
        self.over = rest.headers.get("sublet-ended", "").lower() == "true"
        return self.saw(rest.body)

    def broke(self, error: ServiceUnreachable) -> Pause:
        """Return the pause before reconnecting after a lost connection."""
        return self._patience.broke(error)
