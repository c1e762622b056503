"""The pages of the visitor's uploads: drop folders, list, keep and remove them."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sublet.api.bodies import json_response
from sublet.api.people import host_of, service_of
from sublet.booking.model.amounts import parse_duration
from sublet.data.api.uploads import view_files, view_upload
from sublet.data.model.uploads import Upload
from sublet.data.views.uploads import UploadShown
from sublet.kernel.errors import SubletError
from sublet.kernel.texts import count_text
from sublet.web.confirming import Affected, Confirmation, confirm_page, is_confirmed
from sublet.web.drawing import page
from sublet.web.entry import Visitor
from sublet.web.reading import change_of, read_form, visitor

MOST_SHOWN = 500  # files on a page


async def listing(request: Request) -> Response:
    """List the visitor's uploads."""
    return await _draw_list(request, await visitor(request))


async def _draw_list(request: Request, who: Visitor, wrong: SubletError | None = None) -> Response:
    service = service_of(request)
    own = await service.uploads.kept.list(who.person)
    status, size = wrong.status if wrong else 200, sum(upload.size for upload in own)
    most = service.settings.uploads.per_person
    return page(request, "uploads.html", who, status, uploads=own, size=size, most=most, wrong=wrong)


async def look(request: Request) -> Response:
    """Show an upload with its files."""
    who = await visitor(request)
    upload, files, uses = await service_of(request).uploads.kept.get(who.person, request.path_params["name"])
    shown, more = files[:MOST_SHOWN], max(len(files) - MOST_SHOWN, 0)
    return page(request, "upload.html", who, upload=upload, files=shown, more=more, sessions=uses)


async def files(request: Request) -> Response:
    """Return an upload's files as JSON for the page's script, which sends only what is missing."""
    who = await visitor(request)
    upload, files, uses = await service_of(request).uploads.kept.get(who.person, request.path_params["name"])
    return json_response(UploadShown(upload=view_upload(upload), items=view_files(files), sessions=tuple(uses)))


async def change(request: Request) -> Response:
    """Keep an upload longer, or remove it."""
    act = change_of(request, CHANGES)
    who, form = await read_form(request)
    try:
        return await act(request, who, form)
    except SubletError as error:
        return await _draw_list(request, who, error)


async def _keep(request: Request, who: Visitor, form: dict[str, str]) -> Response:
    kept = service_of(request).uploads.kept
    upload, _, _ = await kept.get(who.person, request.path_params["name"])
    await kept.keep(who.person, upload.id, parse_duration(form.get("duration", "")), host_of(request))
    return RedirectResponse("/web/uploads", 303)


async def _remove(request: Request, who: Visitor, form: dict[str, str]) -> Response:
    kept, name = service_of(request).uploads.kept, request.path_params["name"]
    if not is_confirmed(form):
        upload, _, uses = await kept.get(who.person, name)
        return confirm_page(request, who, _question(upload, uses), form)
    await kept.remove(who.person, name, host_of(request), force=True)
    return RedirectResponse("/web/uploads", 303)


def _question(upload: Upload, uses: Sequence[str]) -> Confirmation:
    effects = [f"{count_text(upload.files, 'file')} are removed from the service; what you have yourself stays."]
    if uses:
        effects.append("Sessions that have not started yet need it, and are going to fail:")
    affected = tuple(Affected(id[:8], address=f"/web/sessions/{id}") for id in uses)
    return Confirmation(f"Remove {upload.name}?", tuple(effects), "Remove", "/web/uploads", affected)


CHANGES = {"keep": _keep, "remove": _remove}
