"""An app's page: its description, versions, and the form that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sublet.access.model.access_words import why
from sublet.api.people import service_of
from sublet.apps.catalogue import AppState
from sublet.apps.model.app import Version, VersionState
from sublet.apps.model.manifest import Manifest
from sublet.apps.pages import form as app_form
from sublet.apps.pages.apps import TONES
from sublet.apps.pages.form import VERSION, beside, check, form_of, key_of, read_typed, wish_of
from sublet.apps.run_requests import AppWish
from sublet.apps.runs import Places
from sublet.booking.model.giving_way import Precedence
from sublet.booking.model.offer import Reason
from sublet.booking.model.session import OfferSet
from sublet.booking.pages.ask import INSTEAD
from sublet.booking.pages.form import FormError, Values
from sublet.kernel.errors import BadRequest, NoOffers, NotFound, SubletError
from sublet.web.drawing import page
from sublet.web.entry import Visitor
from sublet.web.reading import read_form, visitor

MOST_FIELDS = 1000  # an app may have many parameters


@dataclass(frozen=True, slots=True)
class FormAnswer:
    """Why the request failed: errors beside fields, and others."""

    wrong: dict[str, FormError]
    others: Sequence[FormError]
    status: int = NoOffers.status


async def look(request: Request) -> Response:
    """Show an app with its versions and a form, empty or filled in from an earlier request."""
    who = await visitor(request)
    service = service_of(request)
    try:
        state = await service.apps.catalogue.app(request.path_params["name"], who.person)
    except NotFound:
        return await _draw_closed(request, who)
    earlier_id = request.query_params.get("from", "")
    earlier = await service.asking.offerset(earlier_id, who.person) if earlier_id else None
    number = request.query_params.get(VERSION, "")
    version = state.current
    if version and number:
        version = await service.apps.runs.runnable(who.person, AppWish(app=state.app.name, version=number))
    return await _page(request, who, state, version, earlier=earlier)


async def _draw_closed(request: Request, who: Visitor) -> Response:
    """Show an app that isn't open to the visitor: why, and how to request access."""
    service, name = service_of(request), request.path_params["name"]
    standings = () if service.access.quotas.is_open else await service.access.rules.standing(who.person)
    standing_there = next(
        (standing for standing in standings if (standing.decision.noun, standing.decision.name) == ("app", name)), None
    )
    if standing_there is None:
        raise NotFound(noun="app", name=name, hint="The page of apps lists those that you can run.")
    status = 404 if standing_there.decision.allowed else 403
    return page(request, "app_closed.html", who, status, standing=standing_there, why=why)


async def send(request: Request) -> Response:
    """Request offers; if there are none, show the form as filled in, with the reasons beside its fields."""
    who, form = await read_form(request, MOST_FIELDS)
    service = service_of(request)
    state = await service.apps.catalogue.app(request.path_params["name"], who.person)
    version = await service.apps.runs.runnable(who.person, AppWish(app=state.app.name, version=form.get(VERSION, "")))
    manifest = version.as_manifest()
    values, instead_of = read_typed(manifest, form), form.get(INSTEAD, "")
    places = await service.apps.runs.places(who.person, version)
    if wrong := check(manifest, values):
        return await _page(request, who, state, version, values, FormAnswer(wrong, ()), instead_of=instead_of)
    try:
        precedence = Precedence(instead_of=instead_of)
        offerset = await service.apps.runs.ask_app(who.person, wish_of(version, manifest, values), precedence)
    except SubletError as error:
        answer = _refusal(manifest, values, error)
        return await _page(request, who, state, version, values, answer, instead_of=instead_of)
    if offerset.offers:
        return RedirectResponse(f"/web/offersets/{offerset.id}", 303)
    answer = _no(manifest, values, offerset.reasons, places)
    return await _page(request, who, state, version, values, answer, instead_of=instead_of)


def _refusal(manifest: Manifest, values: Values, error: SubletError) -> FormAnswer:
    """Return an error at the field that it names, if the form has it."""
    path = error.values.get("field") if isinstance(error, BadRequest) else None
    key = key_of(manifest, values, path) if isinstance(path, str) else ""
    wrong = FormError(error.message, error.advice)
    return FormAnswer({key: wrong} if key else {}, () if key else (wrong,), error.status)


def _no(manifest: Manifest, values: Values, reasons: Sequence[Reason], places: Places) -> FormAnswer:
    """Return the reasons for no offers, without those about places that aren't open anyway."""
    usable = [reason for reason in reasons if not reason.platform or reason.platform in places.names] or reasons
    wrong, others = beside(manifest, values, usable)
    rest = dict.fromkeys((reason.message, reason.nearest) for reason in others)
    return FormAnswer(wrong, [FormError(words, f"Possible: {nearest}." if nearest else "") for words, nearest in rest])


async def _page(
    request: Request,
    who: Visitor,
    state: AppState,
    version: Version | None,
    values: Values | None = None,
    answer: FormAnswer | None = None,
    earlier: OfferSet | None = None,
    instead_of: str = "",
) -> Response:
    manifest = version.as_manifest() if version else None
    places = await service_of(request).apps.runs.places(who.person, version) if version else Places()
    if manifest and earlier:
        values = app_form.values_of(manifest, places.names, earlier.request)
    options = service_of(request).candidates.list_options(places.names)
    uploads = await service_of(request).uploads.kept.list(who.person)
    return page(
        request,
        "app.html",
        who,
        answer.status if answer else 200,
        state=state,
        chosen=version,
        manifest=manifest,
        form=form_of(manifest, places.names, values, options) if manifest and places.names else None,
        reasons=places.reasons,
        wrong=answer.wrong if answer else {},
        others=answer.others if answer else (),
        approved=[version for version in state.versions if version.state is VersionState.APPROVED],
        state_tones=TONES,
        uploads=uploads,
        instead_of=earlier.id if earlier else instead_of,
    )
