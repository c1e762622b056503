"""The sites that are invited: each is a platform, and known by a token of its own."""

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

DIRECTORY = "invited"  # below SUBLET_HOME: a file for each site, by its name


@dataclass
class InvitedSites:
    """Knows who is invited."""

    settings: Settings
    platforms: KnownPlatforms
    secrets: SessionSecrets
    can_invite: bool  # a gateway invites no sites

    noun = "site"
    _stamp: Stamp = ()

    @property
    def directory(self) -> Path:
        """Where a file says of each site that it is invited."""
        return self.settings.home / DIRECTORY

    async def find(self, now: datetime) -> tuple[dict[str, dict[str, Any]], dict[str, str]] | None:
        """The settings of a platform for each site that is invited; None if they are as before."""
        stamp = stamp_of(self.directory)
        if stamp == self._stamp:
            return None
        self._stamp = stamp
        return self.list(), {}

    def look_again(self, *, changed: bool = False) -> None:
        """Look at the invitations again when asked next."""
        if changed:
            self._stamp = ()

    async def prepare(self, platform: Platform, home: Path, values: Mapping[str, Any]) -> None:
        """Nothing has to be made ready."""

    def list(self) -> dict[str, dict[str, Any]]:
        """The settings of a platform for each site that is invited."""
        if not self.can_invite or not self.directory.is_dir():
            return {}
        return {file.name: {"kind": Invited.kind} for file in self.directory.iterdir() if not file.name.startswith(".")}

    def is_invited(self, system: str) -> bool:
        """Whether a platform is a site that fetches its requests itself."""
        return isinstance(self.platforms.by_name.get(system), Invited)

    def note_claim(self, place: PilotPlace) -> None:
        """A node of a lease has come: if it is a site's, the site has begun."""
        site = self.platforms.by_name.get(place.session.offer.platform)
        if isinstance(site, Invited):
            site.began(place.session.id)

    def supplier_token(self, name: str) -> str:
        """What a site shows to be known."""
        return self.secrets.of(f"supplier {(self.directory / name).read_text()}")

    def get(self, name: str, facts: Mapping[str, str]) -> Invited:
        """The site of this name, if it has shown its token; PilotRefused if not."""
        site = self.platforms.by_name.get(name)
        try:
            expected = self.supplier_token(name) if isinstance(site, Invited) else ""
        except FileNotFoundError:  # it was withdrawn just now
            expected = ""
        if not same(facts.get("token", ""), expected) or not isinstance(site, Invited):
            raise PilotRefused(why="No such site is invited, or this token is not for it.")
        return site
