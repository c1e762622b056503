"""Sessions as IVOA Execution Broker 1.0.7 documents: plain mappings, ready for JSON or YAML."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from hashlib import sha1
from string import Template
from typing import Any

from sublet.booking.documents.kinds import (
    NODE_COMPUTE,
    SIMPLE_COMPUTE,
    SIMPLE_COST,
    SIMPLE_STORAGE,
    SIMPLE_VOLUME,
    uri_of,
)
from sublet.booking.model import amounts
from sublet.booking.model.ends import end_sentence
from sublet.booking.model.marks import write_marks
from sublet.booking.model.offer import Quote, Reason, Remote
from sublet.booking.model.phases import CLIENT_MOVES, GOING_ON, OVER, Phase
from sublet.booking.model.request import GIB, PLAIN_COMPUTE, Data, Range, Request, Storage, Volume
from sublet.booking.model.session import End, Session
from sublet.booking.model.starts import whole_seconds
from sublet.doors.ivoa.terms import RUN_TIME, TERMS, describe_run_time, describe_terms, starts_between
from sublet.doors.ivoa.updates import DURATION_PATH

Document = dict[str, Any]
duration_iso = lru_cache(1024)(amounts.duration_iso)  # a few durations recur often

SESSION = uri_of("session", "scheduled-execution-session")  # generated clients recurse infinitely on the simple one
METRIC = uri_of("metrics", "simple-minmax-float-metric")

P = Phase
# The phase of a component while its session is in a phase; IVOA's components have fewer phases.
LIFECYCLE: dict[Phase, str] = {
    P.OFFERED: "INITIALIZING",
    P.ACCEPTED: "WAITING",
    P.WAITING: "WAITING",
    P.PREPARING: "PREPARING",
    P.AVAILABLE: "RUNNING",
    P.RUNNING: "RUNNING",
    P.RELEASING: "RELEASING",
    P.COMPLETED: "COMPLETED",
    P.FAILED: "FAILED",
    P.CANCELLED: "CANCELLED",
    P.REJECTED: "CANCELLED",
    P.EXPIRED: "CANCELLED",
}


@lru_cache(1024)  # the offers of a set share most of these
def instant(time: datetime) -> str:
    """Format an instant in UTC as ISO 8601, with fractions only if there are any."""
    utc = time if time.tzinfo is UTC else time.astimezone(UTC)
    return utc.isoformat()[:-6] + "Z"


def session_document(session: Session, request: Request, base: str) -> Document:
    """Return a session or offer as a scheduled-execution-session; `base` is the service's address."""
    offer = session.offer
    names = _Names(session.id)
    schedule = _schedule(session)
    phase = LIFECYCLE[session.phase]
    document: Document = {
        "kind": SESSION,
        "meta": _meta(session, base),
        "phase": session.phase.value,
        "schedule": schedule,
        "compute": _compute(session, request, names, phase, schedule),
    }
    if session.phase is P.OFFERED:
        document["expires"] = instant(session.expires)
    if request.executable is not None:
        fields = request.executable.fields
        document["executable"] = {
            **fields,
            "kind": uri_of("executable", request.executable.kind),
            "meta": {"uuid": names.uuid("executable", ""), "name": request.executable.name or session.name},
            "phase": phase,
        }
    held = "AVAILABLE" if phase == "RUNNING" else phase
    if storage := [*request.storage, *_imply_storage(request)]:
        document["storage"] = [_storage(item, session, names, held) | {"schedule": schedule} for item in storage]
    if request.data:
        document["data"] = [_data(item, session, names, held, schedule) for item in request.data]
    if isinstance(offer.terms, Remote):  # components that can't be written here are kept as the other broker wrote them
        document |= offer.terms.components
    if offer.costs:
        document["costs"] = [_quote(SIMPLE_COST, quote) for quote in offer.costs]
    if offer.metrics:
        document["metrics"] = [_quote(METRIC, quote) for quote in offer.metrics]
    if session.connectors:
        document["connectors"] = [
            {"kind": c.kind, "status": c.status, "protocol": c.protocol, "location": c.address(base)}
            for c in session.connectors
        ]
    return document


def describe_failure(reasons: Sequence[Reason], now: datetime) -> Document:
    """Return the document for a direct request that can't be run: a failed session with the reasons."""
    return {
        "kind": SESSION,
        "meta": {"messages": [reason_message(reason, now, "ERROR") for reason in reasons]},
        "phase": P.FAILED.value,
    }


