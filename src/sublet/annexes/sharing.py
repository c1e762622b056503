"""Access to an annex: opened to all of its owner's jobs, or shared with a guest."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from sublet.annexes.annexes import Annexes
from sublet.annexes.model.annex import Annex
from sublet.annexes.platforms import AnnexPlatforms
from sublet.booking.platforms.changes import PlatformChanges
from sublet.booking.session_endings import SessionEndings
from sublet.booking.sessions import Sessions
from sublet.booking.signals import Signals
from sublet.people.model.person import Person
from sublet.store.store import Store

MOST = 1000  # sessions of one guest that are cancelled


@dataclass
class AnnexSharing:
    """Opens and shares annexes, and undoes that."""

    store: Store
    signals: Signals
    sessions: Sessions
    annexes: Annexes
    annex_platforms: AnnexPlatforms
    changes: PlatformChanges
    endings: SessionEndings

    async def open_annex(self, name: str, person: Person, *, wide: bool, sessions: bool = False) -> Annex:
        """Set who may use an annex, and refresh its platform so that the next offers are made accordingly."""
        annex = await self.annexes.set_open(name, person, wide=wide, sessions=sessions)
        self.annex_platforms.look_again()
        await self.changes.refresh()
        return annex

    async def unshare(self, name: str, guest: str, person: Person) -> Annex:
        """Stop sharing an annex with someone, and cancel their sessions there."""
        annex = await self.annexes.remove_guest(name, guest, person)
        theirs = [name for name, values in self.annex_platforms.known.items() if values.get("annex") == annex.id]
        reason = f"the annex {annex.name} is no longer shared with you"
        for platform in theirs:
            page = await self.sessions.page(Person(guest), platform=platform, active=True, limit=MOST)
            for session in page.items:
                await self.store.write(partial(self.endings.cancel, id=session.id, person=person, reason=reason))
        await self.signals.announce()
        return annex
