"""Annexes as platforms: each annex with leases, and each without that still has files of its sessions."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from sublet.annexes.access_point import PLACE, AccessPoints
from sublet.annexes.model.annex import ANNEX_PLATFORM, Annex, Lease
from sublet.annexes.model.lease_state import PENDING
from sublet.annexes.pilots.access_point import AccessPoint
from sublet.booking.model.amounts import duration_text
from sublet.booking.model.estimate import ENOUGH
from sublet.booking.model.offer import Offer, Predicted, Terms
from sublet.booking.model.session import OfferSet, Session
from sublet.booking.platforms.known import KnownPlatforms
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person
from sublet.platforms.port import Platform
from sublet.store.store import Store
from sublet.store.tx import Tx

PREFIX = ANNEX_PLATFORM
EVERY = timedelta(seconds=1)
KEPT = "platform.json"  # in a platform's directory: its settings, for times without an access point or a lease
PlatformSettings = dict[str, dict[str, Any]]
Leased = tuple[Annex, list[tuple[Lease, Session]]]  # an annex, and its leases that are queued


@dataclass
class AnnexPlatforms:
    """Finds out which annexes are platforms now, and with which settings."""

    settings: Settings
    store: Store
    platforms: KnownPlatforms
    access_points: AccessPoints
    has_annexes: bool  # False on a gateway

    noun = "annex"
    _annexes_seen: datetime | None = None
    known: PlatformSettings = field(default_factory=dict)  # as last found

    async def find(self, now: datetime) -> tuple[PlatformSettings, dict[str, str]] | None:
        """Return the settings of each annex's platform; None if they are unchanged, or were just checked."""
        if not self.has_annexes or (self._annexes_seen and abs(now - self._annexes_seen) < EVERY):
            return None
        self._annexes_seen = now
        live = await self.store.read(_list_leased)
        settings = await asyncio.to_thread(self._settings_of, live, now)
        if settings == self.known:
            return None
        self.known = settings
        return settings, {}

    def could_lease(self, offerset: OfferSet) -> tuple[str, ...]:
        """Suggest an annex for a request that has offers on a system with queues, but on no annex yet."""
        offers = [session.offer for session in offerset.offers]
        waiting = [offer for offer in offers if self._has_queues(offer.platform) and not offer.interactive]
        if not self.has_annexes or not waiting or any(offer.platform in self.known for offer in offers):
            return ()
        return (to_make_one(min(waiting, key=lambda offer: offer.start)),)

    def _has_queues(self, platform: str) -> bool:
        known = self.platforms.by_name.get(platform)
        return known is not None and known.has_queues

    async def list_shared_with(self, person: Person) -> set[str]:
        """Return the platforms of the annexes that are currently shared with someone."""
        annexes = await self.store.read(
            lambda tx: {annex.id for annex in tx.annexes.list() if person.name in annex.guests}
        )
        return {name for name, values in self.known.items() if values.get("annex") in annexes}

    def look_again(self, *, changed: bool = False) -> None:
        """Check the annexes at the next `find`; with `changed`, return them even if they are unchanged."""
        self._annexes_seen = None
        if changed:
            self.known = {}

    async def prepare(self, platform: Platform, home: Path, values: Mapping[str, Any]) -> None:
        """Save the platform's settings, for times without an access point or a lease."""
        await asyncio.to_thread(keep, home, values)

    def _settings_of(self, live: Iterable[Leased], now: datetime) -> PlatformSettings:
        """Return the settings of annexes with leases, and of those without that still have sessions."""
        home, programs = self.settings.home / "platforms", self.settings.home / PLACE
        settings: PlatformSettings = {}
        for annex, waiting in live:
            name = _free_name(annex, settings)
            if (
                values := platform_of(annex, self.access_points.point, programs)
                if self.access_points.point
                else read_kept(home / name)
            ):
                settings[name] = values | {"live": True, "coming": _coming(annex, waiting, now)}
        for name in _with_sessions(home):
            if name not in settings and (values := read_kept(home / name)):
                settings[name] = values | {"live": False, "coming": ""}
        return settings


