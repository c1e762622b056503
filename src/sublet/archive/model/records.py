"""A record of the archive: one session, from its request to its end, in columns that can be counted and compared.

A record names nobody: `who` is a pseudonym, which another table resolves, beside a table of what the person typed. Text
that people wrote themselves (names, commands, addresses) is never in a record.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any

from sublet.booking.model.offer import Offer, Predicted
from sublet.booking.model.pledge import pledge_text
from sublet.booking.model.prices import CARBON, ENERGY, MONETARY
from sublet.booking.model.session import Session

DECIMALS = 3  # of durations in seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRecord:
    """A record of one ended session. Durations are in seconds, sizes in bytes; unknown values are None."""

    session: str
    who: str  # the owner's pseudonym
    phase: str  # COMPLETED, FAILED or CANCELLED
    outcome: str  # exited, timeout, out-of-memory, cancelled, …
    code: int | None
    kind: str
    app: str  # NAME@NUMBER; empty: not an app
    platform: str
    queue: str
    way: str
    terms: str  # booked, predicted or remote
    pledge: str
    nodes: int
    cores: int  # on each node
    memory: int  # on each node
    gpus: int  # on each node
    parts: int
    time_limit: float
    asked: datetime
    accepted: datetime | None
    planned: datetime | None  # the offered start
    earliest: datetime | None  # the 10th percentile of a predicted start
    latest: datetime | None  # and the 90th
    started: datetime | None
    ended: datetime
    wait: float | None  # from acceptance to start
    staging_likely: float
    staging_high: float
    staged: float | None
    run_low: float | None  # the predicted run time: the 10th percentile
    run_likely: float | None
    run_high: float | None  # and the 90th
    wall: float | None
    cpu: float | None
    peak_memory: int | None
    money: float | None
    energy: float | None  # kWh
    carbon: float | None  # grams of CO2
    energy_used: float | None  # kWh
    carbon_used: float | None  # grams of CO2
    energy_source: str | None  # `measured`, or `settings`: estimated from the operator's settings
    offers: str  # JSON: all offers of the set, this one included

    @property
    def ran(self) -> bool:
        """Whether the session ever started."""
        return self.started is not None


@dataclass(frozen=True, slots=True)
class NamedRecord:
    """A record with its owner and name, as long as those are kept."""

    record: SessionRecord
    person: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class Erased:
    """How much of a person's data was erased."""

    records: int  # made anonymous, or removed
    details: int  # names and requests that were removed


@dataclass(frozen=True, slots=True)
class Calibration:
    """How often predictions came true, on one platform and queue."""

    platform: str
    queue: str
    starts: int  # predicted starts
    inside: int  # between the 10th and the 90th percentile: 80 % is right
    earlier: int
    later: int
    stagings: int  # stagings that were predicted to take at least a second
    staged_in_time: int  # within the 90th percentile: 90 % is right
    runs: int  # with a predicted run time
    runs_inside: int  # between the 10th and the 90th percentile: 80 % is right
    runs_shorter: int
    runs_longer: int  # including those that ran out of time


COLUMNS = tuple(field.name for field in fields(SessionRecord))


def make_record(
    session: Session, who: str, app: str, accepted: datetime | None, siblings: Sequence[Session]
) -> SessionRecord:
    """Return the record of an ended session; `siblings` are all offers of its set, itself included."""
    offer, end = session.offer, session.end
    terms = offer.terms
    usage = end.usage if end else None
    prices = {quote.type: quote.max for quote in offer.costs}
    staging, run = offer.staging.time, offer.run_time
    return SessionRecord(
        session=session.id,
        who=who,
        phase=session.phase.value,
        outcome=end.kind.value if end else "",
        code=end.code if end else None,
        kind=session.kind,
        app=app,
        platform=offer.platform,
        queue=offer.queue,
        way=offer.way,
        terms=terms.kind,
        pledge=pledge_text(offer.pledge) if offer.pledge else "",
        nodes=offer.amounts.nodes,
        cores=offer.shape.cores,
        memory=offer.shape.memory,
        gpus=offer.shape.gpus,
        parts=offer.parts,
        time_limit=offer.duration.total_seconds(),
        asked=session.created,
        accepted=accepted,
        planned=terms.p50 if isinstance(terms, Predicted) else session.start,
        earliest=terms.p10 if isinstance(terms, Predicted) else None,
        latest=terms.p90 if isinstance(terms, Predicted) else None,
        started=session.started,
        ended=session.ended or session.modified,
        wait=_between(accepted, session.started),
        staging_likely=staging.likely.total_seconds(),
        staging_high=staging.high.total_seconds(),
        staged=session.staged.total_seconds() if session.staged is not None else None,
        run_low=run.low.total_seconds() if run else None,
        run_likely=run.likely.total_seconds() if run else None,
        run_high=run.high.total_seconds() if run else None,
        wall=usage.wall if usage and usage.wall else _between(session.started, session.ended),
        cpu=usage.cpu if usage else None,
        peak_memory=usage.peak_memory or None if usage else None,
        money=prices.get(MONETARY),
        energy=prices.get(ENERGY),
        carbon=prices.get(CARBON),
        energy_used=usage.energy if usage and usage.energy_source else None,
        carbon_used=usage.carbon or None if usage else None,
        energy_source=usage.energy_source or None if usage else None,
        offers=describe_offers(session, siblings),
    )


def describe_offers(taken: Session, siblings: Sequence[Session]) -> str:
    """Return the offers as JSON: where, when, on which terms and at what price, and which was accepted."""
    return json.dumps([{**_outline(each.offer), "taken": each.id == taken.id} for each in siblings])


def _outline(offer: Offer) -> dict[str, Any]:
    return {
        "platform": offer.platform,
        "queue": offer.queue,
        "terms": offer.terms.kind,
        "start": offer.start.isoformat(),
        "minutes": round(offer.duration.total_seconds() / 60, 1),
        "nodes": offer.amounts.nodes,
        "cores": offer.shape.cores,
        "memory": offer.shape.memory,
        "gpus": offer.shape.gpus,
        "costs": {quote.type.rpartition(":")[2]: quote.max for quote in offer.costs},
    }


def _between(first: datetime | None, last: datetime | None) -> float | None:
    if first is None or last is None:
        return None
    return round(max((last - first).total_seconds(), 0.0), DECIMALS)


def facts_of(record: SessionRecord) -> dict[str, Any]:
    """Return a record as JSON values."""
    return {name: _fact(getattr(record, name)) for name in COLUMNS}


def _fact(value: Any) -> Any:
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else value
