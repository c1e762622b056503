"""What a broker that passes a request on says of it: which it is, where it has been, and how long it waits."""

from __future__ import annotations

import re
from datetime import timedelta

from starlette.requests import Request

from sublet.kernel.errors import BadRequest

VIA = "broker-via"
REQUEST = "broker-request"
PROOF = "broker-proof"  # in answers: what only who answered can make of the id of the request
MOST_HOPS = 100
_ID = re.compile(r"[A-Za-z0-9._-]{1,80}")
_WAIT = re.compile(r"(?:^|[,;\s])wait\s*=\s*([0-9]{1,5}(?:\.[0-9]{1,3})?)", re.IGNORECASE)
LEAST = timedelta(milliseconds=100)


def read_via(request: Request) -> tuple[str, ...]:
    """The ids in `Broker-Via`, the first broker first."""
    ids = [part.strip() for line in request.headers.getlist(VIA) for part in line.split(",") if part.strip()]
    if len(ids) > MOST_HOPS or not all(_ID.fullmatch(id) for id in ids):
        raise BadRequest(detail=f"Broker-Via is no list of at most {MOST_HOPS} ids", hint="Send id, id, …")
    return tuple(ids)


def read_request_id(request: Request) -> str:
    """The id in `Broker-Request`, the same by whichever way the request comes; empty: it has none."""
    id = request.headers.get(REQUEST, "").strip()
    if id and not _ID.fullmatch(id):
        raise BadRequest(detail="Broker-Request is no id", hint="Send letters, digits, `.`, `_` and `-`, 80 at most.")
    return id


def read_wait(request: Request) -> timedelta | None:
    """How long the asker waits, as `Prefer: wait=2.5` says (RFC 7240); None: as long as it takes."""
    match = _WAIT.search(",".join(request.headers.getlist("prefer")))
    return max(LEAST, timedelta(seconds=float(match[1]))) if match else None
