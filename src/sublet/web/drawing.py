"""Renders templates, with the values that every page needs: the visitor, their time zone, and the forms' tokens."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib import resources as files
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse

from sublet.api.people import on_socket, service_of
from sublet.booking.model.amounts import duration_text
from sublet.booking.model.pledge import describe_why, pledge_text
from sublet.kernel.texts import describe_duration
from sublet.web import words
from sublet.web.entry import Visitor, form_token
from sublet.web.local_times import localize
from sublet.web.words import Clock

ROOMS = ("web", "booking", "people", "access", "annexes", "apps", "notices", "data")  # the rooms that have templates
ZONE = "sublet_zone"  # a cookie with the browser's time zone, set by the pages' script


@cache
def environment() -> Environment:
    """Return the template environment, which escapes every value."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader(f"sublet.{room}") for room in ROOMS]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "utc": words.utc,
        "machine": words.machine,
        "duration": describe_duration,
        "typed": duration_text,
        "about": words.duration_about,
        "signed": words.duration_signed,
        "has": words.has,
        "memory": words.memory_about,
        "kind": words.kind_text,
        "pledge": pledge_text,
        "why": describe_why,
        "enough": words.describe_enough,
        "nearest": words.describe_nearest,
        "resources": words.resources,
        "price": words.price,
        "local": localize,
    }
    made.globals |= {"tones": words.TONES, "counted": words.count_text, "static": _static}
    return made


def clock_of(request: Request) -> Clock:
    """Return the current time in the visitor's time zone."""
    return Clock.of(request.cookies.get(ZONE, "").replace("%2F", "/"), service_of(request).now())


def page(
    request: Request, template: str, visitor: Visitor | None = None, status: int = 200, **values: Any
) -> HTMLResponse:
    """Render a template as a page."""
    service = service_of(request)

    def token(path: str) -> str:
        return form_token(service, visitor.cookie if visitor else "", path)

    text = (
        environment()
        .get_template(template)
        .render(
            request=request,
            here=request.url.path,
            visitor=visitor,
            signs_in=not on_socket(request.scope),
            clock=clock_of(request),
            token=token,
            version=service.version,
            personal=service.authority.has_owner,
            providers=service.people.oidc.providers,
            moved_from=getattr(request.app.state, "moved_from", 0),
            settled=request.method == "GET",
            **values,
        )
    )
    return HTMLResponse(text, status)


@cache
def _static(name: str) -> str:
    """Return the URL of a static file, with a hash of its content so that browsers can cache it."""
    content = files.files("sublet.web").joinpath("static", name).read_bytes()
    return f"/web/static/{name}?v={hashlib.sha256(content).hexdigest()[:10]}"
