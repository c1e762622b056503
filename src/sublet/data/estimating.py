"""Estimates how long staging will take: what has to be moved, by which road, and how fast earlier transfers were."""

from __future__ import annotations

import asyncio
import os
from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from urllib.parse import quote, unquote, urlsplit

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
    IMAGE_GUESS,
    MAKE_GUESS,
    MAKE_LEAST,
    SEND_GUESS,
    UNKNOWN_SIZE,
    Hop,
    Transfer,
    find_transfers,
    predict_transfer,
)
from sublet.data.placing import is_shared_here
from sublet.data.resolving import look_up
from sublet.data.sources import source_of
from sublet.data.whereabouts import NOWHERE, EntryFinder, Whereabouts
from sublet.data.write_back import check_write_backs
from sublet.kernel.deadline import gather_few
from sublet.kernel.errors import SubletError
from sublet.kernel.value_names import last_name
from sublet.kinds.app import APP
from sublet.kinds.images import SQUASHED, ArchiveFile
from sublet.movers.port import SIMPLE, AnyMover, Resolves
from sublet.platforms.caching import (
    CachesData,
    FetchesImages,
    MakesImages,
    can_fetch_images,
    can_make_images,
    has_cache,
)
from sublet.platforms.port import Platform


@dataclass(frozen=True, slots=True)
class PlannedItem:
    """Something that has to be staged, and its mover's guess of how long it takes to bring it here."""

    data: Data  # with its size, if known
    guess: timedelta
    is_image: bool = False  # pulled by the system before the session starts
    is_only_made: bool = False  # an archive at a path of the machine that runs it: nothing is moved
    where: Whereabouts = NOWHERE

    @property
    def is_archive(self) -> bool:
        """Whether a container tool has to build something from it; for a Singularity image that depends on the tool."""
        is_here = self.data.location.startswith("file:")
        return self.data.shared and not self.is_image and (is_here or not self.is_squashed)

    @property
    def is_squashed(self) -> bool:
        """Whether its name is that of a Singularity image."""
        return self.data.location.lower().endswith(SQUASHED)

    @property
    def label(self) -> str:
        """The name to show to people: an image's address, or a file's name."""
        if self.is_image:
            return self.data.location.removeprefix("docker://")
        return last_name(self.data.location) or self.data.name


