"""Pilots: each claims its place in a lease once, is told what has changed, and is stopped by its owner alone.

What they ask comes over HTTPS (`api/pilots.py`). The token that came with a lease's job lets each of its nodes claim
once; from then on a pilot has a secret of its own. Both are derived, and stored nowhere.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from sublet.core.annex import DRAINING, Annex, Lease, Pilot
from sublet.core.session import ACTIVE, Session
from sublet.errors import NotListening, PilotRefused, SubletError
from sublet.kinds.port import Callback
from sublet.pilots.access_point import AccessPoint
from sublet.pilots.bundle import Calling, Plan, bundle, master_name, pilot_name, renewal, stamp_of
from sublet.pilots.certificate import certificate
from sublet.pilots.jobs import to_queue
from sublet.pilots.keeping import keep
from sublet.pilots.keys import order_token, pilot_key
from sublet.pilots.queue import runs_on
from sublet.pilots.slots import to_drain, to_drain_no_more, to_stop
from sublet.platforms.slurm_commands import WANTED as TOOLS
from sublet.reach.local import LocalReach
from sublet.service.desk import log
from sublet.service.node_releases import NodeRelease, NodeReleases
from sublet.store.tx import Tx

AGAIN = timedelta(minutes=10)  # for so long a claim whose answer was lost may be repeated, by who made it
STOPPING = timedelta(seconds=20)  # for pilots to end when their owner stops them; after that they hear it when they ask
STOPPING_UNHEARD = timedelta(seconds=5)  # the same, if they can't be reached
VACATING = timedelta(seconds=4)  # for jobs to end by themselves, from SIGTERM on, when their pilots are to end
LETTING_GO = timedelta(seconds=15)  # for pilots to evict those that don't
LOOKING = 0.3  # seconds between two looks whether they have
NEWS = timedelta(seconds=6)  # after which a system is asked anew, that was perhaps asked just now
SPOKEN = 256 * 1024  # bytes of what they printed that are looked through
SAYING = re.compile(r"^pilot: (\d+) on ([^:\s]+): (.+)$", re.MULTILINE)
FACTS = ("node", "job", "arch", "libc", "carry")
NONCE = re.compile(r"[0-9a-f]{32}")
NO_SUCH = "There is no such lease, or this token is not for it."


class Listener(Protocol):
    """Who listens for pilots."""

    async def open(self, address: str, port: int, key: Path, certificate: Path) -> int:
        """Listen on this address and port (0: a free one), if that isn't so already; the port."""
        ...


@dataclass(frozen=True, slots=True)
class Place:
    """One node's place in a lease."""

    lease: Lease
    annex: Annex
    session: Session


