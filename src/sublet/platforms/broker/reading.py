"""Reads a broker's offer set with suspicion: implausible offers are dropped, and reported among the reasons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sublet.booking.model.amounts import parse_duration
from sublet.booking.model.gpu_sorts import GpuSort, sort_gpus
from sublet.booking.model.offer import Answer, Booked, Offer, Predicted, Reason, Remote, Terms
from sublet.booking.model.run_time import RunEstimate, Whose
from sublet.booking.model.shape import Shape
from sublet.kernel.errors import BadAmount
from sublet.platforms.broker.fields import (
    Document,
    UnreadableField,
    find_running_block,
    read_gib,
    read_least,
    read_length,
    read_map,
    read_maps,
    read_messages,
    read_meta,
    read_phase,
    read_quotes,
    read_starts,
    read_text,
    read_time,
)

TERMS, RUN_TIME = "urn:sublet:terms", "urn:sublet:run-time"
WAY = "broker"  # how a session is run is up to that broker
MOST_OFFERS, MOST_REASONS, MOST_DEPTH = 100, 50, 10
MOST_DIGITS, MOST_NAME = 6, 100
UNTRUE = "urn:broker-unreadable"
COMPONENTS = ("executable", "compute", "storage", "data")


@dataclass(frozen=True, slots=True)
class OfferReader:
    """Reads the answers of one broker to one request."""

    broker: str  # the platform's name
    url: str
    now: datetime
    skew: timedelta = timedelta(0)  # how far the clock there is ahead
    duration: timedelta = timedelta(0)  # the least that was asked for
    is_understood: bool = True  # whether this service could write the request itself
    maker: str = ""  # the proof that this broker answered, if there is one

    def read(self, document: Document) -> tuple[Answer, int]:
        """Return the offers and reasons, and how many offers were dropped."""
        offers: list[Offer] = []
        reasons = [self._reason(message) for message in read_messages(document)[:MOST_REASONS]]
        listed = list(read_maps(document, "offers"))
        for item in listed[:MOST_OFFERS]:
            try:
                offers.append(self.read_offer(item))
            except UnreadableField as error:
                why = f"An offer of {self.broker} can't be used: {error}."
                reasons.append(Reason(UNTRUE, "offers", why, platform=self.broker))
        if not listed and not reasons:
            why = f"{self.broker} has no offer, and does not say why."
            reasons.append(Reason("urn:not-supported", "request", why, platform=self.broker))
        return Answer(tuple(offers), tuple(reasons)), len(listed) - len(offers)

    def read_offer(self, item: Document) -> Offer:
        """Read one offer; raise UnreadableField if it can't be read, or can't be true."""
        id = read_id(item)
        phase = read_phase(item)
        if phase and phase != "OFFERED":
            raise UnreadableField(f"its phase is {phase[:20]}")
        start, latest = (time - self.skew for time in read_starts(item))
        block, schedule = find_running_block(item), read_map(item, "schedule")
        length = read_length(block, "duration", self.duration or None)
        expires = self._read_expiry(item)
        if length < self.duration:
            raise UnreadableField(f"it lasts {length}, and {self.duration} were asked for")
        compute = read_map(item, "compute")
        terms = self._read_terms(item, id, expires)
        return Offer(
            platform=self.broker,
            way=WAY,
            start=start,
            latest_start=max(latest, start),
            duration=length,
            nodes=(),
            shape=Shape(
                int(read_least(compute, "cores")),
                read_gib(compute, "memory"),
                int(read_least(compute, "gpus")),
                read_gib(compute, "disk"),
            ),
            count=max(1, int(read_least(compute, "nodes", 1))),
            prepare=timedelta(0),  # included in that broker's plan
            release=read_length(read_map(schedule, "releasing"), "release", timedelta(0)),
            costs=read_quotes(item, "costs") or read_quotes(compute, "costs"),
            metrics=read_quotes(item, "metrics") or read_quotes(compute, "metrics"),
            terms=terms,
            why=read_meta(item, "description"),
            run_time=read_run_time(item, length),
            gpu_sorts=read_gpu_sorts(compute),
        )

    def _read_expiry(self, item: Document) -> datetime:
        text = read_text(item, "expires")
        if not text:
            raise UnreadableField("it does not say until when it can be accepted")
        expires = read_time(text, "expiry") - self.skew
        if expires <= self.now:
            raise UnreadableField(f"it expired at {text}")
        return expires

    def _read_terms(self, item: Document, id: str, expires: datetime) -> Remote:
        values = next((read_map(m, "values") for m in read_messages(item) if m.get("kind") == TERMS), {})
        components: Mapping[str, Any] = {}
        if not self.is_understood:
            components = {name: item[name] for name in COMPONENTS if name in item}
        return Remote(
            url=f"{self.url}/sessions/{id}",
            expires=expires,
            platform=read_text(values, "platform"),
            inner=read_terms(values, expires, self.skew),
            held=values.get("held") == "true",
            maker=read_text(values, "maker") if values.get("terms") == "remote" else self.maker,
            components=components,
        )

    def _reason(self, message: Document) -> Reason:
        """Convert a broker's message to a reason that names the broker, and the platform that the broker named."""
        values = read_map(message, "values")
        where = "/".join(part for part in (self.broker, read_text(values, "platform")) if part)
        text = read_text(message, "message", "text", "template") or "It gave no reason."
        return Reason(
            read_text(message, "kind") or "urn:not-supported",
            read_text(values, "field") or read_text(message, "path") or "request",
            text,
            wanted=read_text(values, "wanted"),
            limit=read_text(values, "limit"),
            nearest=read_text(values, "nearest"),
            platform=where,
        )


