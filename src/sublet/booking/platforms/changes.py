"""Platforms that come and go while the service runs: systems, invited sites, accounts and annexes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.ports import PlatformSource
from sublet.kernel.clock import Clock
from sublet.kernel.errors import SubletError
from sublet.kernel.settings import Settings
from sublet.platforms.brokering import BrokerIdentity, PassesOn
from sublet.platforms.port import Platform
from sublet.platforms.registry import load_platforms
from sublet.platforms.tokens import FindToken, OpensWithToken

OWN_LOGIN = (
    "A person would have to sign in to it, and a gateway takes nobody's password or code. "
    "Give it `key`, the private key of a service account."
)


@dataclass
class PlatformChanges:
    """Keeps the platforms in step with the sources that name them."""

    settings: Settings
    now: Clock
    platforms: KnownPlatforms
    sources: Sequence[PlatformSource]
    own_logins: bool  # platforms may be reached by a person's own login
    identity: BrokerIdentity  # how to authenticate to other brokers
    find_token: FindToken  # finds the token for a platform's API, by its address and whose credential it is
    owner: str = ""  # whose credential it is if no person is named; empty: nobody's

    _own: dict[str, set[str]] = field(default_factory=dict)  # the noun of a source → the platforms that it named
    _refreshing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def open_platform(self, platform: Platform, *, changed: bool = False) -> None:
        """Open a platform and make it known; if its settings have changed, its survey is out of date."""
        if isinstance(platform, PassesOn):
            platform.use_identity(self.identity)
        if isinstance(platform, OpensWithToken):
            platform.hold_tokens(lambda address, person: self.find_token(address, person or self.owner))
        await platform.open(self._make_home(platform.name))
        if changed:
            platform.expire_survey()
        self.platforms.by_name[platform.name] = platform

    async def look_at(self, names: Iterable[str]) -> None:
        """Survey platforms, all at once; one that can't be reached is tried again when it is asked."""
        looks = await asyncio.gather(*(self.platforms.survey_soon(name) for name in names), return_exceptions=True)
        for failure in looks:
            if isinstance(failure, BaseException) and not isinstance(failure, SubletError):
                raise failure

    def _make_home(self, platform: str) -> Path:
        home = self.settings.home / "platforms" / platform
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        return home

    async def refresh(self) -> None:
        """Open systems, accounts and annexes that are new or changed since the last look; close those that are gone."""
        async with self._refreshing:
            for source in self.sources:
                settings = await source.find(self.now())
                if settings is not None and not await self._take_up(source, *settings):
                    source.look_again(changed=True)

    async def _take_up(
        self, source: PlatformSource, wanted: Mapping[str, Mapping[str, Any]], wrong: Mapping[str, str]
    ) -> bool:
        """Open and close the platforms of one source as it wants them; those that can't be are shown as broken.

        Return whether all could be opened; those that can't be for the moment, as on a full disk, are tried again.
        """
        noun = source.noun
        own = self.platforms.accounts if noun == "account" else self._own.setdefault(noun, set())
        made, bad = admit_platforms(*load_platforms(wanted), own_logins=self.own_logins)
        gone = [name for name in own if not alike(made.get(name), self.platforms.by_name[name])]
        for name in gone:
            own.discard(name)
            self.platforms.surveys.pop(name, None)
            await self.platforms.by_name.pop(name).close()
        taken = {
            name: f"Another platform is called {name}." for name in made if name in self.platforms.by_name.keys() - own
        }
        self.platforms.broken = {
            name: why for name, why in self.platforms.broken.items() if not name.startswith(f"{noun} ")
        }
        self.platforms.broken |= {f"{noun} {name}": why for name, why in ({**wrong, **bad, **taken}).items()}
        unopened = {}
        new = [platform for name, platform in made.items() if name not in self.platforms.by_name]
        for platform in new:
            name = platform.name
            own.add(name)
            try:
                await source.prepare(platform, self._make_home(name), wanted[name])
                await self.open_platform(platform, changed=name in gone)
            except (SubletError, OSError) as error:
                unopened[f"{noun} {name}"] = str(error)
                own.discard(name)
        await self.look_at(platform.name for platform in new if platform.name in self.platforms.by_name)
        self.platforms.broken |= unopened
        return not unopened


def admit_platforms(
    platforms: dict[str, Platform], broken: dict[str, str], *, own_logins: bool
) -> tuple[dict[str, Platform], dict[str, str]]:
    """Return the platforms that may be used; where people have no logins of their own, a platform needs a key."""
    own = {name for name, platform in platforms.items() if not own_logins and platform.asks_a_person}
    kept = {name: platform for name, platform in platforms.items() if name not in own}
    return kept, broken | dict.fromkeys(own, OWN_LOGIN)


def alike(new: Platform | None, old: Platform) -> bool:
    """Whether a platform has the same settings as before; its present state doesn't count."""
    return new is not None and type(new) is type(old) and new.model_dump() == old.model_dump()
