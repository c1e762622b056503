"""Headers of a forwarded request: its id, the brokers it has passed, and how long the sender waits."""

from __future__ import annotations

import re
from datetime import timedelta

from starlette.requests import Request

from sublet.kernel.errors import BadRequest

VIA = "broker-via"
REQUEST = "broker-request"
PROOF = "broker-proof"  # in answers: a proof that only the answering broker can derive from the request's id
MOST_HOPS = 100
_ID = re.compile(r"[A-Za-z0-9._-]{1,80}")
_WAIT = re.compile(r"(?:^|[,;\s])wait\s*=\s*([0-9]{1,5}(?:\.[0-9]{1,3})?)", re.IGNORECASE)
LEAST = timedelta(milliseconds=100)


def read_via(request: Request) -> tuple[str, ...]:
    """Return the ids in `Broker-Via`, first broker first."""
    ids = [part.strip() for line in request.headers.getlist(VIA) for part in line.split(",") if part.strip()]
    if len(ids) > MOST_HOPS or not all(_ID.fullmatch(id) for id in ids):
        raise BadRequest(detail=f"Broker-Via is no list of at most {MOST_HOPS} ids", hint="Send id, id, …")
    return tuple(ids)


def read_request_id(request: Request) -> str:
    """Return the id in `Broker-Request`, the same on every route of the request; empty if it has none."""
    id = request.headers.get(REQUEST, "").strip()
    if id and not _ID.fullmatch(id):
        raise BadRequest(detail="Broker-Request is no id", hint="Send letters, digits, `.`, `_` and `-`, 80 at most.")
    return id


def read_wait(request: Request) -> timedelta | None:
    """Return how long the client waits, by `Prefer: wait=2.5` (RFC 7240); None if it states nothing."""
    match = _WAIT.search(",".join(request.headers.getlist("prefer")))
    return max(LEAST, timedelta(seconds=float(match[1]))) if match else None
