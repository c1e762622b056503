"""Access in words: why someone may or may not use a target, which limits a request exceeds, and what would fit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from sublet.access.model.access import NO_LIMITS, AccessRule, Decision, Limits, Use
from sublet.booking.model.amounts import (
    MOST_COUNT,
    memory_text,
    parse_count,
    parse_duration,
    parse_memory,
    quote_value,
)
from sublet.booking.model.offer import Answer, Reason
from sublet.booking.model.request import Range, Request
from sublet.booking.model.shape import TotalAmounts
from sublet.kernel.errors import BadAmount, NotAllowed
from sublet.kernel.texts import count_text, describe_duration

NOT_ALLOWED = "urn:not-allowed"
TOO_MUCH = "urn:resource-limit"
FIELDS = {
    "cores": "compute.cores.min",
    "memory": "compute.memory.min",
    "gpus": "compute.gpus.min",
    "nodes": "compute.nodes.min",
    "time": "duration",
    "hours": "duration",
}
COUNTED = {
    "sessions": "session",
    "cores": "core",
    "gpus": "GPU",
    "nodes": "node",
    "hours": "core-hour",
    "hours_month": "core-hour",
}
# For each limit: what to type for it, and its help text; its label on a page, and the hint beside it.
LIMIT_TEXTS = {
    "cores": ("N", "The most cores of one session, over all its nodes.", "Cores", "of one session, over all its nodes"),
    "memory": (
        "SIZE",
        "The most memory of one session, over all its nodes: 64GiB.",
        "Memory",
        "of one session: 64GiB",
    ),
    "gpus": ("N", "The most GPUs of one session, over all its nodes.", "GPUs", "of one session"),
    "nodes": ("N", "The most nodes of one session.", "Nodes", "of one session"),
    "time": ("TIME", "The longest session: 12h.", "Time", "of one session: 12h"),
    "hours": ("H", "The most core-hours of one session.", "Core-hours", "of one session"),
    "jobs": ("N", "The most sessions at once.", "Sessions", "at once"),
    "hours_month": (
        "H",
        "The most core-hours in a calendar month (UTC).",
        "Core-hours a month",
        "a calendar month, in UTC",
    ),
}
HOURS = ("hours", "hours_month")
# For `sublet access ask`, as a bare name could be a platform's.
FLAGS = {"app": "--app ", "pledge": "--pledge ", "place": "--place ", "project": "--project "}
FAR = timedelta(days=36_500)
ROUNDING = 1e-6  # of core-hours: a sum of many isn't exact


def amount_text(name: str, value: Any) -> str:
    """Describe an amount: `64 cores`, `128GiB`, `12 h`, `1000 core-hours`, `5 sessions at once`."""
    if name == "memory":
        return memory_text(value)
    if name == "time":
        return describe_duration(value)
    noun = COUNTED.get(name, "session")
    number = f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
    words = f"{number} {noun}{'' if number == '1' else 's'}"
    return f"{words} at once" if name == "jobs" else f"{words} a month" if name == "hours_month" else words


def limits_text(limits: Limits) -> str:
    """Describe all limits on one line; empty if there are none."""
    return ", ".join(amount_text(name, value) for name, value in limits.list_given())


def rule_text(rule: AccessRule) -> str:
    """Describe a rule on one line: its id, effect, people, target and limits."""
    limits = limits_text(rule.limits)
    return f"{rule.id[:8]}: {rule.effect} {rule.who} on {rule.noun} {rule.name}{f' ({limits})' if limits else ''}"


def describe_rest(limits: Limits, use: Use) -> str:
    """Describe what is left of a person's sessions and core-hours this month; empty if neither is limited."""
    jobs = None if limits.jobs is None else max(limits.jobs - use.jobs, 0)
    hours = None if limits.hours_month is None else max(limits.hours_month - use.hours, 0.0)
    words = [] if jobs is None else [amount_text("sessions", jobs)]
    return ", ".join(words if hours is None else [*words, amount_text("hours", hours)])


def why(decision: Decision) -> str:
    """Say which rule decided, in words to follow a colon."""
    if decision.allowed:
        rule = decision.rules[0]
        return f"rule {rule.id[:8]} allows {rule.who}"
    if decision.rules:
        rule = decision.rules[0]
        return f"rule {rule.id[:8]} denies it{f' ({rule.note})' if rule.note else ''}"
    if decision.lapsed and decision.lapsed.expires:
        return f"your access expired on {decision.lapsed.expires:%Y-%m-%d}"
    return "no rule allows it"


def how(decision: Decision) -> str:
    """Say how to get access, if a request can help."""
    if decision.rules:
        return "what `sublet access` lists; an operator made this rule"
    return f"{_more(decision)} --reason TEXT"


def refusal(decision: Decision) -> Reason | None:
    """Return the reason of a denial; None if the use is allowed, within limits."""
    if decision.allowed:
        return None
    target = f"the {decision.noun} {decision.name}"
    message = f"You may not use {target}: {why(decision)}."
    return Reason(NOT_ALLOWED, decision.noun, message, wanted=decision.name, nearest=how(decision))


