"""Ask, and accept the best offer at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sublet.booking.asked import Asked, DirectKey
from sublet.booking.asking import Asking
from sublet.booking.best_offer import best_offer
from sublet.booking.model.session import OfferSet, Session
from sublet.booking.offers import Offers
from sublet.booking.presenter import Presenter
from sublet.booking.sessions import Sessions
from sublet.kernel.errors import NoOffers, SubletError
from sublet.people.model.person import Person


@dataclass
class Direct:
    """The use case that starts a session without showing the offers first."""

    presenter: Presenter
    asking: Asking
    offers: Offers
    sessions: Sessions

    async def run(self, person: Person, asked: Asked, *, key: str | None = None) -> Session:
        """Ask, and accept the best offer at once; the same key returns the same session."""
        firm = replace(asked.precedence, firm=True)
        offerset = await self.asking.ask(person, replace(asked, precedence=firm), key=key and DirectKey(key))
        if not offerset.offers:
            raise NoOffers.because(offerset.reasons)
        return await self.accept_best(offerset, person)

    async def accept_best(self, offerset: OfferSet, person: Person) -> Session:
        """Accept the best of the offers that were just made; if that fails, reject them all.

        If the set was made earlier under the same key, return the session that was accepted then.
        """
        for taken in offerset.offers:
            if taken.start is not None:
                return self.presenter.with_connectors(taken, person)
        try:
            best = best_offer(offerset)
        except SubletError:
            await self.offers.reject_set(offerset.id, person)
            raise
        return await self.accept_of(offerset, best.id, person)

    async def accept_of(self, offerset: OfferSet, offer: str, person: Person) -> Session:
        """Accept one of the offers that were just made; if that fails, reject them all."""
        try:
            return await self.sessions.accept(offer, person)
        except SubletError:
            await self.offers.reject_set(offerset.id, person)
            raise
