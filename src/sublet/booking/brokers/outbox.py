"""Releases what other brokers hold for nobody: after an accept, a reject, a crash or a late answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from time import monotonic

from sublet.booking.brokers.forwarding import make_request
from sublet.booking.model.brokers import BrokerAsk, BrokerOffer, find_next_try
from sublet.booking.model.phases import Phase
from sublet.booking.platforms.known import KnownPlatforms
from sublet.kernel.clock import Clock
from sublet.kernel.errors import SubletError
from sublet.kernel.faults import point
from sublet.kernel.log import log
from sublet.platforms.brokering import PassesOn
from sublet.store.store import Store
from sublet.store.tx import Tx

EVERY = timedelta(milliseconds=200)
RESTS = 9  # rests this many times as long as a look took, so that it takes a tenth of a core at most
BATCH = 500
AT_ONCE = 32
PATIENCE = timedelta(seconds=20)
NEARLY = timedelta(seconds=15)  # an offer that expires there this soon is left to expire
ANSWERS_KEPT = timedelta(hours=2)  # by then, the offers of an answer that wasn't recorded have expired everywhere
GIVEN_UP = timedelta(days=7)  # how long to try to end a session that may still run there


@dataclass(frozen=True, slots=True)
class GivenBack:
    """The outcome for one offer set: offers that are no longer held there, and when to try the others again."""

    settled: Sequence[BrokerOffer]
    later: Sequence[tuple[BrokerOffer, datetime]]


def record_given(tx: Tx, sets: Sequence[GivenBack]) -> None:
    """Record the outcomes for many offer sets at once."""
    tx.broker_calls.settle_offers([offer for each in sets for offer in each.settled])
    tx.broker_calls.put_off_offers([pair for each in sets for pair in each.later])


@dataclass
class BrokerOutbox:
    """The part of the loop that gives back what other brokers hold."""

    store: Store
    now: Clock
    platforms: KnownPlatforms

    _looked: datetime | None = None
    _rests_until: float = 0.0
    _giving: asyncio.Task[None] | None = None
    _turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def look_after(self, now: datetime) -> None:
        """Start giving back what is left over, if anything is; it happens in the background."""
        if self._giving and not self._giving.done():
            return
        if (self._looked and abs(now - self._looked) < EVERY) or monotonic() < self._rests_until:
            return
        self._looked, began = now, monotonic()
        left, asks = await self.store.read(
            lambda tx: (tx.broker_calls.list_left_over(now, BATCH), tx.broker_calls.list_asks(now, BATCH))
        )
        self._rests_until = monotonic() + RESTS * (monotonic() - began)  # with many open offers a look is slow
        if left or asks:
            self._giving = asyncio.create_task(self._give_back(left, asks), name="broker outbox")

    async def stop(self) -> None:
        """Stop giving back, because the service ends; what is left is given back after the next start."""
        if self._giving:
            self._giving.cancel()
            await asyncio.wait([self._giving])

    async def _give_back(self, left: Sequence[BrokerOffer], asks: Sequence[BrokerAsk]) -> None:
        by_set = groupby(
            sorted(left, key=lambda offer: (offer.broker, offer.offerset, offer.person)),
            key=lambda offer: (offer.broker, offer.offerset, offer.person),
        )
        sets = [list(offers) for _, offers in by_set]
        names = {offers[0].offerset for offers in sets}
        needed = await self.store.read(lambda tx: tx.broker_calls.find_needed(names)) if names else frozenset()
        done = await asyncio.gather(
            *(self._give_back_set(offers, offers[0].offerset in needed) for offers in sets),
            *(self._settle_ask(ask) for ask in asks),
            return_exceptions=True,
        )
        given = [each for each in done if isinstance(each, GivenBack)]
        point("outbox.given_back")
        await self.store.write(lambda tx: record_given(tx, given))
        for failure in done:
            if isinstance(failure, BaseException):
                log.error("broker.outbox_failed", why=repr(failure))

    async def _give_back_set(self, offers: Sequence[BrokerOffer], is_needed: bool) -> GivenBack:
        """Give back the offers of one set, in one call if none of the set is needed."""
        now = self.now()
        settled = [offer for offer in offers if self._is_settled(offer, now)]
        open_offers = [offer for offer in offers if offer not in settled]
        soon = [offer for offer in open_offers if offer.was_never_taken and offer.expires - now < NEARLY]
        later = [(offer, max(each.expires for each in soon)) for offer in soon]
        rest = [offer for offer in open_offers if offer not in soon]
        if not rest:
            return GivenBack(settled, later)
        first = rest[0]
        again = [(offer, find_next_try(now, first.tries)) for offer in rest]
        broker = self.platforms.by_name.get(first.broker)
        if not isinstance(broker, PassesOn):
            return GivenBack(settled, [*later, *again])
        try:
            async with self._turns, asyncio.timeout(PATIENCE.total_seconds()):
                if first.offerset and not is_needed and all(offer.was_never_taken for offer in rest):
                    await broker.give_up_ask(first.offerset, first.person, None, frozenset())
                else:
                    for offer in rest:
                        await broker.give_up(offer.url, offer.person)
        except (SubletError, TimeoutError) as error:
            log.warning("broker.offers_not_given_back", broker=first.broker, offers=len(rest), why=str(error))
            return GivenBack(settled, [*later, *again])
        log.info("broker.offers_given_back", broker=first.broker, offers=len(rest))
        return GivenBack([*settled, *rest], later)

    def _is_settled(self, offer: BrokerOffer, now: datetime) -> bool:
        """Whether nothing can be held for the offer at its broker any more, so that the broker need not be asked."""
        if offer.phase is Phase.COMPLETED or (offer.was_never_taken and offer.expires <= now):
            return True
        return offer.expires + GIVEN_UP <= now

    async def _settle_ask(self, ask: BrokerAsk) -> None:
        """Give back the offers of a request whose answer was not recorded, or was only partly used."""
        now = self.now()
        broker = self.platforms.by_name.get(ask.broker)
        if now - ask.created < ANSWERS_KEPT and isinstance(broker, PassesOn):
            keep = await self.store.read(lambda tx: tx.broker_calls.list_passed_on(ask.offerset))
            try:
                async with self._turns, asyncio.timeout(PATIENCE.total_seconds()):
                    again = make_request(ask, None, PATIENCE / 2)
                    await broker.give_up_ask(ask.offerset, ask.person, again, keep if ask.offerset else frozenset())
            except (SubletError, TimeoutError) as error:
                due = find_next_try(now, ask.tries)
                log.warning("broker.ask_not_settled", broker=ask.broker, why=str(error))
                return await self.store.write(lambda tx: tx.broker_calls.put_off_ask(ask, due))
        await self.store.write(lambda tx: tx.broker_calls.settle_ask(ask.key))
