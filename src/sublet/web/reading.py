"""What comes in with a page: who sends it, the fields of a form, and the proof that the form is ours."""

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
MOST_BYTES = 4 * 1024 * 1024  # a document of 1 MiB, each of whose characters may take three


async def visitor(request: Request) -> Visitor:
    """Who looks at this page, or NotSignedIn."""
    check_host(request)
    return await visitor_of(request)


async def fields(request: Request, most: int = MOST_FIELDS) -> dict[str, str]:
    """The fields of a form that was sent."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise WrongType(type=kind or "(none)", hint="Send the form from its page.")
    body = await read_body(request, MOST_BYTES)
    try:
        return dict(parse_qsl(body.decode("ascii"), True, max_num_fields=most))
    except ValueError:
        raise BadRequest(detail="the form is not one of this service's pages") from None


async def read_form(request: Request, most: int = MOST_FIELDS) -> tuple[Visitor, dict[str, str]]:
    """Who sent a form, and its fields; Forged if it did not come from a page of theirs."""
    who = await visitor(request)
    form = await fields(request, most)
    check_post(request, who.cookie, form.get("token", ""))
    return who, form


def change_of(request: Request, changes: Mapping[str, T]) -> T:
    """The change that an address names; there is no such page if it names none of these."""
    change = changes.get(request.path_params["change"])
    if change is None:
        raise HTTPException(404)
    return change
