"""An offer, the answer that it came in, and a session, for programs that wait."""

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
    """One answer to a request."""

    def __init__(self, client: Client, view: OfferView) -> None:
        """Made by `Client.ask`."""
        super().__init__(view)
        self._client = client

    def accept(self, *, key: str | None = None) -> Session:
        """Take it; its siblings are given back. Accepting twice is once; under a `key` no other offer is accepted."""
        return Session(self._client, self._client.do(sessions.accept(self.id, key)))

    def reject(self) -> None:
        """Decline it."""
        self._client.do(sessions.reject(self.id))


class Offers(OfferList[Offer]):
    """The answer to a request; after `with client.ask(…) as offers:` nothing stays held that was not accepted."""

    def __init__(self, client: Client, view: OfferSetView) -> None:
        """Made by `Client.ask`."""
        super().__init__(view, [Offer(client, offer) for offer in view.offers])
        self._client = client

    def reject(self) -> int:
        """Decline all that were not accepted, and say how many those were."""
        return self._client.do(offers.reject_set(self.view.id)).offers

    def __enter__(self) -> Offers:
        """For `with`."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Give back what is still held."""
        if self.view.offers:
            self.reject()


class Session(SessionFacts):
    """An accepted offer, and what becomes of it."""

    def __init__(self, client: Client, view: SessionView) -> None:
        """Made by `Offer.accept` and `Client.session`."""
        super().__init__(view)
        self._client = client

    def refresh(self) -> Session:
        """Look again."""
        self.view = self._client.do(sessions.session(self.id))
        return self

    def wait(self, timeout: Timeout | None = None) -> Session:
        """Until it is over; NotOverYet after `timeout` seconds."""
        self.view = carry_out(self._client.link, until_over(self.id, timeout))
        return self

    def logs(self, *, stream: str = "stdout", follow: bool = False, offset: int = 0) -> Iterator[str]:
        """What it printed, as text in pieces; with `follow`, also what it is going to print, until it is over."""
        following = Following(self.id, stream, offset)
        decoder = Decoder("replace")
        link = self._client.link
        pieces = wait_and_follow(link, following) if follow else so_far(link, following)
        yield from filter(None, map(decoder.decode, pieces))
        yield from filter(None, [decoder.decode(b"", final=True)])

    def results(self) -> tuple[ResultFileView, ...]:
        """The files that it left."""
        return self._client.do(results.results(self.id)).items

    def table(self) -> list[dict[str, Any]]:
        """Of a sweep or a bag: a row for each task that was run, with its parameters and what came of it."""
        record, printed = (self._file(name) for name in (RECORD, PRINTED))
        return join_table(record.splitlines(), lambda offset, length: printed[offset : offset + length])

    def _file(self, path: str) -> bytes:
        is_there = any(file.path == path for file in self.results())
        return bytes(self.result(path)) if is_there else b""

    def result(self, path: Place) -> Result:
        """One of those files, whole."""
        return Result(self._client.do(results.result(self.id, path)))

    def archive(self, to: str | os.PathLike[str]) -> None:
        """All of those files, as one tar.gz, written to a file here."""
        with open(to, "wb") as file:
            file.writelines(self._client.stream(results.archive(self.id)))

    def send(self, to: str, path: str = "*") -> tuple[SentFileView, ...]:
        """Send some of those files, or all, from where they are to storage of your own; what is there stays as it is.

        session.send("s3://bucket/run1/", "out/*.nc")
        """
        lines = SentLines()
        for piece in self._client.stream(results.send(self.id, to, path)):
            lines.saw(piece)
        return tuple(lines.files)

    def fetched(self) -> None:
        """Say that its files are here now: where it ran as a guest, nothing of it needs to stay.

        session.archive("results.tar.gz")
        session.fetched()
        """
        self._client.do(results.fetched(self.id))

    def accept(self, *, key: str | None = None) -> Session:
        """Take it, while it is an offer still."""
        self.view = self._client.do(sessions.accept(self.id, key))
        return self

    def cancel(self, reason: str = "") -> Session:
        """Stop it, whatever it is doing; its owner sees the reason."""
        self.view = self._client.do(sessions.cancel(self.id, reason))
        return self

    def pause(self) -> str:
        """Let it stand still, and say how: held in its queue, or stopped where it runs. Its time limit runs on."""
        return self._pause(moves.pause(self.id))

    def resume(self) -> str:
        """Let it go on, and say how."""
        return self._pause(moves.resume(self.id))

    def _pause(self, call: Call[PauseView]) -> str:
        answer = self._client.do(call)
        self.view = answer.session
        return answer.how

    def extend(self, by: str | timedelta = "", *, until: datetime | None = None) -> Session:
        """Move its end: by `30m`, or until an instant."""
        self.view = self._client.do(sessions.extend(self.id, by, until))
        return self

    @show_words(Changes)
    def again(self, *, key: str | None = None, **changes: Unpack[Changes]) -> Offers:
        """The same once more: `cores=8`, `time="2h"`, `set={"a": 2}`; the notes of the answer say what is changed."""
        view = self._client.do(moves.again(self.id, changes, key=key))
        return Offers(self._client, view)

    def explain(self) -> Explanation:
        """Why it is where it is."""
        return self._client.do(moves.explain(self.id))

    def token(self) -> str:
        """A token that is for this session only: to look, follow, fetch, cancel, pause and resume."""
        return self._client.do(people.session_token(self.id)).token

    def delete(self) -> None:
        """Remove it, with its files, once it is over."""
        self._client.do(sessions.delete(self.id))
