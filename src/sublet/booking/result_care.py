"""Results after the end: until when they are kept, kept longer, and sent to their owner's own storage."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

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
from sublet.kernel.clock import Clock
from sublet.kernel.errors import BadRequest, DataNotSent, NotAllowedNow, NotFound
from sublet.kernel.settings import Settings
from sublet.kernel.texts import count_text, describe_duration
from sublet.movers.arrival import without_secrets
from sublet.movers.port import Content, Pushes
from sublet.people.model.person import Person
from sublet.platforms.port import ResultFile
from sublet.store.store import Store


@dataclass(frozen=True, slots=True)
class SentFile:
    """A result that was sent, and its address now."""

    path: str
    size: int
    to: str


@dataclass
class ResultCare:
    """Keep results longer, or send them somewhere."""

    settings: Settings
    store: Store
    now: Clock
    platforms: KnownPlatforms
    movers: Movers
    signals: Signals
    contents: Contents
    credentials: CredentialSource

    async def find_end(self, name: str, person: Person) -> datetime | None:
        """When the files of a session that is over are removed; None: it isn't over, or they are gone."""
        session = await self.contents.session_to_read(name, person, "results")
        return await self._find_end(session) if session.phase in OVER else None

    async def _find_end(self, session: Session) -> datetime | None:
        return await self.store.read(lambda tx: tx.sessions.find_due(session.id))

    async def keep(self, name: str, person: Person, length: timedelta) -> datetime:
        """Keep the files of a session for so long from now on; when they are removed then."""
        session = await self.contents.session_to_read(name, person, "results")
        longest = self.settings.longest_keep
        if not timedelta(0) < length <= longest:
            detail = f"results can be kept for {describe_duration(longest)} at most."
            raise BadRequest(detail=detail, hint="Say less; it can be said again later.")
        if session.phase not in OVER:
            raise NotAllowedNow(phase=session.phase.value, wanted="kept", session=session.id[:8])
        if await self._find_end(session) is None:
            raise NotFound(f"The results of {session.id[:8]} were removed already.", hint="Run it again: sublet again.")
        now, until = self.now(), self.now() + length
        await self.store.write(lambda tx: tx.sessions.change(session.id, now=now, when=OVER, due=until))
        return until

    async def send(self, name: str, person: Person, results: SentResults) -> AsyncIterator[SentFile]:
        """Send results to an address, with the person's own credentials; each as it is there."""
        session = await self.contents.session_to_read(name, person, "results")
        if session.person != person.name:
            raise NotFound(noun="session of yours", name=name)
        mover = await self._choose(session, results)
        files = await self._list(session, results)
        to = results.to if len(files) == 1 or results.to.endswith("/") else f"{results.to}/"
        platform = self.platforms.of(session)
        for file, place in files:
            content = Content(place, file.size, partial(platform.read, session.id, file.path))
            address = await mover.push(content, to, lambda done, total: None)
            yield SentFile(file.path, file.size, without_secrets(address))
        words, now = f"{count_text(len(files), 'file')} to {without_secrets(results.to)}", self.now()
        await self.store.write(lambda tx: tx.events.add(now, session.id, session.person, EventKind.SENT, words))
        await self.signals.announce()

    async def _choose(self, session: Session, results: SentResults) -> Pushes:
        guest = self.platforms.of(session).hosts(session.person)
        credentials = () if guest else await self.credentials.open(session.person)
        mover = self.movers.with_credentials(credentials).choose_push(results, guest=guest)
        if isinstance(mover, Reason):
            raise BadRequest(detail=mover.message, hint="Write one like s3://bucket/folder/.")
        return mover

    async def _list(self, session: Session, results: SentResults) -> list[tuple[ResultFile, str]]:
        left = await self.platforms.of(session).results(session.id) if session.job else None
        chosen = [(file, place) for file in (left.files if left else ()) if (place := results.place(file.path))]
        if not chosen:
            raise DataNotSent(
                name=results.path, location=without_secrets(results.to), why="the session left no such file"
            )
        return chosen
