"""Results after a session's end: how long they are kept, and sending them to their owner's own storage."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from time import monotonic

from sublet.booking.contents import Contents
from sublet.booking.model.events import EventKind
from sublet.booking.model.offer import Reason
from sublet.booking.model.phases import OVER
from sublet.booking.model.request import SentResults
from sublet.booking.model.session import Session
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.ports import CredentialSource
from sublet.booking.signals import Signals
from sublet.data.executables import Movers
from sublet.data.sending import SentFile, Shipment, describe_sent, send_shipment
from sublet.kernel.clock import Clock
from sublet.kernel.errors import BadRequest, NotAllowedNow, NotFound
from sublet.kernel.settings import Settings
from sublet.kernel.streams import closing
from sublet.kernel.texts import describe_duration
from sublet.movers.port import Progress, Pushes
from sublet.people.model.person import Person
from sublet.platforms.port import ResultFile
from sublet.store.store import Store

EVERY = 0.5  # seconds between two reports of progress


@dataclass(frozen=True, slots=True)
class SendProgress:
    """The progress of sending: what is being sent, in words, and how many bytes of it are done."""

    doing: str
    done: int
    total: int | None


@dataclass
class ResultCare:
    """Keeps results longer, and sends them to storage."""

    settings: Settings
    store: Store
    now: Clock
    platforms: KnownPlatforms
    movers: Movers
    signals: Signals
    contents: Contents
    credentials: CredentialSource

    async def find_end(self, name: str, person: Person) -> datetime | None:
        """Return when the files of an ended session are removed; None if it isn't over, or they are gone."""
        session = await self.contents.session_to_read(name, person, "results")
        return await self._find_end(session) if session.phase in OVER else None

    async def _find_end(self, session: Session) -> datetime | None:
        return await self.store.read(lambda tx: tx.sessions.find_due(session.id))

    async def keep(self, name: str, person: Person, length: timedelta) -> datetime:
        """Keep a session's files for this long from now on; return when they will be removed."""
        session = await self.contents.session_to_read(name, person, "results")
        longest = self.settings.longest_keep
        if not timedelta(0) < length <= longest:
            detail = f"results can be kept for {describe_duration(longest)} at most, and for some time at least."
            raise BadRequest(detail=detail, hint="Write a length like 7d; it can be said again later.")
        if session.phase not in OVER:
            raise NotAllowedNow(phase=session.phase.value, wanted="kept", session=session.id[:8])
        if await self._find_end(session) is None:
            raise NotFound(f"The results of {session.id[:8]} were removed already.", hint="Run it again: sublet again.")
        now, until = self.now(), self.now() + length
        await self.store.write(lambda tx: tx.sessions.change(session.id, now=now, when=OVER, due=until))
        return until

    async def send(self, name: str, person: Person, results: SentResults) -> AsyncIterator[SentFile | SendProgress]:
        """Send results to an address with the person's own credentials; yield progress, and each file once it is there.

        Files that were sent before, and are still there, are not sent again.
        """
        session = await self.contents.session_to_read(name, person, "results")
        if session.person != person.name:
            raise NotFound(noun="session of yours", name=name)
        movers, mover, guest = await self._choose(session, results)
        files = await self._list(session, results)
        to = results.to if len(files) == 1 or results.to.endswith("/") else f"{results.to}/"
        shipment = Shipment(session.id, self.platforms.of(session), mover, files, to)
        news: asyncio.Queue[SentFile | SendProgress | None] = asyncio.Queue()
        work = asyncio.create_task(self._send_all(session, shipment, movers, guest, news))
        work.add_done_callback(lambda _: news.put_nowait(None))
        try:
            while (piece := await news.get()) is not None:
                yield piece
            await work
        finally:
            work.cancel()
            await asyncio.wait([work])

    async def _send_all(
        self,
        session: Session,
        shipment: Shipment,
        movers: Movers,
        guest: bool,
        news: asyncio.Queue[SentFile | SendProgress | None],
    ) -> None:
        tell = partial(tell_now_and_then, news)
        road = ""
        async with closing(send_shipment(shipment, movers, self.settings.home, tell, guest=guest)) as sent:
            async for file in sent:
                road = road or file.road
                news.put_nowait(file)
        words, now = describe_sent(len(shipment.files), shipment.to, road), self.now()
        await self.store.write(lambda tx: tx.events.add(now, session.id, session.person, EventKind.SENT, words))
        await self.signals.announce()

    async def _choose(self, session: Session, results: SentResults) -> tuple[Movers, Pushes, bool]:
        """Return movers with the person's credentials, the one for this address, and whether the person is a guest."""
        guest = self.platforms.of(session).hosts(session.person)
        credentials = () if guest else await self.credentials.open(session.person)
        movers = self.movers.with_credentials(credentials)
        mover = movers.choose_push(results, guest=guest)
        if isinstance(mover, Reason):
            raise BadRequest(detail=mover.message, hint="Write one like s3://bucket/folder/.")
        return movers, mover, guest

    async def _list(self, session: Session, results: SentResults) -> list[tuple[ResultFile, str]]:
        left = await self.platforms.of(session).results(session.id) if session.job else None
        chosen = [(file, place) for file in (left.files if left else ()) if (place := results.place(file.path))]
        if not chosen:
            raise NotFound(noun="result", name=results.path, hint="`sublet result` lists the files.")
        return chosen


def tell_now_and_then(news: asyncio.Queue[SentFile | SendProgress | None], doing: str) -> Progress:
    """Return a callback that reports progress, at most twice a second."""
    last = -EVERY

    def tell(done: int, total: int | None) -> None:
        nonlocal last
        if (now := monotonic()) - last >= EVERY:
            last = now
            news.put_nowait(SendProgress(doing, done, total))

    return tell
