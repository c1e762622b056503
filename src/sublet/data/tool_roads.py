"""Has a system fetch data with one of its own programs, such as rsync or git, as the mover plans it."""

from __future__ import annotations

import time
from functools import partial

from sublet.booking.model.request import Data
from sublet.data.fetching import fetch_on_system
from sublet.data.journeys import Journey, publish_entry
from sublet.data.model.links import name_entry
from sublet.data.model.roads import Road, TakenRoad
from sublet.data.model.tools import ToolPlan
from sublet.data.roads import LOOKS, Arrival, check_amount
from sublet.data.unpacking import UNPACKED, have_unpacked
from sublet.movers.arrival import missing
from sublet.movers.port import NoLinks, PlansTool, SourceChanged
from sublet.platforms.caching import EntryPhase, EntryState, NoWay, RunsTools


async def take_tool_road(journey: Journey, data: Data, mover: PlansTool) -> Arrival | None:
    """Bring data into the system's cache; return None, with the reason noted, if it must be brought here instead."""
    cache, why = journey.cache, ""
    if not isinstance(cache, RunsTools):
        return None
    try:
        for _ in range(LOOKS):
            plan = await mover.plan(data)
            if plan.files.links:
                check_amount(data, plan.files, mover.policy.largest)
            entry = name_entry(plan.named, journey.person, journey.session)
            have = partial(_have, journey, cache, data, mover, plan, entry)
            try:
                if data.unpack:
                    name, taken = await have_unpacked(journey, data, entry, plan.host, have)
                    return Arrival(data, UNPACKED, name, taken)
                return Arrival(data, plan.files, entry, await have())
            except SourceChanged as changed:
                why = str(changed)
    except NoLinks:
        return None
    except NoWay as no_way:
        journey.no_ways[data.name] = str(no_way)
        return None
    raise missing(data, why)


async def _have(
    journey: Journey, cache: RunsTools, data: Data, mover: PlansTool, plan: ToolPlan, entry: str
) -> TakenRoad:
    began, road = time.monotonic(), Road.CACHED
    state = await cache.want(entry, journey.session, f"{data.name} from {plan.host}")
    if state.phase is not EntryPhase.THERE:
        await cache.make_room(plan.files.size or 0)
        road, state = Road.THERE, await _fetch(journey, cache, data, mover, plan, entry)
    return TakenRoad(data.name, road, plan.host, plan.files.size or state.done, time.monotonic() - began)


async def _fetch(
    journey: Journey, cache: RunsTools, data: Data, mover: PlansTool, plan: ToolPlan, entry: str
) -> EntryState:
    """Have the program fetch the data, and wait until it is done; raise NoWay if it can't."""

    async def publish() -> None:
        if plan.files.links and (await mover.plan(data)).files != plan.files:
            await cache.give_up(entry, drop=True)
            raise SourceChanged("it changed during the transfer")
        await publish_entry(cache, entry, data, plan.files)

    start = partial(cache.fetch_by, entry, plan, largest=mover.policy.largest)
    return await fetch_on_system(journey, data, plan.host, entry, start, publish)
