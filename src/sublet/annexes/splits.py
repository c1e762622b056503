"""Pilots whose nodes have no network: a relay for each such lease, and a bridge for each of its nodes.

If the nodes of a lease run but haven't called, their spool is checked. The outcome is remembered for the system.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

from sublet.annexes.access_point import AccessPoints
from sublet.annexes.invited_sites import InvitedSites
from sublet.annexes.job_addresses import JobAddresses
from sublet.annexes.model.annex import Pilot
from sublet.annexes.node_releases import NodeReleases
from sublet.annexes.pilot_plans import PilotPlace, PilotPlans
from sublet.annexes.pilots.bundle import stamp_of
from sublet.annexes.pilots.certificate import certificate
from sublet.annexes.pilots.keeping import keep
from sublet.annexes.pilots.keys import pilot_key
from sublet.annexes.split import bridge
from sublet.annexes.split.channel import BOOT
from sublet.annexes.split.far_bundle import far_bundle
from sublet.annexes.split.relay_plan import RelayOrders as RelayPlan
from sublet.annexes.split.relaying import FarNode, Relaying, RelayState
from sublet.booking.model.events import EventKind
from sublet.booking.model.phases import STARTED
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.session_secrets import SessionSecrets
from sublet.booking.signals import Signals
from sublet.kernel.errors import SubletError
from sublet.kernel.log import log
from sublet.kernel.settings import Settings
from sublet.platforms.htcondor.release import find_release
from sublet.platforms.machine import CLUSTER_TOOLS
from sublet.store.store import Store
from sublet.store.tx import Tx

LOOKED = timedelta(seconds=1)
SILENT = timedelta(seconds=3)  # how long nodes may run without calling before their spool is checked
NEEDS_PYTHON = (
    "command -v python3 >/dev/null || { echo 'its login host has no python3 to carry jobs with' >&2; exit 1; };"
)
SEEN = timedelta(seconds=5)  # how often a node's sign of life is recorded


@dataclass(frozen=True, slots=True)
class Carried(PilotPlace):
    """A live lease, with its pilots."""

    pilots: tuple[Pilot, ...]


@dataclass
class Splits:
    """Keeps relays and bridges running, and records what they report."""

    settings: Settings
    store: Store
    platforms: KnownPlatforms
    signals: Signals
    secrets: SessionSecrets
    pilot_plans: PilotPlans
    node_releases: NodeReleases
    sites: InvitedSites
    access_points: AccessPoints
    addresses: JobAddresses

    _split_looked: datetime | None = None
    _splitting: asyncio.Task[None] | None = None
    _stamps: dict[tuple[str, int], str] = field(default_factory=dict)  # what each bridge last got
    _not_carried: dict[str, str] = field(default_factory=dict)  # lease → why it has no relay

    # What is known about systems

    def usual_carry(self, system: str) -> str:
        """Return how jobs last reached this system's nodes, or an empty string if unknown.

        An invited site has no login over which a spool could be reached, so it is always direct.
        """
        if self.sites.is_invited(system):
            return "direct"
        try:
            return str(json.loads(self._found.read_bytes()).get(system, ""))
        except (OSError, ValueError):
            return ""

    def remember_carry(self, system: str, carry: Literal["direct", "spool"]) -> None:
        """Remember how jobs reach a system, for its next lease; only "spool" is stored, so direct access is retried."""
        try:
            known = json.loads(self._found.read_bytes())
        except (OSError, ValueError):
            known = {}
        if carry == "spool" and known.get(system) != carry:
            known[system] = carry
        elif carry == "direct" and system in known:
            del known[system]
        else:
            return
        self._found.parent.mkdir(mode=0o700, exist_ok=True)
        keep(self._found, json.dumps(known).encode())

    @property
    def _found(self) -> Path:
        return self.settings.home / "pilots" / "carry.json"

    # Claims

    async def bundle_for(self, place: PilotPlace, number: int, facts: Mapping[str, str], now: datetime) -> bytes:
        """Return a node's bundle: its far half if it asks through the spool, with its bridge prepared here."""
        system = place.session.offer.platform
        if facts.get("carry") != "spool":
            self.remember_carry(system, "direct")
            return await self.pilot_plans.bundle_directly(place, number, facts, now)
        point = await self.access_points.access_point(system)
        plan = replace(
            await self.pilot_plans.plan_pilot(place, number, point), lines=()
        )  # these lines are for nodes, not for a bridge
        tokens = await point.pilot_tokens(self.settings.annex.tokens, now)
        key = pilot_key(self.secrets.key(), plan.lease, number)
        release = find_release(self.settings.home / "htcondor")
        await asyncio.to_thread(bridge.prepare, self._bridge(plan.lease, number), plan, release, tokens, key)
        self._stamps[plan.lease, number] = stamp_of(plan, now, self.settings.annex.tokens / 2)
        self.remember_carry(system, "spool")
        wanted = facts.get("want") == "release"
        kept = (
            await self.node_releases.find_kept_release(place.session, facts.get("arch", ""), facts.get("libc", ""))
            if wanted
            else ""
        )
        return far_bundle(plan, point.lease * 2, kept, CLUSTER_TOOLS)

    def _bridge(self, lease: str, number: int) -> Path:
        return self._relaying(lease).directory / "bridge" / str(number)

    def _relaying(self, lease: str) -> Relaying:
        return Relaying(self.settings.home / "splits" / lease)

    # Relays

    def relay_state(self, lease: str) -> RelayState | None:
        """Return the state of a lease's relay; None if it has none."""
        if why := self._not_carried.get(lease):
            return RelayState(trouble=why)
        relaying = self._relaying(lease)
        return relaying.state() if relaying.directory.is_dir() else None

    async def describe_carrying(self, lease: str, system: str) -> str:
        """Describe the connection to a lease's nodes if it is through the spool, with its problems; otherwise empty."""
        state = await asyncio.to_thread(self.relay_state, lease)
        if state is None:
            return ""
        if state.link:
            return "; ".join(["through the spool: its nodes can't reach this machine", *state.waits])
        platform = self.platforms.by_name.get(system)
        login = platform.login if platform else None
        signed_in = login is None or await login.check()
        remedy = f"`sublet system login {system}`" if not signed_in else state.trouble
        return f"its nodes can't be reached at the moment; running jobs continue, but no others start: {remedy}"

    async def look_after(self, now: datetime) -> None:
        """Start missing relays, read the state of the others, and end those whose lease is over, at intervals."""
        if self._split_looked and abs(now - self._split_looked) < LOOKED:
            return
        self._split_looked = now
        if self._splitting is None or self._splitting.done():
            self._splitting = asyncio.create_task(self._look_at_splits(now), name="splits")

    async def _look_at_splits(self, now: datetime) -> None:
        carried = await self.store.read(_list_carried)
        for lease_there in carried:
            try:
                await self._look_at_split(lease_there, now)
            except (SubletError, OSError) as error:
                why = error.message if isinstance(error, SubletError) else str(error)
                if self._not_carried.get(lease_there.lease.id) != why:
                    log.warning("split.failed", lease=lease_there.lease.id, why=why)
                self._not_carried[lease_there.lease.id] = why
        live = {lease_there.lease.id for lease_there in carried}
        for id in await asyncio.to_thread(_names, self.settings.home / "splits"):
            if id not in live:
                try:
                    await self._end_split(id)
                except OSError as error:
                    log.warning("split.not-ended", lease=id, why=str(error))

    async def _look_at_split(self, carried: Carried, now: datetime) -> None:
        relaying = self._relaying(carried.lease.id)
        if carried.session.phase not in STARTED:
            return
        there = relaying.directory.is_dir()
        if there and _all_direct(carried):
            await self._end_split(carried.lease.id)  # its nodes were only slow to call
            return
        if not there and not self._wants_relay(carried, now):
            return
        if not await asyncio.to_thread(relaying.runs):
            await self._start_relay(carried, relaying)
        self._not_carried.pop(carried.lease.id, None)
        for node in (await asyncio.to_thread(relaying.state)).nodes:
            await self._hear_node(carried, node, now)
        await self.addresses.look_after(relaying.directory / "bridge", carried.session)

    def _wants_relay(self, carried: Carried, now: datetime) -> bool:
        """Whether a lease needs a relay: by its details, by what is known of the system, or as its nodes don't call."""
        carry = carried.lease.details.carry
        if carry == "direct" or carried.session.cancel_by:
            return False
        if carry == "spool" or any(pilot.facts.get("carry") == "spool" for pilot in carried.pilots):
            return True
        missing = len(carried.pilots) < carried.lease.details.amounts.nodes
        known = self.usual_carry(carried.session.offer.platform) == "spool"
        return missing and (known or now - (carried.session.started or now) >= SILENT)

    async def _start_relay(self, carried: Carried, relaying: Relaying) -> None:
        platform = self.platforms.get(carried.session.offer.platform)
        carrier = await platform.carrier(carried.session.id, f"{NEEDS_PYTHON} exec python3 -u -c {shlex.quote(BOOT)}")
        callback = await self.pilot_plans.callback(platform.name)
        point = await self.access_points.access_point(platform.name)
        release = find_release(self.settings.home / "htcondor")
        made = await asyncio.to_thread(certificate, self.settings.home / "pilots")
        plan = RelayPlan(
            lease=carried.lease.id,
            nodes=carried.lease.details.amounts.nodes,
            spool=f"{carrier.directory}/spool",
            channel=carrier.words or (sys.executable, "-u", "-c", BOOT),
            urls=callback.urls,
            certificate=str(made.file),
            grace=point.lease.total_seconds(),
            release={name: str(getattr(release, name)) for name in ("bin", "sbin", "lib", "libexec")},
        )
        await asyncio.to_thread(relaying.prepare, plan)
        await asyncio.to_thread(relaying.start)
        log.info("split.started", lease=carried.lease.id, seen="here" if not carrier.words else "over the login")

    async def _hear_node(self, carried: Carried, node: FarNode, now: datetime) -> None:
        """Record that a node lives, or why it ended; give its bridge what has changed."""
        pilot = next((pilot for pilot in carried.pilots if pilot.number == node.number), None)
        if pilot is None or pilot.ended:
            return
        lease, number = carried.lease.id, node.number
        if why := node.over or node.ending:
            await self.store.write(lambda tx: _end_pilot(tx, carried, number, now, why))
            log.info("pilot.ended", lease=lease, number=number, why=why)
            await self.signals.announce()
        elif node.alive:
            if pilot.seen is None or now - pilot.seen >= SEEN:
                await self.store.write(lambda tx: tx.pilots.see(lease, number, now))
            await self._renew_bridge(carried, number, now)

    async def _renew_bridge(self, carried: Carried, number: int, now: datetime) -> None:
        point = await self.access_points.access_point()
        plan = replace(await self.pilot_plans.plan_pilot(carried, number, point), lines=())
        stamp = stamp_of(plan, now, self.settings.annex.tokens / 2)
        if self._stamps.get((carried.lease.id, number)) == stamp:
            return
        place = self._bridge(carried.lease.id, number)
        tokens = await point.pilot_tokens(self.settings.annex.tokens, now)
        await asyncio.to_thread(bridge.renew, place, plan, tokens)
        await asyncio.to_thread(bridge.reread, place)
        self._stamps[carried.lease.id, number] = stamp

    async def _end_split(self, lease: str) -> None:
        """End the nodes and bridges of a lease that is over, have its spool removed, and forget it."""
        relaying = self._relaying(lease)
        if await asyncio.to_thread(relaying.is_prepared):
            if not await asyncio.to_thread(relaying.runs):
                await asyncio.to_thread(relaying.start)  # it finds the bridges that an earlier one started
            await asyncio.to_thread(relaying.ask, {"op": "stop"})
            await asyncio.to_thread(relaying.ask, {"op": "clean", "seconds": 3}, 10.0)
        await asyncio.to_thread(relaying.end)
        self._stamps = {place: stamp for place, stamp in self._stamps.items() if place[0] != lease}
        self._not_carried.pop(lease, None)
        log.info("split.ended", lease=lease)


def _list_carried(tx: Tx) -> list[Carried]:
    carried = []
    for lease in tx.leases.live():
        annex = tx.annexes.get(lease.annex)
        session = tx.sessions.get(lease.session) if lease.session else None
        if annex and session:
            carried.append(Carried(lease, annex, session, tuple(tx.pilots.list(lease.id))))
    return carried


def _end_pilot(tx: Tx, carried: Carried, number: int, now: datetime, why: str) -> None:
    if tx.pilots.end(carried.lease.id, number, now, why):
        tx.events.add(now, carried.lease.id, carried.session.person, EventKind.PILOT_ENDED, f"{number}: {why}")


def _all_direct(carried: Carried) -> bool:
    """Whether every node has claimed its place over the network."""
    every = len(carried.pilots) == carried.lease.details.amounts.nodes
    return every and all(pilot.facts.get("carry") != "spool" for pilot in carried.pilots)


def _names(directory: Path) -> list[str]:
    try:
        return [entry.name for entry in directory.iterdir() if entry.is_dir()]
    except OSError:
        return []
