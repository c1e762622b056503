"""Access rules: operators add and remove them, and see which sessions continue although their owners lose access."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import uuid4

from sublet.access.model.access import GROUP, NO_LIMITS, AccessRule, AccessTarget, Decision, Limits, Use, decide
from sublet.access.model.access_words import limits_text
from sublet.access.quotas import QuotaClaim, Quotas, list_claims, who_is
from sublet.booking.model.session import Session
from sublet.booking.platforms.known import KnownPlatforms
from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import BadRequest, NotFound, OperatorsOnly
from sublet.kernel.settings import Settings
from sublet.kernel.short_ids import pick_one, require_length
from sublet.people.model.mailboxes import fold_address
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx

STEP = 500  # sessions per read
LONGEST_NOTE = 2000


@dataclass(frozen=True, slots=True)
class ChangedRules:
    """A rule that was added or removed, with notes, and the sessions that continue without access."""

    rule: AccessRule
    notes: tuple[str, ...] = ()
    running: tuple[Session, ...] = ()


@dataclass(frozen=True, slots=True)
class AccessStanding:
    """A person's standing with one target: the decision, their use of it, and an open request for it."""

    decision: Decision
    use: Use
    asked: str = ""  # the id of the open request


@dataclass
class AccessRules:
    """Manages access rules, and shows what they decide for each person."""

    settings: Settings
    store: Store
    now: Clock
    platforms: KnownPlatforms
    authority: Authority
    quotas: Quotas

    async def rules(self, person: Person) -> Sequence[AccessRule]:
        """List all rules, oldest first."""
        self.authority.require_operator(person)
        return await self.store.read(lambda tx: tx.rules.list())

    async def rule(self, name: str, person: Person) -> AccessRule:
        """Return a rule by its id or the beginning of it."""
        self.authority.require_operator(person)
        return await self.store.read(lambda tx: _find_rule(tx, name))

    async def add_rule(
        self,
        person: Person,
        *,
        effect: Any,
        who: str,
        noun: str,
        name: str,
        limits: Limits = NO_LIMITS,
        expires: datetime | None = None,
        note: str = "",
        host: str = "",
    ) -> ChangedRules:
        """Add a rule, which takes effect at once."""
        self.authority.require_operator(person)
        now = self.now()
        if expires and expires <= now:
            raise BadRequest(detail=f"the rule would have expired on {expires:%Y-%m-%d}", hint="Name a later day.")
        if len(note) > LONGEST_NOTE:
            raise BadRequest(detail=f"the note has more than {LONGEST_NOTE} characters")
        about = who.strip() if who.startswith(GROUP) else self._plain(who.strip())
        rule = AccessRule(str(uuid4()), effect, about, noun, name.strip(), now, limits, expires, person.name, note)
        return await self.store.write(lambda tx: self.add_in(tx, rule, host))

    def _plain(self, name: str) -> str:
        """Normalize a name or pattern: lower case, and an address without its tag."""
        return fold_address(_small(name), self.settings.signing.subaddresses)

    def add_in(self, tx: Tx, rule: AccessRule, host: str) -> ChangedRules:
        before = tx.rules.list()
        tx.rules.add(rule)
        running = self._withdrawn(tx, before, [*before, rule])
        tx.audit.add(AuditEntry(rule.created, rule.by, "rule.add", "rule", rule.id, _detail(rule, running), host))
        return ChangedRules(rule, self._notes(tx, rule), running)

    async def remove_rule(self, name: str, person: Person, host: str = "") -> ChangedRules:
        """Remove a rule with immediate effect; running sessions continue."""
        self.authority.require_operator(person)
        return await self.store.write(lambda tx: self._remove(tx, name, person.name, host))

    def _remove(self, tx: Tx, name: str, by: str, host: str) -> ChangedRules:
        rule, before = _find_rule(tx, name), tx.rules.list()
        tx.rules.remove(rule.id)
        running = self._withdrawn(tx, before, [other for other in before if other.id != rule.id])
        tx.audit.add(AuditEntry(self.now(), by, "rule.remove", "rule", rule.id, _detail(rule, running), host))
        return ChangedRules(rule, (), running)

    async def preview_rule_removal(self, name: str, person: Person) -> ChangedRules:
        """Return the sessions that would continue without access if a rule was removed, without removing it."""
        self.authority.require_operator(person)

        def work(tx: Tx) -> ChangedRules:
            rule, before = _find_rule(tx, name), tx.rules.list()
            return ChangedRules(
                rule, (), self._withdrawn(tx, before, [other for other in before if other.id != rule.id])
            )

        return await self.store.read(work)

    async def standing(self, person: Person, of: str = "") -> Sequence[AccessStanding]:
        """Return a person's standing with every target; operators may ask for others."""
        whose = self._plain(of) or person.name
        if whose != person.name and not person.operator:
            raise OperatorsOnly

        def work(tx: Tx) -> list[AccessStanding]:
            known = tx.people.find("email", whose)
            return [self.stands(tx, known.name if known else whose, target) for target in self.list_targets(tx)]

        return await self.store.read(work)

    def stands(self, tx: Tx, person: str, target: AccessTarget) -> AccessStanding:
        """Return a person's standing with one target."""
        request = tx.access_requests.open(person, *target)
        return AccessStanding(*self.quotas.judge(tx, person, target, self.now()), request.id if request else "")

    def list_targets(self, tx: Tx) -> list[AccessTarget]:
        """List everything that can be used here, by noun and name."""
        platforms = [(self.platforms.noun_of(name), name) for name in self.platforms.by_name]
        pledges = sorted({name for platform in self.platforms.by_name for name in self.platforms.pledges_of(platform)})
        places = sorted({place.name for place in tx.places.list()})
        projects = sorted({budget.project for budget in tx.budgets.list()} - {""})
        named = {"pledge": pledges, "app": tx.rules.apps(), "place": places, "project": projects}
        return [*platforms, *((noun, name) for noun, names in named.items() for name in names)]

    def _withdrawn(self, tx: Tx, before: Sequence[AccessRule], after: Sequence[AccessRule]) -> tuple[Session, ...]:
        """Return the active sessions whose owners lose access with the new rules."""
        now = self.now()
        lost: dict[tuple[str, QuotaClaim], bool] = {}

        def loses(person: str, claim: QuotaClaim) -> bool:
            who, let_in = who_is(tx, person, now), claim.let_in
            had, has = (decide(rules, who, *claim.target, now, let_in=let_in).allowed for rules in (before, after))
            return had and not has

        sessions: list[Session] = []
        for session in _under_way(tx):
            for claim in list_claims(self.platforms, session.offer, tx.uses.app_of(session.app)):
                key = (session.person, claim)
                lost[key] = lost[key] if key in lost else loses(*key)
                if lost[key] and session not in sessions:
                    sessions.append(session)
        return tuple(sessions)

    def _notes(self, tx: Tx, rule: AccessRule) -> tuple[str, ...]:
        """Return notes on what an operator may have overlooked."""
        known = any(rule.about(*target) for target in self.list_targets(tx))
        missing = () if known else (f"No {rule.noun} is called {rule.name} at present.",)
        group = rule.who.removeprefix(GROUP) if rule.who.startswith(GROUP) else ""
        nobody = (f"There is no group {group} yet.",) if group and not tx.groups.get(group) else ()
        return (*missing, *nobody)


