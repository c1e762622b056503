"""Filters of a list of sessions that name what doesn't exist: an empty list would hide a typing error."""

from __future__ import annotations

from sublet.booking.platforms.known import KnownPlatforms
from sublet.kernel.errors import NotFound
from sublet.store.store import Store
from sublet.store.tx import Tx


async def check_filters(
    store: Store, platforms: KnownPlatforms, owner: str | None, of: str, platform: str | None
) -> None:
    """Raise NotFound if an empty list is about a person or a platform that nobody knows, or no longer."""
    if of and owner is not None and not await store.read(lambda tx: _is_known(tx, owner)):
        raise NotFound(noun="person", name=of, hint="`sublet ps --everyone` lists the sessions of all people.")
    if not platform or platform in platforms.by_name or platform in platforms.broken:
        return
    ever = await store.read(lambda tx: tx.sessions.list(person=owner, platform=platform, limit=1))
    if not ever.items:
        platforms.get(platform)  # says which there are


def _is_known(tx: Tx, owner: str) -> bool:
    return bool(tx.people.get(owner) or tx.tokens.list(owner) or tx.sessions.list(person=owner, limit=1).items)
