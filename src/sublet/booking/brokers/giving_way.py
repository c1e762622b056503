"""Gives back a person's earlier offers at other brokers, where they are in the way of the person's next request.

Only brokers that report this are concerned; each is then asked once more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from sublet.booking.candidate import PassedOn
from sublet.booking.holds import GIVE_BACK, HELD
from sublet.booking.model.events import EventKind
from sublet.booking.model.offer import Remote
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import End, EndKind, Session
from sublet.kernel.clock import Clock
from sublet.kernel.errors import SubletError
from sublet.kernel.log import log
from sublet.people.model.person import Person
from sublet.platforms.brokering import PassesOn
from sublet.store.store import Store
from sublet.store.tx import Tx


def list_blocked(answers: Mapping[str, PassedOn | BaseException]) -> list[str]:
    """Return the brokers that report that the person's own earlier offers prevent an earlier start."""
    passed = {name: answer for name, answer in answers.items() if isinstance(answer, PassedOn)}
    return [name for name, each in passed.items() if any(map(_is_own_hold, each.answered.answer.reasons))]


def _is_own_hold(reason: object) -> bool:
    return (getattr(reason, "kind", ""), getattr(reason, "nearest", "")) == (HELD, GIVE_BACK)


@dataclass
class RemoteGivingWay:
    """Gives back a person's earlier offers at other brokers."""

    store: Store
    now: Clock

    async def give_back(
        self, person: Person, brokers: Mapping[str, PassesOn], answers: Mapping[str, PassedOn | BaseException]
    ) -> list[str]:
        """Give back the earlier offers that may give way, and the new answers; return the brokers to ask again."""
        blocked = [name for name in list_blocked(answers) if name in brokers]
        earlier = await self.store.write(lambda tx: self._let_go(tx, person, blocked)) if blocked else []
        freed = sorted({session.offer.platform for session in earlier})
        calls = [self._give_up(brokers[session.offer.platform], session) for session in earlier]
        calls += [self._decline(brokers[name], person, answers[name]) for name in freed]
        for failure in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(failure, BaseException) and not isinstance(failure, SubletError):
                raise failure
        return freed

    def _let_go(self, tx: Tx, person: Person, brokers: list[str]) -> list[Session]:
        """Reject the person's earlier offers at these brokers that may give way, and return them."""
        now = self.now()
        movable = [hold for hold in tx.holds.of(person.name) if not hold.firm and hold.expires > now]
        offers = [offer for hold in movable for offer in tx.holds.offers(hold.offerset)]
        there = [offer for offer in offers if offer.offer.platform in brokers]
        for session in there:
            end = End(EndKind.GAVE_WAY, by=person.name)
            tx.sessions.move(session.id, Phase.REJECTED, when=(Phase.OFFERED,), now=now, due=None, end=end)
            tx.events.add(now, session.id, person.name, EventKind.GAVE_WAY, "to a later request", Phase.REJECTED)
        return there

    async def _give_up(self, broker: PassesOn, session: Session) -> None:
        """Give one offer back at its broker at once; if the broker doesn't answer, the outbox tries again."""
        if isinstance(session.offer.terms, Remote):
            await broker.give_up(session.offer.terms.url, session.person)

    async def _decline(self, broker: PassesOn, person: Person, answer: PassedOn | BaseException) -> None:
        """Decline the answer that was made while the earlier offers were still held."""
        if isinstance(answer, PassedOn) and answer.answered.offerset:
            await broker.give_up_ask(answer.answered.offerset, person.name, None, frozenset())
            await self.store.write(lambda tx: tx.broker_calls.settle_ask(answer.key))
            log.info("broker.earlier_offers_gave_way", broker=answer.broker)
