"""The header `Idempotency-Key`: the same request under the same key, sent again, does nothing anew."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from starlette.requests import Request

from sublet.kernel.errors import BadRequest

LONGEST = 255  # characters


def read_key(request: Request) -> str | None:
    """The key that a request came with."""
    key = request.headers.get("idempotency-key", "").strip()
    if len(key) > LONGEST:
        raise BadRequest(detail=f"the Idempotency-Key has more than {LONGEST} characters", hint="Send a UUID.")
    return key or None


async def _key(request: Request) -> str | None:
    return read_key(request)  # FastAPI has a thread run what is not async


Key = Annotated[str | None, Depends(_key)]
