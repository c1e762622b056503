"""An offer, the answer that it came in, and a session, for programs that await."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack

from sublet.booking.calls import moves, offers, results, sessions
from sublet.booking.views.moves import Explanation, PauseView
from sublet.booking.views.offers import OfferSetView, OfferView
from sublet.booking.views.results import ResultFileView, SentFileView
from sublet.booking.views.sessions import SessionView
from sublet.client.call import Call
from sublet.client.facts import OfferFacts, OfferList, Result, SessionFacts
from sublet.client.following import Decoder, Following, Timeout, until_over
from sublet.client.sent_lines import SentLines
from sublet.client.tables import PRINTED, RECORD, join_table
from sublet.client.wishes import Changes, Place, show_words
from sublet.kernel.errors import ServiceUnreachable
from sublet.kernel.streams import closing
from sublet.people.calls import people

if TYPE_CHECKING:
    from sublet.client.aio import AsyncClient


class AsyncOffer(OfferFacts):
    """One answer to a request."""

    def __init__(self, client: AsyncClient, view: OfferView) -> None:
        """Made by `AsyncClient.ask`."""
        super().__init__(view)
        self._client = client

    async def accept(self, *, key: str | None = None) -> AsyncSession:
        """Take it; its siblings are given back. Accepting twice is once; under a `key` no other offer is accepted."""
        return AsyncSession(self._client, await self._client.do(sessions.accept(self.id, key)))

    async def reject(self) -> None:
        """Decline it."""
        await self._client.do(sessions.reject(self.id))


class AsyncOffers(OfferList[AsyncOffer]):
    """The answer to a request; after `async with await client.ask(…)` nothing stays held that was not accepted."""

    def __init__(self, client: AsyncClient, view: OfferSetView) -> None:
        """Made by `AsyncClient.ask`."""
        super().__init__(view, [AsyncOffer(client, offer) for offer in view.offers])
        self._client = client

    async def reject(self) -> int:
        """Decline all that were not accepted, and say how many those were."""
        return (await self._client.do(offers.reject_set(self.view.id))).offers

    async def __aenter__(self) -> AsyncOffers:
        """For `async with`."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Give back what is still held."""
        if self.view.offers:
            await self.reject()


class AsyncSession(SessionFacts):
    """An accepted offer, and what becomes of it."""

    def __init__(self, client: AsyncClient, view: SessionView) -> None:
        """Made by `AsyncOffer.accept` and `AsyncClient.session`."""
        super().__init__(view)
        self._client = client

    async def refresh(self) -> AsyncSession:
        """Look again."""
        self.view = await self._client.do(sessions.session(self.id))
        return self

    async def wait(self, timeout: Timeout | None = None) -> AsyncSession:  # noqa: ASYNC109 - as in the other client
        """Until it is over; NotOverYet after `timeout` seconds."""
        self.view = await self._client.carry_out(until_over(self.id, timeout))
        return self

    async def logs(self, *, stream: str = "stdout", follow: bool = False, offset: int = 0) -> AsyncIterator[str]:
        """What it printed, as text in pieces; with `follow`, also what it is going to print, until it is over."""
        following, decoder = Following(self.id, stream, offset), Decoder("replace")
        async with closing(self._follow(following) if follow else self._so_far(following)) as pieces:
            async for piece in pieces:
                if text := decoder.decode(piece):
                    yield text
        if text := decoder.decode(b"", final=True):
            yield text

    async def _so_far(self, following: Following) -> AsyncIterator[bytes]:
        while piece := following.saw((await self._client.do(following.rest)).body):
            yield piece

    async def _follow(self, following: Following) -> AsyncIterator[bytes]:
        while not following.over:
            try:
                async with closing(self._client.stream(following.call)) as pieces:
                    async for piece in pieces:
                        yield following.saw(piece)
                yield following.end_stream(await self._client.do(following.rest))
            except ServiceUnreachable as error:
                await asyncio.sleep(following.broke(error).seconds)

    async def results(self) -> tuple[ResultFileView, ...]:
        """The files that it left."""
        return (await self._client.do(results.results(self.id))).items

    async def table(self) -> list[dict[str, Any]]:
        """Of a sweep or a bag: a row for each task that was run, with its parameters and what came of it."""
        record, printed = [await self._file(name) for name in (RECORD, PRINTED)]
        return join_table(record.splitlines(), lambda offset, length: printed[offset : offset + length])

    async def _file(self, path: str) -> bytes:
        is_there = any(file.path == path for file in await self.results())
        return bytes(await self.result(path)) if is_there else b""

    async def result(self, path: Place) -> Result:
        """One of those files, whole."""
        content = await self._client.do(results.result(self.id, path))
        return Result(content)

    async def archive(self, to: str | os.PathLike[str]) -> None:
        """All of those files, as one tar.gz, written to a file here."""
        with open(to, "wb") as file:  # noqa: ASYNC230 - pieces of 64 KiB to a local file
            async with closing(self._client.stream(results.archive(self.id))) as pieces:
                async for piece in pieces:
                    file.write(piece)

    async def send(self, to: str, path: str = "*") -> tuple[SentFileView, ...]:
        """Send some of those files, or all, from where they are to storage of your own."""
        lines = SentLines()
        async with closing(self._client.stream(results.send(self.id, to, path))) as pieces:
            async for piece in pieces:
                lines.saw(piece)
        return tuple(lines.files)

    async def fetched(self) -> None:
        """Say that its files are here now: where it ran as a guest, nothing of it needs to stay."""
        await self._client.do(results.fetched(self.id))

    async def accept(self, *, key: str | None = None) -> AsyncSession:
        """Take it, while it is an offer still."""
        self.view = await self._client.do(sessions.accept(self.id, key))
        return self

    async def cancel(self, reason: str = "") -> AsyncSession:
        """Stop it, whatever it is doing; its owner sees the reason."""
        self.view = await self._client.do(sessions.cancel(self.id, reason))
        return self

    async def pause(self) -> str:
        """Let it stand still, and say how: held in its queue, or stopped where it runs. Its time limit runs on."""
        return await self._pause(moves.pause(self.id))

    async def resume(self) -> str:
        """Let it go on, and say how."""
        return await self._pause(moves.resume(self.id))

    async def _pause(self, call: Call[PauseView]) -> str:
        answer = await self._client.do(call)
        self.view = answer.session
        return answer.how

    async def extend(self, by: str | timedelta = "", *, until: datetime | None = None) -> AsyncSession:
        """Move its end: by `30m`, or until an instant."""
        self.view = await self._client.do(sessions.extend(self.id, by, until))
        return self

    @show_words(Changes)
    async def again(self, *, key: str | None = None, **changes: Unpack[Changes]) -> AsyncOffers:
        """The same once more: `cores=8`, `time="2h"`, `set={"a": 2}`; the notes of the answer say what is changed."""
        view = await self._client.do(moves.again(self.id, changes, key=key))
        return AsyncOffers(self._client, view)

    async def explain(self) -> Explanation:
        """Why it is where it is."""
        return await self._client.do(moves.explain(self.id))

    async def token(self) -> str:
        """A token that is for this session only: to look, follow, fetch, cancel, pause and resume."""
        return (await self._client.do(people.session_token(self.id))).token

    async def delete(self) -> None:
        """Remove it, with its files, once it is over."""
        await self._client.do(sessions.delete(self.id))
