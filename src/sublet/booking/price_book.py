"""The prices of each platform and pledge, with the carbon intensity of the grid, which is read now and then."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import httpx2

from sublet.booking.model.affordable import keep_affordable
from sublet.booking.model.intensity import Intensity, read_intensity
from sublet.booking.model.limits import drop_unaffordable, storage_of
from sublet.booking.model.offer import Answer, Offer
from sublet.booking.model.prices import Tariff
from sublet.booking.model.request import Request
from sublet.kernel.log import log
from sublet.kernel.settings import Settings
from sublet.kernel.streams import read_up_to
from sublet.kernel.tls import trust_machine

EVERY = timedelta(minutes=15)
PATIENCE = 10.0  # seconds
MOST = 1 << 20  # bytes of an answer


@dataclass
class PriceBook:
    """The current prices; changed settings, and a new carbon intensity, count at once."""

    settings: Settings
    intensity: Intensity | None = None
    _source: str = ""
    _due: datetime | None = None
    _reading: asyncio.Task[None] | None = field(default=None, repr=False)

    def of(self, platform: str, pledge: Mapping[str, int] | None = None) -> Tariff:
        """Return the prices of a platform, and of the pledges that are drawn on."""
        prices = self.settings.prices
        return Tariff(prices.at(platform, pledge), self.intensity if prices.carbon_intensity else None)

    def price_shared(self, answer: Answer, request: Request, platform: str) -> Answer:
        """Price the offers of a shared queue, if the operator set prices for it; drop those that are too expensive."""
        if platform not in self.settings.prices.platforms:
            return answer
        tariff = self.of(platform)
        priced = replace(answer, offers=tuple(_price(offer, tariff) for offer in answer.offers))
        return drop_unaffordable(priced, request, platform)

    def keep_affordable(self, request: Request, tariff: Tariff, platform: str, now: datetime) -> Request:
        """Keep only the start times at which the request is affordable, where that depends on the hour."""
        if not (tariff.is_by_hour and request.costs):
            return request
        price = partial(tariff.bill, request.least, storage_of(request))
        return keep_affordable(request, price, platform, now, self.settings.horizon)

    def drop_dear(self, answer: Answer, request: Request, tariff: Tariff, platform: str) -> Answer:
        """Drop the offers that cost too much at their hour."""
        is_affected = tariff.is_by_hour and request.costs
        return drop_unaffordable(answer, request, platform) if is_affected else answer

    async def look_after(self, now: datetime) -> None:
        """Read the carbon intensity again when it is due, in the background."""
        source = self.settings.prices.carbon_intensity
        if source != self._source:
            self._source, self._due, self.intensity = source, None, None
        is_due = self._due is None or not self._due - EVERY <= now < self._due
        if source and is_due and (self._reading is None or self._reading.done()):
            self._due = now + EVERY
            self._reading = asyncio.create_task(self.read(source), name="carbon intensity")

    async def read(self, source: str) -> None:
        """Read the carbon intensity once; on failure, log that and keep the last value."""
        try:
            text = await (_fetch(source) if source.startswith(("http://", "https://")) else _read_file(source))
            self.intensity = read_intensity(text)
        except (OSError, ValueError, httpx2.HTTPError, httpx2.InvalidURL, TimeoutError) as error:
            log.warning("intensity.unread", source=source, why=str(error) or type(error).__name__)


def _price(offer: Offer, tariff: Tariff) -> Offer:
    if offer.costs:
        return offer
    bill = tariff.bill(offer.amounts, offer.storage, offer.start)
    return replace(offer, costs=bill.total, compute_costs=bill.compute, storage_costs=bill.storage)


async def _read_file(source: str) -> str:
    path = Path(source.removeprefix("file://"))
    return await asyncio.to_thread(path.read_text)


async def _fetch(source: str) -> str:
    transport = httpx2.AsyncHTTPTransport(verify=trust_machine(environment=False), trust_env=False)
    async with (
        asyncio.timeout(PATIENCE),
        httpx2.AsyncClient(transport=transport, trust_env=False, timeout=PATIENCE) as client,
        client.stream("GET", source, headers={"accept": "application/json, text/csv"}) as answer,
    ):
        answer.raise_for_status()
        body = await read_up_to(MOST, answer.aiter_bytes())
        if len(body) > MOST:
            raise ValueError(f"it has more than {MOST >> 20} MiB")
        return body.decode()
