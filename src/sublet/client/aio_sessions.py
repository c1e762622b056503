"""Offers, offer sets and sessions for the asynchronous client."""

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
    """One offer of an answer."""

    def __init__(self, client: AsyncClient, view: OfferView) -> None:
        """Wrap a view of the offer; use `AsyncClient.ask` instead."""
        super().__init__(view)
        self._client = client

    async def accept(self, *, key: str | None = None) -> AsyncSession:
        """Accept the offer, which declines the set's others; repeating is safe, and a `key` is for one offer only."""
        return AsyncSession(self._client, await self._client.do(sessions.accept(self.id, key)))

    async def reject(self) -> None:
        """Decline the offer."""
        await self._client.do(sessions.reject(self.id))


class AsyncOffers(OfferList[AsyncOffer]):
    """The answer to a request; leaving `async with await client.ask(…)` releases the offers that weren't accepted."""

    def __init__(self, client: AsyncClient, view: OfferSetView) -> None:
        """Wrap a view of the answer; use `AsyncClient.ask` instead."""
        super().__init__(view, [AsyncOffer(client, offer) for offer in view.offers])
        self._client = client

    async def reject(self) -> int:
        """Decline all offers that weren't accepted; return how many there were."""
        return (await self._client.do(offers.reject_set(self.view.id))).offers

    async def __aenter__(self) -> AsyncOffers:
        """Return the offers, for `async with`."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Release the offers that weren't accepted."""
        if self.view.offers:
            await self.reject()


class AsyncSession(SessionFacts):
    """A session: an accepted offer, from its start to its results."""

    def __init__(self, client: AsyncClient, view: SessionView) -> None:
        """Wrap a view of the session; use `AsyncOffer.accept` or `AsyncClient.session` instead."""
        super().__init__(view)
        self._client = client

    async def refresh(self) -> AsyncSession:
        """Update the session from the service."""
        self.view = await self._client.do(sessions.session(self.id))
        return self

    async def wait(self, timeout: Timeout | None = None) -> AsyncSession:  # noqa: ASYNC109 - as in the other client
        """Wait until the session has ended; raise NotOverYet after `timeout` seconds."""
        self.view = await self._client.carry_out(until_over(self.id, timeout))
        return self

    async def logs(self, *, stream: str = "stdout", follow: bool = False, offset: int = 0) -> AsyncIterator[str]:
        """Yield the session's output as text; with `follow`, continue until it has ended."""
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
        """Return the list of result files."""
        return (await self._client.do(results.results(self.id))).items

    async def table(self) -> list[dict[str, Any]]:
        """Return a row for each finished task of a sweep or bag, with its parameters and its result."""
        record, printed = [await self._file(name) for name in (RECORD, PRINTED)]
        return join_table(record.splitlines(), lambda offset, length: printed[offset : offset + length])

    async def _file(self, path: str) -> bytes:
        is_there = any(file.path == path for file in await self.results())
        return bytes(await self.result(path)) if is_there else b""

    async def result(self, path: Place) -> Result:
        """Return the content of a result file."""
        content = await self._client.do(results.result(self.id, path))
        return Result(content)

    async def archive(self, to: str | os.PathLike[str]) -> None:
        """Download all result files as one tar.gz, to a local file."""
        with open(to, "wb") as file:  # noqa: ASYNC230 - pieces of 64 KiB to a local file
            async with closing(self._client.stream(results.archive(self.id))) as pieces:
                async for piece in pieces:
                    file.write(piece)

    async def send(self, to: str, path: str = "*") -> tuple[SentFileView, ...]:
        """Send result files that match a pattern, or all, to your own storage; files sent before aren't sent again."""
        lines = SentLines()
        async with closing(self._client.stream(results.send(self.id, to, path))) as pieces:
            async for piece in pieces:
                lines.saw(piece)
        return tuple(lines.files)

    async def fetched(self) -> None:
        """Confirm that the results were downloaded, so that a platform where Sublet is a guest can remove them."""
        await self._client.do(results.fetched(self.id))

    async def accept(self, *, key: str | None = None) -> AsyncSession:
        """Accept the session while it is still an offer."""
        self.view = await self._client.do(sessions.accept(self.id, key))
        return self

    async def cancel(self, reason: str = "") -> AsyncSession:
        """Cancel the session in any phase; its owner sees the reason."""
        self.view = await self._client.do(sessions.cancel(self.id, reason))
        return self

    async def pause(self) -> str:
        """Pause the session; return how: held in its queue, or stopped where it runs. Its time limit isn't extended."""
        return await self._pause(moves.pause(self.id))

    async def resume(self) -> str:
        """Resume the session; return how."""
        return await self._pause(moves.resume(self.id))

    async def _pause(self, call: Call[PauseView]) -> str:
        answer = await self._client.do(call)
        self.view = answer.session
        return answer.how

    async def extend(
        self, by: str | timedelta = "", *, until: datetime | None = None, key: str | None = None
    ) -> AsyncSession:
        """Extend the session: by a duration such as `30m`, or until an instant."""
        self.view = await self._client.do(sessions.extend(self.id, by, until, key))
        return self

    @show_words(Changes)
    async def again(self, *, key: str | None = None, **changes: Unpack[Changes]) -> AsyncOffers:
        """Ask for the same again, with changes such as `cores=8` or `set={"a": 2}`, which the answer's notes list."""
        view = await self._client.do(moves.again(self.id, changes, key=key))
        return AsyncOffers(self._client, view)

    async def explain(self) -> Explanation:
        """Return why the session is in its present state."""
        return await self._client.do(moves.explain(self.id))

    async def token(self) -> str:
        """Return a token for this session only: to view, follow, fetch, cancel, pause and resume it."""
        return (await self._client.do(people.session_token(self.id))).token

    async def delete(self) -> None:
        """Delete the session and its files, after it has ended."""
        await self._client.do(sessions.delete(self.id))
