"""Reads requests to pages: the visitor, the fields of a form, and its token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

from sublet.api.bodies import read_body
from sublet.kernel.errors import BadRequest, WrongType
from sublet.web.entry import Visitor, check_host, check_post, visitor_of

T = TypeVar("T")
MOST_FIELDS = 100
MOST_BYTES = 4 * 1024 * 1024  # a document of 1 MiB, percent-encoded to three times its size


async def visitor(request: Request) -> Visitor:
    """Return the visitor of this page; raise NotSignedIn if there is none."""
    check_host(request)
    return await visitor_of(request)


async def fields(request: Request, most: int = MOST_FIELDS) -> dict[str, str]:
    """Return the fields of a submitted form."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise WrongType(type=kind or "(none)", hint="Send the form from its page.")
    body = await read_body(request, MOST_BYTES)
    try:
        return dict(parse_qsl(body.decode("ascii"), True, max_num_fields=most))
    except ValueError:
        raise BadRequest(detail="the form is not one of this service's pages") from None


async def read_form(request: Request, most: int = MOST_FIELDS) -> tuple[Visitor, dict[str, str]]:
    """Return the visitor and the fields of a submitted form; raise Forged if its token is invalid."""
    who = await visitor(request)
    form = await fields(request, most)
    check_post(request, who.cookie, form.get("token", ""))
    return who, form


def change_of(request: Request, changes: Mapping[str, T]) -> T:
    """Return the change that the URL names; raise 404 if it isn't one of these."""
    change = changes.get(request.path_params["change"])
    if change is None:
        raise HTTPException(404)
    return change
