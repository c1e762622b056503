"""The operators' page: everyone's sessions, filtered and cancelled."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sublet.api.people import service_of
from sublet.booking.model.phases import GOING_ON, Phase
from sublet.booking.model.session import Session
from sublet.booking.sessions import Filters, Page
from sublet.kernel.errors import BadRequest, OperatorsOnly, SubletError
from sublet.service import Service
from sublet.web.drawing import page
from sublet.web.entry import Visitor
from sublet.web.reading import read_form, visitor

HERE = "/web/operate"
SHOWN, MOST = 50, 1000  # sessions on one page, and in one query
EVERYONE, ACTIVE = "everyone", "ACTIVE"
FIELDS = ("person", "platform", "app", "name", "phase", "since", "until")
NOT_OFFERS = tuple(phase for phase in Phase if phase not in (Phase.OFFERED, Phase.REJECTED, Phase.EXPIRED))
STOPPABLE = GOING_ON | {Phase.OFFERED}


async def look(request: Request) -> Response:
    """Show everyone's sessions, newest first; offers that were not accepted are left out unless asked for."""
    who, typed = await _operator(request), _read_filters(request)
    wrong: SubletError | None = None
    listed = Page((), None)
    try:
        listed = await _find_sessions(request, who, typed)
    except SubletError as error:
        wrong = error
    given = {field: text for field, text in typed.items() if text}
    return page(
        request,
        "operate.html",
        who,
        wrong.status if wrong else 200,
        sessions=listed.items,
        typed=typed,
        given=given,
        query=urlencode(given),
        more=urlencode({**given, "after": listed.next}) if listed.next else "",
        later="after" in request.query_params,
        phases=[each.value for each in Phase],
        done=_number(request.query_params.get("done", "")),
        stoppable=any(_is_stoppable(each) for each in listed.items),
        wrong=wrong,
    )


async def _find_sessions(request: Request, who: Visitor, typed: dict[str, str]) -> Page:
    of, after = typed["person"] or EVERYONE, request.query_params.get("after")
    return await service_of(request).sessions.page(who.person, of=of, limit=SHOWN, after=after, **_filters(typed))


async def ask(request: Request) -> Response:
    """Ask for confirmation before several sessions are cancelled: which, how many, and whose."""
    who, typed = await _operator(request), _read_filters(request)
    return await _question(request, who, await _list_chosen(service_of(request), who, typed), typed)


async def _question(
    request: Request,
    who: Visitor,
    sessions: list[Session],
    typed: dict[str, str],
    wrong: SubletError | None = None,
    reason: str = "",
) -> Response:
    given = {field: text for field, text in typed.items() if text}
    return page(
        request,
        "operate_cancel.html",
        who,
        wrong.status if wrong else 200,
        sessions=sessions,
        people=sorted({session.person for session in sessions}),
        back=f"{HERE}?{urlencode(given)}",
        query=urlencode(given),
        reason=reason,
        wrong=wrong,
    )


async def cancel(request: Request) -> Response:
    """Cancel exactly the sessions that the confirmation named."""
    who, form = await read_form(request)
    if not who.person.operator:
        raise OperatorsOnly
    service, ids = service_of(request), form.get("sessions", "").split()
    try:
        done = await service.sessions.cancel_all(ids, who.person, form.get("reason", ""))
    except SubletError as error:
        chosen = [await service.sessions.get(id, who.person) for id in ids[:MOST]]
        return await _question(request, who, chosen, {}, error, form.get("reason", ""))
    return RedirectResponse(f"{HERE}?done={len(done.cancelled)}", 303)


async def _list_chosen(service: Service, who: Visitor, typed: dict[str, str]) -> list[Session]:
    wanted = _filters(typed)
    if not typed["phase"]:
        wanted["phases"] = [phase for phase in STOPPABLE if phase is not Phase.OFFERED]
    listed = await service.sessions.page(who.person, of=typed["person"] or EVERYONE, limit=MOST, **wanted)
    return [session for session in listed.items if _is_stoppable(session)]


def _is_stoppable(session: Session) -> bool:
    return session.phase in STOPPABLE and not session.cancel_by


def _read_filters(request: Request) -> dict[str, str]:
    return {field: request.query_params.get(field, "").strip() for field in FIELDS}


def _filters(typed: dict[str, str]) -> Filters:
    """Return what was typed as filters; raise BadRequest for what can't be read, which must not select more."""
    phase = typed["phase"].upper()
    if phase and phase != ACTIVE and phase not in Phase.__members__:
        raise BadRequest(f"There is no phase {typed['phase']}.", hint=f"There are: {', '.join(Phase)}.")
    phases = None if phase == ACTIVE else [Phase(phase)] if phase else NOT_OFFERS
    return {
        "platform": typed["platform"] or None,
        "app": typed["app"] or None,
        "name": typed["name"] or None,
        "phases": phases,
        "active": True if phase == ACTIVE else None,
        "since": _midnight(typed["since"]),
        "until": _midnight(typed["until"], timedelta(days=1)),
    }


def _midnight(day: str, later: timedelta = timedelta()) -> datetime | None:
    """Return the beginning of a day in UTC, or some time later; None if no day was typed."""
    if not day:
        return None
    try:
        return datetime.combine(date.fromisoformat(day), time(), UTC) + later
    except (ValueError, OverflowError):
        raise BadRequest(f"{day} is not a day of the calendar.", hint="Write it as 2026-12-01.") from None


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) < 6 else None


async def _operator(request: Request) -> Visitor:
    who = await visitor(request)
    if not who.person.operator:
        raise OperatorsOnly
    return who