def excesses(decision: Decision, wanted: TotalAmounts | None, use: Use | None) -> Iterator[Reason]:
    """Yield a reason for each limit that a session would exceed."""
    if wanted is not None:
        for name, limit in decision.limits.list_given():
            if name in FIELDS and getattr(wanted, name) > limit + _slack(name):
                yield _excess(decision, name, limit, getattr(wanted, name))
    if use is not None:
        yield from _beyond(decision, wanted or TotalAmounts(), use)


def _beyond(decision: Decision, wanted: TotalAmounts, use: Use) -> Iterator[Reason]:
    """Yield a reason for each limit that a session would exceed together with the person's current use."""
    target, limits = f"the {decision.noun} {decision.name}", decision.limits
    if limits.jobs is not None and use.jobs >= limits.jobs:
        most = amount_text("jobs", limits.jobs)
        message = f"You have {count_text(use.jobs, 'session')} under way on {target}, and may have {most}."
        yield Reason(TOO_MUCH, "sessions", message, "1 more", most, "wait until one has ended")
    if limits.hours_month is not None and use.hours + wanted.hours > limits.hours_month + ROUNDING:
        left = max(limits.hours_month - use.hours, 0.0)
        needs, most = amount_text("hours", wanted.hours), amount_text("hours_month", float(limits.hours_month))
        message = (
            f"On {target} you may use {most}; {amount_text('hours', use.hours)} are used or reserved, and this needs "
            f"{needs}."
        )
        nearest = f"{amount_text('hours', left)}, or ask for more: {_more(decision)}"
        yield Reason(TOO_MUCH, "duration", message, needs, most, nearest)


def _excess(decision: Decision, name: str, limit: Any, wanted: Any) -> Reason:
    most, too_much = amount_text(name, limit), amount_text(name, wanted)
    message = (
        f"On the {decision.noun} {decision.name} a session of yours may have at most {most}; {too_much} are wanted."
    )
    return Reason(TOO_MUCH, FIELDS[name], message, too_much, most, most)


def _more(decision: Decision) -> str:
    return f"sublet access ask {FLAGS.get(decision.noun, '')}{decision.name}"


def _slack(name: str) -> Any:
    return timedelta(0) if name == "time" else ROUNDING if name == "hours" else 0


def cap_request(request: Request, limits: Limits) -> Request:
    """Return the request with its optional amounts capped to the limits; its minimum amounts stay."""
    if limits == NO_LIMITS:
        return request
    compute, most = request.compute, limits
    nodes = _cap(compute.nodes, most.nodes)
    changed = replace(
        compute,
        nodes=nodes,
        cores=_cap(compute.cores, most.cores, nodes.min),
        memory=_cap(compute.memory, most.memory, nodes.min),
        gpus=_cap(compute.gpus, most.gpus, nodes.min),
    )
    return request if changed == compute else replace(request, compute=changed)


def _cap(wanted: Range, most: int | None, nodes: int = 1) -> Range:
    return wanted if most is None else Range(wanted.min, max(wanted.min, min(wanted.max, most // max(nodes, 1))))


def within(limits: Limits, target: tuple[str, str], platform: str, answer: Answer) -> Answer:
    """Keep a platform's offers within the limits of a target; if there are none, say why."""
    if limits == NO_LIMITS:
        return answer
    bounds = Decision(*target, True, limits)
    judged = [(offer, list(excesses(bounds, offer.amounts.total, None))) for offer in answer.offers]
    kept = tuple(offer for offer, over in judged if not over)
    why_none = () if kept or not judged else tuple(replace(reason, platform=platform) for reason in judged[0][1])
    return Answer(kept, (*answer.reasons, *why_none))


def parse_amount(name: str, text: str) -> Any:
    """Parse an amount as a person writes it: `64`, `128GiB`, `12 h`, `1000`."""
    if name == "memory":
        return parse_memory(text)
    if name == "time":
        return parse_duration(text)
    if name not in HOURS:
        return parse_count(text, f"a number of {name}", 0)
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < MOST_COUNT * 1000:
        raise BadAmount(text=quote_value(text), what="a number of core-hours", example="a number such as 1000 or 0.5")
    return number


def parse_expires(text: str, now: datetime) -> datetime:
    """Parse an expiry: the end of a day in UTC (`2027-06-30`), or a duration from now (`90d`)."""
    try:
        day = date.fromisoformat(text.strip())
    except ValueError:
        return now + parse_duration(text, FAR)
    return datetime.combine(day, time(23, 59, 59), UTC)


def insist(reason: Reason | None, target: tuple[str, str]) -> None:
    """Raise NotAllowed if there is a reason."""
    if reason:
        raise NotAllowed(why=reason.message, how=_sentence(reason.nearest), noun=target[0], name=target[1])


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}." if words and not words.startswith("sublet") else words
