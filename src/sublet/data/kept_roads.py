"""Has this machine's cache keep what movers bring as a whole: repositories at a commit, files and folders by rsync."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from functools import partial

from sublet.booking.model.request import Data
from sublet.data.journeys import Journey, bring_alone, publish_entry
from sublet.data.model.links import can_be_known, name_entry
from sublet.data.model.roads import Road, TakenRoad
from sublet.data.roads import LOOKS, Arrival, check_amount
from sublet.data.unpacking import UNPACKED, have_unpacked
from sublet.kernel.errors import DataNotThere
from sublet.movers.port import KnownContent, KnowsContent, NoLinks, SourceChanged
from sublet.platforms.caching import EntryPhase, ReceivesData


async def take_kept_road(journey: Journey, data: Data, mover: KnowsContent) -> Arrival | None:
    """Bring data into this machine's cache; return None if it must be brought for its session alone."""
    cache = journey.cache
    if not isinstance(cache, ReceivesData):
        return None
    for _ in range(LOOKS):
        try:
            content = await mover.find_content(data)
        except NoLinks:
            return None
        if not can_be_known(content.named) or (data.unpack and content.files.is_folder):
            return None
        if content.files.links:
            check_amount(data, content.files, mover.policy.largest)
        entry = name_entry(content.named, journey.person, journey.session)
        have = partial(_have, journey, cache, data, mover, content, entry)
        try:
            if data.unpack:
                name, taken = await have_unpacked(journey, data, entry, content.named.address, have)
                return Arrival(data, UNPACKED, name, taken)
            return Arrival(data, content.files, entry, await have())
        except SourceChanged:
            continue
        except DataNotThere:
            # Perhaps it has parts that a credential opens: such data is not for all, and its name doesn't say so
            if mover.policy.credentials and all(link.is_open for link in content.named.links):
                return None
            raise
    return None  # it changes all the time


async def _have(
    journey: Journey, cache: ReceivesData, data: Data, mover: KnowsContent, content: KnownContent, entry: str
) -> TakenRoad:
    began, road, source = time.monotonic(), Road.CACHED, content.named.address
    label = f"{data.name if content.files.is_folder else content.named.links[0].path} from {source}"
    state = await cache.want(entry, journey.session, label)
    if state.phase is not EntryPhase.THERE:
        await cache.make_room(content.files.size or data.size or 0)
        progress, road = journey.tell(f"bringing {data.name}"), Road.HERE

        async def bring(_: Mapping[str, int]) -> None:
            async with cache.receive(entry, is_folder=content.files.is_folder) as target:
                await asyncio.to_thread(target.mkdir, exist_ok=True)
                await content.bring(target, progress)
                if content.files.links and (await mover.find_content(data)).files != content.files:
                    raise SourceChanged("it changed while it was brought")
            await publish_entry(cache, entry, data, content.files)

        state = await bring_alone(cache, entry, progress, bring)
    return TakenRoad(data.name, road, source, content.files.size or state.done, time.monotonic() - began)
