"""Session pages: the list with its filters, and one session with its live log and its actions."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sublet.annexes.pages.lease_questions import ask_about_lease
from sublet.api.people import service_of
from sublet.booking.logins import needs_login
from sublet.booking.model.amounts import parse_duration
from sublet.booking.model.marks import Mark
from sublet.booking.model.offer import Offer
from sublet.booking.model.phases import GOING_ON, OVER, STARTED, Phase
from sublet.booking.model.session import Session, find_likely_end
from sublet.booking.model.staging import describe_staging
from sublet.booking.output import Results
from sublet.booking.pages.files import Listing, list_files
from sublet.booking.pages.logs import STREAMS, find_words, read_printed
from sublet.booking.pages.work import WorkPart, describe_work
from sublet.booking.pausing import PAUSABLE
from sublet.kernel.errors import SubletError
from sublet.people.model.person import Person
from sublet.service import Service
from sublet.web.confirming import confirm_page, is_confirmed
from sublet.web.drawing import page
from sublet.web.reading import change_of, read_form, visitor
from sublet.web.words import KINDS

PAGE = 25
MOST_FILES = 25  # files and folders on a session's own page
NOT_OFFERS = tuple(phase for phase in Phase if phase not in (Phase.OFFERED, Phase.REJECTED, Phase.EXPIRED))
WAY = (Phase.ACCEPTED, Phase.WAITING, Phase.PREPARING, Phase.RUNNING, Phase.RELEASING)
ADDRESS = re.compile(r": \S*/connect/\S+")  # contains the session's secret; the button leads there without showing it


@dataclass(frozen=True, slots=True)
class PhaseStage:
    """One stage of a session's life."""

    name: str
    state: Literal["done", "now", "ahead", "good", "bad", "idle"]


async def listing(request: Request) -> Response:
    """List the visitor's sessions, newest first; offers that were not accepted are left out unless asked for."""
    who = await visitor(request)
    asked = request.query_params
    phase, kind, name = asked.get("phase", ""), asked.get("kind", ""), asked.get("name", "").strip()
    phases = [Phase(phase)] if phase in Phase.__members__ else NOT_OFFERS
    listed = await service_of(request).sessions.page(
        who.person,
        phases=None if phase == "active" else phases,
        active=True if phase == "active" else None,
        kind=kind or None,
        name=f"*{name}*" if name else None,
        limit=PAGE,
        after=asked.get("after") or None,
    )
    filters = {"phase": phase, "kind": kind, "name": name}
    more = urlencode({key: value for key, value in filters.items() if value} | {"after": listed.next or ""})
    return page(
        request,
        "sessions.html",
        who,
        sessions=listed.items,
        filters=filters,
        filtered=any(filters.values()),
        later="after" in asked,
        more=more if listed.next else "",
        phases=[one.value for one in Phase],
        kinds=list(dict.fromkeys([*KINDS, kind] if kind else KINDS)),
    )


async def look(request: Request) -> Response:
    """Show one session: its phase, its output and its files."""
    who = await visitor(request)
    return await _session(request, who.person, request.path_params["id"])


async def _session(
    request: Request, person: Person, id: str, wrong: SubletError | None = None, by: str = "30m"
) -> Response:
    who = await visitor(request)
    service = service_of(request)
    session, sentences = await service.explanations.explain(id, person)
    readable = service.authority.can_read(session.person, person)
    streams = [await read_printed(request, session, person, stream) for stream in STREAMS] if readable else []
    return page(
        request,
        "session.html",
        who,
        wrong.status if wrong else 200,
        session=session,
        staging=describe_staging(session.offer.staging, session.staged),
        over_by=None if session.phase in OVER else find_likely_end(session),
        sentences=[ADDRESS.sub(".", sentence) for sentence in sentences],
        ways_in=[] if session.phase in OVER else find_ways_in(service, session),
        sign_in_at=session.offer.platform if _can_sign_in(service, session, who.person) else "",
        stages=stages(session),
        streams=streams,
        found=await find_words(request, session, person) if readable else None,
        files=await _files(service, session, person) if readable else list_files(Results()),
        kept_until=await service.results.find_end(session.id, person) if readable else None,
        work=await _work(service, session, person) if readable else [],
        is_private=not readable,
        events=await service.events.events(person, session=session.id, limit=200),
        over=session.phase in OVER,
        cancellable=session.phase in GOING_ON and not session.cancel_by,
        extendable=session.phase in GOING_ON and _can_last_longer(session.offer),
        is_warned=session.phase in STARTED and Mark.WARNED in session.marks,
        is_unused=session.phase in STARTED and Mark.UNUSED in session.marks,
        keep=service.settings.keep,
        pausable=session.phase in PAUSABLE and bool(session.job) and not session.cancel_by,
        wrong=wrong,
        by=by,
    )


def _can_last_longer(offer: Offer) -> bool:
    return offer.is_in_calendar or offer.terms.kind == "remote"


def _can_sign_in(service: Service, session: Session, person: Person) -> bool:
    return person.operator and needs_login(session) and session.offer.platform in service.logins.logins()


