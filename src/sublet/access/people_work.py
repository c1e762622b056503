"""A person's active sessions on a gateway, and blocking the person."""

from __future__ import annotations

from dataclasses import dataclass

from sublet.access.model.access import AccessRule
from sublet.access.quotas import who_is
from sublet.booking.model.phases import ACTIVE, ENDING, STARTED
from sublet.booking.model.session import Session
from sublet.booking.presenter import Presenter
from sublet.booking.sessions import MOST_AT_ONCE, Sessions
from sublet.kernel.clock import Clock
from sublet.people.model.person import Person
from sublet.people.people import People, Profile
from sublet.people.tokens import SESSION
from sublet.store.store import Store
from sublet.store.tx import Tx

RUNS = STARTED | ENDING & ACTIVE
MOST_SHOWN = 50  # sessions that are listed


@dataclass(frozen=True, slots=True)
class Work:
    """A person's activity, and the rules that apply to them."""

    running: int
    waiting: int
    held: int  # requests whose offers are held for them
    tokens: int  # valid tokens
    rules: tuple[AccessRule, ...]
    sessions: tuple[Session, ...]  # the newest active ones


@dataclass(frozen=True, slots=True)
class BlockOutcome:
    """A person who was blocked, their activity, and the sessions that were cancelled."""

    profile: Profile
    work: Work
    cancelled: tuple[Session, ...]


@dataclass
class PeopleWork:
    """Shows operators what people run, and blocks people."""

    store: Store
    now: Clock
    presenter: Presenter
    people: People
    sessions: Sessions

    async def work_of(self, person: Person, name: str) -> tuple[Profile, Work]:
        """Return a person's profile and activity; people may see their own, without the rules."""
        profile = await self.people.profile(person, name)
        work = await self.store.read(lambda tx: self._work(tx, profile.known.name, person))
        return profile, work

    def _work(self, tx: Tx, name: str, viewer: Person) -> Work:
        now = self.now()
        counts = tx.sessions.count_by_phase(name)
        tokens = [
            token
            for token in tx.tokens.list(name)
            if token.use != SESSION and not (token.expires and token.expires <= now)
        ]
        who = who_is(tx, name, now)
        rules = [rule for rule in tx.rules.list() if rule.is_for(who) and not rule.is_expired(now)]
        page = tx.sessions.list(person=name, active=True, limit=MOST_SHOWN)
        return Work(
            sum(counts[phase] for phase in RUNS),
            sum(counts[phase] for phase in ACTIVE - {*RUNS}),
            tx.sessions.count_held(name, now),
            len(tokens),
            tuple(rules) if viewer.operator else (),
            tuple(self.presenter.with_connectors(session, viewer) for session in page.items),
        )

    async def block_person(self, person: Person, name: str, why: str, *, cancel: bool, host: str = "") -> BlockOutcome:
        """Block a person; their active sessions continue, or are cancelled with the same reason."""
        profile = await self.people.block(person, name, why, host)
        cancelled: tuple[Session, ...] = ()
        while cancel:
            page = await self.sessions.page(person, of=profile.known.name, active=True, limit=MOST_AT_ONCE)
            ids = [session.id for session in page.items if not session.cancel_by and session.phase not in ENDING]
            if not ids:
                break
            cancelled += (await self.sessions.cancel_all(ids, person, why)).cancelled
        return BlockOutcome(*await self.work_of(person, profile.known.name), cancelled)
