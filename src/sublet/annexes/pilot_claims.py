"""Pilots: each claims its place in a lease once, fetches changes, and only its owner can stop it.

Their requests come over HTTPS (`annexes/api/pilots.py`). The token that came with a lease's job lets each of its nodes
claim once; from then on a pilot has its own secret. Both are derived, and stored nowhere.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sublet.annexes.access_point import AccessPoints
from sublet.annexes.invited_sites import InvitedSites
from sublet.annexes.model.annex import DRAINING, Lease, Pilot
from sublet.annexes.node_releases import NodeRelease, NodeReleases
from sublet.annexes.pilot_plans import PilotPlace, PilotPlans, same
from sublet.annexes.pilots.bundle import renewal, stamp_of
from sublet.annexes.splits import Splits
from sublet.booking.model.events import EventKind
from sublet.booking.model.phases import ACTIVE
from sublet.booking.model.session import Session
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.session_secrets import SessionSecrets
from sublet.booking.signals import Signals
from sublet.kernel.clock import Clock
from sublet.kernel.errors import PilotRefused, SubletError
from sublet.kernel.log import log
from sublet.kernel.settings import Settings
from sublet.store.store import Store
from sublet.store.tx import Tx

AGAIN = timedelta(minutes=10)  # how long a pilot may repeat a claim whose answer was lost
NEWS = timedelta(seconds=6)  # delay before the system is polled again, since it may just have been
SPOKEN = 256 * 1024  # bytes of pilots' output that are searched
SAYING = re.compile(r"^pilot: (\d+) on ([^:\s]+): (.+)$", re.MULTILINE)
FACTS = ("node", "job", "arch", "libc", "carry")
NONCE = re.compile(r"[0-9a-f]{32}")
NO_SUCH = "There is no such lease, or this token is not for it."


@dataclass
class Pilots:
    """Answers pilots' requests."""

    settings: Settings
    store: Store
    now: Clock
    platforms: KnownPlatforms
    signals: Signals
    secrets: SessionSecrets
    access_points: AccessPoints
    node_releases: NodeReleases
    sites: InvitedSites
    pilot_plans: PilotPlans
    splits: Splits

    async def pilots_may_ask(self) -> bool:
        """Whether pilots or sites may call: while there are leases, or invited sites."""
        return bool(self.sites.list()) or bool(await self.store.read(lambda tx: tx.leases.live()))

    # Requests of pilots

    async def claim_pilot(self, lease: str, number: int, message: Mapping[str, str]) -> bytes:
        """Claim a node's place, once, and return the files that it needs; the same pilot may repeat the claim."""
        place = await self._place(lease)
        expected = self.secrets.of(place.session.id) if place else ""
        if not same(message.get("token", ""), expected) or place is None:
            raise PilotRefused(why=NO_SUCH)
        self._check_open(place)
        if not 0 <= number < place.lease.details.amounts.nodes:
            raise PilotRefused(why=f"This lease has no node {number}.")
        nonce = message.get("nonce", "")
        if not NONCE.fullmatch(nonce):
            raise PilotRefused(why="A claim needs a nonce.")
        facts = {name: message[name][:200] for name in FACTS if message.get(name)}
        facts["claim"] = hashlib.sha256(nonce.encode()).hexdigest()
        now = self.now()
        pilot = Pilot(place.lease.id, number, now, facts.get("node", ""), facts=facts)
        if not await self.store.write(lambda tx: _claim(tx, place, pilot)):
            raise PilotRefused(why=f"Node {number} of this lease was claimed already.")
        log.info("pilot.claimed", lease=lease, number=number, node=pilot.node)
        self.sites.note_claim(place)
        await self.signals.announce()
        return await self.splits.bundle_for(place, number, message, now)

    async def renew_pilot(self, lease: str, number: int, message: Mapping[str, str]) -> bytes:
        """Return what has changed since a pilot last asked, usually nothing; PilotRefused tells the pilot to end."""
        place = await self._own_place(lease, number, message)
        now = self.now()
        await self.store.write(lambda tx: tx.pilots.see(lease, number, now))
        self._check_open(place)
        point = await self.access_points.access_point(place.session.offer.platform)
        plan = await self.pilot_plans.plan_pilot(place, number, point)
        stamp = stamp_of(plan, now, self.settings.annex.tokens / 2)
        if message.get("have") == stamp:
            return b""
        return renewal(plan, await point.pilot_tokens(self.settings.annex.tokens, now), stamp)

    async def release_for_pilot(self, lease: str, number: int, message: Mapping[str, str]) -> NodeRelease:
        """Return the HTCondor release for a node without its own; its system keeps a copy, if it can."""
        place = await self._own_place(lease, number, message)
        self._check_open(place)
        pilot = await self.store.read(lambda tx: tx.pilots.get(lease, number))
        facts = pilot.facts if pilot else {}
        release = await self.node_releases.node_release(str(facts.get("arch", "")), str(facts.get("libc", "")))
        self.node_releases.keep_release(place.session, release)
        return release

    async def split_pilot(self, lease: str, number: int, message: Mapping[str, str]) -> None:
        """Record that a pilot reaches this service but not the access point, so it will ask again through the spool."""
        place = await self._own_place(lease, number, message)
        self._check_open(place)
        await self.store.write(lambda tx: _note_change(tx, lease, number, {"carry": "spool"}))
        log.info("pilot.split", lease=lease, number=number, why=message.get("why", "")[:500])

    async def end_pilot(self, lease: str, number: int, message: Mapping[str, str]) -> None:
        """Record that a pilot has ended, and why."""
        await self._own_place(lease, number, message)
        why = message.get("why", "")[:500]
        now = self.now()
        if await self.store.write(lambda tx: _end_pilot(tx, lease, number, now, why)):
            log.info("pilot.ended", lease=lease, number=number, why=why)
            await self.signals.announce()

    async def _place(self, lease: str) -> PilotPlace | None:
        def find(tx: Tx) -> PilotPlace | None:
            known = tx.leases.get(lease)
            annex = tx.annexes.get(known.annex) if known else None
            session = tx.sessions.get(known.session) if known and known.session else None
            return PilotPlace(known, annex, session) if known and annex and session else None

        return await self.store.read(find)

    async def _own_place(self, lease: str, number: int, message: Mapping[str, str]) -> PilotPlace:
        place = await self._place(lease)
        if not same(message.get("secret", ""), self.pilot_plans.secret_of(lease, number)) or place is None:
            raise PilotRefused(why=NO_SUCH)
        return place

    def _check_open(self, place: PilotPlace) -> None:
        """Raise PilotRefused, with the reason for which the pilot then ends, if its lease is over."""
        if place.session.cancel_by:
            raise PilotRefused(why=f"It was shut down by {place.session.cancel_by}.")
        if place.lease.ended or place.session.phase not in ACTIVE:
            raise PilotRefused(why=f"Its lease has ended{': ' + place.lease.why if place.lease.why else ''}.")

    async def last_words(self, session: Session) -> str:
        """Return the last messages of a lease's pilots on stderr, each with the nodes that printed it."""
        try:
            printed = await self.platforms.of(session).output(session.id, "stderr", 0, SPOKEN)
        except SubletError:
            return ""
        nodes: dict[str, list[str]] = {}
        for _, node, words in SAYING.findall(printed.decode("utf-8", "replace")):
            nodes.setdefault(words, []).append(node)
        return "; ".join(f"{words} ({', '.join(sorted(set(where)))})" for words, where in nodes.items())[:1000]