@dataclass
class Pilots(NodeReleases):
    """What pilots ask, and how they are stopped."""

    listener: Listener | None = None

    async def callback(self, platform: str = "") -> Callback:
        """Where pilots ask this service: it listens from now on."""
        if self.listener is None:
            raise NotListening(why="nothing listens for them")
        point = await self.access_point(platform)
        directory = self.settings.home / "pilots"
        made = await asyncio.to_thread(certificate, directory)
        host = point.contact.collector.rpartition(":")[0]
        kept = directory / "port"
        annex = self.settings.annex
        port = annex.endpoint or _read_port(kept)
        port = await self.listener.open(annex.bind or host.strip("[]"), port, made.key, made.file)
        keep(kept, f"{port}\n".encode())  # what was sent to a queue may ask there days later
        return Callback((f"https://{host}:{port}",), made.pin)

    async def pilots_may_ask(self) -> bool:
        """Whether there is a lease that has not ended."""
        return bool(await self.store.read(lambda tx: tx.leases.live()))

    # What pilots ask

    async def claim_pilot(self, lease: str, number: int, told: Mapping[str, str]) -> bytes:
        """Take a node's place, once, and give it all that it needs. Who lost the answer may ask again."""
        place = await self._place(lease)
        expected = self.secret(place.session.id) if place else ""
        if not same(told.get("token", ""), expected) or place is None:
            raise PilotRefused(why=NO_SUCH)
        self._check_open(place)
        if not 0 <= number < (place.lease.details.nodes or 1):
            raise PilotRefused(why=f"This lease has no node {number}.")
        nonce = told.get("nonce", "")
        if not NONCE.fullmatch(nonce):
            raise PilotRefused(why="A claim needs a nonce.")
        facts = {name: told[name][:200] for name in FACTS if told.get(name)}
        facts["claim"] = hashlib.sha256(nonce.encode()).hexdigest()
        now = self.now()
        pilot = Pilot(place.lease.id, number, now, facts.get("node", ""), facts=facts)
        if not await self.store.write(lambda tx: _claimed(tx, place, pilot)):
            raise PilotRefused(why=f"Node {number} of this lease was claimed already.")
        log.info("pilot.claimed", lease=lease, number=number, node=pilot.node)
        self.claimed(place)
        await self.tell()
        return await self.bundle_for(place, number, told, now)

    async def bundle_for(self, place: Place, number: int, told: Mapping[str, str], now: datetime) -> bytes:
        """What a node that has told this of itself needs."""
        point = await self.access_point(place.session.offer.platform)
        callback = await self.callback(place.session.offer.platform)
        plan = await self.plan_pilot(place, number, point)
        calling = Calling(
            callback.urls, callback.pin, self._pilot_secret(place.lease.id, number), self.settings.annex.renew
        )
        tokens = await point.pilot_tokens(self.settings.annex.tokens, now)
        key = pilot_key(self._key(), place.lease.id, number)
        return bundle(plan, calling, tokens, key, stamp_of(plan, now, self.settings.annex.tokens / 2), TOOLS)

    async def renew_pilot(self, lease: str, number: int, told: Mapping[str, str]) -> bytes:
        """What has changed since a pilot last asked; nothing, most of the time. PilotRefused: it is to end."""
        place = await self._own_place(lease, number, told)
        now = self.now()
        await self.store.write(lambda tx: tx.pilots.see(lease, number, now))
        self._check_open(place)
        point = await self.access_point(place.session.offer.platform)
        plan = await self.plan_pilot(place, number, point)
        stamp = stamp_of(plan, now, self.settings.annex.tokens / 2)
        if told.get("have") == stamp:
            return b""
        return renewal(plan, await point.pilot_tokens(self.settings.annex.tokens, now), stamp)

    async def plan_pilot(self, place: Place, number: int, point: AccessPoint) -> Plan:
        """What is decided for one pilot, as of now."""
        pilot = await self.store.read(lambda tx: tx.pilots.get(place.lease.id, number))
        platform = self.platforms_by_name.get(place.session.offer.platform)
        plan = plan_of(place, number, point)
        draining = pilot is not None and pilot.is_draining
        return replace(plan, draining=draining, lines=platform.additions.lines if platform else ())

    async def release_for_pilot(self, lease: str, number: int, told: Mapping[str, str]) -> NodeRelease:
        """The HTCondor for a node that has none of its own; its system keeps a copy, if it can."""
        place = await self._own_place(lease, number, told)
        self._check_open(place)
        pilot = await self.store.read(lambda tx: tx.pilots.get(lease, number))
        facts = pilot.facts if pilot else {}
        release = await self.node_release(str(facts.get("arch", "")), str(facts.get("libc", "")))
        self.keep_release(place.session, release)
        return release

    async def split_pilot(self, lease: str, number: int, told: Mapping[str, str]) -> None:
        """A pilot reaches this service, but not the access point: it asks again through the spool."""
        place = await self._own_place(lease, number, told)
        self._check_open(place)
        await self.store.write(lambda tx: _learned(tx, lease, number, {"carry": "spool"}))
        log.info("pilot.split", lease=lease, number=number, why=told.get("why", "")[:500])

    async def end_pilot(self, lease: str, number: int, told: Mapping[str, str]) -> None:
        """A pilot is gone, and says why."""
        await self._own_place(lease, number, told)
        why = told.get("why", "")[:500]
        now = self.now()
        if await self.store.write(lambda tx: _ended(tx, lease, number, now, why)):
            log.info("pilot.ended", lease=lease, number=number, why=why)
            await self.tell()

    async def _place(self, lease: str) -> Place | None:
        def find(tx: Tx) -> Place | None:
            found = tx.leases.get(lease)
            annex = tx.annexes.get(found.annex) if found else None
            session = tx.sessions.get(found.session) if found and found.session else None
            return Place(found, annex, session) if found and annex and session else None

        return await self.store.read(find)

    async def _own_place(self, lease: str, number: int, told: Mapping[str, str]) -> Place:
        place = await self._place(lease)
        if not same(told.get("secret", ""), self._pilot_secret(lease, number)) or place is None:
            raise PilotRefused(why=NO_SUCH)
        return place

    def _pilot_secret(self, lease: str, number: int) -> str:
        return self.secret(f"pilot {pilot_name(lease, number)}")

    def _check_open(self, place: Place) -> None:
        """PilotRefused, with the reason that a pilot then ends for, when its lease is over."""
        if place.session.cancel_by:
            raise PilotRefused(why=f"It was shut down by {place.session.cancel_by}.")
        if place.lease.ended or place.session.phase not in ACTIVE:
            raise PilotRefused(why=f"Its lease has ended{': ' + place.lease.why if place.lease.why else ''}.")

    async def last_words(self, session: Session) -> str:
        """What a lease's pilots said last, on stderr: one line for each thing, with the nodes that said it."""
        try:
            said = await self.platform_of(session).output(session.id, "stderr", 0, SPOKEN)
        except SubletError:
            return ""
        nodes: dict[str, list[str]] = {}
        for _, node, words in SAYING.findall(said.decode("utf-8", "replace")):
            nodes.setdefault(words, []).append(node)
        return "; ".join(f"{words} ({', '.join(sorted(set(where)))})" for words, where in nodes.items())[:1000]

    def claimed(self, place: Place) -> None:
        """A node has come; whoever else must know it, hears it here."""

    # Orders

    async def stop_pilots(self, lease: str, numbers: Collection[int] = ()) -> bool:
        """Have a lease's pilots (all, or these) end at once, by orders that only they follow; whether they have ended.

        First they let go of their jobs, while their startds are there to tell of it: a job's shadow that finds none
        would look for it until the job's lease is over. A pilot's master is known to the access point a moment after
        its slots, so the order to end is repeated.
        """
        is_heard = await self._order(await self._pilots_left(lease, numbers), self._let_go_of_jobs)
        deadline = self.now() + (STOPPING if is_heard else STOPPING_UNHEARD)
        while left := await self._pilots_left(lease, numbers):
            await self._order(left, self._end)
            if self.now() >= deadline:
                return False
            await self.wait_for_news(1.0)
        return True

    async def _pilots_left(self, lease: str, numbers: Collection[int]) -> list[Pilot]:
        """Those of a lease's pilots that have not ended."""
        pilots = await self.store.read(lambda tx: tx.pilots.list(lease))
        return [one for one in pilots if one.ended is None and (not numbers or one.number in numbers)]

    async def _order(
        self, pilots: Sequence[Pilot], give: Callable[[AccessPoint, Sequence[str]], Awaitable[None]]
    ) -> bool:
        """Give an order to pilots, with the tokens that each of them asks for; whether they all heard it."""
        names = [pilot_name(pilot.lease, pilot.number) for pilot in pilots]
        try:
            point = await self.access_point()
            for name, pilot in zip(names, pilots, strict=True):
                point.keep_token(name, order_token(self._key(), pilot.lease, pilot.number, self.now()))
            try:
                await give(point, [master_name(pilot.lease, pilot.number) for pilot in pilots])
            finally:
                for name in names:
                    point.drop_token(name)
        except SubletError as error:
            log.info("pilots.not-ordered", pilots=names, why=error.message)
            return False
        return True

    async def _end(self, point: AccessPoint, masters: Sequence[str]) -> None:
        """Order them together: a job that one lets go of must not start on another that is about to end."""
        await LocalReach("access point").run(to_stop(point.gathering, masters))

    async def _let_go_of_jobs(self, point: AccessPoint, masters: Sequence[str]) -> None:
        """Have pilots take no more jobs and evict those that they have: in order, then by force; until they wait."""
        here = LocalReach("access point")
        await asyncio.gather(*(here.run(to_drain(point.gathering, master)) for master in masters))
        if await self._wait_until_idle(point, masters, VACATING):
            return
        await asyncio.gather(*(here.run(to_drain_no_more(point.gathering, master)) for master in masters))
        await asyncio.gather(*(here.run(to_drain(point.gathering, master, "-fast")) for master in masters))
        await self._wait_until_idle(point, masters, LETTING_GO)

    async def _wait_until_idle(self, point: AccessPoint, masters: Sequence[str], most: timedelta) -> bool:
        """Whether no job is on these pilots, within a time."""
        deadline, active = self.now() + most, to_queue(point.tools, runs_on(masters), ["ClusterId"])
        while True:
            jobs = await LocalReach("access point").run(active)
            if not jobs or self.now() >= deadline:
                return not jobs
            await self.wait_for_news(LOOKING)


