"""How long staging will take: what has to be moved, by which road, and how fast that went before."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from urllib.parse import urlsplit

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data, Executable, Request
from sublet.booking.model.staging import (
    NO_TIME,
    NOTHING_TO_STAGE,
    Spread,
    StagingEstimate,
    exactly,
    one_after_another,
    side_by_side,
)
from sublet.data.executables import ExecutableKinds, Movers
from sublet.data.model.throughput import (
    SEND_GUESS,
    UNKNOWN_SIZE,
    Hop,
    Transfer,
    find_transfers,
    predict_transfer,
)
from sublet.data.resolving import look_up
from sublet.data.write_back import check_write_backs
from sublet.movers.port import AnyMover, Resolves
from sublet.platforms.port import Platform


@dataclass(frozen=True, slots=True)
class PlannedItem:
    """Something that has to be there, and how long its mover guesses that it takes to be here."""

    data: Data  # with its size, where that is known
    guess: timedelta
    is_image: bool = False  # the system pulls it, where sessions there can't do so themselves


@dataclass(frozen=True, slots=True)
class StagingPlan:
    """What has to be moved for a request, and what is known of earlier transfers."""

    items: Sequence[PlannedItem] = ()
    history: Sequence[Transfer] = ()  # the newest first

    def estimate(self, platform: Platform, there: Collection[str] = ()) -> StagingEstimate:
        """How long it takes on a platform that has these items already.

        What comes from one host comes one after another, hosts are beside one another, and what was brought here is
        sent on together afterwards. The askers' own estimates are of each item by itself.
        """
        items = [item for item in self.items if not (item.is_image and platform.fetches)]
        if not items:
            return NOTHING_TO_STAGE
        hosts: defaultdict[str, list[Spread]] = defaultdict(list)
        sending: list[Spread] = []
        most: dict[str, timedelta] = {}
        samples = 0
        for item in items:
            name = item.data.name
            if name in there:
                most[name] = NO_TIME
                continue
            hop = self._choose_hop(item, platform.name)
            coming, count = self._predict(item, platform.name, hop)
            hosts[name if item.data.prepare is not None else source_of(item.data)].append(coming)
            leaving = self._predict_sending(item, platform) if hop is Hop.HERE else Spread()
            sending.append(leaving)
            most[name] = (coming + leaving).high
            samples += count
        time = side_by_side(map(one_after_another, hosts.values())) + one_after_another(sending)
        return StagingEstimate(time, most, tuple(name for name in most if name in there), samples)

    def _choose_hop(self, item: PlannedItem, system: str) -> Hop:
        """The road that data from there to this system took the last time."""
        source = source_of(item.data)
        hops = (known.hop for known in self.history if (known.source, known.system) == (source, system))
        return next((hop for hop in hops if hop is not Hop.SENT), Hop.THERE if item.is_image else Hop.HERE)

    def _predict(self, item: PlannedItem, system: str, hop: Hop) -> tuple[Spread, int]:
        if item.data.prepare is not None:
            return exactly(item.data.prepare), 0
        known = find_transfers(self.history, source_of(item.data), system, hop)
        return predict_transfer(item.data.size, known, item.guess), len(known)

    def _predict_sending(self, item: PlannedItem, platform: Platform) -> Spread:
        if not platform.carries or item.data.prepare is not None:
            return Spread()
        size = item.data.size
        guess = UNKNOWN_SIZE if size is None else timedelta(seconds=size // SEND_GUESS)
        return predict_transfer(size, find_transfers(self.history, "", platform.name, Hop.SENT), guess)


def source_of(data: Data) -> str:
    """The host that some data comes from; empty: it is on this machine."""
    return urlsplit(data.location).netloc.rpartition("@")[2]


async def plan_staging(
    kinds: ExecutableKinds,
    movers: Movers,
    executable: Executable | None,
    request: Request,
    *,
    guest: bool = False,
    look: bool = True,
) -> tuple[StagingPlan, list[Reason]]:
    """What the data, and an executable that makes sense, need to be moved; or what can't be brought.

    `look`: sizes that nobody told are looked up.
    """
    pushing = [movers.choose_push(output, guest=guest) for output in request.outputs]
    reasons = [choice for choice in pushing if isinstance(choice, Reason)]
    reasons += check_write_backs(request, movers, guest=guest)
    moves: list[tuple[AnyMover, Data]] = []
    for data in kinds.inputs_of(executable, request.data):
        mover = movers.choose(data, guest=guest, asked=data in request.data)
        if isinstance(mover, Reason):
            reasons.append(mover)
        else:
            reasons += mover.check(data)
            moves.append((mover, data))
    if reasons:
        return StagingPlan(), reasons
    planned = await asyncio.gather(*(_plan_item(movers, mover, data, look, guest=guest) for mover, data in moves))
    items = [item for item, _ in planned] + _plan_images(kinds, executable)
    return StagingPlan(items), [reason for _, found in planned for reason in found]


def _plan_images(kinds: ExecutableKinds, executable: Executable | None) -> list[PlannedItem]:
    """The image that a system pulls; of several addresses the first."""
    kind = kinds.by_name.get(executable.kind) if executable else None
    if kind is None or executable is None:
        return []
    return [PlannedItem(data, UNKNOWN_SIZE, is_image=True) for data in kind.fetches(executable)[:1]]


async def _plan_item(
    movers: Movers, mover: AnyMover, data: Data, look: bool, *, guest: bool
) -> tuple[PlannedItem, list[Reason]]:
    """By the asker's word, else by its size, which is looked up where it is really going to be brought.

    What only has a name is looked up in any case: it may be nowhere that it can be brought from.
    """
    reasons: list[Reason] = []
    size = data.size
    if look and isinstance(mover, Resolves):
        size, reasons = await look_up(movers, mover, data, guest=guest)
    elif look and data.size is None and data.prepare is None and not isinstance(mover, Resolves):
        size = await mover.measure(data)
    measured = replace(data, size=data.size if size is None else size)
    return PlannedItem(measured, mover.estimate(measured)), reasons
