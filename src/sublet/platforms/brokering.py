"""What the service asks of a platform that is another broker: to pass a request on, and to take or decline offers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Protocol, TypeGuard, runtime_checkable

from sublet.booking.model.offer import Answer, Quote, Remote
from sublet.people.model.assertion import Errand
from sublet.platforms.port import Platform


@dataclass(frozen=True, slots=True)
class PassedRequest:
    """A request on its way to another broker: nobody here needs to understand it."""

    text: str  # a document as JSON: as it was received, or as the operator's rules left it
    person: str
    key: str  # sent again under the same key, it is the same request
    via: tuple[str, ...]  # the ids of the brokers that it has come through, this one last
    within: timedelta  # how long the other broker has for its answer
    duration: timedelta  # the least that was asked for, as far as it was understood
    is_understood: bool  # whether this service could have read all of it
    request_id: str = ""  # the same by whichever way it comes to a broker

    @property
    def document(self) -> Mapping[str, Any]:
        """What the text says, for a broker that needs it in another shape: most are sent the text as it is."""
        read: Mapping[str, Any] = json.loads(self.text)
        return read


@dataclass(frozen=True, slots=True)
class PassedAnswer:
    """What another broker answered."""

    answer: Answer
    offerset: str = ""  # its address there
    dropped: int = 0  # offers that are held there and can't be passed on


class BrokerIdentity(Protocol):
    """Knows how another broker is shown who asks."""

    async def authorize(self, broker: str, url: str, person: str, errand: Errand | None) -> Mapping[str, str] | None:
        """The headers that a person's call to this broker carries; None: this one knows none.

        What is made for one request needs to know which; without an errand nothing is made.
        """
        ...


def is_broker(platform: Platform) -> TypeGuard[PassesOn]:
    """Whether a platform's offers are another broker's; of most it is seen at once that they aren't."""
    return platform.terms == "remote" and _passes_on(type(platform))


@lru_cache(maxsize=64)
def _passes_on(platform: type[Platform]) -> bool:
    """Whether a class has all that a broker needs; a protocol looks for each of them in every object anew."""
    return all(hasattr(platform, name) for name in vars(PassesOn) if not name.startswith("_"))


@runtime_checkable
class PassesOn(Protocol):
    """A platform whose offers are another broker's."""

    name: str

    def use_identity(self, identity: BrokerIdentity) -> None:
        """Show the broker who asks in this way."""
        ...

    def has_address(self, location: str) -> bool:
        """Whether an address is below that broker's own, and so was chosen by an operator here."""
        ...

    async def pass_on(self, request: PassedRequest, now: datetime) -> PassedAnswer:
        """Ask the other broker; what can't be true of its answer is dropped, and is said among the reasons."""
        ...

    async def take(self, terms: Remote, person: str, key: str) -> str:
        """Accept an offer there, and see that it is accepted; again and again, it is the same session.

        PlatformRefused if it can't be accepted any more.
        """
        ...

    async def lengthen(self, key: str, duration: timedelta) -> tuple[Quote, ...]:
        """Have a session there last so long in all, and say what it costs then; again and again, it is the same.

        PlatformRefused if it can't.
        """
        ...

    async def give_up(self, url: str, person: str, by: str = "") -> None:
        """See to it that nothing is held or runs there: an offer is rejected, a session that goes on is cancelled."""
        ...

    async def give_up_ask(self, offerset: str, person: str, again: PassedRequest | None, keep: frozenset[str]) -> None:
        """Reject all offers of a set but those to keep; without its address the same request is sent again first."""
        ...
