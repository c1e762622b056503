"""The pages of apps: the list, proposals, and the page on which a reviewer sees a version and decides."""

from __future__ import annotations

import json

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sublet.api.people import host_of, service_of
from sublet.apps.catalogue import decides
from sublet.apps.model.app import VersionState
from sublet.apps.views.convert import file_view
from sublet.kernel.errors import SubletError
from sublet.people.model.person import Person
from sublet.service import Service
from sublet.web.confirming import Confirmation, confirm_page, describe_affected_sessions, is_confirmed
from sublet.web.drawing import page
from sublet.web.entry import Visitor
from sublet.web.reading import change_of, read_form, visitor
from sublet.web.words import count_text

HERE = "/web/apps"
P = VersionState
TONES = {P.PROPOSED: "open", P.APPROVED: "good", P.REFUSED: "bad", P.REVOKED: "bad"}
HOW = {"added": "good", "removed": "bad", "changed": "open"}
ASKED = ("repository", "branch", "commit", "name", "maintainer")


async def listing(request: Request) -> Response:
    """Show the apps that the visitor may see, and a form to propose one."""
    return await _list(request, await visitor(request))


async def _list(
    request: Request, who: Visitor, wrong: SubletError | None = None, form: dict[str, str] | None = None
) -> Response:
    service = service_of(request)
    return page(
        request,
        "apps.html",
        who,
        wrong.status if wrong else 200,
        apps=await service.apps.catalogue.apps(who.person),
        maintainers={name: maintainer.kind for name, maintainer in service.settings.maintainers.items()},
        wrong=wrong,
        form=form or {},
        state_tones=TONES,
    )


async def propose(request: Request) -> Response:
    """Propose a repository."""
    who, form = await read_form(request)
    fields = {name: form.get(name, "").strip() for name in ASKED}
    try:
        made = await service_of(request).apps.proposing.propose(who.person, **fields, host=host_of(request))
    except SubletError as error:
        return await _list(request, who, error, fields)
    return RedirectResponse(f"{HERE}/{made.app}/{made.number}", 303)


async def version(request: Request) -> Response:
    """Show one version: everything to decide on, and what is new in it."""
    return await _version(request, await visitor(request))


async def _version(request: Request, who: Visitor, wrong: SubletError | None = None) -> Response:
    reviewed = await service_of(request).apps.reviewing.review(_ref(request), who.person)
    return page(
        request,
        "version.html",
        who,
        wrong.status if wrong else 200,
        found=reviewed,
        files=[file_view(file) for file in reviewed.files],
        manifest=json.dumps(reviewed.version.manifest, indent=2, ensure_ascii=False),
        decides=decides(who.person),
        wrong=wrong,
        state_tones=TONES,
        how_tones=HOW,
    )


async def decide(request: Request) -> Response:
    """Approve exactly what was shown, refuse it, or revoke an approval."""
    change = change_of(request, CHANGES)
    who, form = await read_form(request)
    try:
        if change is _revoke and form.get("why", "").strip() and not is_confirmed(form):
            return confirm_page(request, who, await _question(request, who.person, form), form)
        await change(service_of(request), _ref(request), who.person, form, host_of(request))
    except SubletError as error:
        return await _version(request, who, error)
    return RedirectResponse(f"{HERE}/{request.path_params['name']}/{request.path_params['number']}", 303)


async def _question(request: Request, person: Person, form: dict[str, str]) -> Confirmation:
    ref = _ref(request)
    running = await service_of(request).apps.reviewing.sessions_of_version(ref, person)
    effects = ["Nobody can run it any more. A revoked version stays revoked: it has to be proposed again."]
    if running:
        end = "ends" if "cancel" in form else "that has not started ends; what runs goes on"
        effects.append(f"{count_text(len(running), 'session')} under way: each {end}.")
    back = f"{HERE}/{request.path_params['name']}/{request.path_params['number']}"
    return Confirmation(f"Revoke {ref}?", tuple(effects), f"Revoke {ref}", back, describe_affected_sessions(running))


def _ref(request: Request) -> str:
    return f"{request.path_params['name']}@{request.path_params['number']}"


async def _approve(service: Service, ref: str, person: Person, form: dict[str, str], host: str) -> None:
    await service.apps.reviewing.approve(ref, person, form.get("tree", ""), form.get("why", ""), host)


async def _refuse(service: Service, ref: str, person: Person, form: dict[str, str], host: str) -> None:
    await service.apps.reviewing.refuse(ref, person, form.get("why", ""), host)


async def _revoke(service: Service, ref: str, person: Person, form: dict[str, str], host: str) -> None:
    await service.apps.reviewing.revoke(ref, person, form.get("why", ""), cancel="cancel" in form, host=host)


CHANGES = {"approve": _approve, "refuse": _refuse, "revoke": _revoke}
