"""A person's open offers: listing and rejecting them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sublet.booking.asking import Asking
from sublet.booking.holds import give_back, list_held_platforms
from sublet.booking.model.session import OfferSet
from sublet.booking.recorded_clock import read_recorded_now
from sublet.booking.signals import Signals
from sublet.kernel.clock import Clock
from sublet.kernel.faults import point
from sublet.kernel.log import log
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx


@dataclass
class Offers:
    """Open offers."""

    store: Store
    now: Clock
    signals: Signals
    asking: Asking

    async def open_offers(self, person: Person) -> list[OfferSet]:
        """Return a person's offer sets with open offers, newest first, each with only its open offers."""
        now = self.now()

        def work(tx: Tx) -> list[OfferSet]:
            held = [(tx.offersets.get(hold.offerset), hold) for hold in tx.holds.of(person.name) if hold.expires > now]
            return [
                replace(offerset, offers=tuple(tx.holds.offers(hold.offerset))) for offerset, hold in held if offerset
            ]

        return await self.store.read(work)

    async def reject_set(self, id: str, person: Person) -> int:
        """Reject all open offers of a set, and return how many there were."""
        await self.asking.offerset(id, person)  # raises if it isn't there, or isn't theirs
        return await self._reject(person, lambda tx: [id])

    async def reject_all(self, person: Person) -> int:
        """Reject all of a person's open offers, and return how many there were."""
        return await self._reject(person, lambda tx: [hold.offerset for hold in tx.holds.of(person.name)])

    async def _reject(self, person: Person, choose: Callable[[Tx], Sequence[str]]) -> int:
        def work(tx: Tx) -> int:
            now = read_recorded_now(tx, self.now())
            rejected = [offer for id in choose(tx) for offer in give_back(tx, id, now, by=person.name)]
            self.signals.freed |= list_held_platforms(rejected)
            return len(rejected)

        point("reject.before")
        count = await self.store.write(work)
        point("reject.after")
        if count:
            log.info("offers.rejected", person=person.name, offers=count)
            await self.signals.announce()
        return count
