"""What booking asks of those above it, without knowing who answers: app.py passes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from sublet.access.model.access import Decision
from sublet.access.model.bounds import Bounds
from sublet.booking.asked import Asked
from sublet.booking.model.offer import Answer, Offer, Reason
from sublet.booking.model.places import BoundPlace
from sublet.booking.model.request import Executable, Request
from sublet.booking.model.run_time import RunHistory
from sublet.booking.model.session import OfferSet, Session
from sublet.data.model.credentials import Credential
from sublet.data.model.throughput import Hop, Transfer
from sublet.kernel.errors import SubletError
from sublet.kinds.port import Callback
from sublet.people.model.assertion import Errand
from sublet.people.model.person import Person
from sublet.platforms.port import Platform
from sublet.store.tx import Tx


class Names(Protocol):
    """Knows what people are called."""

    async def find_name(self, name: str) -> str:
        """The name of whoever is called so."""
        ...

    async def names_of(self, person: Person) -> Iterable[str]:
        """All that rules know someone by."""
        ...


class GuestPlatforms(Protocol):
    """Knows what is shared with guests of a personal service."""

    async def list_shared_with(self, person: Person) -> set[str]:
        """The platforms that are shared with a guest, now."""
        ...


class OfferLimits(Protocol):
    """Knows how much someone may have."""

    async def bounds(self, person: Person, platform: str, request: Request) -> Bounds | Reason:
        """The most that an offer of a platform may have for this person; or why there can be none."""
        ...


class Projects(Protocol):
    """Knows the projects to which sessions can be charged, beside those that a cluster knows."""

    async def list_projects(self) -> frozenset[str]:
        """Their names."""
        ...


class OfferFilter(Protocol):
    """Leaves out offers that could not be accepted."""

    def keep_affordable(
        self, tx: Tx, person: str, request: Request, platform: str, answer: Answer, now: datetime
    ) -> Answer:
        """Of a platform's offers those that the asker can pay for; if there is none, why."""
        ...


class ClosedPlatforms(Protocol):
    """Knows which platforms are closed to whom."""

    async def find_closed(self, person: Person) -> Mapping[str, Decision]:
        """The platforms that a person may not use, and why."""
        ...


class CurrentPeople(Protocol):
    """Knows who is blocked, and who has which role at this moment."""

    async def as_now(self, person: Person) -> Person | None:
        """Someone with the role that they have now; None: they are blocked."""
        ...


class PlatformSource(Protocol):
    """Knows of platforms that come and go while the service runs."""

    @property
    def noun(self) -> str:
        """What its platforms are called: system, site, account or annex."""
        ...

    async def find(self, now: datetime) -> tuple[Mapping[str, Mapping[str, Any]], Mapping[str, str]] | None:
        """The settings of each, and what is wrong with others; None if nothing has changed since the last look."""
        ...

    def look_again(self, *, changed: bool = False) -> None:
        """Look at once when asked next; `changed`: also if everything is as before."""
        ...

    async def prepare(self, platform: Platform, home: Path, values: Mapping[str, Any]) -> None:
        """Make one ready to be opened."""
        ...


class AskPolicy(Protocol):
    """Looks at each ask, before it is answered and afterwards."""

    def limit_asking(self, person: Person) -> None:
        """Refuse, with TooMany, what is asked too often."""
        ...

    def limit_holds(self, person: Person) -> int | None:
        """For how many requests of theirs offers may be held at once; None: for any number."""
        ...

    async def note_answer(self, person: Person, asked: Asked, answer: OfferSet) -> None:
        """Write down what has to be known of an answer."""
        ...


class Resolver(Protocol):
    """Knows what a name in a request stands for."""

    async def resolve(self, person: Person, request: Request) -> Request | Reason | None:
        """A request that names something, pinned to exactly one version of it; None: it names nothing of that kind."""
        ...


class Bar(Protocol):
    """Knows what may not run somewhere, whoever asks."""

    def find_bar(self, platform: str, executable: Executable) -> Reason | None:
        """Why this executable may not run on this platform; None if it may."""
        ...


class Admission(Protocol):
    """Decides whether a session may be accepted, in the transaction that accepts it."""

    def admit(self, tx: Tx, session: Session, now: datetime) -> None:
        """Let a session be accepted, or raise NotAllowed."""
        ...

    def admit_longer(self, tx: Tx, session: Session, offer: Offer, now: datetime) -> None:
        """Let a session last as long as this offer says, or raise NotAllowed."""
        ...

    async def note_refusal(self, act: str, person: Person, error: SubletError, **about: str) -> None:
        """Write down that something was refused."""
        ...


class AcceptReview(Protocol):
    """Decides whether a session may be accepted or extended by asking somebody else, before any transaction."""

    async def review(self, act: str, person: Person, session: Session, offer: Offer) -> None:
        """Let someone accept or extend a session to what this offer says, or raise NotAllowed."""
        ...


class CodeGuard(Protocol):
    """Knows whether the code of a session may be run."""

    async def find_objection(self, session: Session, request: Request) -> str:
        """Why the code of a session may not be started after all; empty if it may."""
        ...

    async def describe_code(self, session: Session) -> str:
        """What there is to say of the code that a session runs; empty if nothing."""
        ...


class Callbacks(Protocol):
    """Knows where programs on a platform ask this service."""

    async def callback(self, platform: str) -> Callback:
        """The addresses, and how the service is recognised; NotListening if nothing listens."""
        ...


class CredentialSource(Protocol):
    """Knows what opens the storage that people's data is in."""

    async def open(self, person: str) -> Sequence[Credential]:
        """A person's credentials, each for one place."""
        ...


class AssertionSource(Protocol):
    """Signs for people of this service, so that others believe who they are."""

    @property
    def can_sign(self) -> bool:
        """Whether there is anybody to sign for, and a name to sign by."""
        ...

    async def make(self, person: str, audience: str, errand: Errand) -> str:
        """A token for one request to another service, on behalf of a person."""
        ...


class PlaceSource(Protocol):
    """Knows the directories of platforms that sessions share."""

    async def find_refusals(
        self, person: Person, platforms: Sequence[Platform], request: Request
    ) -> Mapping[str, Reason]:
        """Of the platforms, those that can't show a request's places to this person, and why."""
        ...

    async def bind(self, session: Session, platform: Platform, request: Request) -> tuple[BoundPlace, ...]:
        """The places of a session where it is about to run; PlatformRefused if one can't be had."""
        ...


class TransferHistory(Protocol):
    """Knows how long transfers of data took."""

    async def list_recent(self) -> Sequence[Transfer]:
        """Those that count, the newest first."""
        ...

    async def record(self, source: str, system: str, hop: Hop, bytes: int, seconds: float) -> None:
        """Remember one that has ended."""
        ...


class Adviser(Protocol):
    """Knows what earlier runs say of a request."""

    async def recall(self, person: Person, request: Request) -> RunHistory:
        """The newest runs of what is asked for."""
        ...

    def advise(self, history: RunHistory, request: Request) -> Sequence[Reason]:
        """Hints: what of it is more than such runs needed, and how much would do."""
        ...


class Caretaker(Protocol):
    """Keeps something true that is not a session itself."""

    async def look_after(self, now: datetime) -> None:
        """Called in each turn of the loop."""
        ...
