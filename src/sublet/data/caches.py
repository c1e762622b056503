"""Caches of systems and of this machine: list what they keep for later sessions, and remove entries."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from sublet.data.model.caches import CacheReport, KeptEntry, choose_removable, match_entries
from sublet.kernel.authority import Authority
from sublet.kernel.clock import Clock
from sublet.kernel.errors import BadRequest, NotFound, SubletError
from sublet.kernel.log import log
from sublet.people.model.person import Person
from sublet.platforms.caching import CachesData
from sublet.platforms.port import KeptFile, Platform

PATIENCE = 30.0  # seconds that a system has to list its cache
LIST = "`sublet cache ls` lists cached data."


class CachePlatforms(Protocol):
    """Finds platforms by name."""

    by_name: dict[str, Platform]

    def get(self, name: str) -> Platform:
        """Return the platform of this name, or raise an error that lists the platforms."""
        ...


@dataclass
class Caches:
    """Lists the entries of caches, and removes them."""

    now: Clock
    authority: Authority
    platforms: CachePlatforms

    async def list(self, person: Person, platform: str = "") -> list[CacheReport]:
        """Report what each platform's cache, or one platform's, contains.

        A system that fails to answer gives its reason.
        """
        self._require_right(person)
        chosen = self._choose(platform)
        reports = await asyncio.gather(*(self._report(name, each) for name, each in chosen.items()))
        if platform and reports[0].trouble:
            await chosen[platform].list_kept()  # raises what is wrong, with its hint
        return list(reports)

    async def remove(
        self, person: Person, platform: str, names: Collection[str], idle: timedelta, *, is_trial: bool = False
    ) -> Sequence[KeptEntry]:
        """Remove entries by name, or all that no session has used for `idle`, and return them.

        `is_trial`: only return what would be removed.
        """
        self._require_right(person)
        there = self._choose(platform)[platform]
        entries = [_entry(kept) for kept in await there.list_kept()]
        meant: Sequence[KeptEntry] = entries
        if names:
            meant, unknown = match_entries(entries, names)
            if unknown:
                raise NotFound(noun="entry", name=f"{unknown[0]} in the cache of {platform}", hint=LIST)
            if needed := [entry for entry in meant if entry.users]:
                users = ", ".join(user[:8] for user in needed[0].users)
                detail = f"{needed[0].title} is needed by {users}"
                raise BadRequest(
                    detail=detail, hint="It is removed automatically later; or cancel the session that needs it."
                )
        removable = choose_removable(meant, idle, self.now())
        if is_trial or not removable:
            return removable
        gone = set(await there.let_go(*(entry.digest for entry in removable), idle=idle))
        log.info("cache.removed", platform=platform, person=person.name, entries=len(gone))
        return [entry for entry in removable if entry.digest in gone]

    async def _report(self, name: str, platform: Platform) -> CacheReport:
        quota = platform.cache if isinstance(platform, CachesData) else 0
        try:
            async with asyncio.timeout(PATIENCE):
                entries = [_entry(kept) for kept in await platform.list_kept()]
        except TimeoutError:
            return CacheReport(name, quota, trouble="It did not answer in time.")
        except SubletError as error:
            return CacheReport(name, quota, trouble=error.message)
        return CacheReport(name, quota, sorted(entries, key=lambda entry: entry.used, reverse=True))

    def _choose(self, name: str) -> Mapping[str, Platform]:
        if name and not isinstance(self.platforms.get(name), CachesData):
            raise BadRequest(detail=f"{name} has no cache", hint="`sublet cache info` shows those that have.")
        platforms = {name: self.platforms.get(name)} if name else self.platforms.by_name
        return {each: there for each, there in platforms.items() if isinstance(there, CachesData)}

    def _require_right(self, person: Person) -> None:
        """Raise an error unless the person owns this personal service, or operates this gateway."""
        if self.authority.has_owner:
            self.authority.require_owner(person)
        else:
            self.authority.require_operator(person)


def _entry(kept: KeptFile) -> KeptEntry:
    return KeptEntry(kept.digest, kept.label, kept.size, kept.used, kept.users)