@dataclass(frozen=True, slots=True)
class StagingPlan:
    """What has to be staged for a request, and the earlier transfers to estimate from."""

    items: Sequence[PlannedItem] = ()
    history: Sequence[Transfer] = ()  # newest first

    @property
    def images(self) -> dict[str, str]:
        """The registry images that are needed, with the cache entry of each if known."""
        return {item.data.location: item.where.entry for item in self.items if item.is_image}

    @property
    def archives(self) -> dict[str, ArchiveFile]:
        """The image archives on this machine, by location."""
        return {
            item.data.location: ArchiveFile(unquote(urlsplit(item.data.location).path))
            for item in self.items
            if item.is_archive and item.data.location.startswith("file:")
        }

    @property
    def entries(self) -> set[str]:
        """The cache entries of the items, as far as they are known."""
        return {name for item in self.items for name in (item.where.entry, item.where.archive)} - {""}

    def tell_sizes(self, request: Request) -> Request:
        """Return the request with the data sizes that were looked up."""
        if not request.data:
            return request
        known = {item.data.name: item.data.size for item in self.items}
        data = (each if each.size is not None else replace(each, size=known.get(each.name)) for each in request.data)
        return replace(request, data=tuple(data))

    def estimate(self, platform: Platform, entries: Collection[str] = ()) -> StagingEstimate:
        """Estimate how long staging takes on a platform whose cache has these entries already.

        Transfers from one host follow one another, hosts are used in parallel, and what was brought here is sent on
        together afterwards. Estimates that the request gives apply to each item by itself.
        """
        items = [item for item in self.items if _counts(item, platform)]
        if not items:
            return NOTHING_TO_STAGE
        hosts: defaultdict[str, list[Spread]] = defaultdict(list)
        sending: list[Spread] = []
        most: dict[str, timedelta] = {}
        there = [item for item in items if _is_there(item, platform, entries)]
        samples = 0
        for item in items:
            name = item.data.name
            making = self._predict_making(item, platform, entries)
            if item.is_only_made or (item in there and not is_shared_here(item.data)):
                sending.append(making)
                most[name] = making.high
                continue
            hop = self._choose_hop(item, platform.name)
            coming, count = self._predict(item, platform.name, hop)
            hosts[name if item.data.prepare is not None else source_of(item.data)].append(coming)
            is_sent = hop is Hop.HERE and item not in there
            leaving = self._predict_sending(item, platform) if is_sent else Spread()
            sending.append(leaving + making)
            most[name] = (coming + leaving + making).high
            samples += count
        time = side_by_side(map(one_after_another, hosts.values())) + one_after_another(sending)
        return StagingEstimate(time, most, tuple(item.label for item in there), samples)

    def _choose_hop(self, item: PlannedItem, system: str) -> Hop:
        """Return the hop that data from this source to this system took last time."""
        source = source_of(item.data)
        hops = (known.hop for known in self.history if (known.source, known.system) == (source, system))
        return next((hop for hop in hops if hop is not Hop.SENT), Hop.THERE if item.is_image else Hop.HERE)

    def _predict(self, item: PlannedItem, system: str, hop: Hop) -> tuple[Spread, int]:
        if item.data.prepare is not None:
            return exactly(item.data.prepare), 0
        known = find_transfers(self.history, source_of(item.data), system, hop)
        return predict_transfer(item.data.size, known, item.guess), len(known)

    def _predict_making(self, item: PlannedItem, platform: Platform, entries: Collection[str]) -> Spread:
        """Predict how long it takes to make an image runnable, if that happens before the session's walltime begins."""
        is_made = item.data.location in entries or item.where.entry in entries
        if not item.is_archive or is_made or not can_make_images(platform):
            return Spread()
        guess = MAKE_LEAST + timedelta(seconds=(item.data.size or 0) // MAKE_GUESS)
        return predict_transfer(item.data.size, find_transfers(self.history, "", platform.name, Hop.MADE), guess)

    def _predict_sending(self, item: PlannedItem, platform: Platform) -> Spread:
        if not platform.carries or item.data.prepare is not None:
            return Spread()
        size = item.data.size
        guess = UNKNOWN_SIZE if size is None else timedelta(seconds=size // SEND_GUESS)
        return predict_transfer(size, find_transfers(self.history, "", platform.name, Hop.SENT), guess)


async def find_there(platform: Platform, plan: StagingPlan, seconds: float) -> Collection[str]:
    """Return the cache entries and images of a plan that a platform has already; none if it doesn't answer in time."""
    there: set[str] = set()
    with suppress(SubletError, TimeoutError):
        async with asyncio.timeout(seconds):
            if plan.images and isinstance(platform, FetchesImages):
                there.update(await platform.find_images(plan.images))
            if plan.archives and isinstance(platform, MakesImages):
                there.update(await platform.find_made(plan.archives))
            if plan.entries and isinstance(platform, CachesData):
                there.update(await (await platform.open_cache()).list_there(plan.entries))
    return there


def must_be_asked(platform: Platform, plan: StagingPlan) -> bool:
    """Whether only the platform itself knows which of the plan's items it has already."""
    return bool(
        (plan.entries and has_cache(platform))
        or (plan.images and can_fetch_images(platform))
        or (plan.archives and can_make_images(platform))
    )


def _counts(item: PlannedItem, platform: Platform) -> bool:
    """Whether the item needs any work on this platform before the session starts."""
    if item.is_image:
        return _is_fetched_before(platform)
    return not item.is_only_made or can_make_images(platform)


def _is_fetched_before(platform: Platform) -> bool:
    """Whether images are fetched before the session starts, instead of by the session."""
    return not platform.fetches or can_fetch_images(platform)


def _is_there(item: PlannedItem, platform: Platform, entries: Collection[str]) -> bool:
    """Whether the platform has the item already, so that nothing is moved to it."""
    is_image_there = (item.is_image or item.is_only_made) and item.data.location in entries
    is_kept = item.where.entry in entries or item.where.archive in entries
    return is_image_there or is_kept or item.where.platform == platform.name


async def plan_staging(
    kinds: ExecutableKinds,
    movers: Movers,
    executable: Executable | None,
    request: Request,
    *,
    guest: bool = False,
    look: bool = True,
    finder: EntryFinder | None = None,
    person: str = "",
) -> tuple[StagingPlan, list[Reason]]:
    """Plan what has to be moved for the executable and its data, or return the reasons why it can't be brought.

    `look`: look up unknown sizes; `finder`: also find the cache entries that this person may use.
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

    async def find(mover: AnyMover, data: Data) -> Whereabouts:
        return await finder.find(movers, mover, request, data, person) if finder and look else NOWHERE

    places = gather_few(*(find(mover, data) for mover, data in moves))
    images = _plan_images(kinds, movers, executable, finder if look else None, guest=guest)
    whereabouts, pulled = await asyncio.gather(places, images) if moves else (await places, await images)
    if archives := _list_archives(kinds, executable):
        pulled += await asyncio.to_thread(_plan_archives, archives)
    planned = await gather_few(
        *(
            _plan_item(movers, mover, data, where, look, guest=guest)
            for (mover, data), where in zip(moves, whereabouts, strict=True)
        )
    )
    return StagingPlan([*(item for item, _ in planned), *pulled]), [why for _, refused in planned for why in refused]


async def _plan_images(
    kinds: ExecutableKinds, movers: Movers, executable: Executable | None, finder: EntryFinder | None, *, guest: bool
) -> list[PlannedItem]:
    """Plan the image that the system pulls: the first of the kind's addresses."""
    kind = kinds.by_name.get(executable.kind) if executable else None
    if kind is None or executable is None:
        return []
    images = []
    for data in kind.fetches(executable)[:1]:
        mover = movers.choose(data, guest=guest, reviewed=executable.kind == APP.name)
        where = await finder.find_image(mover, data) if finder else NOWHERE
        guess = UNKNOWN_SIZE if where.size is None else timedelta(seconds=where.size // IMAGE_GUESS)
        images.append(PlannedItem(data, guess, is_image=True, where=where))
    return images


def _list_archives(kinds: ExecutableKinds, executable: Executable | None) -> Sequence[str]:
    """List the image archives that the executable names by path."""
    kind = kinds.by_name.get(executable.kind) if executable else None
    return kind.archives(executable) if kind and executable else ()


def _plan_archives(paths: Sequence[str]) -> list[PlannedItem]:
    """Return a planned item for each archive that exists."""
    archives = []
    for path in paths:
        with suppress(OSError):
            location = f"file://{quote(path)}"
            data = Data(os.path.basename(path), SIMPLE, location, size=os.path.getsize(path), shared=True)
            archives.append(PlannedItem(data, NO_TIME, is_only_made=True))
    return archives


async def _plan_item(
    movers: Movers, mover: AnyMover, data: Data, where: Whereabouts, look: bool, *, guest: bool
) -> tuple[PlannedItem, list[Reason]]:
    """Plan one item, with its size looked up if the request doesn't give it.

    Data known only by a name is always looked up, as there may be no address to bring it from.
    """
    reasons: list[Reason] = []
    size = where.size if data.size is None else data.size
    if look and isinstance(mover, Resolves):
        size, reasons = await look_up(movers, mover, data, guest=guest)
    elif look and size is None and not where.has_asked and data.prepare is None and not isinstance(mover, Resolves):
        size = await mover.measure(data)
    measured = replace(data, size=data.size if size is None else size)
    return PlannedItem(measured, mover.estimate(measured), where=where), reasons