async def change(request: Request) -> Response:
    """Accept, decline, cancel, pause, resume, extend, keep or delete a session."""
    act = change_of(request, CHANGES)
    who, form = await read_form(request)
    id = request.path_params["id"]
    try:
        lease = await service_of(request).annexes.leases.lease_name(id, who.person) if act is _cancel else ""
        if lease and not is_confirmed(form):
            question = await ask_about_lease(service_of(request), lease, who.person)
            return confirm_page(request, who, replace(question, back=f"/web/sessions/{id}"), form)
        to = await act(service_of(request), who.person, id, form)
    except SubletError as error:
        known = await service_of(request).sessions.get(id, who.person)
        if request.path_params["change"] in ("accept", "reject"):
            return page(request, "error.html", who, error.status, **_describe_refusal(error, known))
        return await _session(request, who.person, known.id, error, form.get("by", ""))
    return RedirectResponse(to, 303)


def _describe_refusal(error: SubletError, session: Session) -> dict[str, object]:
    again = (f"/web/ask?from={session.offerset}", "Ask again")
    return {"message": error.message, "hint": error.advice, "code": error.status, "link": again}


async def _accept(service: Service, person: Person, id: str, form: dict[str, str]) -> str:
    session = await service.sessions.accept(id, person)
    return f"/web/sessions/{session.id}{'/open' if session.offer.interactive else ''}"


async def _reject(service: Service, person: Person, id: str, form: dict[str, str]) -> str:
    return f"/web/offersets/{(await service.sessions.reject(id, person)).offerset}"


async def _cancel(service: Service, person: Person, id: str, form: dict[str, str]) -> str:
    return f"/web/sessions/{(await service.sessions.cancel(id, person, form.get('reason', ''))).id}"


async def _pause(service: Service, person: Person, id: str, form: dict[str, str]) -> str:
    return f"/web/sessions/{(await service.pausing.pause(id, person))[0].id}"


async def _resume(service: Service, person: Person, id: str, form: dict[str, str]) -> str:
    return f"/web/sessions/{(await service.pausing.resume(id, person))[0].id}"


async def _extend(service: Service, person: Person, id: str, form: dict[str, str]) -> str:
    return f"/web/sessions/{(await service.sessions.extend(id, person, by=form.get('by', '').strip())).id}"


async def _delete(service: Service, person: Person, id: str, form: dict[str, str]) -> str:
    await service.sessions.delete(id, person)
    return "/web/sessions"


async def _keep(service: Service, person: Person, id: str, form: dict[str, str]) -> str:
    await service.results.keep(id, person, parse_duration(form.get("duration", "")))
    return f"/web/sessions/{id}#files"


CHANGES: dict[str, Callable[[Service, Person, str, dict[str, str]], Awaitable[str]]] = {
    "accept": _accept,
    "reject": _reject,
    "cancel": _cancel,
    "pause": _pause,
    "resume": _resume,
    "extend": _extend,
    "keep": _keep,
    "delete": _delete,
}


def stages(session: Session) -> list[PhaseStage]:
    """Return the stages of a session from acceptance to its end, and how far it has come."""
    if session.phase in (Phase.OFFERED, Phase.REJECTED, Phase.EXPIRED):
        state: Literal["now", "idle"] = "now" if session.phase is Phase.OFFERED else "idle"
        return [PhaseStage(session.phase.value, state)]
    middle = Phase.AVAILABLE if session.kind == "interactive" else Phase.RUNNING
    way = [middle if phase is Phase.RUNNING else phase for phase in WAY]
    if session.phase in OVER:
        last: Literal["good", "bad", "idle"] = ENDS.get(session.phase, "idle")
        reached = way if session.started else way[:2] if not session.job else way[:3]
        return [PhaseStage(phase.value, "done") for phase in reached] + [PhaseStage(session.phase.value, last)]
    phase = middle if session.phase in STARTED else session.phase
    at = way.index(phase)
    passed = [PhaseStage(one.value, "done" if i < at else "now" if i == at else "ahead") for i, one in enumerate(way)]
    return [*passed, PhaseStage("END", "ahead")]


ENDS: dict[Phase, Literal["good", "bad", "idle"]] = {Phase.COMPLETED: "good", Phase.FAILED: "bad"}


def find_ways_in(service: Service, session: Session) -> list[str]:
    """Return where the session can be opened, on the same host as this page: visitors may know us by another name."""
    return [
        connector.location.removeprefix(service.presenter.base_url)
        for connector in session.connectors
        if connector.status == "AVAILABLE"
    ]


async def _work(service: Service, session: Session, person: Person) -> list[WorkPart]:
    try:
        return describe_work((await service.asking.offerset(session.offerset, person)).request)
    except SubletError:
        return []  # the request is removed before the session


async def _files(service: Service, session: Session, person: Person) -> Listing:
    try:
        return list_files(await service.output.results(session.id, person), most=MOST_FILES)
    except SubletError:
        return list_files(Results())  # the platform can't be reached now; the rest of the page is still true
