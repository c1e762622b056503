"""The ask page: a form, or the short form in YAML."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import yaml
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sublet.api.people import service_of
from sublet.booking.documents.local_starts import pin_starts
from sublet.booking.model.giving_way import Precedence
from sublet.booking.pages.form import EMPTY, FormError, Values, check, read_typed, short_of, values_of, wrong_of
from sublet.booking.pages.nearest import heed_reasons
from sublet.booking.pages.scheduler import make_scheduler_fields
from sublet.booking.standard_images import list_interfaces
from sublet.kernel.document import parse_document
from sublet.kernel.errors import SubletError
from sublet.web.drawing import clock_of, page
from sublet.web.entry import Visitor
from sublet.web.local_times import show_in_zone
from sublet.web.reading import read_form, visitor

Answers = Callable[[Request, Visitor, bytes, str, str], Awaitable[Response]]
INSTEAD = "instead_of"  # the form's field for the offer set that it was filled in from
EXAMPLE = """\
name: first look
run: python3 -c "print('hello from', __import__('os').uname().nodename)"
cores: 2
memory: 4GiB
time: 30m
start: within 2h
"""


async def look(request: Request) -> Response:
    """Show an empty form; or an earlier request, with one platform's reasons applied."""
    who = await visitor(request)
    earlier = request.query_params.get("from", "")
    if earlier:
        return await _ask_again(request, who, earlier, request.query_params.get("heed"))
    if request.query_params.get("form") == "yaml":
        return await _yaml(request, who, EXAMPLE)
    is_contained = service_of(request).kinds.contained_only
    return await _form(request, who, EMPTY | {"what": "image"} if is_contained else dict(EMPTY))


async def send(request: Request) -> Response:
    """Ask; a request that can't be understood is shown again as typed, with what is wrong."""
    who, form = await read_form(request)
    answer = _show_ways if form.get("go") == "ways" else _ask
    if "document" in form:
        text = form["document"].replace("\r\n", "\n")
        return await _send_yaml(request, who, text, form.get(INSTEAD, ""), answer)
    values = read_typed(form)
    if form.get("go") == "yaml":
        return await _yaml(request, who, _write_yaml(short_of(values)), instead_of=form.get(INSTEAD, ""))
    clock = clock_of(request)
    local = clock.now.astimezone(clock.zone)
    wrong = check(values, local)
    if not wrong:
        try:
            body = json.dumps(pin_starts(short_of(values), local)).encode()
            return await answer(request, who, body, "application/json", form.get(INSTEAD, ""))
        except SubletError as error:
            name, complaint = wrong_of(error)
            wrong = {name: complaint}
    return await _form(request, who, values, wrong, 400, form.get(INSTEAD, ""))


async def _send_yaml(request: Request, who: Visitor, text: str, instead_of: str, answer: Answers) -> Response:
    try:
        return await answer(request, who, text.encode(errors="replace"), "application/yaml", instead_of)
    except SubletError as error:
        return await _yaml(request, who, text, FormError(error.message, error.advice), 400, instead_of)


async def _ask(request: Request, who: Visitor, body: bytes, kind: str, instead_of: str) -> Response:
    service = service_of(request)
    asked = await service.asking.read(body, kind, who.person)
    offerset = await service.asking.ask(who.person, replace(asked, precedence=Precedence(instead_of=instead_of)))
    return RedirectResponse(f"/web/offersets/{offerset.id}", 303)


async def _show_ways(request: Request, who: Visitor, body: bytes, kind: str, instead_of: str) -> Response:
    """Show in which ways the request can run, and why not in others; nothing is asked of a calendar."""
    service = service_of(request)
    asked = await service.asking.read(body, kind, who.person)
    return page(request, "ways.html", who, ways=await service.ways.explain(who.person, asked))


async def _ask_again(request: Request, who: Visitor, id: str, heed: str | None) -> Response:
    earlier = await service_of(request).asking.offerset(id, who.person)
    executable = earlier.request.executable
    if executable and "pinned" in executable.fields and service_of(request).apps.approved.needs_review:
        return RedirectResponse(f"/web/apps/{executable.fields['app']}?from={earlier.id}", 303)
    values = values_of(earlier.request)
    if values is not None:
        values = heed_reasons(values, (r for r in earlier.reasons if r.platform == heed))[0]
        values["start"] = show_in_zone(values["start"], clock_of(request).zone)
        return await _form(request, who, values, instead_of=earlier.id)
    document = parse_document(earlier.document.encode(), earlier.content_type)
    return await _yaml(request, who, _write_yaml(document), instead_of=earlier.id)


async def _form(
    request: Request,
    who: Visitor,
    values: Values,
    wrong: dict[str, FormError] | None = None,
    status: int = 200,
    instead_of: str = "",
) -> Response:
    service = service_of(request)
    platforms = await service.usable_platforms.usable(who.person)
    options = make_scheduler_fields(service.candidates.list_options(platforms), values)
    places = [place for place in await service.places.list(who.person) if place.platform in platforms]
    shown = {"values": values, "wrong": wrong or {}, "document": None, INSTEAD: instead_of}
    shown["interfaces"] = list_interfaces(service.settings, values["interface"], in_images=service.kinds.contained_only)
    return page(request, "ask.html", who, status, platforms=platforms, places=places, options=options, **shown)


async def _yaml(
    request: Request, who: Visitor, text: str, wrong: FormError | None = None, status: int = 200, instead_of: str = ""
) -> Response:
    complaints = {"document": wrong} if wrong else {}
    shown = {"values": EMPTY, "wrong": complaints, "document": text, INSTEAD: instead_of}
    return page(request, "ask.html", who, status, platforms=[], places=[], options=(), **shown)


def _write_yaml(document: Any) -> str:
    """Write a document as YAML, as a person would: texts of several lines as blocks."""
    text: str = yaml.dump(document, Dumper=_Blocks, sort_keys=False, allow_unicode=True, width=100)
    return text


class _Blocks(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, "|" if "\n" in text else None)


_Blocks.add_representer(str, _text)