def reason_message(reason: Reason, time: datetime, level: str) -> Document:
    """Return a reason as a message, whose template filled with its values gives its sentence."""
    values = {
        name: value
        for name, value in (
            ("field", reason.field),
            ("wanted", reason.wanted),
            ("limit", reason.limit),
            ("nearest", reason.nearest),
            ("platform", reason.platform),
            ("as-of", instant(reason.as_of) if reason.as_of else ""),
        )
        if value
    }
    return {
        "kind": reason.kind,
        "time": instant(time),
        "level": level,
        "template": _template(reason.message, values),
        "values": values,
        "message": reason.message,
    }


def message(kind: str, time: datetime, level: str, text: str) -> Document:
    """Return a message of one sentence."""
    return {"kind": kind, "time": instant(time), "level": level, "template": text, "values": {}, "message": text}


class _Names:
    """The uuids of a session's components, derived from the session's own, so that they are always the same."""

    def __init__(self, session: str) -> None:
        self._space = bytes.fromhex(session.replace("-", ""))

    def uuid(self, family: str, name: str) -> str:
        """Return the same as `uuid.uuid5`, but three times faster, as an offer set needs dozens."""
        digits = sha1(self._space + f"{family}/{name}".encode(), usedforsecurity=False).hexdigest()
        variant = "89ab"[int(digits[16], 16) & 3]
        return f"{digits[:8]}-{digits[8:12]}-5{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


def _meta(session: Session, base: str) -> Document:
    meta: Document = {
        "uuid": session.id,
        "name": session.name,
        "url": f"{base}/sessions/{session.id}",
        "created": instant(session.created),
        "modified": instant(session.modified),
        "messages": _messages(session),
        "options": OPTIONS[session.phase],
    }
    if session.offer.why:
        meta["description"] = session.offer.why
    return meta


def _options(phase: Phase) -> list[Document]:
    offered: list[Document] = []
    if moves := CLIENT_MOVES.get(phase):
        offered.append({"kind": "uri:enum-value-option", "path": "phase", "values": [move.value for move in moves]})
    if phase in GOING_ON:
        offered.append({"kind": "uri:integer-delta-option", "path": DURATION_PATH, "min": 1, "units": "seconds"})
    return offered


OPTIONS = {phase: _options(phase) for phase in Phase}  # what the owner can change: the phase, and the duration


def _messages(session: Session) -> list[Document]:
    messages: list[Document] = [] if session.phase in OVER else _describe_offer(session)
    if session.condition:
        words = message("urn:sublet:condition", session.modified, "INFO", session.condition)
        messages.append(words | ({"values": {"marks": write_marks(session.marks)}} if session.marks else {}))
    if session.end is not None:
        level = "INFO" if session.end.phase is P.COMPLETED else "ERROR" if session.end.phase is P.FAILED else "WARN"
        time = session.ended or session.modified
        ended = message(f"urn:sublet:end:{session.end.kind}", time, level, end_sentence(session.end))
        messages.append({**ended, "values": _describe_end(session.end)})
    return messages


def _describe_end(end: End) -> dict[str, str]:
    """Return how a session ended, as machine-readable values."""
    values = {"code": end.code, "signal": end.signal, "by": end.by, "detail": end.detail}
    return {name: str(value) for name, value in values.items() if value not in (None, "")}


def _describe_offer(session: Session) -> list[Document]:
    """Return messages about an offer's terms and predicted run time, where generated clients can read them."""
    parts = [(TERMS, *describe_terms(session, instant))]
    if session.offer.run_time:
        parts.append((RUN_TIME, *describe_run_time(session.offer.run_time)))
    return [
        {
            "kind": kind,
            "time": instant(session.created),
            "level": "INFO",
            "template": template,
            "values": values,
            "message": Template(template).safe_substitute(values),
        }
        for kind, template, values in parts
    ]


def _schedule(session: Session) -> Document:
    offer = session.offer
    start, latest = starts_between(session)
    end = session.until or start + offer.duration
    return {
        "preparing": {"start": instant(start - offer.prepare), "duration": duration_iso(offer.prepare)},
        "available": {
            "start": f"{instant(start)}/{duration_iso(max(latest - start, timedelta(0)))}",
            "duration": duration_iso(max(end - start, timedelta(0))),
        },
        "releasing": {"start": instant(end), "duration": duration_iso(offer.release)},
    }


