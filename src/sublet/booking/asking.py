"""From a request to offers that are held for the asker, or to the reasons why not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from sublet.access.model.access_words import cap_request, within
from sublet.booking.asked import LEASED, PINNED, Asked, DirectKey
from sublet.booking.brokers.forwarding import record_passed
from sublet.booking.candidate import Candidate, mark_offers
from sublet.booking.candidates import Candidates
from sublet.booking.dependencies import end_of_all, find_planned_end, hopeless, latest_end, own
from sublet.booking.documents.request import read_document
from sublet.booking.documents.short import full_document, is_short
from sublet.booking.holds import GIVE_BACK, give_back, list_held_platforms, take_hold
from sublet.booking.model.answers import date_reasons
from sublet.booking.model.better_starts import StartAdviser
from sublet.booking.model.calendar import Calendar
from sublet.booking.model.events import EventKind
from sublet.booking.model.giving_way import first_start
from sublet.booking.model.holds import expiry_of, hold_of
from sublet.booking.model.offer import Answer, Offer, Reason, rate_offer
from sublet.booking.model.offers import find_offers
from sublet.booking.model.phases import Phase
from sublet.booking.model.pledge import OPEN, offers_within, pledge_text, sizes_in
from sublet.booking.model.ranking import Preference, sort_offers
from sublet.booking.model.request import Request
from sublet.booking.model.rules import apply_rules
from sublet.booking.model.session import OfferSet, Session
from sublet.booking.named_sessions import find_named
from sublet.booking.planning import OfferPlan, plan_answers
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.platforms.start_history import search_by_record
from sublet.booking.ports import Adviser, AskPolicy, Names, OfferFilter, Resolver
from sublet.booking.presenter import Presenter
from sublet.booking.price_book import PriceBook
from sublet.booking.recorded_clock import read_recorded_now
from sublet.booking.session_results import name_sources, pin_sources
from sublet.booking.shared_answers import read_shared, recall_starts
from sublet.booking.signals import Signals
from sublet.kernel import metrics
from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock
from sublet.kernel.document import parse_document
from sublet.kernel.errors import KeyReused, NotFound, NotYours, TooMany
from sublet.kernel.faults import point
from sublet.kernel.ids import draw_ids
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx


@dataclass
class Asking:
    """The use case that answers a request with an offer set, and returns offer sets later."""

    settings: Settings
    store: Store
    now: Clock
    platforms: KnownPlatforms
    presenter: Presenter
    signals: Signals
    authority: Authority
    names: Names
    resolvers: Sequence[Resolver]
    policies: Sequence[AskPolicy]
    candidates: Candidates
    adviser: Adviser
    price_book: PriceBook
    filters: Sequence[OfferFilter] = ()

    async def read(self, body: bytes, content_type: str, person: Person) -> Asked:
        """Read a request in the short or the full form; raise BadRequest, TooLarge or WrongType if it can't be read."""
        document = parse_document(body, content_type)
        asked = await self.understand(document, person, body.decode("utf-8-sig"), content_type)
        executable = asked.request.executable
        forbidden = [LEASED] if executable and executable.kind == "pilot" else []
        forbidden += [PINNED] if executable and "pinned" in executable.fields else []
        return replace(asked, reasons=(*asked.reasons, *forbidden), passable=None) if forbidden else asked

    async def understand(self, document: Mapping[str, Any], person: Person, text: str, content_type: str) -> Asked:
        """Apply the operator's rules to a document and read it as a request; `text` is the original to store."""
        now = self.now()
        read = read_document(document, now)
        notes: tuple[str, ...] = ()
        reasons = read.reasons
        passable: Mapping[str, Any] | None = full_document(document) if is_short(document) else document
        if self.settings.rules:
            passable = None  # never pass on a document that the rules were not applied to
        if self.settings.rules and not reasons:
            names = await self.names.names_of(person)
            changed, reasons, notes = apply_rules(self.settings.rules, full_document(document), *names)
            read = read_document(changed, now)
            passable = None if reasons else changed
        return Asked(read.request, text, content_type, reasons, notes, remarks=read.remarks, passable=passable)

    async def ask(self, person: Person, asked: Asked, *, key: str | None = None) -> OfferSet:
        """Answer a request with offers, held where their platform is booked, or with a NO and every reason."""
        for policy in self.policies:
            policy.limit_asking(person)
        if key and self.candidates.has_brokers and (known := await self._recall(person, asked, key)):
            return known
        asked = await self._after(person, asked)
        if not asked.reasons:
            pinned = await self.resolve(person, asked.request)
            if isinstance(pinned, Reason):
                asked = replace(asked, reasons=(pinned,), unresolved=True)
            else:
                asked = replace(asked, request=pinned)
        candidates, reasons = await self.candidates.find(asked, person)
        starts = await recall_starts(self.store, self.platforms, candidates, self.now())
        shared = read_shared(asked.request, candidates, starts, self.price_book, self.now())
        if candidates:
            history = await self.adviser.recall(person, asked.request)
            hints = tuple(self.adviser.advise(history, asked.request)) if history.runs else ()
            asked = replace(asked, hints=hints, history=history, starts=starts)
        offerset = await self.store.write(lambda tx: self._hold(tx, person, asked, candidates, shared, reasons, key))
        point("ask.held")
        metrics.offersets.labels(offerset.result).inc()
        for name in {reason.platform for reason in offerset.reasons if reason.as_of}:
            self.platforms.refresh_survey(name)
        for policy in self.policies:
            await policy.note_answer(person, asked, offerset)
        return offerset

    async def _recall(self, person: Person, asked: Asked, key: str) -> OfferSet | None:
        """Return the valid earlier answer to the same request and key, so that other brokers aren't asked twice."""
        known = await self.store.read(
            lambda tx: _whole(tx, tx.offersets.by_key(person.name, key), self.settings.prefer)
        )
        return known if known and known.document == asked.document and known.stands(self.now()) else None

    async def resolve(self, person: Person, request: Request) -> Request | Reason:
        """Let every resolver pin the names in a request; return the pinned request, or the first reason why not."""
        for resolver in self.resolvers:
            pinned = await resolver.resolve(person, request)
            if isinstance(pinned, Reason):
                return pinned
            request = pinned or request
        return request

    async def _after(self, person: Person, asked: Asked) -> Asked:
        """Replace the names of the sessions it depends on by ids, and allow no start before their planned end."""
        named = name_sources(asked.request)
        if not (names := named.after):
            return asked
        earlier = await self.store.read(lambda tx: [own(find_named(tx, name, person), person) for name in names])
        why = [reason for name, one in zip(names, earlier, strict=True) if (reason := hopeless(name, one))]
        others = [one for one in earlier if one]
        request = replace(
            pin_sources(named, {name: other.id for name, other in zip(names, earlier, strict=True) if other}),
            after=tuple(one.id for one in others),
            not_before=end_of_all(others, find_planned_end),
        )
        latest = end_of_all(others, latest_end)
        booked = latest + self.settings.release if latest else None
        return replace(asked, request=request, reasons=(*asked.reasons, *why), booked_from=booked)

    async def offerset(self, name: str, person: Person) -> OfferSet:
        """Return an offer set that this person may read, with its offers as they are now."""
        stored = await self.store.read(lambda tx: _whole(tx, tx.offersets.get(name), self.settings.prefer))
        if stored is None:
            raise NotFound(
                noun="offer set", name=name, hint="Offers that were not accepted are deleted after a while: ask again."
            )
        if not self.authority.can_read(stored.person, person):
            raise NotYours(noun="offer set")
        return replace(
            stored, offers=tuple(self.presenter.with_connectors(session, person) for session in stored.offers)
        )

    def _limit_holds(self, tx: Tx, person: Person, asked: Asked, newer: str, now: datetime) -> None:
        """Give back a person's oldest offers if they may hold no more; raise TooMany if those can't give way."""
        most = min((most for policy in self.policies if (most := policy.limit_holds(person)) is not None), default=None)
        if most is None or (count := tx.sessions.count_held(person.name, now)) < most:
            return
        movable = [hold for hold in tx.holds.of(person.name) if hold.expires > now and not hold.firm]
        surplus = count - most + 1
        if asked.precedence.keep_offers or len(movable) < surplus:
            message = f"Offers are held for {most} of your requests already, and there can't be more at once."
            hint = f"Accept or reject some of them, or give back all: {GIVE_BACK}"
            raise TooMany(message, hint=hint, seconds=round(self.settings.hold.total_seconds()))
        for hold in movable[-surplus:]:
            self.signals.freed |= list_held_platforms(give_back(tx, hold.offerset, now, by=person.name, newer=newer))

    def _hold(
        self,
        tx: Tx,
        person: Person,
        asked: Asked,
        candidates: Sequence[Candidate],
        shared: Mapping[str, Answer],
        reasons: Sequence[Reason],
        key: str | None,
    ) -> OfferSet:
        """Search the calendars, hold the offers and record the answer, all in one transaction."""
        if key and (known := _whole(tx, tx.offersets.by_key(person.name, key), self.settings.prefer)):
            if known.document != asked.document:
                raise KeyReused(key=key.own if isinstance(key, DirectKey) else key)
            if known.stands(self.now()):
                return known
            tx.offersets.release_key(known.id)  # a NO, or expired offers: the key may be used again
        now = read_recorded_now(tx, self.now())
        [id] = draw_ids(1)
        self._limit_holds(tx, person, asked, id, now)
        offers: list[Offer] = []
        no = [*reasons, *asked.remarks, *(Reason("urn:capped-by-rule", "request", note) for note in asked.notes)]
        held: dict[str, list[Offer]] = {}
        candidates = sorted(candidates, key=lambda c: c.platform)  # a fixed order prevents deadlocks
        plans = self._plans(
            tx, person, asked, [candidate for candidate in candidates if candidate.platform not in shared], now
        )
        for candidate in candidates:
            name = candidate.platform
            answer = self._within(candidate, shared[name]) if name in shared else plans[name].answer
            answer = self._keep_affordable(tx, person, asked.request, name, answer, now)
            marked = mark_offers(answer.offers, candidate, asked.request.after, asked.history)
            offers += marked
            no += date_reasons(answer.reasons, candidate.survey.as_of, now)
            if name in plans and marked:
                held[name] = marked
        offers = sort_offers(offers, rate_offer, self.settings.prefer)
        hints = self._find_hints(tx, asked, offers, candidates, now)
        hold = self.settings.hold
        expiries = [expiry_of(offer, now, hold) for offer in offers]  # each offer expires by itself
        expires = max(expiries, default=now + hold)
        for name, marked in held.items():
            if take_hold(tx, name, id, hold_of(marked), plans[name].older, now):
                self.signals.freed.add(name)
        instead_of = asked.precedence.instead_of
        if offers and instead_of and self._is_theirs(tx, person, instead_of):
            self.signals.freed |= list_held_platforms(give_back(tx, instead_of, now, by=person.name, newer=id))
        sessions = tuple(
            self._make_session(offer.reservation or each, id, person, asked.request, offer, now, until)
            for each, offer, until in zip(draw_ids(len(offers)), offers, expiries, strict=True)
        )
        made = OfferSet(
            id=id,
            person=person.name,
            created=now,
            expires=expires,
            result="YES" if offers else "NO",
            request=asked.request,
            document=asked.document,
            content_type=asked.content_type,
            reasons=(*no, *hints),
            key=key,
            offers=sessions,
            firm=asked.precedence.firm,
        )
        tx.offersets.add(made)
        record_passed(tx, [candidate.passed for candidate in candidates if candidate.passed], sessions, now)
        if sessions:
            tx.sessions.add_offers(sessions)
            tx.events.add(
                now,
                id,
                person.name,
                EventKind.OFFERED,
                f"{len(sessions)} offer{'' if len(sessions) == 1 else 's'}",
                Phase.OFFERED,
            )
        return made

    def _plans(
        self, tx: Tx, person: Person, asked: Asked, candidates: Sequence[Candidate], now: datetime
    ) -> Mapping[str, OfferPlan]:
        """Plan each platform's offers from its calendar, and which older offers would give way to them."""
        request = asked.request
        same = request.not_before == asked.booked_from
        booked = request if same else replace(request, not_before=asked.booked_from)

        def look(candidate: Candidate) -> Answer:
            return self._within(candidate, self._look(tx, candidate, booked, now))

        looks = {candidate.platform: partial(look, candidate) for candidate in candidates}
        return plan_answers(tx, looks, person.name, asked.precedence, booked, now)

    def _find_hints(
        self, tx: Tx, asked: Asked, offers: Sequence[Offer], candidates: Sequence[Candidate], now: datetime
    ) -> Sequence[Reason]:
        """Return the advice from earlier runs, and better times to start on the platform of the best offer."""
        if not offers:
            return ()
        best, booked = offers[0], replace(asked.request, not_before=asked.booked_from)
        candidate = next(candidate for candidate in candidates if candidate.platform == best.platform)

        def look(changed: Request) -> datetime | None:
            return first_start(self._within(candidate, self._look(tx, candidate, changed, now)))

        shared = candidate.answer is not None
        search = search_by_record(best, asked.starts.get(best.platform, ()), now) if shared else look
        prices = self.price_book.of(best.platform, best.pledge)
        return StartAdviser(offers, asked.request if shared else booked, prices, search).advise(asked.hints, now)

    def _within(self, candidate: Candidate, answer: Answer) -> Answer:
        """Drop the offers that exceed the asker's limits on a platform."""
        target = (self.platforms.noun_of(candidate.platform), candidate.platform)
        return within(candidate.bounds.limits, target, candidate.platform, answer)

    def _keep_affordable(
        self, tx: Tx, person: Person, request: Request, platform: str, answer: Answer, now: datetime
    ) -> Answer:
        for each in self.filters:
            answer = each.keep_affordable(tx, person.name, request, platform, answer, now)
        return answer

    @staticmethod
    def _is_theirs(tx: Tx, person: Person, offerset: str) -> bool:
        earlier = tx.offersets.get(offerset)
        return earlier is not None and earlier.person == person.name

    def _look(self, tx: Tx, candidate: Candidate, request: Request, now: datetime) -> Answer:
        """Search a platform's calendar for offers under the pledges that the asker may draw on."""
        bounds, name, compute = candidate.bounds, candidate.platform, request.compute
        calendar = tx.books.calendar(name)

        def look(pledge: Mapping[str, int]) -> Answer:
            limits = bounds.across(pledge)
            wish = cap_request(cap_request(request, bounds.limits), limits)
            target = (self.platforms.noun_of(name), name) if set(pledge) == {OPEN} else ("pledge", pledge_text(pledge))
            return within(limits, target, name, self._search(calendar, candidate, wish, pledge, now))

        if not bounds.pledges:
            return look({})
        if request.pledge in bounds.others:
            return Answer(reasons=(bounds.others[request.pledge],))
        sizes = sizes_in(calendar.pools)
        names = [request.pledge] if request.pledge else bounds.pledges
        answer = offers_within(names, sizes, compute.cores.min * compute.nodes.min, self.settings.offers, look)
        if answer.offers or request.pledge:
            return answer
        return Answer(reasons=(*answer.reasons, *(_not_yours(name, sizes, *other) for other in bounds.others.items())))

    def _search(
        self, calendar: Calendar, candidate: Candidate, request: Request, pledge: Mapping[str, int], now: datetime
    ) -> Answer:
        tariff = self.price_book.of(candidate.platform, pledge)
        request = self.price_book.keep_affordable(request, tariff, candidate.platform, now)
        answer = find_offers(
            request,
            calendar,
            platform=candidate.platform,
            ways=candidate.ways,
            pools=tuple(candidate.survey.pools),
            prices=tariff,
            metrics=candidate.survey.metrics,
            now=now,
            hold=self.settings.hold,
            release=self.settings.release,
            prepare=candidate.staging.lead,
            horizon=self.settings.horizon,
            longest=self.settings.longest,
            at_most=self.settings.offers,
            pledge=pledge,
        )
        return self.price_book.drop_dear(answer, request, tariff, candidate.platform)

    def _make_session(
        self, id: str, offerset: str, person: Person, request: Request, offer: Offer, now: datetime, expires: datetime
    ) -> Session:
        executable: Any = request.executable
        return Session(
            id=id,
            offerset=offerset,
            person=person.name,
            name=executable.name or executable.kind,
            kind=executable.kind,
            phase=Phase.OFFERED,
            offer=offer,
            created=now,
            modified=now,
            expires=expires,
            app=str(executable.fields["pinned"].get("version", "")) if executable.kind == "app" else "",
        )


def _whole(tx: Tx, offerset: OfferSet | None, prefer: Preference) -> OfferSet | None:
    """Add to an offer set its offers as they are now, the best first."""
    if offerset is None:
        return None
    offers = sort_offers(tx.sessions.of_set(offerset.id), lambda session: rate_offer(session.offer), prefer)
    return replace(offerset, offers=tuple(offers))


def _not_yours(platform: str, sizes: Mapping[str, int], pledge: str, reason: Reason) -> Reason:
    """Put in front of the reason how many cores of a platform the asker may not draw on."""
    part = f"{sizes.get(pledge, 0)} cores of {platform} are {'' if pledge == OPEN else 'pledged to '}{pledge}."
    return replace(reason, message=f"{part} {reason.message}", platform=platform)