def to_make_one(offer: Offer) -> str:
    """Describe when an annex of this size would start, and the command that creates it."""
    nodes = "1 node" if offer.count == 1 else f"{offer.count} nodes"
    words = f"--system {offer.platform}" + (f" --queue {offer.queue}" if offer.queue else "")
    size = f" --nodes {offer.count}" if offer.count > 1 else ""
    command = f"sublet annex create NAME {words}{size} --lifetime {duration_text(offer.duration)}"
    return f"An annex of {nodes} on {offer.platform} would start {_about(offer.terms, offer.start)}: {command}"


def _about(terms: Terms, start: datetime) -> str:
    """Describe a predicted start, with its uncertainty."""
    about = f"about {start:%Y-%m-%d %H:%M} UTC"
    if not isinstance(terms, Predicted) or terms.samples < ENOUGH:
        return f"{about} (no track record yet)"
    half = max(1, round((terms.p90 - terms.p10) / timedelta(minutes=2)))
    return f"{about} ± {half} min"


def _list_leased(tx: Tx) -> list[Leased]:
    """Return the annexes with live leases, each with its queued leases and their sessions."""
    leases: dict[str, list[tuple[Lease, Session]]] = {}
    for lease in tx.leases.live():
        session = tx.sessions.get(lease.session) if lease.session else None
        waits = session is not None and session.phase in PENDING
        leases.setdefault(lease.annex, []).extend([(lease, session)] if session and waits else [])
    return [(annex, leases[annex.id]) for annex in tx.annexes.list() if annex.id in leases] if leases else []


def _coming(annex: Annex, waiting: Sequence[tuple[Lease, Session]], now: datetime) -> str:
    """Describe the queued leases, with the expected start unless that has passed."""
    sentences = []
    for lease, session in waiting:
        due = session.offer.start > now
        about = f", expected {_about(session.offer.terms, session.offer.start)}" if due else ""
        sentences.append(f"{annex.name}#{lease.number} is in the queue of {session.offer.platform}{about}")
    return "; ".join(sentences)


def platform_of(annex: Annex, point: AccessPoint, programs: Path) -> dict[str, Any]:
    """Return an annex's platform settings."""
    return {
        "kind": "htcondor",
        "configuration": point.tools.configuration,
        "gathering": point.gathering.configuration,
        "programs": str(programs),
        "annex": annex.id,
        "title": annex.name,
        "person": annex.person,
        "supplier": point.contact.owner,
        "lease": f"{round(point.lease.total_seconds())}s",
        "terms": "booked" if annex.sessions else "predicted",
    }


def _free_name(annex: Annex, taken: Mapping[str, Any]) -> str:
    """Return the platform's name: the annex's, made unique if another person's annex has the same name."""
    name = f"{PREFIX}{annex.name}"
    return name if name not in taken else f"{name}-{annex.id[:8]}"


def _with_sessions(home: Path) -> list[str]:
    """List the platforms of annexes that have session files."""
    names = []
    with suppress(FileNotFoundError):
        for name in os.listdir(home):
            with suppress(FileNotFoundError, NotADirectoryError):
                if name.startswith(PREFIX) and os.listdir(home / name / "sessions"):
                    names.append(name)
    return sorted(names)


def read_kept(place: Path) -> dict[str, Any]:
    """Return the last settings of a platform."""
    try:
        values: dict[str, Any] = json.loads((place / KEPT).read_text())
    except (OSError, ValueError):
        return {}
    return values


def keep(place: Path, values: Mapping[str, Any]) -> None:
    """Save a platform's settings."""
    part = place / f"{KEPT}.part"
    part.write_text(json.dumps(values))
    part.replace(place / KEPT)
