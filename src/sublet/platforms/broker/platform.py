"""Another Execution Broker, through its HTTP interface: Sublet, or any that speaks IVOA's 1.0.7 or an older version."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar, Literal
from urllib.parse import quote, urlsplit

from pydantic import Field, PrivateAttr, field_validator

from sublet.booking.model.job import Job, JobState, State
from sublet.booking.model.offer import Quote, Remote
from sublet.booking.model.session import EndKind
from sublet.booking.model.windows import parse_instant
from sublet.kernel.errors import LoginNeeded, PlatformRefused
from sublet.kernel.secret_file import read_secret_file
from sublet.kernel.streams import closing
from sublet.platforms.broker.asking import BrokerAsks
from sublet.platforms.broker.fields import Document, read_maps, read_text
from sublet.platforms.broker.pace import WatchPace
from sublet.platforms.broker.records import TakenOffer, TakenOffers
from sublet.platforms.broker.states import read_state
from sublet.platforms.broker.wire import LOOPBACK, SUBLET, BrokerWire
from sublet.platforms.brokering import BrokerIdentity, PassedAnswer, PassedRequest
from sublet.platforms.port import INSTEAD, Platform, ResultFile, Results, Survey

AT_ONCE = 8  # sessions that are polled at the same time
NOBODY = "00000000-0000-0000-0000-000000000000"
NO_JOBS = "it takes requests, and no jobs of this service's making"
Stream = Literal["stdout", "stderr"]


class Broker(Platform):
    """Another broker: what it offers is offered here, and what is accepted here is accepted there."""

    kind: ClassVar[str] = "broker"
    terms: ClassVar[Literal["remote"]] = "remote"
    tells: ClassVar[bool] = True
    url: str = Field(description="Its address, as `https://broker.example.org`.")
    token_file: Path | None = Field(
        default=None,
        description="A file with a token for this service, which only you can read; people's own tokens for "
        "the broker's address come first.",
    )
    older: bool = Field(
        default=False,
        description="Whether it speaks a schema before 1.0: `type` for `kind`, and `POST /offersets`. Detected "
        "automatically if it has no `POST /requests`.",
    )
    _wire: BrokerWire = PrivateAttr()
    _asks: BrokerAsks = PrivateAttr()
    _taken: TakenOffers = PrivateAttr()
    _identity: BrokerIdentity | None = PrivateAttr(default=None)
    _pace: WatchPace = PrivateAttr(default_factory=WatchPace)

    @field_validator("url")
    @classmethod
    def _check_url(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in ("https", "http") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("write an address like https://broker.example.org")
        if parts.username or parts.password:
            raise ValueError("an address can't have a password in it; give the token apart")
        if parts.scheme == "http" and parts.hostname not in LOOPBACK:
            raise ValueError("it has to be https: a token would travel in the clear")
        return url.rstrip("/")

    def use_identity(self, identity: BrokerIdentity) -> None:
        """Set how to authenticate to the broker; call this before `open`."""
        self._identity = identity

    def has_address(self, location: str) -> bool:
        """Whether a URL is below the broker's configured address; addresses that it redirects to don't count."""
        return location.startswith(f"{self.url}/")

    async def open(self, home: Path) -> None:
        """Open the records of offers that were accepted earlier."""
        token = await asyncio.to_thread(_read_token, self.token_file, self.name)
        self._wire = BrokerWire(self.name, self.url, token, self._identity)
        self._asks = BrokerAsks(self._wire, self.older)
        self._taken = await asyncio.to_thread(TakenOffers, home / "sessions")

    async def close(self) -> None:
        """Close the connections."""
        await self._wire.close()

    async def survey(self) -> Survey:
        """Check that the broker answers, and return its version; its resources appear only in offers."""
        now = datetime.now(UTC)
        try:
            reply = await self._wire.get(f"/offersets/{NOBODY}", "")
        except LoginNeeded:
            if await self._wire.authorize(""):
                raise
            return Survey(now, (), notes=(f"a broker at {self.url}, which asks who each person is",))
        version = reply.headers.get(SUBLET, "")
        return Survey(now, (), notes=(f"a broker at {self.url}{f', Sublet {version}' if version else ''}",))

    # Offers

    async def pass_on(self, request: PassedRequest, now: datetime) -> PassedAnswer:
        """Pass a request on to the broker."""
        return await self._asks.ask(request, now)

    async def take(self, terms: Remote, person: str, key: str) -> str:
        """Accept an offer there, and record the address of its session under the key."""
        taken = TakenOffer(terms.url, person)
        await asyncio.to_thread(self._taken.put, key, taken)
        await self._asks.accept(taken, key)
        self._pace.watch(key)
        return key

    async def give_up(self, url: str, person: str, by: str = "") -> None:
        """Reject or cancel an offer or session there, whichever it needs."""
        await self._asks.give_up(TakenOffer(url, person))

    async def give_up_ask(self, offerset: str, person: str, again: PassedRequest | None, keep: frozenset[str]) -> None:
        """Reject what is left of an offer set."""
        await self._asks.give_up_set(offerset, person, again, keep)

    # Sessions

    async def place(self, key: str) -> Path | None:
        """Return None, as the other broker stages the data that the request names."""
        return None

    async def find(self, key: str) -> str | None:
        """Return the key if an offer was accepted for it."""
        return key if await asyncio.to_thread(self._taken.get, key) else None

    async def submit(self, job: Job, key: str) -> str:
        """Raise PlatformRefused, as a session there begins with an offer."""
        raise PlatformRefused(platform=self.name, why=NO_JOBS)

    async def ask(self, ids: Sequence[str]) -> Mapping[str, JobState]:
        """Return the states of sessions by their documents; of several, those that can't be read are left out."""
        turns = asyncio.Semaphore(AT_ONCE)

        async def look(key: str) -> JobState | None:
            async with turns:
                try:
                    return await self._ask_after(key)
                except LoginNeeded:
                    if len(ids) == 1:
                        raise
                    return None  # one person's token has expired: the others' may be valid

        states = await asyncio.gather(*(look(key) for key in ids))
        return {key: state for key, state in zip(ids, states, strict=True) if state}

    async def _ask_after(self, key: str) -> JobState:
        taken = await asyncio.to_thread(self._taken.get, key)
        document = await self._asks.look(taken) if taken else None
        if taken is None or document is None:
            return JobState(State.UNKNOWN)
        state = read_state(document, self.name)
        self._pace.note(key, state)
        if state.end and state.end.kind is EndKind.CANCELLED and taken.by:
            return replace(state, end=replace(state.end, by=taken.by))
        return state

    async def news(self) -> Sequence[str] | None:
        """Return the sessions that are due to be polled."""
        return self._pace.list_due()

    async def cancel(self, ids: Sequence[str], by: str) -> None:
        """Cancel these sessions there."""
        for key in ids:
            if taken := await asyncio.to_thread(self._taken.note_cancel, key, by):
                await self._asks.give_up(taken)
                self._pace.watch(key)

    async def lengthen(self, key: str, duration: timedelta) -> tuple[Quote, ...]:
        """Extend a session there to this duration, and return its new price, if that broker states it."""
        taken = await asyncio.to_thread(self._taken.get, key)
        if taken is None:
            raise PlatformRefused(platform=self.name, why="the session is not there yet", hint="Try again in a moment.")
        return await self._asks.lengthen(taken, duration)

    async def extend(self, id: str, until: datetime) -> None:
        """Do nothing: the broker was already told by `lengthen`, before the new end was recorded here."""

    async def pause(self, id: str) -> str:
        """Pause a session there."""
        return await self._stand_still(id, "pause")

    async def resume(self, id: str) -> str:
        """Resume a session there."""
        return await self._stand_still(id, "resume")

    async def _stand_still(self, key: str, move: Literal["pause", "resume"]) -> str:
        taken = await self._find_sublet(key)
        if taken is None:
            why = "brokers have no common word for a pause, and this one is no Sublet"
            raise PlatformRefused(platform=self.name, why=why, hint=INSTEAD)
        reply = await self._wire.post(f"/v1{taken.path}/{move}", taken.person, None)
        if reply.status != 200:
            raise PlatformRefused(platform=self.name, why=reply.words, hint=INSTEAD)
        self._pace.watch(key)
        return read_text(reply.document, "how")

    # Output and results: IVOA's protocol has none of this, so it is asked only of Sublet

    async def output(self, key: str, stream: Stream, offset: int, limit: int) -> bytes:
        """Return part of a session's output."""
        taken = await self._find_sublet(key)
        if taken is None:
            return b""
        path = f"/v1{taken.path}/logs"
        reply = await self._wire.get(path, taken.person, stream=stream, offset=str(offset), limit=str(limit))
        return reply.body if reply.status == 200 else b""

    async def output_size(self, key: str, stream: Stream) -> int:
        """Return the size of a session's output in bytes."""
        taken = await self._find_sublet(key)
        if taken is None:
            return 0
        reply = await self._wire.get(f"/v1{taken.path}/logs", taken.person, stream=stream, tail="1")
        size = reply.headers.get("sublet-next-offset", "")
        return int(size) if reply.status == 200 and size.isdecimal() else 0

    async def results(self, key: str) -> Results:
        """List a session's results, as that broker does."""
        taken = await self._find_sublet(key)
        if taken is None:
            return Results()
        reply = await self._wire.get(f"/v1{taken.path}/results", taken.person)
        if reply.status != 200:
            return Results()
        folders = reply.document.get("folders")
        return Results(
            tuple(_read_file(item) for item in read_maps(reply.document, "items")),
            tuple(map(str, folders)) if isinstance(folders, list) else (),
        )

    async def read(self, key: str, path: str, offset: int = 0) -> AsyncIterator[bytes]:
        """Read a result file, from an offset."""
        taken = await self._find_sublet(key)
        if taken is None:
            raise PlatformRefused(platform=self.name, why="it has no files that can be fetched through another broker")
        async with closing(self._wire.stream(f"/v1{taken.path}/results/{quote(path)}", taken.person, offset)) as pieces:
            async for piece in pieces:
                yield piece

    async def come_home(self, key: str) -> None:
        """Tell the broker that the session's files have been fetched."""
        if taken := await self._find_sublet(key):
            await self._wire.post(f"/v1{taken.path}/fetched", taken.person, None)

    async def clean(self, key: str) -> None:
        """Have a session removed there, if that broker allows it, and forget it."""
        if taken := await self._find_sublet(key):
            await self._wire.delete(f"/v1{taken.path}", taken.person)
        self._pace.forget(key)
        await asyncio.to_thread(self._taken.remove, key)

    async def _find_sublet(self, key: str) -> TakenOffer | None:
        """Return the session there, if that broker is a Sublet."""
        taken = await asyncio.to_thread(self._taken.get, key)
        if taken and not self._wire.is_sublet:
            await self._asks.look(taken)  # after a restart, it isn't known yet whether it is
        return taken if self._wire.is_sublet else None


def _read_token(file: Path | None, name: str) -> str:
    if file is None:
        return ""
    try:
        return read_secret_file(file.expanduser())
    except ValueError as error:
        why = f"its token can't be used: {error}"
        raise PlatformRefused(platform=name, why=why, hint="Mend `token_file` in sublet.toml.") from error


def _read_file(item: Document) -> ResultFile:
    size = item.get("size")
    modified = read_text(item, "modified")
    return ResultFile(
        read_text(item, "path"),
        size if isinstance(size, int) else 0,
        parse_instant(modified) if modified else datetime.now(UTC),
    )