def _under_way(tx: Tx) -> Iterator[Session]:
    after: str | None = None
    while True:
        page = tx.sessions.list(active=True, limit=STEP, after=after)
        yield from page.items
        after = page.next
        if after is None:
            return


def _find_rule(tx: Tx, name: str) -> AccessRule:
    matches = tx.rules.find(name)
    require_length(name, "rule")
    rule = pick_one(name, "rule", matches, lambda rule: f"{rule.id[:13]} ({rule.effect} {rule.who})")
    if rule is None:
        raise NotFound(noun="rule", name=name, hint="`sublet rule list` lists them.")
    return rule


def rule_detail(rule: AccessRule) -> dict[str, Any]:
    """Return a rule's details for the audit log."""
    return {
        "effect": rule.effect,
        "who": rule.who,
        rule.noun: rule.name,
        "limits": limits_text(rule.limits),
        "expires": rule.expires.isoformat() if rule.expires else "",
        "note": rule.note,
    }


def _detail(rule: AccessRule, running: Sequence[Session]) -> dict[str, Any]:
    ids = [session.id for session in running]
    return {key: value for key, value in {**rule_detail(rule), "running": ids}.items() if value}


def _small(name: str) -> str:
    """Lower-case the ASCII letters of a name."""
    return "".join(letter.lower() if letter.isascii() else letter for letter in name)
