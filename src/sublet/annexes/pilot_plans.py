"""What each pilot gets when it starts: where to call, its plan, its tokens."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

from sublet.annexes.access_point import AccessPoints
from sublet.annexes.model.annex import Annex, Lease
from sublet.annexes.pilots.access_point import AccessPoint
from sublet.annexes.pilots.bundle import Calling, PilotPlan, bundle, pilot_name, stamp_of
from sublet.annexes.pilots.certificate import certificate
from sublet.annexes.pilots.keeping import keep
from sublet.annexes.pilots.keys import pilot_key
from sublet.booking.model.session import Session
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.session_secrets import SessionSecrets
from sublet.kernel.errors import NotListening
from sublet.kernel.settings import Settings
from sublet.kinds.port import Callback
from sublet.platforms.machine import CLUSTER_TOOLS
from sublet.store.store import Store


class Listener(Protocol):
    """The listener for pilots."""

    async def open(self, address: str, port: int, key: Path, certificate: Path) -> int:
        """Listen on this address and port (0: choose a free one), unless it does so already; return the port."""
        ...


@dataclass(frozen=True, slots=True)
class PilotPlace:
    """The lease of a pilot, with its annex and session."""

    lease: Lease
    annex: Annex
    session: Session


@dataclass
class PilotPlans:
    """Plans pilots, and knows where they call this service."""

    settings: Settings
    store: Store
    platforms: KnownPlatforms
    secrets: SessionSecrets
    access_points: AccessPoints
    listener: Listener | None = None

    async def callback(self, platform: str = "") -> Callback:
        """Return where pilots call this service, listening there from now on."""
        if self.listener is None:
            raise NotListening(why="nothing listens for them")
        point = await self.access_points.access_point(platform)
        directory = self.settings.home / "pilots"
        made = await asyncio.to_thread(certificate, directory)
        host = point.contact.collector.rpartition(":")[0]
        kept = directory / "port"
        annex = self.settings.annex
        port = annex.endpoint or _read_port(kept)
        port = await self.listener.open(annex.bind or host.strip("[]"), port, made.key, made.file)
        keep(kept, f"{port}\n".encode())  # a pilot from a queue may call there days later
        return Callback((f"https://{host}:{port}",), made.pin)

    async def bundle_directly(self, place: PilotPlace, number: int, message: Mapping[str, str], now: datetime) -> bytes:
        """Return the files that a node needs, given its facts."""
        point = await self.access_points.access_point(place.session.offer.platform)
        callback = await self.callback(place.session.offer.platform)
        plan = await self.plan_pilot(place, number, point)
        calling = Calling(
            callback.urls, callback.pin, self.secret_of(place.lease.id, number), self.settings.annex.renew
        )
        tokens = await point.pilot_tokens(self.settings.annex.tokens, now)
        key = pilot_key(self.secrets.key(), place.lease.id, number)
        return bundle(plan, calling, tokens, key, stamp_of(plan, now, self.settings.annex.tokens / 2), CLUSTER_TOOLS)

    async def plan_pilot(self, place: PilotPlace, number: int, point: AccessPoint) -> PilotPlan:
        """Return the current plan of one pilot."""
        pilot = await self.store.read(lambda tx: tx.pilots.get(place.lease.id, number))
        platform = self.platforms.by_name.get(place.session.offer.platform)
        plan = plan_of(place, number, point)
        draining = pilot is not None and pilot.is_draining
        return replace(plan, draining=draining, lines=platform.additions.lines if platform else ())

    def secret_of(self, lease: str, number: int) -> str:
        """Return the secret that authenticates a pilot which has claimed its place."""
        return self.secrets.of(f"pilot {pilot_name(lease, number)}")


def _read_port(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return 0


def plan_of(place: PilotPlace, number: int, point: AccessPoint) -> PilotPlan:
    """Return the plan of one pilot, without what its platform and its own state add."""
    details = place.lease.details
    return PilotPlan(
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


def same(given: str, expected: str) -> bool:
    """Compare secrets in constant time; an empty secret never matches."""
    return hmac.compare_digest(given.encode(), expected.encode()) and bool(expected)