def _compute(session: Session, request: Request, names: _Names, phase: str, schedule: Document) -> Document:
    """Return the compute resource of the requested kind; a plain one has whole GiB, rounded down."""
    offer, shape = session.offer, session.offer.shape
    count = len(offer.nodes) or request.compute.nodes.min
    plain = request.compute.kind == PLAIN_COMPUTE
    document: Document = {
        "kind": SIMPLE_COMPUTE if plain else NODE_COMPUTE,
        "meta": {"uuid": names.uuid("compute", ""), "name": request.compute.name},
        "phase": phase,
        "schedule": schedule,
        "cores": _exactly(shape.cores),
        "memory": _exactly(shape.memory // GIB if plain else _gib(shape.memory)),
    }
    if not plain or count > 1 or shape.gpus:
        document |= {"nodes": _exactly(count), "gpus": _exactly(shape.gpus)}
    if shape.disk:
        document["disk"] = _exactly(_gib(shape.disk))
    if offer.gpu_sorts and not plain:
        document["gpu_sorts"] = [asdict(each) for each in offer.gpu_sorts]
    if costs := offer.compute_costs or offer.costs:
        document["costs"] = [_quote(SIMPLE_COST, quote) for quote in costs]
    if offer.metrics:
        document["metrics"] = [_quote(METRIC, quote) for quote in offer.metrics]
    if request.compute.volumes:
        document["volumes"] = [_volume(volume, request, names) for volume in request.compute.volumes]
    return document


def _volume(volume: Volume, request: Request, names: _Names) -> Document:
    family = "data" if any(data.name == volume.resource for data in request.data) else "storage"
    return {
        "kind": SIMPLE_VOLUME,
        "meta": {"uuid": names.uuid("volume", volume.name), "name": volume.name},
        "path": volume.path,
        "mode": "READONLY" if volume.read_only else "READWRITE",
        "resource": names.uuid(family, volume.resource),
    }


def _imply_storage(request: Request) -> list[Storage]:
    """Return the implied storage of data that names none."""
    return [
        Storage(data.name, Range(data.size or 0, data.size or 0), (data.name,))
        for data in request.data
        if not data.storage
    ]


def _storage(storage: Storage, session: Session, names: _Names, phase: str) -> Document:
    size = session.offer.storage.get(storage.name, storage.size.min)
    document: Document = {
        "kind": SIMPLE_STORAGE,
        "meta": {"uuid": names.uuid("storage", storage.name), "name": storage.name},
        "phase": phase,
        "data": [names.uuid("data", name) for name in storage.data],
    }
    if size:  # nothing is booked for data of unknown size
        document["size"] = _exactly(-(-size // GIB))
    if pool := session.offer.pools.get(storage.name):
        document["pool"] = pool
    if costs := session.offer.storage_costs.get(storage.name):
        document["costs"] = [_quote(SIMPLE_COST, quote) for quote in costs]
    return document


def _data(data: Data, session: Session, names: _Names, phase: str, schedule: Document) -> Document:
    document: Document = {
        **data.fields,
        "kind": uri_of("data", data.kind),
        "meta": {"uuid": names.uuid("data", data.name), "name": data.name},
        "phase": phase,
    }
    if data.location and data.kind == "simple-data-resource":
        document["location"] = data.location
    document["storage"] = names.uuid("storage", data.storage or data.name)
    length = whole_seconds(data.prepare or session.offer.staging.items.get(data.name, timedelta(0)))
    begins = starts_between(session)[0] - max(session.offer.prepare, length)
    preparing = {"start": instant(begins), "duration": duration_iso(length)}
    return document | {"schedule": {**schedule, "preparing": preparing}}


def _quote(kind: str, quote: Quote) -> Document:
    document: Document = {"kind": kind, "type": quote.type, "min": quote.min, "max": quote.max}
    return document | {"description": quote.description} if quote.description else document


def _exactly(value: float) -> Document:
    return {"min": value, "max": value}


def _gib(size: int) -> float:
    return size // GIB if size % GIB == 0 else size / GIB


def _template(sentence: str, values: Mapping[str, str]) -> str:
    """Return the sentence with the first whole occurrence of each value replaced by its name, longest first."""
    for name, value in sorted(values.items(), key=lambda item: -len(item[1])):
        pattern = rf"(?<![\w${{.]){re.escape(value)}(?![\w}}])"
        sentence = re.sub(pattern, lambda _, name=name: f"${{{name}}}", sentence, count=1)  # type: ignore[misc]
    return sentence
