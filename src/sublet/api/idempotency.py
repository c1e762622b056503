"""The header `Idempotency-Key`: repeating a request with the same key has no further effect."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from sublet.kernel.errors import BadRequest

LONGEST = 255  # characters


def read_key(request: Request) -> str | None:
    """Return the request's idempotency key, or None; refuse an empty one, which would protect from nothing."""
    sent = request.headers.get("idempotency-key")
    if sent is None:
        return None
    key = sent.strip()
    if not key:
        raise BadRequest(detail="the Idempotency-Key is empty", hint="Send a UUID, or leave the header out.")
    if len(key) > LONGEST:
        raise BadRequest(detail=f"the Idempotency-Key has more than {LONGEST} characters", hint="Send a UUID.")
    return key


async def _key(request: Request) -> str | None:
    return read_key(request)  # FastAPI runs functions that aren't async in a thread


Key = Annotated[str | None, Depends(_key)]
