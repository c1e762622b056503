"""What nouns ask of one another without knowing who answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from sublet.core.access import Amounts, Decision
from sublet.core.bounds import Bounds
from sublet.core.offer import Offer, Reason
from sublet.core.request import Executable, Request
from sublet.core.session import Session
from sublet.errors import NotListening
from sublet.kinds.port import Callback
from sublet.service.person import Person
from sublet.store.tx import Tx


class Others:
    """Each question with the answer of who has nothing to say to it; the noun that has overrides it.

    A question that several nouns have something to say to is passed on by each, by `super()`.
    """

    # Of the platforms

    async def refresh(self) -> None:
        """Look whether the platforms are still the same."""

    def noun_of(self, platform: str) -> str:
        """What a platform is to the access rules: a `system`, or an `account`."""
        return "system"

    async def invited(self, person: Person) -> set[str]:
        """The platforms that are shared with a guest, now."""
        return set()

    async def callback(self, platform: str) -> Callback:
        """Where programs on a platform ask this service."""
        raise NotListening(why="nothing listens for them")

    # Of the people

    async def named(self, name: str) -> str:
        """The name of whoever is called so."""
        return name

    async def names_of(self, person: Person) -> Iterable[str]:
        """All that rules know someone by."""
        return (person.name,)

    async def as_now(self, person: Person) -> Person | None:
        """Someone with the part that they have now; None: they may not come in."""
        return person

    # Of the access rules

    async def refused(self, person: Person, noun: str, name: str, wanted: Amounts | None = None) -> Reason | None:
        """Why a person may not use this, or not so much of it."""
        return None

    async def closed(self, person: Person) -> Mapping[str, Decision]:
        """The platforms that a person may not use, and so not see, and why."""
        return {}

    async def bounds(self, person: Person, platform: str, request: Request) -> Bounds | Reason:
        """The most that an offer of a platform may have for this person; or why there can be none."""
        return Bounds()

    def admit(self, tx: Tx, session: Session, now: datetime) -> None:
        """Let a session be accepted, or raise NotAllowed."""

    def admit_longer(self, tx: Tx, session: Session, offer: Offer, now: datetime) -> None:
        """Let a session last as long as this offer says, or raise NotAllowed."""

    # Of the apps

    async def resolved(self, person: Person, request: Request) -> Request | Reason:
        """A request that names an app, pinned to exactly one version of it."""
        return request

    def barred(self, platform: str, executable: Executable) -> Reason | None:
        """Why this executable may not run on this platform, whoever asks."""
        return None

    async def unapproved(self, session: Session, request: Request) -> str:
        """Why the code of a session may not be started after all."""
        return ""

    async def word_on(self, session: Session) -> str:
        """What there is to say of the code that a session runs."""
        return ""

    async def sweep_apps(self, now: datetime) -> list[str]:
        """Remove code that nobody needs any more."""
        return []

    # Of whoever keeps something

    async def look_after(self, now: datetime) -> None:
        """Keep true what is not a session itself."""

    async def reseal(self) -> dict[str, int]:
        """Seal what is stored with the newest master key: noun → how many."""
        return {}

    async def give_up_all(self) -> None:
        """Stop what is being tried for someone: the service ends."""
