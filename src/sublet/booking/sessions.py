"""What a person can do with a session: show, list, accept, reject, cancel, extend and delete it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypedDict, Unpack

from sublet.booking.brokers.lengthening import Lengthening
from sublet.booking.dependencies import begin
from sublet.booking.extending import price_longer
from sublet.booking.filters import FilterCheck
from sublet.booking.holds import list_held_platforms
from sublet.booking.keyed_acts import KeyedAct
from sublet.booking.model.amounts import parse_duration
from sublet.booking.model.events import EventKind
from sublet.booking.model.holds import takes_of
from sublet.booking.model.marks import Mark, set_condition
from sublet.booking.model.offer import Offer
from sublet.booking.model.phases import ACTIVE, GOING_ON, OVER, Phase
from sublet.booking.model.refused_moves import refuse_move
from sublet.booking.model.session import OfferSet, Session
from sublet.booking.model.starts import instant
from sublet.booking.named_sessions import find_named
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.ports import AcceptReview, Admission, CodeGuard, GuestPlatforms, Names
from sublet.booking.presenter import Presenter
from sublet.booking.price_book import PriceBook
from sublet.booking.recorded_clock import read_recorded_now
from sublet.booking.session_endings import SessionEndings, list_active, require_moved, require_session, write_down
from sublet.booking.signals import Signals
from sublet.booking.store.sessions import Page as Page  # re-exported
from sublet.booking.takeable import refuse_untakeable
from sublet.kernel import metrics
from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock
from sublet.kernel.errors import (
    AppRefused,
    BadRequest,
    IdTooShort,
    NotAllowed,
    NotFound,
    NotInvited,
    OperatorsOnly,
    OutOfScope,
    PlatformRefused,
    SubletError,
)
from sublet.kernel.faults import point
from sublet.kernel.log import log
from sublet.kernel.mail import Mail
from sublet.kernel.settings import Settings
from sublet.kernel.texts import count_text
from sublet.people.model.person import Person
from sublet.people.model.scopes import Scope, allows
from sublet.store.store import Store
from sublet.store.tx import Tx

EVERYONE = frozenset({"*", "everyone"})  # in place of a person's name
OWN_SESSIONS = "Leave out `person` (--everyone, --person) to list your own."
UNBOOKED = "only time that is booked can be extended"
LONGEST_REASON = 500
SHORT_PAGE = 50  # an unfiltered page of one person's sessions, read at once by their index
MOST_AT_ONCE = 1000  # sessions that one call cancels
PATIENCE = timedelta(seconds=20)  # how long `cancel` waits for the session to stop
HANDING_ON = timedelta(seconds=5)  # how long `accept` waits for another broker to accept it
Also = Callable[[Tx, Session], Session]  # called with a session in the write that accepts it


class Filters(TypedDict, total=False):
    """The filters of a list of sessions."""

    phases: Sequence[Phase] | None
    kind: str | None
    platform: str | None
    name: str | None  # the whole name, or a pattern with `*`
    active: bool | None
    app: str | None  # NAME, or NAME@NUMBER
    annex: str | None
    since: datetime | None  # asked for then, or later
    until: datetime | None  # asked for before then


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The outcome of cancelling several sessions."""

    cancelled: tuple[Session, ...]
    over: tuple[Session, ...]  # these had ended, or were being cancelled already


def only(_: Tx, session: Session) -> Session:
    """Return the session as it is: nothing else is done."""
    return session


