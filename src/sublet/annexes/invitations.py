"""Invitations: a site's operator fetches requests for leases, and runs them on the site's own nodes."""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from sublet.annexes.invited_sites import InvitedSites
from sublet.annexes.model.annex import check_name
from sublet.annexes.pilot_claims import NONCE
from sublet.annexes.pilot_plans import PilotPlans
from sublet.annexes.pilots.keeping import keep, keep_first, make_private
from sublet.booking.platforms.changes import PlatformChanges
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.signals import Signals
from sublet.kernel.authority import Authority
from sublet.kernel.errors import NotFound, PilotRefused, PlatformRefused
from sublet.kernel.log import log


@dataclass(frozen=True, slots=True)
class Invitation:
    """What a site's operator needs to connect."""

    site: str
    urls: tuple[str, ...]
    pin: str
    token: str


@dataclass
class Invitations:
    """Invites sites, and answers their requests."""

    platforms: KnownPlatforms
    signals: Signals
    authority: Authority
    sites: InvitedSites
    pilot_plans: PilotPlans
    changes: PlatformChanges

    async def invite(self, name: str, *, anew: bool = False) -> Invitation:
        """Invite a site to fetch its requests; `anew` makes earlier invitations invalid."""
        self.authority.require_owner()
        check_name(name, "site")
        file = self.sites.directory / name
        if not file.exists() and name in self.platforms.by_name:
            raise PlatformRefused(f"Another platform is called {name}.", hint="Invite the site under another name.")
        make_private(self.sites.directory)
        fresh = secrets.token_hex(16).encode()
        keep(file, fresh) if anew else keep_first(file, fresh)
        await self.changes.refresh()
        callback = await self.pilot_plans.callback(name)
        return Invitation(name, callback.urls, callback.pin, self.sites.supplier_token(name))

    async def withdraw(self, name: str) -> None:
        """Withdraw the invitation of a site."""
        self.authority.require_owner()
        if not (self.sites.directory / name).exists():
            raise NotFound(noun="invited site", name=name, hint="`sublet platform list` lists the platforms.")
        (self.sites.directory / name).unlink()
        await self.changes.refresh()

    async def list_wanted_of_site(self, name: str, facts: Mapping[str, str]) -> bytes:
        """Return the open requests of a site, one per line."""
        site = self.sites.get(name, facts)
        requests = await asyncio.to_thread(site.list_wanted)
        lines = (f"{request.line}\n" for request in requests)
        return "".join(lines).encode()

    async def take_for_site(self, name: str, facts: Mapping[str, str]) -> bytes:
        """Hand a request to a site, once: its files, as a tar archive."""
        site = self.sites.get(name, facts)
        if not NONCE.fullmatch(facts.get("nonce", "")):
            raise PilotRefused(why="This needs a nonce.")
        who = hashlib.sha256(facts["nonce"].encode()).hexdigest()
        files = await asyncio.to_thread(site.take, facts.get("request", ""), who)
        log.info("lease.taken", session=facts.get("request"), site=name)
        await self.signals.announce()
        return files

    async def end_at_site(self, name: str, facts: Mapping[str, str]) -> None:
        """Record a site's report of how a request ended."""
        site = self.sites.get(name, facts)
        code = facts.get("code", "")
        ended = int(code) if code.isascii() and code.isdigit() else 1
        await asyncio.to_thread(site.note_end, facts.get("request", ""), ended, facts.get("words", "")[:4000])
        await self.signals.announce()
