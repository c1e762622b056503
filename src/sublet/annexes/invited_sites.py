"""The invited sites: each is a platform, and authenticates with its own token."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from sublet.annexes.pilot_plans import PilotPlace, same
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.platforms.systems import Stamp, stamp_of
from sublet.booking.session_secrets import SessionSecrets
from sublet.kernel.errors import PilotRefused
from sublet.kernel.settings import Settings
from sublet.platforms.invited.platform import Invited
from sublet.platforms.port import Platform

DIRECTORY = "invited"  # below SUBLET_HOME: a file for each site, by name


@dataclass
class InvitedSites:
    """The registry of invited sites."""

    settings: Settings
    platforms: KnownPlatforms
    secrets: SessionSecrets
    can_invite: bool  # False on a gateway

    noun = "site"
    _stamp: Stamp = ()

    @property
    def directory(self) -> Path:
        """The directory with a file for each invited site."""
        return self.settings.home / DIRECTORY

    async def find(self, now: datetime) -> tuple[dict[str, dict[str, Any]], dict[str, str]] | None:
        """Return platform settings for each invited site, or None if they are unchanged."""
        stamp = stamp_of(self.directory)
        if stamp == self._stamp:
            return None
        self._stamp = stamp
        return self.list(), {}

    def look_again(self, *, changed: bool = False) -> None:
        """With `changed`, read the invitations again at the next `find`."""
        if changed:
            self._stamp = ()

    async def prepare(self, platform: Platform, home: Path, values: Mapping[str, Any]) -> None:
        """Do nothing: these platforms need no preparation."""

    def list(self) -> dict[str, dict[str, Any]]:
        """Return platform settings for each invited site."""
        if not self.can_invite or not self.directory.is_dir():
            return {}
        return {file.name: {"kind": Invited.kind} for file in self.directory.iterdir() if not file.name.startswith(".")}

    def is_invited(self, system: str) -> bool:
        """Whether a platform is a site that fetches its requests itself."""
        return isinstance(self.platforms.by_name.get(system), Invited)

    def note_claim(self, place: PilotPlace) -> None:
        """Tell an invited site's platform that a node of the lease has reported, so the request has started."""
        site = self.platforms.by_name.get(place.session.offer.platform)
        if isinstance(site, Invited):
            site.began(place.session.id)

    def supplier_token(self, name: str) -> str:
        """Return the token with which a site authenticates."""
        return self.secrets.of(f"supplier {(self.directory / name).read_text()}")

    def get(self, name: str, facts: Mapping[str, str]) -> Invited:
        """Return the site of this name; raise PilotRefused if the token doesn't match."""
        site = self.platforms.by_name.get(name)
        try:
            expected = self.supplier_token(name) if isinstance(site, Invited) else ""
        except FileNotFoundError:  # withdrawn at this moment
            expected = ""
        if not same(facts.get("token", ""), expected) or not isinstance(site, Invited):
            raise PilotRefused(why="No such site is invited, or this token is not for it.")
        return site
