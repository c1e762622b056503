"""Requests for access: people ask, operators decide, and both are notified by mail."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import uuid4

from sublet.access.model.access import NO_LIMITS, NOUNS, AccessRequest, AccessRule, AccessTarget, Limits
from sublet.access.model.access_words import limits_text, why
from sublet.access.quotas import decide_by_rules, who_is
from sublet.access.rules import AccessRules, rule_detail
from sublet.booking.presenter import Presenter
from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import AlreadyAllowed, AlreadyDecided, BadRequest, NotFound, TooManyOpen
from sublet.kernel.mail import Mail
from sublet.kernel.settings import Settings
from sublet.kernel.short_ids import pick_one, require_length
from sublet.kernel.throttle import Throttle, neighbours
from sublet.people.model.mailboxes import is_pattern
from sublet.people.model.people import Role
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx

MOST_OPEN = 20  # open requests of one person
LONGEST_WHY = 2000
UNTOLD = "No operator could be notified by mail; they see the request on their page and in `sublet access list`."


@dataclass(frozen=True, slots=True)
class RequestedAccess:
    """A request for access, and notes for the person who made or decided it."""

    request: AccessRequest
    notes: tuple[str, ...] = ()


@dataclass
class Access:
    """Handles requests for access, from the request to the rule that grants it."""

    settings: Settings
    store: Store
    now: Clock
    presenter: Presenter
    throttle: Throttle
    mail: Mail
    authority: Authority
    rules: AccessRules

    async def ask_access(self, person: Person, noun: str, name: str, reason: str, host: str = "") -> RequestedAccess:
        """Request access to a target; a repeated request has no effect."""
        self.authority.require_gateway()
        words = reason.strip()
        if not words or len(words) > LONGEST_WHY:
            detail = f"say why, in up to {LONGEST_WHY} characters"
            raise BadRequest(detail=detail, hint="--reason 'for the flood model'")
        if host:
            self.throttle.spend("access_requests_per_host", neighbours(host))
        self.throttle.spend("access_requests_per_person", person.name)
        request, new = await self.store.write(lambda tx: self._ask(tx, person, noun, name, words, host))
        if not new:
            return RequestedAccess(request, ("You have asked for this already; an operator has not decided yet.",))
        operators = await self.store.read(lambda tx: tx.people.list(Role.OPERATOR))
        text = (
            f"{request.person} asks to use the {request.noun} {request.name}:\n\n{_quote(words)}\n\n"
            f"Decide there, after signing in: {self._link(request)}\n"
            f"or with: sublet access grant {request.id[:8]}\n"
        )
        names = [known.name for known in operators if known.blocked is None]
        is_sent = await self.mail.send_each(names, f"{request.person} asks for access to {request.name}", text)
        return RequestedAccess(request, () if is_sent else (UNTOLD,))

    def _ask(self, tx: Tx, person: Person, noun: str, name: str, words: str, host: str) -> tuple[AccessRequest, bool]:
        now, target = self.now(), self._find_target(tx, noun, name)
        if known := tx.access_requests.open(person.name, *target):
            return known, False
        decision = decide_by_rules(tx, who_is(tx, person.name, now), target, now)
        if decision.allowed and decision.limits == NO_LIMITS:
            raise AlreadyAllowed(noun=target[0], name=name, why=why(decision))
        if (count := tx.access_requests.count_open(person.name)) >= MOST_OPEN:
            raise TooManyOpen(count=count)
        request = AccessRequest(str(uuid4()), person.name, *target, words, now)
        tx.access_requests.add(request)
        detail = {"request": request.id, "why": words}
        tx.audit.add(AuditEntry(now, person.name, "access.ask", *target, detail, host))
        return request, True

    def _find_target(self, tx: Tx, noun: str, name: str) -> AccessTarget:
        """Return the target of a name; without a noun, the first target with this name."""
        if noun and noun not in NOUNS:
            raise BadRequest(detail=f"{noun} is none of {', '.join(NOUNS)}")
        matches = [target for target in self.rules.list_targets(tx) if target[1] == name and noun in ("", target[0])]
        if not matches:
            any_noun = "account, system, pledge, app, place or project"
            raise NotFound(noun=noun or any_noun, name=name, hint="`sublet access` lists what there is.")
        return matches[0]

    async def access_requests(self, person: Person, state: str = "", limit: int = 100) -> Sequence[AccessRequest]:
        """List requests for access, newest first: a person's own, or everybody's for an operator."""
        whose = "" if person.operator else person.name
        return await self.store.read(lambda tx: tx.access_requests.list(person=whose, state=state, limit=limit))

    async def access_request(self, name: str, person: Person) -> AccessRequest:
        """Return a request by its id or the beginning of it."""
        return await self.store.read(lambda tx: _find_request(tx, name, person))

    async def grant_access(
        self,
        name: str,
        person: Person,
        *,
        limits: Limits = NO_LIMITS,
        expires: datetime | None = None,
        answer: str = "",
        host: str = "",
    ) -> RequestedAccess:
        """Grant a request by adding a rule for the person, which takes effect at once."""
        self.authority.require_operator(person)
        if expires and expires <= self.now():
            raise BadRequest(detail=f"the access would have expired on {expires:%Y-%m-%d}", hint="Name a later day.")
        granted = await self.store.write(lambda tx: self._grant(tx, name, person, limits, expires, answer, host))
        within = f"within {text}" if (text := limits_text(limits)) else "without limits of your own"
        until = f", until {expires:%Y-%m-%d}" if expires else ""
        return await self._tell_asker(granted, f"You may use the {granted.noun} {granted.name} now, {within}{until}.")

    def _grant(
        self,
        tx: Tx,
        name: str,
        person: Person,
        limits: Limits,
        expires: datetime | None,
        answer: str,
        host: str,
    ) -> AccessRequest:
        request, now = _find_request(tx, name, person), self.now()
        if is_pattern(request.person):
            raise BadRequest(
                detail=f"a rule for {request.person} would let others in too: it is a pattern",
                hint="Refuse the request, and have them sign in by another address.",
            )
        note = f"asked for on {request.created:%Y-%m-%d}"
        rule = AccessRule(
            str(uuid4()), "allow", request.person, request.noun, request.name, now, limits, expires, person.name, note
        )
        _decide(tx, request, "granted", person, now, answer, rule.id)
        tx.rules.add(rule)
        detail = {"request": request.id, "rule": rule.id, **rule_detail(rule), "answer": answer}
        kept = {key: value for key, value in detail.items() if value}
        tx.audit.add(AuditEntry(now, person.name, "access.grant", request.noun, request.name, kept, host))
        return _find_request(tx, request.id, person)

    async def refuse_access(self, name: str, person: Person, answer: str = "", host: str = "") -> RequestedAccess:
        """Refuse a request, and notify the person."""
        self.authority.require_operator(person)
        refused = await self.store.write(lambda tx: self._refuse(tx, name, person, answer, host))
        return await self._tell_asker(refused, f"You may not use the {refused.noun} {refused.name}.")

    def _refuse(self, tx: Tx, name: str, person: Person, answer: str, host: str) -> AccessRequest:
        request, now = _find_request(tx, name, person), self.now()
        _decide(tx, request, "refused", person, now, answer, "")
        detail = {"request": request.id, "who": request.person, "answer": answer}
        tx.audit.add(AuditEntry(now, person.name, "access.refuse", request.noun, request.name, detail, host))
        return _find_request(tx, request.id, person)

    async def _tell_asker(self, request: AccessRequest, sentence: str) -> RequestedAccess:
        answer = f"\n\n{_quote(request.answer)}" if request.answer else ""
        text = f"{sentence}{answer}\n\nWhat you may use: {self.presenter.page('access')}\n"
        is_sent = await self.mail.send_each(
            [request.person], f"Your request for {request.name} was {request.state}", text
        )
        return RequestedAccess(request, () if is_sent else (f"{request.person} could not be notified by mail.",))

    def _link(self, request: AccessRequest) -> str:
        return self.presenter.page(f"access/requests/{request.id}")


def _find_request(tx: Tx, name: str, person: Person) -> AccessRequest:
    matches = [request for request in tx.access_requests.find(name) if person.operator or request.person == person.name]
    require_length(name, "request")
    request = pick_one(
        name, "request", matches, lambda request: f"{request.id[:13]} ({request.person}, {request.name})"
    )
    if request is None:
        raise NotFound(noun="request for access", name=name, hint="`sublet access list` lists them.")
    return request


def _decide(tx: Tx, request: AccessRequest, state: str, person: Person, now: datetime, answer: str, rule: str) -> None:
    if len(answer) > LONGEST_WHY:
        raise BadRequest(detail=f"the answer has more than {LONGEST_WHY} characters")
    if not tx.access_requests.decide(request.id, state, now=now, by=person.name, answer=answer, rule=rule):
        raise AlreadyDecided(state=request.state, by=request.by)


def _quote(text: str) -> str:
    return "\n".join(f"> {line}" for line in text.splitlines())
