"""What a broker that passes a request on says of it: which brokers it has come through, and how long it waits."""

from __future__ import annotations

import re
from datetime import timedelta

from starlette.requests import Request

from sublet.kernel.errors import BadRequest

VIA = "broker-via"
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


def read_wait(request: Request) -> timedelta | None:
    """How long the asker waits, as `Prefer: wait=2.5` says (RFC 7240); None: as long as it takes."""
    match = _WAIT.search(",".join(request.headers.getlist("prefer")))
    return max(LEAST, timedelta(seconds=float(match[1]))) if match else None
