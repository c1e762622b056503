"""Pledges on a shared queue: nothing is reserved there, so a pledge caps what runs under it at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from sublet.access.model.access import AccessTarget
from sublet.access.model.access_words import excesses, insist, refusal
from sublet.access.quotas import Quotas
from sublet.booking.model.amounts import memory_text
from sublet.booking.model.offer import Answer, Offer, Reason
from sublet.booking.model.pledge import OPEN
from sublet.booking.model.pledge_hours import is_within, move_into_hours
from sublet.booking.model.pledged import Pledged
from sublet.booking.model.request import Request
from sublet.booking.model.session import Session
from sublet.booking.platforms.known import KnownPlatforms
from sublet.kernel.errors import SubletError
from sublet.kernel.texts import describe_duration
from sublet.people.model.person import Person
from sublet.store.tx import Tx

LIMIT = "urn:resource-limit"
COUNTED = {"cores": "cores", "gpus": "GPUs"}
IN_BYTES = ("memory", "storage")


@dataclass
class PledgeCaps:
    """Puts sessions on platforms with predicted terms under one pledge each, as long as it has room."""

    platforms: KnownPlatforms
    quotas: Quotas

    def find_caps(self, platform: str) -> Mapping[str, Pledged]:
        """Return the pledges of a platform that are caps; empty if they are parts of its calendar."""
        known = self.platforms.by_name.get(platform)
        is_shared = known is not None and known.terms == "predicted"
        return self.platforms.pledges_of(platform) if is_shared else {}

    def keep_affordable(
        self, tx: Tx, person: str, request: Request, platform: str, answer: Answer, now: datetime
    ) -> Answer:
        """Put each offer under the requested pledge, or the first that admits it.

        Without a requested pledge, open capacity comes first, then the pledges by name.
        """
        caps = self.find_caps(platform)
        if not caps or not answer.offers:
            return answer
        names = [request.pledge] if request.pledge else [OPEN, *sorted(caps)]
        offers: list[Offer] = []
        reasons: list[Reason] = []
        for offer in answer.offers:
            judged = [self._place(tx, person, platform, name, offer, now) for name in names]
            placed = [each for each in judged if isinstance(each, Offer)]
            offers += placed[:1]
            reasons += [] if placed else [each for each in judged if isinstance(each, Reason)]
        why_none = () if offers else tuple(dict.fromkeys(replace(reason, platform=platform) for reason in reasons))
        return Answer(tuple(offers), (*answer.reasons, *why_none))

    def _place(self, tx: Tx, person: str, platform: str, name: str, offer: Offer, now: datetime) -> Offer | Reason:
        """Return the offer under a pledge, within the pledge's hours, or the reason why that isn't possible."""
        pledge = self.find_caps(platform).get(name)
        within = offer if pledge is None or pledge.when is None else move_into_hours(offer, pledge.when, now)
        if within is None:
            return _refuse_hours(name, platform, offer)
        refused = self._find_refusal(tx, person, platform, name, within, now)
        return refused or replace(within, pledge={name: (pledge.cores or 1) if pledge else 1})

    def _find_refusal(
        self, tx: Tx, person: str, platform: str, name: str, offer: Offer, now: datetime
    ) -> Reason | None:
        """Return why this person can't have the offer under a pledge, or None."""
        target: AccessTarget = (self.platforms.noun_of(platform), platform) if name == OPEN else ("pledge", name)
        decision, use = self.quotas.judge(tx, person, target, now)
        over = next(excesses(decision, offer.amounts.total, use), None) if decision.allowed else None
        return refusal(decision) or over or self._find_excess(tx, platform, name, offer)

    def _find_excess(self, tx: Tx, platform: str, name: str, offer: Offer) -> Reason | None:
        """Return which amount exceeds what the pledge has left beside its active sessions, or None."""
        pledge = self.find_caps(platform).get(name)
        if pledge is None:
            return None
        drawn, wanted = tx.uses.count_drawn(platform, name), offer.amounts.total
        for amount, noun in COUNTED.items():
            cap, used, more = pledge.amount(amount), drawn[amount], getattr(wanted, amount)
            if cap is not None and used + more > cap:
                message = f"The pledge {name} of {platform} is {cap} {noun}; {used} are in use, and this needs {more}."
                left = str(max(cap - used, 0))
                return Reason(LIMIT, f"compute.{amount}.min", message, str(more), str(cap), left, platform)
        return self._find_excess_bytes(tx, platform, name, offer, pledge)

    def _find_excess_bytes(self, tx: Tx, platform: str, name: str, offer: Offer, pledge: Pledged) -> Reason | None:
        """Return whether memory or storage exceeds the pledge, as a reason or None.

        Summed only if the pledge limits them.
        """
        caps = {amount: cap for amount in IN_BYTES if (cap := pledge.amount(amount)) is not None}
        drawn = tx.uses.sum_bytes_drawn(platform, name) if caps else {}
        wanted = {"memory": offer.amounts.total.memory, "storage": sum(offer.storage.values())}
        for amount, cap in caps.items():
            used, more = drawn[amount], wanted[amount]
            if used + more > cap:
                size, taken, needed, left = (memory_text(value) for value in (cap, used, more, max(cap - used, 0)))
                has = f"The pledge {name} of {platform} is {size} of {amount}"
                message = f"{has}; {taken} are in use, and this needs {needed}."
                field = "compute.memory.min" if amount == "memory" else "storage"
                return Reason(LIMIT, field, message, needed, size, left, platform)
        return None

    def admit(self, tx: Tx, session: Session, now: datetime) -> None:
        """Raise an error unless the session's pledge still has room, in the transaction that accepts the session."""
        platform = session.offer.platform
        for name in session.offer.pledge if self.find_caps(platform) else ():
            insist(self._find_excess(tx, platform, name, session.offer), ("pledge", name))

    def admit_longer(self, tx: Tx, session: Session, offer: Offer, now: datetime) -> None:
        """Raise an error unless the extended session still ends within its pledge's hours."""
        for name in offer.pledge:
            pledge = self.find_caps(offer.platform).get(name)
            start = session.started or offer.start
            if pledge and pledge.when and not is_within(pledge.when, start, start + offer.duration, now):
                insist(_refuse_hours(name, offer.platform, offer), ("pledge", name))

    async def note_refusal(self, act: str, person: Person, error: SubletError, **about: str) -> None:
        """Do nothing: the access rules record refusals."""


def _refuse_hours(name: str, platform: str, offer: Offer) -> Reason:
    """Return the reason that an offer isn't within the pledge's hours."""
    hours = describe_duration(offer.duration)
    message = f"The pledge {name} of {platform} has no hours in which it could run for {hours} as asked."
    return Reason(LIMIT, "schedule", message, hours, platform=platform)
