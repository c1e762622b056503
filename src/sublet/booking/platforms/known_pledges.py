"""The pledges of known platforms: from their settings, and added by operators while the service runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sublet.booking.model.pledged import Pledged
from sublet.platforms.pledge_settings import PledgeSettings
from sublet.platforms.port import Platform

Added = Mapping[str, Mapping[str, PledgeSettings]]  # platform → name → what is pledged


@dataclass
class KnownPledges:
    """Pledges by platform and name; of two with the same name, the one in the settings counts."""

    platforms: Mapping[str, Platform]
    unrecorded: set[str] = field(default_factory=set)  # platforms whose calendars don't know of a change yet
    _added: Added = field(default_factory=dict)

    def settings_of(self, platform: str) -> Mapping[str, PledgeSettings]:
        """Return all pledges of a platform, in the form of its settings."""
        there = self.platforms.get(platform)
        if there is None or there.terms == "remote":
            return {}
        added = self._added.get(platform)
        return {**added, **there.pledges} if added else there.pledges

    def of(self, platform: str) -> dict[str, Pledged]:
        """Return all pledges of a platform as values."""
        return {name: pledge.pledged for name, pledge in self.settings_of(platform).items()}

    def is_added(self, platform: str, name: str) -> bool:
        """Whether a pledge was added by an operator, and isn't in the settings."""
        return name in self._added.get(platform, {}) and name not in self.platforms[platform].pledges

    def take_up(self, added: Added) -> list[str]:
        """Replace the added pledges; return the platforms whose calendars have to change."""
        before, self._added = self._added, added
        names = [name for name in {**before, **added} if before.get(name) != added.get(name)]
        changed = [name for name in names if name in self.platforms and self.platforms[name].terms == "booked"]
        self.unrecorded.update(changed)
        return changed
