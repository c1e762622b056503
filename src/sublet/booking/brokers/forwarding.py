"""Forwards requests to other brokers; each is recorded before it is sent, so that nothing they hold is forgotten."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from time import monotonic
from typing import Any
from uuid import uuid4

from sublet.access.model.bounds import Bounds
from sublet.booking.asked import Asked
from sublet.booking.brokers.giving_way import RemoteGivingWay
from sublet.booking.brokers.repeats import RecentRequests, drop_repeats
from sublet.booking.candidate import Candidate, PassedOn, describe_failure
from sublet.booking.model.answers import find_fault
from sublet.booking.model.brokers import BrokerAsk, BrokerOffer
from sublet.booking.model.limits import drop_unaffordable
from sublet.booking.model.offer import Answer, Reason, Remote
from sublet.booking.model.request import COMPUTE_WITH_NODES, PLAIN_COMPUTE, Request
from sublet.booking.model.session import Session
from sublet.booking.model.staging import NOTHING_TO_STAGE
from sublet.booking.session_secrets import SessionSecrets
from sublet.kernel.clock import Clock
from sublet.kernel.deadline import gather_within
from sublet.kernel.errors import PlatformBroken
from sublet.kernel.faults import point
from sublet.people.model.person import Person
from sublet.platforms.brokering import PassedRequest, PassesOn
from sublet.platforms.port import Survey
from sublet.store.store import Store
from sublet.store.tx import Tx

WAY = "broker"
INNER_SHARE = 0.8  # the other broker's share of our time limit: its answer has to come back, too
GRACE = timedelta(seconds=5)  # an answer that wasn't recorded is given back this long after the time limit
MOST_DEPTH = 8  # brokers that a request passes through at most
KNOWN_COMPUTE = (PLAIN_COMPUTE, COMPUTE_WITH_NODES)


@dataclass
class Forwarding:
    """Forwards requests to other brokers."""

    store: Store
    now: Clock
    secrets: SessionSecrets
    giving_way: RemoteGivingWay
    recent: RecentRequests = field(default_factory=RecentRequests)
    _took: dict[str, float] = field(default_factory=dict)  # broker → seconds that its last answer took

    @property
    def own_id(self) -> str:
        """Return this broker's id: the same in every process that shares this home, and it reveals nothing."""
        return self.secrets.of("broker id")[:16]

    def prove(self, request_id: str) -> str:
        """Return a code for a request that only this broker can make; it identifies offers that come by two routes."""
        return self.secrets.of(f"broker request {request_id}")[:16]

    def find_loop(self, asked: Asked) -> Reason | None:
        """Return the reason to refuse a request that this broker has already forwarded, or None."""
        if not asked.via or self.own_id not in asked.via:
            return None
        why = "This broker has already forwarded the request, and it came back through other brokers."
        return Reason("urn:broker-loop", "request", why)

    def find_repeat(self, asked: Asked, person: Person) -> Reason | None:
        """Return the reason to refuse a request that has already come by another route, or None."""
        if not asked.request_id or self.recent.note(person.name, asked.request_id, asked.via, self.now()):
            return None
        why = "The same request has come to this broker by another way, and is answered there."
        return Reason("urn:broker-reached-twice", "request", why)

    def find_objection(self, asked: Asked) -> Reason | None:
        """Return the reason why a request is not forwarded to any broker, or None."""
        request = asked.request
        if len(asked.via) >= MOST_DEPTH:
            why = f"The request has come through {len(asked.via)} brokers, and is not passed on to more."
            return Reason("urn:broker-depth", "request", why)
        if request.after:
            why = "Another broker does not know the sessions that it waits for."
            return Reason("urn:not-supported", "after", why, nearest="leave out `after`, or name a platform")
        return None

    async def find(
        self,
        asked: Asked,
        person: Person,
        brokers: Mapping[str, Any],
        bounds: Mapping[str, Bounds],
        limit: timedelta,
        waiting: set[str],
    ) -> tuple[list[Candidate], list[Reason]]:
        """Ask the brokers; return a candidate for each that answered, and the reasons why offers are missing."""
        answers = await self._ask_in_turn(asked, person, brokers, limit, waiting) if brokers else {}
        offered, repeats = drop_repeats({name: p for name, p in answers.items() if isinstance(p, PassedOn)})
        candidates = [
            Candidate(
                platform=name,
                host=brokers[name],
                survey=Survey(self.now(), ()),
                ways=(),
                staging=NOTHING_TO_STAGE,
                interactive=frozenset(),
                bounds=bounds[name],
                answer=drop_unaffordable(offered[name], asked.request, name),
                passed=passed,
            )
            for name, passed in answers.items()
            if isinstance(passed, PassedOn)
        ]
        failures = {name: raised for name, raised in answers.items() if not isinstance(raised, PassedOn)}
        return candidates, [*repeats, *(describe_failure(name, raised, limit) for name, raised in failures.items())]

    async def _ask_in_turn(
        self, asked: Asked, person: Person, brokers: Mapping[str, PassesOn], limit: timedelta, waiting: set[str]
    ) -> Mapping[str, PassedOn | BaseException]:
        """Ask the brokers; where the person's own earlier offers are in the way, give them back and ask again."""
        began = monotonic()
        answers = await self.ask(asked, person, brokers, limit, waiting)
        left = limit - timedelta(seconds=monotonic() - began)
        if asked.precedence.keep_offers or left < limit / 2:
            return answers
        freed = await self.giving_way.give_back(person, brokers, answers)
        if not freed:
            return answers
        return {**answers, **await self.ask(asked, person, {name: brokers[name] for name in freed}, left, waiting)}

    async def ask(
        self, asked: Asked, person: Person, brokers: Mapping[str, PassesOn], limit: timedelta, waiting: set[str]
    ) -> Mapping[str, PassedOn | BaseException]:
        """Ask all brokers at once and return each one's answer or error; a late broker only loses its own answer."""
        now = self.now()
        slowest_first = sorted(brokers, key=lambda name: -self._took.get(name, 0.0))  # all wait for the last answer
        asks = self._record(slowest_first, asked, person, now, now + limit + GRACE)
        await self.store.write(lambda tx: tx.broker_calls.add_asks(asks))
        point("passing.recorded")
        asked = asked if asked.request_id else replace(asked, request_id=str(uuid4()))
        questions = {ask.broker: self._ask(brokers[ask.broker], ask, asked, limit) for ask in asks}
        answers = await gather_within(questions, limit.total_seconds(), waiting)
        point("passing.answered")
        return answers

    def _record(
        self, brokers: Sequence[str], asked: Asked, person: Person, now: datetime, due: datetime
    ) -> list[BrokerAsk]:
        passable, via = asked.passable or {}, (*asked.via, self.own_id)
        whole = json.dumps(passable, ensure_ascii=False)
        texts = dict.fromkeys(brokers, whole)
        if isinstance(passable.get("platform"), str):
            texts = {name: json.dumps(write_document(passable, name), ensure_ascii=False) for name in brokers}
        return [BrokerAsk(str(uuid4()), name, person.name, texts[name], via, due, now) for name in brokers]

    async def _ask(self, broker: PassesOn, ask: BrokerAsk, asked: Asked, limit: timedelta) -> PassedOn:
        began = monotonic()
        self._took[ask.broker] = limit.total_seconds()  # in case it never answers
        answered = await broker.pass_on(make_request(ask, asked, limit * INNER_SHARE), self.now())
        self._took[ask.broker] = monotonic() - began
        if is_understood(asked) and (fault := find_fault(answered.answer, ask.broker, [WAY], asked.request)):
            raise PlatformBroken(platform=ask.broker, why=fault)
        return PassedOn(ask.broker, ask.key, answered)


