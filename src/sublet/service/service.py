"""The service: every use case in one object, and the loop that carries sessions on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from sublet.errors import SubletError
from sublet.kinds.registry import survey_kinds
from sublet.movers.registry import survey_movers
from sublet.platforms.port import Platform
from sublet.platforms.registry import load_platforms
from sublet.platforms.remote import Remote
from sublet.service import metrics
from sublet.service.annex_platforms import keep
from sublet.service.desk import log, utc_now
from sublet.service.drafts import Drafts
from sublet.service.invitations import DIRECTORY as INVITED
from sublet.service.reconcile import Loop
from sublet.service.sweeping import Sweeper
from sublet.service.systems import Stamp, directory_of, stamp_of, systems_of
from sublet.settings import Settings
from sublet.store.store import Store

OWN_LOGIN = (
    "A person would have to sign in to it, and a gateway takes nobody's password or code. "
    "Give it `key`, the private key of a service account."
)


@dataclass
class Service(Drafts):
    """Ask, accept, run, look: what the HTTP interface and the pages call."""

    _own: dict[str, set[str]] = field(default_factory=dict)  # "system" or "annex" → the platforms that are such
    _systems_stamp: Stamp = ()
    _invited_stamp: Stamp = ()
    _refreshing: asyncio.Lock = field(default_factory=asyncio.Lock)

    @classmethod
    @contextlib.asynccontextmanager
    async def open(
        cls, settings: Settings, *, now: Callable[[], datetime] = utc_now, loop: bool = True
    ) -> AsyncIterator[Service]:
        """Open the store and the platforms, start the loop; on leaving, let go: what runs goes on."""
        settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        store = await asyncio.to_thread(Store.open, settings.database_url)
        kinds = survey_kinds()
        platforms, bad = admitted(*load_platforms(settings.platforms), settings.mode)
        roots = settings.file_roots if settings.mode == "personal" or settings.file_roots else ()
        public_only = settings.mode == "gateway" and not settings.private_data
        largest = settings.largest_data if settings.mode == "gateway" else 0
        movers = survey_movers(roots, public_only=public_only, home=settings.home, largest=largest)
        strangers = survey_movers((), public_only=not settings.private_data, largest=settings.largest_data)
        broken = {f"kind {name}": why for name, why in kinds.broken.items()}
        broken |= {f"mover {name}": why for name, why in movers.broken.items()} | bad
        service = cls(settings, store, platforms, kinds.by_name, movers.found, strangers.found, broken, now)
        try:
            for platform in list(platforms.values()):
                await service._begin(platform)
            await service.refresh()
            carrier = Loop(service)
            workers = {"loop": carrier.run, "sweeper": Sweeper(service).run} if loop else {}
            tasks = [asyncio.create_task(work(), name=name) for name, work in workers.items()]
            log.info("service.started", mode=settings.mode, platforms=list(platforms))
            try:
                yield service
            finally:
                await service.give_up_all()
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                if tasks:
                    await carrier.stop()
        finally:
            for platform in list(service.platforms_by_name.values()):
                await platform.close()
            await service.end_agent()
            store.close()
            log.info("service.stopped")

    async def _begin(self, platform: Platform) -> None:
        """Open a platform and look at it; one that can't be reached is tried again when it is asked."""
        home = self._home_of(platform.name)
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        if platform.name in self._own.get("account", ()) and isinstance(platform, Remote):
            platform.hold_key(self.holding(platform.name))
        await platform.open(home)
        with contextlib.suppress(SubletError):
            await self.survey(platform.name)

    def _home_of(self, platform: str) -> Path:
        return self.settings.home / "platforms" / platform

    async def refresh(self) -> None:
        """Take up systems, accounts and annexes that are new or changed since the last look; let go of those gone."""
        async with self._refreshing:
            stamp = stamp_of(directory_of(self.settings))
            if stamp != self._systems_stamp:
                self._systems_stamp = stamp
                await self._take_up("system", *await asyncio.to_thread(systems_of, self.settings))
            stamp = stamp_of(self.settings.home / INVITED)
            if stamp != self._invited_stamp:
                self._invited_stamp = stamp
                await self._take_up("site", self.invited_platforms(), {})
            accounts = await self.account_platforms(self.now())
            if accounts is not None:
                await self._take_up("account", *accounts)
            annexes = await self.annex_platforms(self.now())
            if annexes is not None:
                await self._take_up("annex", annexes, {})
                for name in self._own["annex"]:
                    await asyncio.to_thread(keep, self._home_of(name), annexes[name])

    async def _take_up(self, noun: str, wanted: Mapping[str, Mapping[str, Any]], wrong: Mapping[str, str]) -> None:
        """Make the platforms of one noun be as they are wanted; what can't be is shown as broken."""
        own = self._own.setdefault(noun, set())
        made, bad = admitted(*load_platforms(wanted), self.settings.mode)
        for name in [name for name in own if not alike(made.get(name), self.platforms_by_name[name])]:
            await self.platforms_by_name.pop(name).close()
            self.surveys.pop(name, None)
            own.discard(name)
        taken = {
            name: f"Another platform is called {name}." for name in made if name in self.platforms_by_name.keys() - own
        }
        self.broken = {name: why for name, why in self.broken.items() if not name.startswith(f"{noun} ")}
        self.broken |= {f"{noun} {name}": why for name, why in ({**wrong, **bad, **taken}).items()}
        for name, platform in made.items():
            if name not in self.platforms_by_name:
                self.platforms_by_name[name] = platform
                own.add(name)
                await self._begin(platform)

    def noun_of(self, platform: str) -> str:
        """What a platform is to the access rules: an `account`, where a community account is behind it."""
        return "account" if platform in self._own.get("account", ()) else "system"

    @property
    def mode(self) -> str:
        """`personal` or `gateway`."""
        return self.settings.mode

    @property
    def version(self) -> str:
        """Sublet's own."""
        return metadata.version("sublet")

    async def scrape(self, whole: bool) -> bytes:
        """The metrics page: the whole of it, or without what names platforms."""
        counts = await self.store.read(lambda tx: tx.sessions.count_by_phase())
        for phase, count in counts.items():
            metrics.sessions.labels(phase).set(count)
        return metrics.page(whole)


def admitted(
    platforms: dict[str, Platform], broken: dict[str, str], mode: str
) -> tuple[dict[str, Platform], dict[str, str]]:
    """Those that this mode may use: a person's own logins are for personal mode, a gateway's accounts have keys."""
    own = {name for name, platform in platforms.items() if mode == "gateway" and platform.asks_a_person}
    kept = {name: platform for name, platform in platforms.items() if name not in own}
    return kept, broken | dict.fromkeys(own, OWN_LOGIN)


def alike(new: Platform | None, old: Platform) -> bool:
    """Whether a platform has the same settings as before; what it does meanwhile is its own."""
    return new is not None and type(new) is type(old) and new.model_dump() == old.model_dump()
