"""Pledges on a queue that others share: nothing is kept free there, so each is a cap on what runs under it at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from sublet.access.model.access import AccessTarget
from sublet.access.model.access_words import excesses, insist, refusal
from sublet.access.quotas import Quotas
from sublet.booking.model.offer import Answer, Offer, Reason
from sublet.booking.model.pledge import OPEN
from sublet.booking.model.pledged import Pledged
from sublet.booking.model.request import Request
from sublet.booking.model.session import Session
from sublet.booking.platforms.known import KnownPlatforms
from sublet.kernel.errors import SubletError
from sublet.people.model.person import Person
from sublet.store.tx import Tx

LIMIT = "urn:resource-limit"
CAPPED = {"cores": "cores", "gpus": "GPUs"}


@dataclass
class PledgeCaps:
    """Let sessions on platforms with predicted terms draw on one pledge each, as long as that has room."""

    platforms: KnownPlatforms
    quotas: Quotas

    def find_caps(self, platform: str) -> Mapping[str, Pledged]:
        """The pledges of a platform that are caps; none where they are parts of a calendar."""
        known = self.platforms.by_name.get(platform)
        is_shared = known is not None and known.terms == "predicted"
        return self.platforms.pledges_of(platform) if is_shared else {}

    def keep_affordable(
        self, tx: Tx, person: str, request: Request, platform: str, answer: Answer, now: datetime
    ) -> Answer:
        """Each offer under the first of the asker's pledges that has room for it; what is open has no cap."""
        caps = self.find_caps(platform)
        if not caps or not answer.offers:
            return answer
        names = [request.pledge] if request.pledge else [OPEN, *sorted(caps)]
        offers: list[Offer] = []
        reasons: list[Reason] = []
        for offer in answer.offers:
            judged = {name: self._find_refusal(tx, person, platform, name, offer, now) for name in names}
            name = next((name for name, reason in judged.items() if reason is None), None)
            reasons += [] if name else [reason for reason in judged.values() if reason]
            offers += [replace(offer, pledge={name: _size(caps, name)})] if name else []
        why_none = () if offers else tuple(dict.fromkeys(replace(reason, platform=platform) for reason in reasons))
        return Answer(tuple(offers), (*answer.reasons, *why_none))

    def _find_refusal(
        self, tx: Tx, person: str, platform: str, name: str, offer: Offer, now: datetime
    ) -> Reason | None:
        """Why an offer can't be under a pledge for this person; None if it can."""
        target: AccessTarget = (self.platforms.noun_of(platform), platform) if name == OPEN else ("pledge", name)
        decision, use = self.quotas.judge(tx, person, target, now)
        over = next(excesses(decision, offer.amounts.total, use), None) if decision.allowed else None
        return refusal(decision) or over or self._find_excess(tx, platform, name, offer)

    def _find_excess(self, tx: Tx, platform: str, name: str, offer: Offer) -> Reason | None:
        """What is more than a pledge has left, beside all that is under way under it."""
        pledge = self.find_caps(platform).get(name)
        if pledge is None:
            return None
        drawn, wanted = tx.uses.count_drawn(platform, name), offer.amounts.total
        for amount, noun in CAPPED.items():
            cap, used, more = pledge.amount(amount), drawn[amount], getattr(wanted, amount)
            if cap is not None and used + more > cap:
                message = f"The pledge {name} of {platform} is {cap} {noun}; {used} are in use, and this needs {more}."
                left = str(max(cap - used, 0))
                return Reason(LIMIT, f"compute.{amount}.min", message, str(more), str(cap), left, platform)
        return None

    def admit(self, tx: Tx, session: Session, now: datetime) -> None:
        """Let a session be accepted if its pledge still has room, in the transaction that counts it."""
        platform = session.offer.platform
        for name in session.offer.pledge if self.find_caps(platform) else ():
            insist(self._find_excess(tx, platform, name, session.offer), ("pledge", name))

    def admit_longer(self, tx: Tx, session: Session, offer: Offer, now: datetime) -> None:
        """Lasting longer takes no more at once."""

    async def note_refusal(self, act: str, person: Person, error: SubletError, **about: str) -> None:
        """The access rules write down what was refused, whoever refused it."""


def _size(caps: Mapping[str, Pledged], name: str) -> int:
    """What of a pledge its session's share is counted by: it draws on one alone."""
    pledge = caps.get(name)
    return (pledge.cores or 1) if pledge else 1
