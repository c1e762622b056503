"""Annexes are platforms too: each that has leases; and one that had some, while it keeps what its sessions left."""

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
KEPT = "platform.json"  # in a platform's directory: its settings, for when there is no access point or no lease
PlatformSettings = dict[str, dict[str, Any]]
Leased = tuple[Annex, list[tuple[Lease, Session]]]  # an annex, and those of its leases that wait


@dataclass
class AnnexPlatforms:
    """Knows which annexes are platforms now, and with which settings."""

    settings: Settings
    store: Store
    platforms: KnownPlatforms
    access_points: AccessPoints
    has_annexes: bool  # a gateway makes none

    noun = "annex"
    _annexes_seen: datetime | None = None
    known: PlatformSettings = field(default_factory=dict)  # as they were last

    async def find(self, now: datetime) -> tuple[PlatformSettings, dict[str, str]] | None:
        """The settings of each; None if they are as before, or were looked at just now."""
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
        """What an annex would be for something that is offered on a system, and on no annex yet; in words."""
        offers = [session.offer for session in offerset.offers]
        waiting = [offer for offer in offers if self._has_queues(offer.platform) and not offer.interactive]
        if not self.has_annexes or not waiting or any(offer.platform in self.known for offer in offers):
            return ()
        return (to_make_one(min(waiting, key=lambda offer: offer.start)),)

    def _has_queues(self, platform: str) -> bool:
        known = self.platforms.by_name.get(platform)
        return known is not None and known.has_queues

    async def list_shared_with(self, person: Person) -> set[str]:
        """The annexes that are shared with someone, as platforms: by what is written down at this moment."""
        annexes = await self.store.read(
            lambda tx: {annex.id for annex in tx.annexes.list() if person.name in annex.guests}
        )
        return {name for name, values in self.known.items() if values.get("annex") in annexes}

    def look_again(self, *, changed: bool = False) -> None:
        """Look at the annexes at once when asked next; `changed`: also if they are as before."""
        self._annexes_seen = None
        if changed:
            self.known = {}

    async def prepare(self, platform: Platform, home: Path, values: Mapping[str, Any]) -> None:
        """Remember its settings, for a time without an access point or a lease."""
        await asyncio.to_thread(keep, home, values)

    def _settings_of(self, live: Iterable[Leased], now: datetime) -> PlatformSettings:
        """Of those that have leases; and of those that have none any more, but sessions."""
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
    """When an annex of as many nodes would start: as the session itself would, on that system."""
    nodes = "1 node" if offer.count == 1 else f"{offer.count} nodes"
    words = f"--system {offer.platform}" + (f" --queue {offer.queue}" if offer.queue else "")
    size = f" --nodes {offer.count}" if offer.count > 1 else ""
    command = f"sublet annex create NAME {words}{size} --lifetime {duration_text(offer.duration)}"
    return f"An annex of {nodes} on {offer.platform} would start {_about(offer.terms, offer.start)}: {command}"


def _about(terms: Terms, start: datetime) -> str:
    """A predicted start, and how sure it is."""
    about = f"about {start:%Y-%m-%d %H:%M} UTC"
    if not isinstance(terms, Predicted) or terms.samples < ENOUGH:
        return f"{about} (no track record yet)"
    half = max(1, round((terms.p90 - terms.p10) / timedelta(minutes=2)))
    return f"{about} ± {half} min"


def _list_leased(tx: Tx) -> list[Leased]:
    """The annexes that have a lease which has not ended, each with those that wait, and their sessions."""
    leases: dict[str, list[tuple[Lease, Session]]] = {}
    for lease in tx.leases.live():
        session = tx.sessions.get(lease.session) if lease.session else None
        waits = session is not None and session.phase in PENDING
        leases.setdefault(lease.annex, []).extend([(lease, session)] if session and waits else [])
    return [(annex, leases[annex.id]) for annex in tx.annexes.list() if annex.id in leases] if leases else []


def _coming(annex: Annex, waiting: Sequence[tuple[Lease, Session]], now: datetime) -> str:
    """Which leases wait, and when they are expected; of those that are late nothing is said of when."""
    sentences = []
    for lease, session in waiting:
        due = session.offer.start > now
        about = f", expected {_about(session.offer.terms, session.offer.start)}" if due else ""
        sentences.append(f"{annex.name}#{lease.number} is in the queue of {session.offer.platform}{about}")
    return "; ".join(sentences)


def platform_of(annex: Annex, point: AccessPoint, programs: Path) -> dict[str, Any]:
    """An annex as the settings of the platform that is seen through its id."""
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
    """What the platform is called: by the annex's name, unless another person's has the same."""
    name = f"{PREFIX}{annex.name}"
    return name if name not in taken else f"{name}-{annex.id[:8]}"


def _with_sessions(home: Path) -> list[str]:
    """The platforms of annexes that have sessions' files."""
    names = []
    with suppress(FileNotFoundError):
        for name in os.listdir(home):
            with suppress(FileNotFoundError, NotADirectoryError):
                if name.startswith(PREFIX) and os.listdir(home / name / "sessions"):
                    names.append(name)
    return sorted(names)


def read_kept(place: Path) -> dict[str, Any]:
    """The settings that a platform had last."""
    try:
        values: dict[str, Any] = json.loads((place / KEPT).read_text())
    except (OSError, ValueError):
        return {}
    return values


def keep(place: Path, values: Mapping[str, Any]) -> None:
    """Remember a platform's settings."""
    part = place / f"{KEPT}.part"
    part.write_text(json.dumps(values))
    part.replace(place / KEPT)
