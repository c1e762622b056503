"""The IVOA Execution Broker 1.0.7, at the root."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from uuid import UUID

from fastapi import APIRouter, Request
from starlette.responses import Response

from sublet.api import described
from sublet.api.bodies import document_response, preferred, read_body
from sublet.api.people import base_of, person_of, service_of
from sublet.core.offer import Reason
from sublet.core.session import Phase, Session
from sublet.errors import NoOffers, NotAllowedNow, NotFound
from sublet.service.desk import Person
from sublet.service.service import Service
from sublet.wire.document import parse_document
from sublet.wire.offersets import offerset_document
from sublet.wire.sessions import failed_document, session_document
from sublet.wire.updates import LongerUpdate, read_update

router = APIRouter(tags=["IVOA Execution Broker"])

Move = Callable[[Service, str, Person], Awaitable[Session]]
MOVES: dict[Phase, Move] = {
    Phase.ACCEPTED: Service.accept,
    Phase.REJECTED: Service.reject,
    Phase.CANCELLED: Service.cancel,
}


async def ask(request: Request) -> Response:
    """Ask for offers: they are held until they expire. A NO is no error: it has the reasons."""
    person = await person_of(request)
    kind = preferred(request)
    service, base = service_of(request), base_of(request)
    asked = await service.read(await read_body(request), request.headers.get("content-type", ""), person)
    found = await service.ask(person, asked, key=request.headers.get("idempotency-key"))
    return document_response(offerset_document(found, base, asked.notes), kind, 303, f"{base}/offersets/{found.id}")


router.add_api_route(
    "/requests", ask, methods=["POST"], operation_id="ExecutionRequest", status_code=303, **described.ASK
)
router.add_api_route(
    "/offersets",
    ask,
    methods=["POST"],
    operation_id="ExecutionRequestOlder",
    summary="Ask, at the older address",
    status_code=303,
    **described.ASK,
)


@router.post("/direct", operation_id="DirectExecution", status_code=303, **described.DIRECT)
async def direct(request: Request) -> Response:
    """Ask, and accept the best offer at once; what can't be run is answered with a FAILED session and the reasons."""
    person = await person_of(request)
    kind = preferred(request)
    service, base = service_of(request), base_of(request)
    asked = await service.read(await read_body(request), request.headers.get("content-type", ""), person)
    try:
        session = await service.direct(person, asked)
    except NoOffers as error:
        return document_response(failed_document(_reasons(error), service.now()), kind, 400)
    document = session_document(session, asked.request, base)
    return document_response(document, kind, 303, f"{base}/sessions/{session.id}")


@router.get("/offersets/{uuid}", operation_id="OfferSetSelect", **described.OFFERSET)
async def offerset(request: Request, uuid: str) -> Response:
    """An offer set, with its offers as they are now."""
    person = await person_of(request)
    kind = preferred(request)
    found = await service_of(request).offerset(_uuid(uuid, "offer set"), person)
    return document_response(offerset_document(found, base_of(request)), kind)


@router.get("/sessions/{uuid}", operation_id="SessionSelect", **described.SESSION)
async def session(request: Request, uuid: str) -> Response:
    """A session, or an offer."""
    person = await person_of(request)
    kind = preferred(request)
    found = await service_of(request).session(_uuid(uuid, "session"), person)
    return await _answer(request, found, kind)


@router.post("/sessions/{uuid}", operation_id="SessionUpdate", **described.UPDATE)
async def update(request: Request, uuid: str) -> Response:
    """Accept, reject or cancel it by moving its `phase`; or make it last longer.

    What can be changed is listed in `meta.options`. A change that can't be made is a 409 that says why:
    an offer that has expired can't be accepted.
    """
    person = await person_of(request)
    kind = preferred(request)
    service, name = service_of(request), _uuid(uuid, "session")
    found = await service.session(name, person)
    wanted = read_update(parse_document(await read_body(request), request.headers.get("content-type", "")))
    if isinstance(wanted, LongerUpdate):
        changed = await service.extend(name, person, by=wanted.by)
    elif move := MOVES.get(wanted.phase):
        changed = await move(service, name, person)
    else:
        raise NotAllowedNow(phase=found.phase, wanted=wanted.phase, session=name[:8])
    return await _answer(request, changed, kind)


async def _answer(request: Request, session: Session, kind: str) -> Response:
    offerset = await service_of(request).offerset_of(session)
    return document_response(session_document(session, offerset.request, base_of(request)), kind)


def _uuid(text: str, noun: str) -> str:
    """The uuid as it is stored; what is no uuid names nothing."""
    try:
        return str(UUID(text))
    except ValueError:
        raise NotFound(noun=noun, name=text[:40]) from None


def _reasons(error: NoOffers) -> tuple[Reason, ...]:
    reasons = error.values.get("reasons")
    return reasons if isinstance(reasons, tuple) else ()
