"""Offers, offer sets and sessions for the synchronous client."""

from __future__ import annotations

import os
from collections.abc import Iterator
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
from sublet.client.waiting import carry_out, so_far
from sublet.client.waiting import follow as wait_and_follow
from sublet.client.wishes import Changes, Place, show_words
from sublet.people.calls import people

if TYPE_CHECKING:
    from sublet.client.sync import Client


class Offer(OfferFacts):
    """One offer of an answer."""

    def __init__(self, client: Client, view: OfferView) -> None:
        """Wrap a view of the offer; use `Client.ask` instead."""
        super().__init__(view)
        self._client = client

    def accept(self, *, key: str | None = None) -> Session:
        """Accept the offer, which declines the set's others; repeating is safe, and a `key` is for one offer only."""
        return Session(self._client, self._client.do(sessions.accept(self.id, key)))

    def reject(self) -> None:
        """Decline the offer."""
        self._client.do(sessions.reject(self.id))


class Offers(OfferList[Offer]):
    """The answer to a request; leaving `with client.ask(…) as offers:` releases the offers that weren't accepted."""

    def __init__(self, client: Client, view: OfferSetView) -> None:
        """Wrap a view of the answer; use `Client.ask` instead."""
        super().__init__(view, [Offer(client, offer) for offer in view.offers])
        self._client = client

    def reject(self) -> int:
        """Decline all offers that weren't accepted; return how many there were."""
        return self._client.do(offers.reject_set(self.view.id)).offers

    def __enter__(self) -> Offers:
        """Return the offers, for `with`."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Release the offers that weren't accepted."""
        if self.view.offers:
            self.reject()


class Session(SessionFacts):
    """A session: an accepted offer, from its start to its results."""

    def __init__(self, client: Client, view: SessionView) -> None:
        """Wrap a view of the session; use `Offer.accept` or `Client.session` instead."""
        super().__init__(view)
        self._client = client

    def refresh(self) -> Session:
        """Update the session from the service."""
        self.view = self._client.do(sessions.session(self.id))
        return self

    def wait(self, timeout: Timeout | None = None) -> Session:
        """Wait until the session has ended; raise NotOverYet after `timeout` seconds."""
        self.view = carry_out(self._client.link, until_over(self.id, timeout))
        return self

    def logs(self, *, stream: str = "stdout", follow: bool = False, offset: int = 0) -> Iterator[str]:
        """Yield the session's output as text; with `follow`, continue until it has ended."""
        following = Following(self.id, stream, offset)
        decoder = Decoder("replace")
        link = self._client.link
        pieces = wait_and_follow(link, following) if follow else so_far(link, following)
        yield from filter(None, map(decoder.decode, pieces))
        yield from filter(None, [decoder.decode(b"", final=True)])

    def results(self) -> tuple[ResultFileView, ...]:
        """Return the list of result files."""
        return self._client.do(results.results(self.id)).items

    def table(self) -> list[dict[str, Any]]:
        """Return a row for each finished task of a sweep or bag, with its parameters and its result."""
        record, printed = (self._file(name) for name in (RECORD, PRINTED))
        return join_table(record.splitlines(), lambda offset, length: printed[offset : offset + length])

    def _file(self, path: str) -> bytes:
        is_there = any(file.path == path for file in self.results())
        return bytes(self.result(path)) if is_there else b""

    def result(self, path: Place) -> Result:
        """Return the content of a result file."""
        return Result(self._client.do(results.result(self.id, path)))

    def archive(self, to: str | os.PathLike[str]) -> None:
        """Download all result files as one tar.gz, to a local file."""
        with open(to, "wb") as file:
            file.writelines(self._client.stream(results.archive(self.id)))

    def send(self, to: str, path: str = "*") -> tuple[SentFileView, ...]:
        """Send result files that match a pattern, or all, to your own storage; files sent before aren't sent again.

        For example::

            session.send("s3://bucket/run1/", "out/*.nc")
        """
        lines = SentLines()
        for piece in self._client.stream(results.send(self.id, to, path)):
            lines.saw(piece)
        return tuple(lines.files)

    def fetched(self) -> None:
        """Confirm that the results were downloaded, so that a platform where Sublet is a guest can remove them.

        For example::

            session.archive("results.tar.gz")
            session.fetched()
        """
        self._client.do(results.fetched(self.id))

    def accept(self, *, key: str | None = None) -> Session:
        """Accept the session while it is still an offer."""
        self.view = self._client.do(sessions.accept(self.id, key))
        return self

    def cancel(self, reason: str = "") -> Session:
        """Cancel the session in any phase; its owner sees the reason."""
        self.view = self._client.do(sessions.cancel(self.id, reason))
        return self

    def pause(self) -> str:
        """Pause the session; return how: held in its queue, or stopped where it runs. Its time limit isn't extended."""
        return self._pause(moves.pause(self.id))

    def resume(self) -> str:
        """Resume the session; return how."""
        return self._pause(moves.resume(self.id))

    def _pause(self, call: Call[PauseView]) -> str:
        answer = self._client.do(call)
        self.view = answer.session
        return answer.how

    def extend(self, by: str | timedelta = "", *, until: datetime | None = None, key: str | None = None) -> Session:
        """Extend the session: by a duration such as `30m`, or until an instant."""
        self.view = self._client.do(sessions.extend(self.id, by, until, key))
        return self

    @show_words(Changes)
    def again(self, *, key: str | None = None, **changes: Unpack[Changes]) -> Offers:
        """Ask for the same again, with changes such as `cores=8` or `set={"a": 2}`, which the answer's notes list."""
        view = self._client.do(moves.again(self.id, changes, key=key))
        return Offers(self._client, view)

    def explain(self) -> Explanation:
        """Return why the session is in its present state."""
        return self._client.do(moves.explain(self.id))

    def token(self) -> str:
        """Return a token for this session only: to view, follow, fetch, cancel, pause and resume it."""
        return self._client.do(people.session_token(self.id)).token

    def delete(self) -> None:
        """Delete the session and its files, after it has ended."""
        self._client.do(sessions.delete(self.id))
