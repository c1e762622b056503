"""Ports: what booking needs of other parts; app.py passes the implementations."""

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
    """The source of people's names."""

    async def find_name(self, name: str) -> str:
        """Return the name of the person who has this name or address."""
        ...

    async def names_of(self, person: Person) -> Iterable[str]:
        """Return all names by which rules know a person."""
        ...


class GuestPlatforms(Protocol):
    """The source of what is shared with guests of a personal service."""

    async def list_shared_with(self, person: Person) -> set[str]:
        """Return the platforms that are shared with a guest now."""
        ...


class OfferLimits(Protocol):
    """The source of limits on what a person may have."""

    async def bounds(self, person: Person, platform: str, request: Request) -> Bounds | Reason:
        """Return the most that an offer of a platform may have for this person, or why there can be none."""
        ...


class Projects(Protocol):
    """The source of projects to which sessions can be charged, besides those that a cluster knows."""

    async def list_projects(self) -> frozenset[str]:
        """Return the names of the projects."""
        ...


class OfferFilter(Protocol):
    """Leaves out offers that could not be accepted."""

    def keep_affordable(
        self, tx: Tx, person: str, request: Request, platform: str, answer: Answer, now: datetime
    ) -> Answer:
        """Keep the offers of a platform that the person can pay for; if there are none, say why."""
        ...


class ClosedPlatforms(Protocol):
    """The source of platforms that are closed to a person."""

    async def find_closed(self, person: Person) -> Mapping[str, Decision]:
        """Return the platforms that a person may not use, and why."""
        ...


class CurrentPeople(Protocol):
    """The source of people's current roles."""

    async def as_now(self, person: Person) -> Person | None:
        """Return a person with their current role, or None if they are blocked."""
        ...


class PlatformSource(Protocol):
    """A source of platforms that come and go while the service runs."""

    @property
    def noun(self) -> str:
        """Return the noun for its platforms: system, site, account, annex or broker."""
        ...

    async def find(self, now: datetime) -> tuple[Mapping[str, Mapping[str, Any]], Mapping[str, str]] | None:
        """Return platforms' settings, and what is wrong with others; None if nothing changed since the last look."""
        ...

    def look_again(self, *, changed: bool = False) -> None:
        """Look again at the next call; with `changed`, report the platforms even if they are the same."""
        ...

    async def prepare(self, platform: Platform, home: Path, values: Mapping[str, Any]) -> None:
        """Prepare a platform before it is opened."""
        ...


class AskPolicy(Protocol):
    """Checks each request for offers before it is answered, and records it afterwards."""

    def limit_asking(self, person: Person) -> None:
        """Raise TooMany if a person asks too often."""
        ...

    def limit_holds(self, person: Person) -> int | None:
        """Return for how many requests of a person offers may be held at once; None for any number."""
        ...

    async def note_answer(self, person: Person, asked: Asked, answer: OfferSet) -> None:
        """Record what has to be known of an answer."""
        ...


class Resolver(Protocol):
    """Resolves a name in a request."""

    async def resolve(self, person: Person, request: Request) -> Request | Reason | None:
        """Return a request with what it names pinned to exactly one version; None if it names nothing of that kind."""
        ...


class Bar(Protocol):
    """Forbids executables on platforms, regardless of the person."""

    def find_bar(self, platform: str, executable: Executable) -> Reason | None:
        """Return why this executable may not run on this platform, or None if it may."""
        ...


class Admission(Protocol):
    """Decides whether a session may be accepted, in the transaction that accepts it."""

    def admit(self, tx: Tx, session: Session, now: datetime) -> None:
        """Let a session be accepted, or raise NotAllowed."""
        ...

    def admit_longer(self, tx: Tx, session: Session, offer: Offer, now: datetime) -> None:
        """Let a session have the duration of this offer, or raise NotAllowed."""
        ...

    async def note_refusal(self, act: str, person: Person, error: SubletError, **about: str) -> None:
        """Record that something was refused."""
        ...


class AcceptReview(Protocol):
    """Decides whether a session may be accepted or extended by asking an external service, before any transaction."""

    async def review(self, act: str, person: Person, session: Session, offer: Offer) -> None:
        """Let a person accept a session, or extend it to this offer, or raise NotAllowed."""
        ...


class CodeGuard(Protocol):
    """Decides whether the code of a session may be run."""

    async def find_objection(self, session: Session, request: Request) -> str:
        """Return why the code of a session may not be started after all; empty if it may."""
        ...

    async def describe_code(self, session: Session) -> str:
        """Return a remark on the code that a session runs; empty if there is none."""
        ...


class Callbacks(Protocol):
    """The source of the addresses under which programs on a platform call this service."""

    async def callback(self, platform: str) -> Callback:
        """Return the addresses, and how the service is recognised; raise NotListening if nothing listens."""
        ...


class CredentialSource(Protocol):
    """The source of people's credentials for storage."""

    async def open(self, person: str) -> Sequence[Credential]:
        """Return a person's credentials, each for one place."""
        ...


class AssertionSource(Protocol):
    """Signs tokens for people of this service, so that other services know who they are."""

    @property
    def can_sign(self) -> bool:
        """Whether this service can sign for people."""
        ...

    async def make(self, person: str, audience: str, errand: Errand) -> str:
        """Make a token for one request to another service, on behalf of a person."""
        ...


class PlaceSource(Protocol):
    """The source of places: directories of platforms that sessions share."""

    async def find_refusals(
        self, person: Person, platforms: Sequence[Platform], request: Request
    ) -> Mapping[str, Reason]:
        """Return the platforms that can't provide a request's places to this person, and why."""
        ...

    async def bind(self, session: Session, platform: Platform, request: Request) -> tuple[BoundPlace, ...]:
        """Return a session's places on its platform; raise PlatformRefused if one can't be provided."""
        ...


class TransferHistory(Protocol):
    """The record of how long transfers of data took."""

    async def list_recent(self) -> Sequence[Transfer]:
        """Return the transfers that count, newest first."""
        ...

    async def record(self, source: str, system: str, hop: Hop, bytes: int, seconds: float) -> None:
        """Record a transfer that has ended."""
        ...


class Adviser(Protocol):
    """Gives advice on a request, by earlier runs."""

    async def recall(self, person: Person, request: Request) -> RunHistory:
        """Return the newest runs of what is requested."""
        ...

    def advise(self, history: RunHistory, request: Request) -> Sequence[Reason]:
        """Return hints: what exceeds the needs of such runs, and how much would be enough."""
        ...


class Caretaker(Protocol):
    """Looks after something other than sessions, in the loop."""

    async def look_after(self, now: datetime) -> None:
        """Do what is due; called in each turn of the loop."""
        ...
