"""Conversions between access values and their views."""

from __future__ import annotations

from sublet.access.model.access import AMOUNTS, AccessRequest, AccessRule, Decision, Limits, Use
from sublet.access.model.access_words import how, why
from sublet.access.views.access import AccessRequestView, AccessView, LimitsView, RuleView

OWN = "this service is your own"


def limits_view(limits: Limits) -> LimitsView:
    """Return limits as their view."""
    return LimitsView(**{name: getattr(limits, name) for name in AMOUNTS})


def limits_of(view: LimitsView) -> Limits:
    """Return the limits of a view."""
    return Limits(**{name: getattr(view, name) for name in AMOUNTS})


def rule_view(rule: AccessRule) -> RuleView:
    """Return a rule as its view."""
    return RuleView(
        id=rule.id,
        effect=rule.effect,
        who=rule.who,
        noun=rule.noun,
        name=rule.name,
        limits=limits_view(rule.limits),
        created=rule.created,
        expires=rule.expires,
        by=rule.by,
        note=rule.note,
    )


def access_view(decision: Decision, use: Use, asked: str = "") -> AccessView:
    """Return a person's standing with one target as its view."""
    sources = {name: rule.id for name, _ in decision.limits.list_given() if (rule := decision.sets(name))}
    return AccessView(
        noun=decision.noun,
        name=decision.name,
        allowed=decision.allowed,
        why=OWN if decision.allowed and not decision.rules else why(decision),
        how="" if decision.allowed else how(decision),
        rules=tuple(rule.id for rule in decision.rules),
        limits=limits_view(decision.limits),
        limit_rules=sources,
        jobs=use.jobs,
        hours=round(use.hours, 6),
        asked=asked,
    )


def request_view(request: AccessRequest) -> AccessRequestView:
    """Return a request for access as its view."""
    return AccessRequestView(
        id=request.id,
        person=request.person,
        noun=request.noun,
        name=request.name,
        why=request.why,
        created=request.created,
        state=request.state,
        decided=request.decided,
        by=request.by,
        answer=request.answer,
        rule=request.rule,
    )