@dataclass
class Sessions:
    """Sessions, as people see and change them."""

    settings: Settings
    store: Store
    now: Clock
    platforms: KnownPlatforms
    presenter: Presenter
    signals: Signals
    mail: Mail
    authority: Authority
    names: Names
    guests: GuestPlatforms
    admissions: Sequence[Admission]
    code: CodeGuard
    endings: SessionEndings
    price_book: PriceBook
    lengthening: Lengthening
    reviews: Sequence[AcceptReview] = ()

    async def get(self, name: str, person: Person) -> Session:
        """Return a session by its id, the beginning of it, or its name."""
        stored = await self.store.glance(lambda tx: find_named(tx, name, person))
        session = self.presenter.with_connectors(self.authority.authorize(stored, person, name), person)
        if session.app and session.phase in ACTIVE and not session.condition:
            return replace(session, condition=await self.code.describe_code(session))
        return session

    async def get_to_change(self, name: str, person: Person) -> Session:
        """Return a session in order to change it; for another's, an operator needs a token with the scope to manage."""
        session = await self.get(name, person)
        if session.person != person.name and not allows(person.scope, Scope.MANAGE):
            raise OutOfScope(scope=" ".join(person.scope), needed=Scope.MANAGE)
        return session

    async def offerset_of(self, session: Session) -> OfferSet:
        """Return the offer set that a session came from, with its request."""
        offerset = await self.store.read(lambda tx: tx.offersets.get(session.offerset))
        if offerset is None:
            raise NotFound(noun="offer set", name=session.offerset)
        return offerset

    async def page(
        self,
        person: Person,
        *,
        of: str = "",
        limit: int = 50,
        after: str | None = None,
        **filters: Unpack[Filters],
    ) -> Page:
        """Return a page of sessions, newest first: a person's own, or for operators another's or everyone's."""
        owner = await self._owner(person, of)
        is_short = limit <= SHORT_PAGE and owner and all(value is None for value in filters.values())
        look = self.store.glance if is_short else self.store.read
        page = await look(lambda tx: tx.sessions.list(person=owner, limit=limit, after=after, **filters))
        if not page.items and not after:
            await FilterCheck(self.store, self.platforms, person, owner).check(of, filters)
        return replace(page, items=tuple(self.presenter.with_connectors(session, person) for session in page.items))

    async def _owner(self, person: Person, of: str) -> str | None:
        """Return whose sessions to list, or None for everyone's; raise OperatorsOnly if the person may not."""
        if not of or of == person.name:
            return person.name
        name = None if of in EVERYONE else await self.names.find_name(of)
        if name != person.name and not person.operator:
            raise OperatorsOnly("Only an operator can list other people's sessions.", hint=OWN_SESSIONS)
        return name

    async def accept(
        self, name: str, person: Person, *, key: str | None = None, also: Also = only, others: Sequence[str] = ()
    ) -> Session:
        """Accept an offer: its siblings are rejected, and exactly what it needs is booked.

        Accepting again changes nothing, and returns the session, even if it is over. A key stays with its offer;
        `others` are accepted in the same write, or none of them.
        """
        offered = await self._find_offer(name, person)
        if person.guest and offered.offer.platform not in await self.guests.list_shared_with(person):
            raise NotInvited(platform=offered.offer.platform)
        id = offered.id
        point("accept.before")
        try:
            if offered.phase is Phase.OFFERED:
                await self._review("accept", person, offered, offered.offer)
            for other in [await self._find_offer(each, person) for each in others]:
                await self._review("accept", person, other, other.offer)
            accepted = await self.store.write(lambda tx: also(tx, self._accept_all(tx, id, person, key, others)))
        except (NotAllowed, AppRefused) as error:
            await self._note_refusal("accept", person, error, offer=name)
            raise
        point("accept.after")
        metrics.moves.labels(accepted.phase).inc()
        log.info("session.accepted", session=id, person=person.name, platform=accepted.offer.platform)
        await self.signals.announce()
        if accepted.offer.terms.kind == "remote":
            accepted = await self._settle(id, HANDING_ON)
        return self.presenter.with_connectors(accepted, person)

    async def _settle(self, id: str, patience: timedelta) -> Session:
        """Wait a little until another broker has accepted or refused the session, so that the answer is final."""
        return await self._wait_for(id, patience, lambda session: bool(session.job) or session.phase in OVER)

    async def _find_offer(self, name: str, person: Person) -> Session:
        """Return an offer to accept or decline; if there is none, the error speaks of offers."""
        try:
            return await self.get_to_change(name, person)
        except IdTooShort:
            raise
        except NotFound as error:
            hint = "`sublet offers` lists the offers that you can still accept."
            raise NotFound(noun="offer", name=name, hint=hint) from error

    def _accept_all(self, tx: Tx, id: str, person: Person, key: str | None, others: Sequence[str]) -> Session:
        for other in others:
            self._accept(tx, other, person)
        return self._accept(tx, id, person, key)

    def _accept(self, tx: Tx, id: str, person: Person, key: str | None = None) -> Session:
        now = read_recorded_now(tx, self.now())
        session = require_session(tx, id)
        if key:
            tx.keys.bind(person.name, "accept", key, id, now)
        if session.phase in ACTIVE or (session.start is not None and session.person == person.name):
            return session
        refuse_untakeable(tx, session, now)
        for admission in self.admissions:
            admission.admit(tx, session, now)
        write_down(tx, now, person, "accept", session)
        start = start_of(session.offer, now)
        siblings = tx.sessions.reject_siblings(session, now)
        for platform in sorted(list_held_platforms([session, *siblings])):
            tx.books.release(platform, session.offerset)
            self.signals.freed.add(platform)
        if session.offer.is_in_calendar:
            tx.books.take(session.offer.platform, id, takes_of(session.offer, start))
        begin(tx, session)
        for other in siblings:
            tx.events.add(now, other.id, other.person, EventKind.REJECTED, "a sibling was accepted", Phase.REJECTED)
        tx.events.add(now, id, session.person, EventKind.ACCEPTED, "", Phase.ACCEPTED)
        until = start + session.offer.duration if session.offer.is_in_calendar else None
        when = (Phase.OFFERED,)
        moved = tx.sessions.move(
            id, Phase.ACCEPTED, when=when, now=now, known=session, start=start, until=until, due=now
        )
        return require_moved(moved, id)

    async def reject(self, name: str, person: Person) -> Session:
        """Decline an offer; what is held shrinks to what its siblings need."""
        id = (await self._find_offer(name, person)).id
        rejected = await self.store.write(lambda tx: self.endings.decline(tx, id, Phase.REJECTED, person))
        await self.signals.announce()
        return rejected

    async def cancel(self, name: str, person: Person, reason: str = "") -> Session:
        """Cancel a session and wait a little until it has stopped; its owner learns the reason."""
        session = await self.get_to_change(name, person)
        words = check_reason(reason)
        asked = await self.store.write(lambda tx: self.endings.cancel(tx, session.id, person, words))
        await self.signals.announce()
        news = [] if session.cancel_by or session.phase in OVER else [asked]
        over, _ = await asyncio.gather(self._over(session.id), self._tell_owners(news, person, words))
        return self.presenter.with_connectors(over, person)

    async def cancel_all(
        self, names: Sequence[str], person: Person, reason: str = "", *, dry_run: bool = False
    ) -> Cancelled:
        """Cancel several sessions in one write, without waiting; those that had ended already are listed apart."""
        if len(names) > MOST_AT_ONCE:
            raise BadRequest(detail=f"{MOST_AT_ONCE} sessions can be cancelled at once", hint="Send them in parts.")
        words = check_reason(reason)
        chosen = [await self.get_to_change(name, person) for name in dict.fromkeys(names)]
        ids = [session.id for session in chosen if session.phase not in OVER and not session.cancel_by]
        if not dry_run:
            asked = await self.store.write(
                lambda tx: [self.endings.cancel(tx, id, person, words) for id in list_active(tx, ids)]
            )
            await self.signals.announce()
            await self._tell_owners(asked, person, words)
            chosen = [await self.get(session.id, person) for session in chosen]
        over = tuple(session for session in chosen if session.id not in ids)
        return Cancelled(tuple(session for session in chosen if session.id in ids), over)

    async def _tell_owners(self, sessions: Sequence[Session], person: Person, reason: str) -> None:
        """Mail the people whose sessions an operator cancelled, one mail each."""
        theirs = [session for session in sessions if session.person != person.name]
        for owner in dict.fromkeys(one.person for one in theirs):
            names = [f"{one.id[:8]} ({one.name}) on {one.offer.platform}" for one in theirs if one.person == owner]
            text = "\n".join(["An operator cancelled these sessions of yours:", "", *names, ""])
            text += f"\nThe reason: {reason}\n" if reason else "\nNo reason was given.\n"
            await self.mail.send_each([owner], f"{count_text(len(names), 'session')} of yours cancelled", text)

    async def _over(self, id: str) -> Session:
        """Wait until a session is over, but not for ever."""
        return await self._wait_for(id, PATIENCE, lambda session: session.phase in OVER)

    async def _wait_for(self, id: str, patience: timedelta, is_so: Callable[[Session], bool]) -> Session:
        """Return the session once a condition holds, or as it is after a while."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience.total_seconds()
        while True:
            session = await self.store.read(lambda tx: require_session(tx, id))
            if is_so(session) or loop.time() >= deadline:
                return session
            await self.signals.wait(0.25)

    async def extend(
        self,
        name: str,
        person: Person,
        *,
        until: datetime | None = None,
        by: str | timedelta | None = None,
        key: str | None = None,
    ) -> Session:
        """Move the end of a session's time, while there is room after it; under one key only once."""
        session = await self.get_to_change(name, person)
        by = parse_duration(by) if isinstance(by, str) else by
        keyed = KeyedAct(person.name, "extend", key, f"{session.id} {by} {until}")
        if key is not None and await self.store.read(keyed.is_done):
            return session
        if session.offer.terms.kind == "remote":
            changed = await self.lengthening.extend(session, person, until, by, keyed)
            return self.presenter.with_connectors(changed, person)
        if session.until is None or session.phase not in GOING_ON:
            raise refuse_move(session.phase, "extended", session.id)
        if not session.offer.is_in_calendar:
            why = "a reservation there keeps its end" if session.offer.reservation else UNBOOKED
            raise PlatformRefused(platform=session.offer.platform, why=why)
        if by is not None:
            until = session.until + by
        if until is None or until <= session.until:
            raise BadRequest(detail=f"the new end must be after the present one, {instant(session.until)}")
        end = until
        try:
            if self.reviews and session.start:
                longer = end - session.start
                offer = await self.store.read(lambda tx: price_longer(tx, session, longer, self.price_book))
                await self._review("extend", person, session, offer)
            changed = await self.store.write(lambda tx: self._extend(tx, session.id, end, person, keyed))
        except NotAllowed as error:
            await self._note_refusal("extend", person, error, session=name)
            raise
        await self.signals.announce()
        return self.presenter.with_connectors(changed, person)

    async def _review(self, act: str, person: Person, session: Session, offer: Offer) -> None:
        """Ask the external reviewers; no transaction is open meanwhile."""
        for each in self.reviews:
            await each.review(act, person, session, offer)

    async def _note_refusal(self, act: str, person: Person, error: SubletError, **about: str) -> None:
        for admission in self.admissions:
            await admission.note_refusal(act, person, error, **about)

    def _extend(self, tx: Tx, id: str, until: datetime, person: Person, keyed: KeyedAct) -> Session:
        now = read_recorded_now(tx, self.now())
        session = require_session(tx, id)
        if not keyed.note(tx, now):
            return session
        if session.start is None or session.phase in OVER:
            raise refuse_move(session.phase, "extended", id)
        offer = price_longer(tx, session, until - session.start, self.price_book)
        for admission in self.admissions:
            admission.admit_longer(tx, session, offer, now)
        tx.books.extend(offer.platform, id, until)
        write_down(tx, now, person, "extend", session)
        tx.events.add(now, id, session.person, EventKind.EXTENDED, f"until {instant(until)}", session.phase)
        changes = set_condition("", session.marks - {Mark.WARNED})
        return require_moved(tx.sessions.change(id, now=now, until=until, offer=offer, due=now, **changes), id)

    async def delete(self, name: str, person: Person) -> None:
        """Delete a session that is over, with its files."""
        session = await self.get_to_change(name, person)
        if session.phase not in OVER:
            raise refuse_move(session.phase, "deleted", session.id)
        if platform := self.platforms.by_name.get(session.offer.platform):
            await platform.clean(session.id)

        def work(tx: Tx) -> None:
            tx.sessions.delete(session.id)
            write_down(tx, self.now(), person, "delete", session)

        await self.store.write(work)


def start_of(offer: Offer, now: datetime) -> datetime:
    """Return when an offer that is accepted now will start: as offered, or as soon after as it can be prepared."""
    soonest = now.replace(microsecond=0) + timedelta(seconds=1 if now.microsecond else 0) + offer.prepare
    return min(max(offer.start, soonest), max(offer.latest_start, offer.start))


def check_reason(text: str) -> str:
    """Return a reason on one line; raise BadRequest if it is too long."""
    words = " ".join(text.split())
    if len(words) > LONGEST_REASON:
        raise BadRequest(detail=f"a reason has {LONGEST_REASON} characters at most", hint="Say it in fewer words.")
    return words
