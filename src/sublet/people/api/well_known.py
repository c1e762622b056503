"""This service's metadata and keys as a token issuer, by which other brokers verify its tokens."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import JSONResponse, Response

from sublet.api import described
from sublet.api.people import service_of

router = APIRouter(prefix="/.well-known", tags=["People"])
KEPT = {"cache-control": "public, max-age=300"}


@router.get("/openid-configuration", response_model=dict[str, Any], responses=described.problems(409))
async def configuration(request: Request) -> Response:
    """Where its keys are, and by which name its tokens are signed; this needs no token."""
    return JSONResponse(dict(service_of(request).people.assertions.metadata()), headers=KEPT)


@router.get("/jwks.json", response_model=dict[str, Any])
async def keys(request: Request) -> Response:
    """The public keys of its tokens; this needs no token."""
    return JSONResponse(service_of(request).people.assertions.keys(), headers=KEPT)