def _read_port(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return 0


def plan_of(place: Place, number: int, point: AccessPoint) -> Plan:
    """What is decided for one pilot, as of now."""
    details = place.lease.details
    return Plan(
        annex=place.annex.id,
        lease=place.lease.id,
        number=number,
        open=place.annex.open,
        sessions=place.annex.sessions,
        idle=details.idle or timedelta(minutes=5),
        lifetime=details.lifetime or place.session.offer.duration,
        to=point.contact,
        slots=details.slots or 0,
    )


def _claimed(tx: Tx, place: Place, pilot: Pilot) -> bool:
    """Whether the place was free, or is claimed again by the one who has it and lost the answer."""
    if any(one.facts.get(DRAINING) == "lease" for one in tx.pilots.list(pilot.lease)):
        pilot = replace(pilot, facts={**pilot.facts, DRAINING: "lease"})
    if tx.pilots.claim(pilot):
        person = place.session.person
        tx.events.add(pilot.claimed, place.lease.id, person, "pilot.claimed", f"{pilot.number} on {pilot.node}")
        _look_soon(tx, place.lease, pilot.claimed)
        return True
    before = tx.pilots.get(pilot.lease, pilot.number)
    if before is None or before.ended or pilot.claimed - before.claimed > AGAIN:
        return False
    return same(str(before.facts.get("claim", "")), str(pilot.facts["claim"]))


def _ended(tx: Tx, lease: str, number: int, now: datetime, why: str) -> bool:
    pilot, found = tx.pilots.get(lease, number), tx.leases.get(lease)
    if pilot is None or found is None or not tx.pilots.end(lease, number, now, why):
        return False
    annex = tx.annexes.get(found.annex)
    _look_soon(tx, found, now)
    tx.events.add(now, lease, annex.person if annex else "", "pilot.ended", f"{number} on {pilot.node}: {why}")
    return True


def _learned(tx: Tx, lease: str, number: int, facts: Mapping[str, str]) -> None:
    pilot = tx.pilots.get(lease, number)
    if pilot:
        tx.pilots.learn(replace(pilot, facts={**pilot.facts, **facts}))


def _look_soon(tx: Tx, lease: Lease, now: datetime) -> None:
    """A pilot that came or went is news of its session, as soon as its system can tell."""
    session = tx.sessions.get(lease.session)
    if session and session.phase in ACTIVE:
        tx.sessions.change(session.id, now=now, due=now + NEWS)


def same(given: str, expected: str) -> bool:
    """Compare in a time that does not tell where they differ; nothing is the same as nothing."""
    return hmac.compare_digest(given.encode(), expected.encode()) and bool(expected)
