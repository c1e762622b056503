"""Sessions under /v1: list them, look at one, and change it."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic import BeforeValidator
from starlette.responses import Response

from sublet.api import described
from sublet.api.bodies import JSON, json_response
from sublet.api.idempotency import Key, read_key
from sublet.api.instants import require_zone
from sublet.api.people import base_of, host_of, person_of, service_of
from sublet.booking.api.calendar import Instant, in_utc
from sublet.booking.api.precedence import Said
from sublet.booking.api.shown import ShownSessions
from sublet.booking.model.phases import Phase
from sublet.booking.model.scheduler import SCHEDULER_NAMES
from sublet.booking.model.session import Session
from sublet.booking.sessions import Filters
from sublet.booking.views.convert import offerset_view, session_view
from sublet.booking.views.moves import AgainAsk, CancelAllAsk, CancelAsk, CancelView, Explanation, ExtendAsk, PauseView
from sublet.booking.views.offers import OfferSetView
from sublet.booking.views.sessions import SessionPage, SessionView
from sublet.kernel.document_fields import refuse_unknown_fields
from sublet.kernel.errors import BadRequest

router = APIRouter(prefix="/v1/sessions", tags=["Sessions"])

Id = Annotated[str, Path(description="A session's uuid, or the first 4 or more characters of it.")]
LOOK = described.problems(401, 403, 404, 409)
CHANGE = described.problems(400, 401, 403, 404, 409, 503)


def _amounts(given: Any) -> Any:
    """Raise ValueError if an amount is true or false, which Python would count as 1 or 0."""
    if isinstance(given, dict) and any(isinstance(value, bool) for value in given.values()):
        raise ValueError("amounts are numbers or text, not true or false")
    return given


@router.get("", response_model=SessionPage, responses=described.problems(400, 401, 403, 404))
async def sessions(
    request: Request,
    person: Annotated[str, Query(description="Whose: an address, or `everyone`; operators may name others.")] = "",
    phase: Annotated[list[Phase] | None, Query(description="Only these phases.")] = None,
    kind: Annotated[str | None, Query(description="Only this kind of executable.")] = None,
    platform: Annotated[str | None, Query(description="Only on this platform.")] = None,
    name: Annotated[str | None, Query(description="Only those called so.")] = None,
    active: Annotated[bool | None, Query(description="Only those under way, or only the others.")] = None,
    app: Annotated[str | None, Query(description="Only of this app, or of one version of it: `NAME@2`.")] = None,
    annex: Annotated[str | None, Query(description="Only on this annex, and its leases.")] = None,
    since: Annotated[Instant | None, Query(description="Only those asked for then or later, with a zone.")] = None,
    until: Annotated[Instant | None, Query(description="Only those asked for before then, with a zone.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 50,
    after: Annotated[str | None, Query(description="The `next` of the page before.")] = None,
) -> Response:
    """Sessions, newest first, a page at a time: yours, or for operators another person's or everyone's."""
    asker = await person_of(request)
    filters: Filters = {"phases": phase, "kind": kind, "platform": platform, "name": name, "active": active}
    filters |= {"app": app, "annex": annex, "since": in_utc(since), "until": in_utc(until)}
    page = await service_of(request).sessions.page(asker, of=person, limit=limit, after=after, **filters)
    return Response(_find_shown_sessions(request).show_page(page, base_of(request)), media_type=JSON)


@router.post("/cancel", response_model=CancelView, responses=CHANGE)
async def cancel_all(request: Request, ask: CancelAllAsk) -> Response:
    """Stop several at once, without waiting until they have stopped; with `dry_run` only say which would be.

    Nothing is done if one of them does not exist or is not the asker's to stop.
    """
    person, base = await person_of(request), base_of(request)
    done = await service_of(request).sessions.cancel_all(ask.sessions, person, ask.reason, dry_run=ask.dry_run)
    views = [tuple(session_view(session, base) for session in some) for some in (done.cancelled, done.over)]
    return json_response(CancelView(cancelled=views[0], over=views[1], dry_run=ask.dry_run))


@router.get("/{id}", response_model=SessionView, responses=LOOK)
async def session(request: Request, id: Id) -> Response:
    """One session."""
    return _view(request, await service_of(request).sessions.get(id, await person_of(request)))


@router.post("/{id}/accept", response_model=SessionView, **described.describe_keyed(CHANGE))
async def accept(request: Request, id: Id) -> Response:
    """Take an offer: its siblings are rejected. Accepting twice is accepting once, also after the session's end.

    A gateway's answer has a `token` that is for this session only.
    """
    service, person, key = service_of(request), await person_of(request), read_key(request)
    if service.people.tokens.knows_people:
        session, secret = await service.people.tokens.accept_with_token(id, person, key=key, host=host_of(request))
    else:
        session, secret = await service.sessions.accept(id, person, key=key), ""
    view = session_view(session, base_of(request))
    return json_response(replace(view, token=secret) if secret else view)


@router.post("/{id}/reject", response_model=SessionView, responses=CHANGE)
async def reject(request: Request, id: Id) -> Response:
    """Decline an offer: what was held for it is free again."""
    return _view(request, await service_of(request).sessions.reject(id, await person_of(request)))


@router.post("/{id}/cancel", response_model=SessionView, responses=CHANGE)
async def cancel(request: Request, id: Id, ask: CancelAsk | None = None) -> Response:
    """Stop it, whatever it is doing. Its owner sees the `reason`."""
    reason = ask.reason if ask else ""
    return _view(request, await service_of(request).sessions.cancel(id, await person_of(request), reason))


@router.post("/{id}/pause", response_model=PauseView, responses=CHANGE)
async def pause(request: Request, id: Id) -> Response:
    """Pause a session: if queued, it is held in its queue; if running, it is stopped. Its time limit runs on."""
    return _answer_pause(request, *await service_of(request).pausing.pause(id, await person_of(request)))


@router.post("/{id}/resume", response_model=PauseView, responses=CHANGE)
async def resume(request: Request, id: Id) -> Response:
    """Resume a paused session."""
    return _answer_pause(request, *await service_of(request).pausing.resume(id, await person_of(request)))


@router.post("/{id}/extend", response_model=SessionView, **described.describe_keyed(CHANGE))
async def extend(request: Request, id: Id, ask: ExtendAsk, key: Key) -> Response:
    """Extend a session, if there is room after it."""
    person = await person_of(request)
    if bool(ask.by) == bool(ask.until):
        raise BadRequest(detail="say `by` (how much longer, as in 30m) or `until` (an instant), and not both.")
    until = require_zone(ask.until, "until")
    extended = await service_of(request).sessions.extend(id, person, until=until, by=ask.by or None, key=key)
    return _view(request, extended)


@router.delete("/{id}", status_code=204, responses=CHANGE)
async def delete(request: Request, id: Id) -> Response:
    """Delete a session that has ended, with its files."""
    await service_of(request).sessions.delete(id, await person_of(request))
    return Response(status_code=204)


@router.get("/{id}/explain", response_model=Explanation, responses=LOOK)
async def explain(request: Request, id: Id) -> Response:
    """Why it is where it is, in sentences."""
    session, sentences = await service_of(request).explanations.explain(id, await person_of(request))
    return json_response(Explanation(session=session.id, phase=session.phase.value, sentences=tuple(sentences)))


@router.post("/{id}/again", status_code=201, response_model=OfferSetView, **described.describe_keyed(CHANGE))
async def again(
    request: Request, id: Id, ask: Annotated[AgainAsk, BeforeValidator(_amounts)], precedence: Said, key: Key
) -> Response:
    """Ask for the same once more, with changes: new offers, whose notes say what was changed."""
    refuse_unknown_fields(ask.scheduler, SCHEDULER_NAMES, "scheduler")
    changes = {name: value for name, value in vars(ask).items() if name not in ("set", "words", "scheduler")}
    changes |= ask.scheduler
    service = service_of(request)
    offerset, notes = await service.rerun.again(
        id, await person_of(request), changes, ask.set, ask.words, precedence, key
    )
    base = base_of(request)
    response = json_response(offerset_view(offerset, base, notes, service.settings.prefer), 201)
    response.headers["location"] = f"{base}/v1/offersets/{offerset.id}"
    return response


def _answer_pause(request: Request, session: Session, how: str) -> Response:
    return json_response(PauseView(session=session_view(session, base_of(request)), how=how))


def _view(request: Request, session: Session) -> Response:
    return Response(_find_shown_sessions(request).show(session, base_of(request)), media_type=JSON)


def _find_shown_sessions(request: Request) -> ShownSessions:
    shown: ShownSessions = request.app.state.shown
    return shown