def is_understood(asked: Asked) -> bool:
    """Whether this service understands all of a request, and so can judge the offers for it."""
    return not asked.reasons and not asked.remarks and asked.request.compute.kind in KNOWN_COMPUTE


def make_request(ask: BrokerAsk, asked: Asked | None, within: timedelta) -> PassedRequest:
    """Build the message for a broker, for the first try or a repetition."""
    understood = asked is not None and is_understood(asked)
    return PassedRequest(
        text=ask.document,
        person=ask.person,
        key=ask.key,
        via=ask.via,
        within=within,
        duration=asked.request.duration if asked and not asked.reasons else timedelta(0),
        is_understood=understood,
        request_id=asked.request_id if asked else "",
    )


def write_document(document: Mapping[str, Any], broker: str) -> Mapping[str, Any]:
    """Return the document for one broker: its `platform` becomes the one behind that broker, or is left out."""
    named = document.get("platform")
    if not isinstance(named, str):
        return document
    rest = {name: value for name, value in document.items() if name != "platform"}
    inner = named.partition("/")[2] if is_named(named, broker) else ""
    return {**rest, "platform": inner} if inner else rest


def is_named(platform: str, name: str) -> bool:
    """Whether a requested platform is the one of this name, or one behind it: `uksrc/cam/slurm`."""
    return platform == name or platform.startswith(f"{name}/")


def names_broker(request: Request, names: Sequence[str]) -> bool:
    """Whether a request names one of these brokers as its platform."""
    return any(is_named(request.platform, name) for name in names)


def record_passed(tx: Tx, passed: Sequence[PassedOn], sessions: Sequence[Session], now: datetime) -> None:
    """Record the offers at other brokers that sessions stand for.

    An answer that is only partly used stays recorded, so that the outbox gives back the rest.
    """
    answers = {answer.broker: answer for answer in passed}
    offers = [
        _offer(session, session.offer.terms, answers[session.offer.platform])
        for session in sessions
        if session.offer.platform in answers
    ]
    tx.broker_calls.add_offers(offers, now)
    recorded = Counter(offer.broker for offer in offers)
    in_part = {each.key for each in passed if each.answered.dropped or recorded[each.broker] < _count_offers(each)}
    for answer in passed:
        if answer.key in in_part:
            tx.broker_calls.note_answer(answer.key, answer.answered.offerset, now)
    tx.broker_calls.settle_asks(answer.key for answer in passed if answer.key not in in_part)


def _count_offers(passed: PassedOn) -> int:
    whole: Answer = passed.answered.answer
    return len(whole.offers)


def _offer(session: Session, terms: object, passed: PassedOn) -> BrokerOffer:
    if not isinstance(terms, Remote):
        raise TypeError(f"an offer of {passed.broker} is on other terms than a broker's")
    url, expires = terms.url, terms.expires
    return BrokerOffer(session.id, passed.broker, session.person, url, passed.answered.offerset, expires)
