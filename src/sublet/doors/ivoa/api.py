"""The IVOA Execution Broker 1.0.7, at the root.

These are plain routes, as documents go in and out and FastAPI would only add overhead. Their OpenAPI description is in
`described.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from sublet.api.bodies import choose_media_type, document_response, read_body
from sublet.api.idempotency import read_key
from sublet.api.people import base_of, person_of, service_of
from sublet.booking.api.precedence import read_broker_precedence
from sublet.booking.asked import Asked
from sublet.booking.model.offer import Reason
from sublet.booking.model.phases import Phase
from sublet.booking.model.refused_moves import refuse_move
from sublet.booking.model.session import Session
from sublet.booking.sessions import Sessions
from sublet.doors.ivoa.hops import PROOF, read_request_id, read_via, read_wait
from sublet.doors.ivoa.offersets import offerset_document
from sublet.doors.ivoa.sessions import describe_failure, session_document
from sublet.doors.ivoa.updates import LongerUpdate, read_update
from sublet.kernel.document import parse_document
from sublet.kernel.errors import NoOffers, NotFound
from sublet.people.model.person import Person
from sublet.service import Service

Move = Callable[[Sessions, str, Person], Awaitable[Session]]
MOVES: dict[Phase, Move] = {
    Phase.REJECTED: Sessions.reject,
    Phase.CANCELLED: Sessions.cancel,
}


async def ask(request: Request) -> Response:
    """Ask for offers: each can be accepted until it expires, and what is booked is held for you until then.

    Of a queue that others share nothing is held: the message of kind `urn:sublet:terms` in an offer says which it is.
    A NO is no error: it has the reasons.
    """
    person = await person_of(request)
    kind = choose_media_type(request)
    service, base = service_of(request), base_of(request)
    asked = await _read(request, service, person)
    answer = await service.asking.ask(person, asked, key=read_key(request))
    document = offerset_document(answer, base, asked.notes)
    response = document_response(document, kind, 303, f"{base}/offersets/{answer.id}")
    if asked.request_id:
        response.headers[PROOF] = service.candidates.forwarding.prove(asked.request_id)
    return response


async def _read(request: Request, service: Service, person: Person) -> Asked:
    precedence = read_broker_precedence(request)
    asked = await service.asking.read(await read_body(request), request.headers.get("content-type", ""), person)
    id, via, within = read_request_id(request), read_via(request), read_wait(request)
    return replace(asked, precedence=precedence, request_id=id, via=via, within=within)


async def direct(request: Request) -> Response:
    """Ask, and accept the best offer at once; what can't be run is answered with a FAILED session and the reasons."""
    person = await person_of(request)
    kind = choose_media_type(request)
    service, base = service_of(request), base_of(request)
    asked = await _read(request, service, person)
    try:
        session = await service.direct.run(person, asked, key=read_key(request))
    except NoOffers as error:
        return document_response(describe_failure(_reasons(error), service.now()), kind, 400)
    document = session_document(session, asked.request, base)
    return document_response(document, kind, 303, f"{base}/sessions/{session.id}")


async def offerset(request: Request) -> Response:
    """An offer set, with its offers as they are now."""
    person = await person_of(request)
    kind = choose_media_type(request)
    answer = await service_of(request).asking.offerset(_uuid(request, "offer set"), person)
    return document_response(offerset_document(answer, base_of(request)), kind)


async def session(request: Request) -> Response:
    """A session, or an offer."""
    person = await person_of(request)
    kind = choose_media_type(request)
    stored = await service_of(request).contents.session_to_read(_uuid(request, "session"), person, "request")
    return await _answer(request, stored, kind)


async def update(request: Request) -> Response:
    """Accept, reject or cancel it by moving its `phase`; or make it last longer.

    What can be changed is listed in `meta.options`. A change that can't be made is a 409 that says why:
    an offer that has expired can't be accepted.
    """
    person = await person_of(request)
    kind = choose_media_type(request)
    service, name = service_of(request), _uuid(request, "session")
    stored = await service.contents.session_to_read(name, person, "request")
    wanted = read_update(parse_document(await read_body(request), request.headers.get("content-type", "")))
    if isinstance(wanted, LongerUpdate):
        changed = await service.sessions.extend(name, person, by=wanted.by, key=read_key(request))
    elif wanted.phase is Phase.ACCEPTED:
        changed = await service.sessions.accept(name, person, key=read_key(request))
    elif move := MOVES.get(wanted.phase):
        changed = await move(service.sessions, name, person)
    else:
        raise refuse_move(stored.phase, wanted.phase, name)
    return await _answer(request, changed, kind)


async def _answer(request: Request, session: Session, kind: str) -> Response:
    offerset = await service_of(request).sessions.offerset_of(session)
    return document_response(session_document(session, offerset.request, base_of(request)), kind)


def _uuid(request: Request, noun: str) -> str:
    """Return the uuid of the path in its stored form; raise NotFound if it isn't one."""
    text: str = request.path_params["uuid"]
    try:
        return str(UUID(text))
    except ValueError:
        raise NotFound(noun=noun, name=text[:40]) from None


def _reasons(error: NoOffers) -> tuple[Reason, ...]:
    reasons = error.values.get("reasons")
    return reasons if isinstance(reasons, tuple) else ()


ROUTES = (
    Route("/requests", ask, methods=["POST"]),
    Route("/offersets", ask, methods=["POST"]),
    Route("/direct", direct, methods=["POST"]),
    Route("/offersets/{uuid}", offerset, methods=["GET"]),
    Route("/sessions/{uuid}", session, methods=["GET"]),
    Route("/sessions/{uuid}", update, methods=["POST"]),
)
