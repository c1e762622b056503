"""What a person can do with a session: look, accept, reject, cancel, extend, delete."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from sublet.core.amounts import parse_duration
from sublet.core.holds import hold_of, takes_of
from sublet.core.offer import Offer
from sublet.core.session import ACTIVE, OVER, EndKind, OfferSet, Phase, Session
from sublet.errors import (
    BadRequest,
    NoOffers,
    NotAllowedNow,
    NotFound,
    NotInvited,
    OfferExpired,
    OfferGaveWay,
    PlatformRefused,
    SubletError,
)
from sublet.service import metrics
from sublet.service.asking import named
from sublet.service.best_offer import best_offer
from sublet.service.candidates import Asked
from sublet.service.dependencies import begin
from sublet.service.desk import Person, log
from sublet.service.faults import point
from sublet.service.holds import held_on
from sublet.service.offers import Offers
from sublet.store.audit import Entry
from sublet.store.sessions import Page
from sublet.store.tx import Tx

PATIENCE = timedelta(seconds=20)  # how long `cancel` waits for the work to have stopped


class Sessions(Offers):
    """Sessions, as their owners see and change them."""

    async def session(self, name: str, person: Person) -> Session:
        """The session of this id, or of an id that begins so."""
        found = await self.store.read(lambda tx: named(tx, name, person))
        return self.shown(self.mine(found, person, name))

    async def offerset_of(self, session: Session) -> OfferSet:
        """The offer set that a session came from, with the request behind it."""
        found = await self.store.read(lambda tx: tx.offersets.get(session.offerset))
        if found is None:
            raise NotFound(noun="offer set", name=session.offerset)
        return found

    async def sessions(
        self,
        person: Person,
        *,
        phases: Sequence[Phase] | None = None,
        kind: str | None = None,
        platform: str | None = None,
        name: str | None = None,
        active: bool | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> Page:
        """A person's sessions, newest first, a page at a time."""
        page = await self.store.read(
            lambda tx: tx.sessions.list(
                person=person.name,
                phases=phases,
                kind=kind,
                platform=platform,
                name=name,
                active=active,
                limit=limit,
                after=after,
            )
        )
        return replace(page, items=tuple(self.shown(session) for session in page.items))

    async def direct(self, person: Person, asked: Asked) -> Session:
        """Ask, and accept the best offer at once."""
        firm = replace(asked.precedence, firm=True)
        found = await self.ask(person, replace(asked, precedence=firm))
        if not found.offers:
            raise NoOffers(reasons=found.reasons)
        return await self.accept_best(found, person)

    async def accept_best(self, offerset: OfferSet, person: Person) -> Session:
        """Take the best of the offers that were just made, unless it waits for a person to sign in."""
        try:
            best = best_offer(offerset)
        except SubletError:
            await self.reject_set(offerset.id, person)
            raise
        return await self.accept_of(offerset, best.id, person)

    async def accept_of(self, offerset: OfferSet, offer: str, person: Person) -> Session:
        """Take one of the offers that were just made; if that can't be, none of them stays held."""
        try:
            return await self.accept(offer, person)
        except SubletError:
            await self.reject_set(offerset.id, person)
            raise

    async def accept(self, name: str, person: Person) -> Session:
        """Take an offer: its siblings are rejected, and exactly what it needs is booked. Accepting twice is once."""
        offered = await self.session(name, person)
        if person.guest and offered.offer.platform not in await self.invited(person):
            raise NotInvited(platform=offered.offer.platform)
        id = offered.id
        point("accept.before")
        accepted = await self.store.write(lambda tx: self._accept(tx, id))
        point("accept.after")
        metrics.moves.labels(accepted.phase).inc()
        log.info("session.accepted", session=id, person=person.name, platform=accepted.offer.platform)
        await self.tell()
        return self.shown(accepted)

    def _accept(self, tx: Tx, id: str) -> Session:
        now = self.now()
        session = _there(tx, id)
        if session.phase in ACTIVE:
            return session
        if session.phase is Phase.EXPIRED or (session.phase is Phase.OFFERED and session.expires <= now):
            raise OfferExpired(expires=_clock(session.expires))
        if session.end and session.end.kind is EndKind.GAVE_WAY:
            raise OfferGaveWay(offerset=session.end.detail[:8])
        if session.phase is not Phase.OFFERED:
            raise NotAllowedNow(phase=session.phase, wanted=Phase.ACCEPTED, session=id[:8])
        self.admit(tx, session, now)
        start = start_of(session.offer, now)
        siblings = tx.sessions.reject_siblings(session, now)
        for platform in sorted(held_on([session, *siblings])):
            tx.books.release(platform, session.offerset)
            self.freed.add(platform)
        if session.offer.terms.kind == "booked":
            tx.books.take(session.offer.platform, id, takes_of(session.offer, start))
        begin(tx, session)
        for other in siblings:
            tx.events.add(now, other.id, other.person, "session.rejected", "a sibling was accepted", Phase.REJECTED)
        tx.events.add(now, id, session.person, "session.accepted", "", Phase.ACCEPTED)
        until = start + session.offer.duration if session.offer.terms.kind == "booked" else None
        when = (Phase.OFFERED,)
        moved = tx.sessions.move(id, Phase.ACCEPTED, when=when, now=now, start=start, until=until, due=now)
        return _moved(moved, id)

    async def reject(self, name: str, person: Person) -> Session:
        """Decline an offer; what is held shrinks to what its siblings need."""
        id = (await self.session(name, person)).id
        rejected = await self.store.write(lambda tx: self._decline(tx, id, Phase.REJECTED, person))
        await self.tell()
        return rejected

    def _decline(self, tx: Tx, id: str, to: Phase, person: Person) -> Session:
        now = self.now()
        session = _there(tx, id)
        if session.phase is to:
            return session
        if session.phase is not Phase.OFFERED:
            raise NotAllowedNow(phase=session.phase, wanted=to, session=id[:8])
        siblings = tx.sessions.of_set(session.offerset)
        left = [other.offer for other in siblings if other.phase is Phase.OFFERED and other.id != id]
        for platform in sorted(held_on(siblings)):
            stay = [offer for offer in left if offer.platform == platform]
            tx.books.release(platform, session.offerset)
            self.freed.add(platform)
            if stay:
                tx.books.keep(platform, session.offerset, hold_of(stay))
        tx.events.add(now, id, session.person, f"session.{to.lower()}", f"by {person.name}", to)
        return _moved(tx.sessions.move(id, to, when=(Phase.OFFERED,), now=now, due=None), id)

    async def cancel(self, name: str, person: Person) -> Session:
        """Stop a session, whatever it is doing, and wait a little until it has stopped."""
        session = await self.session(name, person)
        asked = await self.store.write(lambda tx: self._cancel(tx, session.id, person))
        await self.tell()
        return self.shown(asked) if asked.phase in OVER else await self._over(session.id)

    def _cancel(self, tx: Tx, id: str, person: Person) -> Session:
        now = self.now()
        session = _there(tx, id)
        if session.phase in OVER:
            if session.phase is Phase.CANCELLED:
                return session
            raise NotAllowedNow(phase=session.phase, wanted=Phase.CANCELLED, session=id[:8])
        if session.phase is Phase.OFFERED:
            return self._decline(tx, id, Phase.CANCELLED, person)
        if session.phase is Phase.RELEASING or session.cancel_by:
            return session
        tx.events.add(now, id, session.person, "session.cancel-asked", f"by {person.name}", session.phase)
        _write_down(tx, now, person, "cancel", session)
        words = "being cancelled"
        return _moved(tx.sessions.change(id, now=now, cancel_by=person.name, condition=words, due=now), id)

    async def _over(self, id: str) -> Session:
        """Wait until a session is over, but not for ever."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE.total_seconds()
        while True:
            session = await self.store.read(lambda tx: _there(tx, id))
            if session.phase in OVER or loop.time() >= deadline:
                return self.shown(session)
            await self.wait_for_news(0.25)

    async def extend(
        self, name: str, person: Person, *, until: datetime | None = None, by: str | timedelta | None = None
    ) -> Session:
        """Move the end of a session's time, while there is room after it."""
        session = await self.session(name, person)
        if session.until is None or session.phase not in ACTIVE - {Phase.RELEASING}:
            raise NotAllowedNow(phase=session.phase, wanted="longer", session=session.id[:8])
        if session.offer.terms.kind != "booked":
            raise PlatformRefused(platform=session.offer.platform, why="only time that is booked can be extended")
        if by is not None:
            until = session.until + (parse_duration(by) if isinstance(by, str) else by)
        if until is None or until <= session.until:
            raise BadRequest(detail=f"the new end must be after the present one, {_clock(session.until)}")
        end = until
        changed = await self.store.write(lambda tx: self._extend(tx, session.id, end))
        await self.tell()
        return self.shown(changed)

    def _extend(self, tx: Tx, id: str, until: datetime) -> Session:
        now = self.now()
        session = _there(tx, id)
        if session.start is None or session.phase in OVER:
            raise NotAllowedNow(phase=session.phase, wanted="longer", session=id[:8])
        offer = replace(session.offer, duration=until - session.start)
        self.admit_longer(tx, session, offer, now)
        tx.books.extend(offer.platform, id, until)
        tx.events.add(now, id, session.person, "session.extended", f"until {_clock(until)}", session.phase)
        return _moved(tx.sessions.change(id, now=now, until=until, offer=offer, condition="", due=now), id)

    async def delete(self, name: str, person: Person) -> None:
        """Forget a session that is over, with its files."""
        session = await self.session(name, person)
        if session.phase not in OVER:
            raise NotAllowedNow(phase=session.phase, wanted="deleted", session=session.id[:8])
        platform = self.platforms_by_name.get(session.offer.platform)
        if platform:
            await platform.clean(session.id)

        def work(tx: Tx) -> None:
            tx.sessions.delete(session.id)
            _write_down(tx, self.now(), person, "delete", session)

        await self.store.write(work)


def start_of(offer: Offer, now: datetime) -> datetime:
    """When an offer that is accepted now will start: as offered, or as soon after as it can still be prepared."""
    soonest = now.replace(microsecond=0) + timedelta(seconds=1 if now.microsecond else 0) + offer.prepare
    return min(max(offer.start, soonest), max(offer.latest_start, offer.start))


def _write_down(tx: Tx, now: datetime, person: Person, act: str, session: Session) -> None:
    """What someone did with a session of another's, in the audit log."""
    if person.name != session.person:
        tx.audit.add(Entry(now, person.name, f"session.{act}", "session", session.id, {"person": session.person}))


def _moved(session: Session | None, id: str) -> Session:
    if session is None:  # its phase was looked at in this same transaction
        raise NotFound(noun="session", name=id)
    return session


def _there(tx: Tx, id: str) -> Session:
    session = tx.sessions.get(id)
    if session is None:
        raise NotFound(noun="session", name=id)
    return session


def _clock(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")
