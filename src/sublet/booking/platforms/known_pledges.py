"""What is pledged of the platforms that are known here: by their settings, and by operators while the service runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sublet.booking.model.pledged import Pledged
from sublet.platforms.pledge_settings import PledgeSettings
from sublet.platforms.port import Platform

Added = Mapping[str, Mapping[str, PledgeSettings]]  # platform → name → what is pledged


@dataclass
class KnownPledges:
    """Pledges by platform and name; of two that are called alike, that of the settings counts."""

    platforms: Mapping[str, Platform]
    unrecorded: set[str] = field(default_factory=set)  # platforms whose calendars don't know of a change yet
    _added: Added = field(default_factory=dict)

    def settings_of(self, platform: str) -> Mapping[str, PledgeSettings]:
        """All pledges of a platform, as its settings have them or would."""
        there = self.platforms.get(platform)
        if there is None or there.terms == "remote":
            return {}
        added = self._added.get(platform)
        return {**added, **there.pledges} if added else there.pledges

    def of(self, platform: str) -> dict[str, Pledged]:
        """The same as values."""
        return {name: pledge.pledged for name, pledge in self.settings_of(platform).items()}

    def is_added(self, platform: str, name: str) -> bool:
        """Whether a pledge was added beside those of the settings."""
        return name in self._added.get(platform, {}) and name not in self.platforms[platform].pledges

    def take_up(self, added: Added) -> list[str]:
        """Know these as those that were added; the platforms whose calendars have to learn of a change."""
        before, self._added = self._added, added
        names = [name for name in {**before, **added} if before.get(name) != added.get(name)]
        changed = [name for name in names if name in self.platforms and self.platforms[name].terms == "booked"]
        self.unrecorded.update(changed)
        return changed
