"""The systems behind platforms: probing them, and how their predicted starts came true."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from sublet.booking.model.estimate import Track, tracks
from sublet.booking.platforms.changes import PlatformChanges
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.platforms.platforms import Platforms
from sublet.booking.platforms.start_history import recall
from sublet.booking.platforms.systems import find_system
from sublet.kernel.clock import Clock
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.systems.model.probe import Probe, compare_probe

WANTED = ("apptainer", "singularity")  # tools that run containers; a system's own facts may add to these


@dataclass
class Probing:
    """Probes systems, and reports their start records."""

    settings: Settings
    store: Store
    now: Clock
    platforms: KnownPlatforms
    usable_platforms: Platforms
    changes: PlatformChanges

    async def probe(self, name: str) -> Probe:
        """Probe the live system and compare it with what was known; raise LoginNeeded if nobody is signed in."""
        await self.changes.refresh()
        platform = self.platforms.get(name)
        known = await asyncio.to_thread(find_system, self.settings, name)
        tools = dict.fromkeys(WANTED, "") | {tool.name: tool.module for tool in known.tools}
        live = await platform.probe(tools)
        self.platforms.surveys.pop(name, None)
        self.platforms.refresh_survey(name)
        return compare_probe(known, live)

    def notes(self, name: str) -> Sequence[str]:
        """Return the notes of a platform's last survey, without a new one."""
        survey = self.platforms.surveys.get(name)
        return survey.notes if survey else ()

    async def record(self, name: str, person: Person) -> Sequence[Track]:
        """Return how the predicted starts of a platform came true, by queue and size."""
        await self.usable_platforms.open_for(name, person)
        platform, now = self.platforms.get(name), self.now()
        return tracks(await self.store.read(lambda tx: recall(tx, platform, now)), now)