def _claim(tx: Tx, place: PilotPlace, pilot: Pilot) -> bool:
    """Claim a place; return whether it was free, or is claimed again by the same pilot, which lost the answer."""
    if any(other.facts.get(DRAINING) == "lease" for other in tx.pilots.list(pilot.lease)):
        pilot = replace(pilot, facts={**pilot.facts, DRAINING: "lease"})
    if tx.pilots.claim(pilot):
        person = place.session.person
        tx.events.add(pilot.claimed, place.lease.id, person, EventKind.PILOT_CLAIMED, f"{pilot.number} on {pilot.node}")
        _look_soon(tx, place.lease, pilot.claimed)
        return True
    before = tx.pilots.get(pilot.lease, pilot.number)
    if before is None or before.ended or pilot.claimed - before.claimed > AGAIN:
        return False
    return same(str(before.facts.get("claim", "")), str(pilot.facts["claim"]))


def _end_pilot(tx: Tx, lease: str, number: int, now: datetime, why: str) -> bool:
    pilot, known = tx.pilots.get(lease, number), tx.leases.get(lease)
    if pilot is None or known is None or not tx.pilots.end(lease, number, now, why):
        return False
    annex = tx.annexes.get(known.annex)
    _look_soon(tx, known, now)
    tx.events.add(now, lease, annex.person if annex else "", EventKind.PILOT_ENDED, f"{number} on {pilot.node}: {why}")
    return True


def _note_change(tx: Tx, lease: str, number: int, facts: Mapping[str, str]) -> None:
    pilot = tx.pilots.get(lease, number)
    if pilot:
        tx.pilots.learn(replace(pilot, facts={**pilot.facts, **facts}))


def _look_soon(tx: Tx, lease: Lease, now: datetime) -> None:
    """Poll the session soon, since a pilot that started or ended is news of it."""
    session = tx.sessions.get(lease.session)
    if session and session.phase in ACTIVE:
        tx.sessions.change(session.id, now=now, due=now + NEWS)