def read_gpu_sorts(compute: Document) -> tuple[GpuSort, ...]:
    """Return the sorts of GPU that the session may get, as that broker states them."""
    words = [
        [read_text(each, name)[:MOST_NAME] for name in ("type", "driver")] for each in read_maps(compute, "gpu_sorts")
    ]
    return sort_gpus(GpuSort(*each) for each in words[:MOST_OFFERS])


def read_run_time(item: Document, limit: timedelta) -> RunEstimate | None:
    """Return that broker's estimate of the run time from earlier runs; None if there is none, or it isn't plausible."""
    values = next((read_map(m, "values") for m in read_messages(item) if m.get("kind") == RUN_TIME), None)
    runs = read_text(values, "runs") if values else ""
    if values is None or not runs.isdecimal() or len(runs) > MOST_DIGITS:
        return None
    try:
        low, likely, high = (parse_duration(read_text(values, name)) for name in ("p10", "p50", "p90"))
    except BadAmount:
        return None
    if not timedelta(0) <= low <= likely <= high <= limit:
        return None
    whose: Whose = "own" if values.get("whose") == "own" else "all"
    return RunEstimate(low, likely, high, int(runs), read_text(values, "program")[:MOST_NAME], whose)


def read_id(item: Document) -> str:
    """Return the uuid of a session; its address is built from that, whatever address the broker names."""
    text = read_meta(item, "uuid", "ident")
    try:
        return str(UUID(text))
    except ValueError:
        raise UnreadableField(f"its uuid can't be read: {text[:60]!r}") from None


def read_terms(values: Document, expires: datetime, skew: timedelta = timedelta(0)) -> Terms | None:
    """Return the terms that a broker states in the values of a message; None if it states none."""
    if values.get("terms") != "remote":
        return _read_first(values, values.get("terms"), skew)
    terms: Terms | None = _read_first(values, values.get("inner-terms"), skew)
    route = [name for name in read_text(values, "route").split("/") if name][1 : MOST_DEPTH + 1]
    for name in reversed(route[1:]):
        terms = Remote("", expires, name, terms)
    return Remote(read_text(values, "url"), expires, route[0] if route else "", terms)


def _read_first(values: Document, kind: object, skew: timedelta) -> Booked | Predicted | None:
    """Return the terms of the broker that made the offer."""
    if kind == "booked":
        return Booked()
    if kind != "predicted":
        return None
    p10, p50, p90 = (read_time(read_text(values, name), name) - skew for name in ("p10", "p50", "p90"))
    if not p10 <= p50 <= p90:
        raise UnreadableField("its percentiles are not in order")
    samples, as_of = read_text(values, "samples"), read_text(values, "as-of")
    seen = read_time(as_of, "as-of") - skew if as_of else None
    return Predicted(p10, p50, p90, int(samples) if samples.isdecimal() else 0, seen)
