"""Answers from calendars, beside what is already held or in place of the person's own older offers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sublet.booking.holds import Blame, find_blame
from sublet.booking.model.giving_way import Look, Precedence, first_start, improves, is_unbeatable, starts_at_once
from sublet.booking.model.offer import Answer
from sublet.booking.model.request import Request
from sublet.store.tx import Tx


@dataclass(frozen=True, slots=True)
class OfferPlan:
    """An answer, and the offer sets that give way where they leave no room for it."""

    answer: Answer
    older: Sequence[str] = ()


def plan_answers(
    tx: Tx, looks: Mapping[str, Look], person: str, precedence: Precedence, request: Request, now: datetime
) -> Mapping[str, OfferPlan]:
    """Return a plan for each platform; older offers give way only where no platform could start as soon beside them."""
    beside = {platform: look() for platform, look in looks.items()}
    plans = {platform: OfferPlan(answer) for platform, answer in beside.items()}
    if any(is_unbeatable(answer, request, now) for answer in beside.values()):
        return plans
    blames = {platform: find_blame(tx, platform, person, now) for platform in looks}
    known = [offer for answer in beside.values() for offer in answer.offers]
    for platform, blame in blames.items():
        if older := find_older(blame, precedence):
            with blame.calendar.set_aside(older):
                instead = looks[platform]()
            if improves(instead, known):
                plans[platform] = OfferPlan(instead, older)
    if any(starts_at_once(plan.answer, request, now) for plan in plans.values()):
        return plans
    return {
        platform: _with_causes(plan, blames[platform], find_older(blames[platform], precedence), looks[platform])
        for platform, plan in plans.items()
    }


def find_older(blame: Blame, precedence: Precedence) -> list[str]:
    """Return the person's offer sets that may give way, newest first."""
    return [
        hold.offerset
        for hold in blame.own
        if hold.offerset == precedence.instead_of or not (hold.firm or precedence.keep_offers)
    ]


def _with_causes(plan: OfferPlan, blame: Blame, older: Sequence[str], look: Look) -> OfferPlan:
    """Add the unaccepted offers that prevent an earlier start to the reasons of a plan."""
    answer = plan.answer
    causes = blame.name(first_start(answer), lambda: first_start(look()), free=older)
    return replace(plan, answer=replace(answer, reasons=(*answer.reasons, *causes)))
