"""Results that are sent from a page: sending continues in the background, and its state can be shown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field

from sublet.booking.model.request import SentResults
from sublet.booking.result_care import ResultCare, SendProgress
from sublet.data.sending import SentFile
from sublet.kernel.errors import BadRequest, SubletError
from sublet.kernel.log import log
from sublet.kernel.streams import closing
from sublet.movers.arrival import without_secrets
from sublet.people.model.person import Person

MOST_REMEMBERED = 200  # sessions whose last sending is remembered

News = AsyncIterator[SentFile | SendProgress]


@dataclass
class ResultSending:
    """One sending: what goes where, how far it has come, or how it ended."""

    path: str
    to: str  # without secrets
    doing: str = ""  # what is being sent, in words
    done: int = 0  # bytes of that
    total: int | None = None
    sent: int = 0  # files that were sent
    were_there: int = 0  # files that had been sent before
    road: str = ""  # how they were sent, in words; empty: through the service
    error: SubletError | None = None
    is_stopped: bool = False
    is_over: bool = False

    def note(self, piece: SentFile | SendProgress) -> None:
        """Take note of progress, or of a file that was sent."""
        if isinstance(piece, SendProgress):
            self.doing, self.done, self.total = piece.doing, piece.done, piece.total
            return
        self.road = self.road or piece.road
        self.were_there += piece.was_there
        self.sent += not piece.was_there


@dataclass
class ResultSendings:
    """Starts, shows and stops sendings, one at a time for each session."""

    results: ResultCare

    _last: dict[str, ResultSending] = field(default_factory=dict)
    _tasks: dict[str, asyncio.Task[None]] = field(default_factory=dict)

    async def start(self, session: str, person: Person, results: SentResults) -> None:
        """Start to send; raise now if nothing can be sent at all."""
        if session in self._tasks:
            raise BadRequest(detail="its results are being sent.", hint="Wait for them, or stop that first.")
        if not results.to.strip():
            raise BadRequest(detail="results are sent to an address.", hint="Write one like s3://bucket/folder/.")
        news = self.results.send(session, person, results)
        sending = ResultSending(results.path, without_secrets(results.to))
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        task = self._tasks[session] = asyncio.create_task(self._send(sending, news, begun), name="send results")
        task.add_done_callback(lambda _: self._tasks.pop(session, None))
        await asyncio.wait([task, begun], return_when=asyncio.FIRST_COMPLETED)
        if not begun.done():
            task.result()
            raise sending.error or BadRequest(detail="nothing was sent.", hint="Try it again.")
        self._last.pop(session, None)
        self._last[session] = sending
        for old in list(self._last)[:-MOST_REMEMBERED]:
            if old not in self._tasks:
                del self._last[old]

    async def _send(self, sending: ResultSending, news: News, begun: asyncio.Future[None]) -> None:
        try:
            async with closing(news) as news:
                async for piece in news:
                    sending.note(piece)
                    if not begun.done():
                        begun.set_result(None)
        except SubletError as error:
            sending.error = error
            log.info("results.not-sent", to=sending.to, why=error.message)
        except asyncio.CancelledError:
            sending.is_stopped = True
            raise
        finally:
            sending.is_over = True

    def find(self, session: str) -> ResultSending | None:
        """Return the last sending of a session, as long as this process remembers it."""
        return self._last.get(session)

    async def stop(self, session: str) -> None:
        """Stop a sending; files that arrived stay, and are not sent again."""
        if task := self._tasks.get(session):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def stop_all(self) -> None:
        """Stop all sendings, because the service ends."""
        for session in list(self._tasks):
            await self.stop(session)
