"""Invitations: a site whose operator fetches requests for leases itself, and answers them with nodes of its own."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sublet.core.annex import check_name
from sublet.errors import NotFound, PilotRefused, PlatformRefused
from sublet.pilots.keeping import keep, keep_first, make_private
from sublet.platforms.invited import Invited
from sublet.service.desk import log
from sublet.service.pilots import NONCE, Place, same
from sublet.service.splits import Splits

DIRECTORY = "invited"  # below SUBLET_HOME: a file for each site, by its name


@dataclass(frozen=True, slots=True)
class Invitation:
    """What a site's operator is given."""

    site: str
    urls: tuple[str, ...]
    pin: str
    token: str


class Invitations(Splits):
    """Invite sites, and answer those that come."""

    async def invite(self, name: str, *, anew: bool = False) -> Invitation:
        """Let a site fetch what is asked of it; `anew` makes earlier invitations worthless."""
        self.personal()
        check_name(name, "site")
        file = self._invited / name
        if not file.exists() and name in self.platforms_by_name:
            raise PlatformRefused(f"Another platform is called {name}.", hint="Invite the site under another name.")
        make_private(self._invited)
        fresh = secrets.token_hex(16).encode()
        keep(file, fresh) if anew else keep_first(file, fresh)
        await self.refresh()
        callback = await self.callback(name)
        return Invitation(name, callback.urls, callback.pin, self._supplier_token(name))

    async def withdraw(self, name: str) -> None:
        """Let a site fetch nothing any more."""
        self.personal()
        if not (self._invited / name).exists():
            raise NotFound(noun="invited site", name=name, hint="`sublet platform list` lists those that there are.")
        (self._invited / name).unlink()
        await self.refresh()

    def invited_platforms(self) -> dict[str, dict[str, Any]]:
        """The settings of a platform for each site that is invited."""
        if self.settings.mode != "personal" or not self._invited.is_dir():
            return {}
        return {file.name: {"kind": Invited.kind} for file in self._invited.iterdir() if not file.name.startswith(".")}

    async def pilots_may_ask(self) -> bool:
        """While there are leases, and while a site is invited."""
        return bool(self.invited_platforms()) or await super().pilots_may_ask()

    def usual_carry(self, system: str) -> str:
        """There is no login to an invited site that a spool could be carried over."""
        return "direct" if isinstance(self.platforms_by_name.get(system), Invited) else super().usual_carry(system)

    async def wanted_of_site(self, name: str, told: Mapping[str, str]) -> bytes:
        """What is asked of a site and not taken yet: a line each."""
        site = self._site(name, told)
        found = await asyncio.to_thread(site.wanted)
        lines = (f"{one.key} {one.nodes} {one.cores} {one.memory} {one.gpus} {one.seconds}\n" for one in found)
        return "".join(lines).encode()

    async def take_for_site(self, name: str, told: Mapping[str, str]) -> bytes:
        """Give a whole request to a site, once: its files, as a tar."""
        site = self._site(name, told)
        if not NONCE.fullmatch(told.get("nonce", "")):
            raise PilotRefused(why="This needs a nonce.")
        who = hashlib.sha256(told["nonce"].encode()).hexdigest()
        files = await asyncio.to_thread(site.take, told.get("request", ""), who)
        log.info("lease.taken", session=told.get("request"), site=name)
        await self.tell()
        return files

    async def ended_at_site(self, name: str, told: Mapping[str, str]) -> None:
        """A site says how it ended there."""
        site = self._site(name, told)
        code = told.get("code", "")
        ended = int(code) if code.isascii() and code.isdigit() else 1
        await asyncio.to_thread(site.ended, told.get("request", ""), ended, told.get("words", "")[:4000])
        await self.tell()

    def claimed(self, place: Place) -> None:
        """A node of a lease has come: it runs."""
        site = self.platforms_by_name.get(place.session.offer.platform)
        if isinstance(site, Invited):
            site.began(place.session.id)

    @property
    def _invited(self) -> Path:
        return self.settings.home / DIRECTORY

    def _supplier_token(self, name: str) -> str:
        return self.secret(f"supplier {(self._invited / name).read_text()}")

    def _site(self, name: str, told: Mapping[str, str]) -> Invited:
        site = self.platforms_by_name.get(name)
        try:
            expected = self._supplier_token(name) if isinstance(site, Invited) else ""
        except FileNotFoundError:  # it was withdrawn just now
            expected = ""
        if not same(told.get("token", ""), expected) or not isinstance(site, Invited):
            raise PilotRefused(why="No such site is invited, or this token is not for it.")
        return site
