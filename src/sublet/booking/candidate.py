"""A platform that could run a request, or the reason why it gave no answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from sublet.access.model.bounds import Bounds
from sublet.booking.model.drain import Drain
from sublet.booking.model.offer import Answer, Offer, Reason, estimate_runs
from sublet.booking.model.offers import WayFacts
from sublet.booking.model.run_time import RunHistory
from sublet.booking.model.staging import StagingEstimate
from sublet.kernel import metrics
from sublet.kernel.errors import PlatformBroken, PlatformTimedOut, SubletError
from sublet.kernel.log import log
from sublet.kernel.texts import describe_duration
from sublet.platforms.brokering import PassedAnswer
from sublet.platforms.port import Platform, Survey


@dataclass(frozen=True, slots=True)
class PassedOn:
    """A request that was passed on to another broker, and its answer."""

    broker: str
    key: str
    answered: PassedAnswer


@dataclass(frozen=True, slots=True)
class Candidate:
    """A platform that has a way to run the request."""

    platform: str
    host: Platform
    survey: Survey
    ways: tuple[WayFacts, ...]
    staging: StagingEstimate
    interactive: frozenset[str]  # the ways whose sessions people can connect to
    bounds: Bounds = field(default_factory=Bounds)  # the asker's limits there
    answer: Answer | None = None  # of a platform whose calendar isn't ours
    needs_login: bool = False  # a person must sign in before anything can start there
    passed: PassedOn | None = None  # of another broker: the request and its answer


def mark_offers(
    offers: Sequence[Offer], candidate: Candidate, after: tuple[str, ...], history: RunHistory
) -> list[Offer]:
    """Add to offers what is known of their platform, and of earlier runs."""
    marked = [_mark_offer(offer, candidate, after) for offer in offers]
    return estimate_runs(marked, history) if history.runs else marked


def _mark_offer(offer: Offer, candidate: Candidate, after: tuple[str, ...]) -> Offer:
    interactive, is_here = offer.way in candidate.interactive, candidate.host.is_here
    if candidate.staging.items:
        offer = replace(offer, staging=candidate.staging)
    if not (interactive or after or is_here or candidate.needs_login):  # the usual case: saves a copy
        return offer
    return replace(offer, interactive=interactive, after=after, is_here=is_here, needs_login=candidate.needs_login)


def describe_failure(name: str, raised: BaseException, limit: timedelta) -> Reason:
    """Log why a platform gave no answer, and return it as a reason."""
    error: SubletError
    if isinstance(raised, TimeoutError):
        error = PlatformTimedOut(platform=name, limit=describe_duration(limit))
    elif isinstance(raised, SubletError):
        error = raised
    else:
        log.error("platform.broken", platform=name, exc_info=raised)
        error = PlatformBroken(platform=name, why=f"{type(raised).__name__}: {raised}")
    log.warning("platform.failed", platform=name, code=error.code, why=error.message)
    metrics.platform_errors.labels(name, error.code).inc()
    return Reason(f"urn:{error.code}", "platform", error.message, nearest=error.advice, platform=name)


def refuse_drained(drain: Drain) -> Reason:
    """Return the reason why a platform that is being drained makes no offers."""
    nearest = "another platform, or a time after that" if drain.until else "another platform"
    limit = f"{drain.until:%Y-%m-%dT%H:%M:%SZ}" if drain.until else ""
    return Reason("urn:platform-draining", "platform", f"{drain.sentence}.", limit=limit, nearest=nearest)
