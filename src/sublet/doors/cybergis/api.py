"""Endpoints for old clients of CyberGIS-Compute (version 2), answered as they expect: docs/cybergis.md.

The token is in the body's `jupyterhubApiToken`, even of a GET; errors are `{"error": …, "messages": […]}`, with the
status codes that these clients know.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from starlette.responses import JSONResponse, Response

from sublet.api.bodies import read_body
from sublet.api.people import host_of, person_by, secret_of, service_of
from sublet.apps.model.draft import Draft
from sublet.booking.api.results import archive_response
from sublet.booking.model.session import Session
from sublet.booking.output import Results
from sublet.doors.cybergis.drafts import results_page, runtime_of
from sublet.doors.cybergis.manifest import list_supported, manifest_of
from sublet.doors.cybergis.uploading import keep_folder, read_form
from sublet.doors.cybergis.wire import (
    CODE,
    MAINTAINER,
    event_of,
    find_same_name,
    folder_of,
    job_of,
    list_once,
    secret_in,
)
from sublet.kernel.errors import BadRequest, NoGlobus, NotFound, NotHad, NotSignedIn, SubletError, TooMany
from sublet.people.model.person import Person

PREFIX = "/compat/cybergis"
TOKEN = "jupyterhubApiToken"  # noqa: S105 - the name of a field
STATUS = {400: 402, 401: 402, 403: 401, 404: 401, 409: 401, 415: 402}  # Sublet's → CyberGIS'; all others are the same


class TheirErrors(APIRoute):
    """A route that reports errors in CyberGIS' format."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        """Return the handler, with errors in CyberGIS' format."""
        handler = super().get_route_handler()

        async def told(request: Request) -> Response:
            try:
                if service_of(request).settings.cybergis == "off":
                    raise NotHad(what="old clients of CyberGIS-Compute", setting="cybergis")
                return await handler(request)
            except SubletError as error:
                return _tell(error)

        return told


def _tell(error: SubletError) -> Response:
    status = 403 if isinstance(error, NoGlobus) else STATUS.get(error.status, error.status)
    headers = {"retry-after": str(error.values.get("seconds", 60))} if isinstance(error, TooMany) else {}
    body = {"error": error.message, "messages": [error.advice] if error.advice else [], "code": error.code}
    return JSONResponse(body, status, headers)


router = APIRouter(prefix=PREFIX, route_class=TheirErrors, include_in_schema=False)


async def _read_body(request: Request) -> dict[str, Any]:
    """Read the body as JSON, whatever the method; empty if there is none."""
    text = await read_body(request)
    try:
        body = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise BadRequest(detail=f"the body is not JSON: {error}", hint="") from error
    if not isinstance(body, dict):
        raise BadRequest(detail="the body is not a JSON object.", hint="")
    return body


async def _person(request: Request, body: Mapping[str, Any]) -> Person:
    return await person_by(request, secret_in(body.get(TOKEN)) or secret_of(request.headers))


async def _visitor(request: Request) -> Person | None:
    """Return who views a catalogue; None if anonymous access is allowed and there is no token."""
    try:
        return await _person(request, await _read_body(request))
    except NotSignedIn:
        if service_of(request).settings.cybergis != "open":
            raise
        return None


@router.get("")
@router.get("/")
async def hello(request: Request) -> Response:
    """That there is something."""
    return JSONResponse({"message": "hello world"})


@router.get("/user")
async def user(request: Request) -> Response:
    """Who the token is of."""
    return JSONResponse({"username": (await _person(request, await _read_body(request))).name})


@router.get("/user/job")
async def jobs(request: Request) -> Response:
    """All jobs of theirs."""
    person = await _person(request, await _read_body(request))
    service = service_of(request)
    pairs = await service.drafts.drafts(person)
    listed = [job_of(draft, session) for draft, session in pairs]
    return JSONResponse({"job": listed})


@router.get("/user/slurm-usage")
async def usage(request: Request) -> Response:
    """What their jobs took, summed up."""
    person = await _person(request, await _read_body(request))
    pairs = await service_of(request).drafts.drafts(person)
    return JSONResponse(sum_usage([session for _, session in pairs if session and session.end]))


@router.get("/hpc")
async def systems(request: Request) -> Response:
    """The platforms that they may use."""
    return JSONResponse({"hpc": await _platforms(request, await _visitor(request))})


@router.get("/maintainer")
async def maintainers(request: Request) -> Response:
    """There is one, which runs apps."""
    names = sorted(await _platforms(request, await _visitor(request)))
    entry = {"hpc": names, "default_hpc": next(iter(names), ""), "job_pool_capacity": None, "maintainer": MAINTAINER}
    return JSONResponse({"maintainer": {MAINTAINER: entry}})


@router.get("/container")
async def containers(request: Request) -> Response:
    """The images that apps may name."""
    await _visitor(request)
    images = service_of(request).settings.images
    return JSONResponse(
        {"container": {name: {"dockerfile": "", "dockerhub": image.location} for name, image in images.items()}}
    )


@router.get("/git")
async def apps(request: Request) -> Response:
    """The apps that they may run, with their forms; one of them under the name that their form opens on."""
    return JSONResponse({"git": list_once(await _apps(request, await _visitor(request)))})


@router.get("/git/{name}")
async def app(request: Request, name: str) -> Response:
    """One of them."""
    listed = await _apps(request, await _visitor(request))
    meant = find_same_name(name, listed)
    if not meant:
        raise NotFound(noun="app", name=name, hint="GET …/git lists them.")
    return JSONResponse({"git": {name: listed[meant]}})


@router.get("/announcement")
async def announcement(request: Request) -> Response:
    """There are none."""
    return JSONResponse({})


@router.get("/allowlist")
@router.get("/whitelist")
async def hosts(request: Request) -> Response:
    """No hub is asked who someone is: Sublet's own tokens say that."""
    return JSONResponse({request.url.path.rpartition("/")[2]: {}})


@router.post("/job")
async def create(request: Request) -> Response:
    """A job that is not yet submitted."""
    body = await _read_body(request)
    return JSONResponse(job_of(await service_of(request).drafts.new_draft(await _person(request, body), body), None))


@router.put("/job/{id}")
async def change(request: Request, id: str) -> Response:
    """Set what it is to run, and how."""
    body = await _read_body(request)
    return JSONResponse(
        job_of(await service_of(request).drafts.set_draft(await _person(request, body), id, body), None)
    )


@router.delete("/job/{id}")
async def delete(request: Request, id: str) -> Response:
    """Delete one that was not submitted, or that is over."""
    await service_of(request).drafts.delete_draft(await _person(request, await _read_body(request)), id)
    return JSONResponse({"messages": ["job successfully deleted"]})


@router.post("/upload")
async def upload(request: Request) -> Response:
    """A folder of data for a job that is not yet submitted, as one zip: it becomes an upload of theirs."""
    form, service = await read_form(request), service_of(request)
    person, uploads = await _person(request, form), service.uploads
    id = (await service.drafts.draft(person, str(form.get("jobId") or ""))).id
    location = await keep_folder(uploads.transfers, uploads.kept, person, id, form, host_of(request))
    folder = {"type": "upload", "path": location}
    return JSONResponse(job_of(await service.drafts.set_draft(person, id, {"localDataFolder": folder}), None))


@router.post("/job/{id}/submit")
async def submit(request: Request, id: str) -> Response:
    """Run it, on the best offer."""
    person = await _person(request, await _read_body(request))
    return JSONResponse(job_of(*await service_of(request).drafts.submit_draft(person, id, host_of(request))))


@router.put("/job/{id}/cancel")
async def cancel(request: Request, id: str) -> Response:
    """Stop it."""
    person, _, session = await _find_submitted(request, id)
    await service_of(request).sessions.cancel(session.id, person)
    return JSONResponse({"messages": ["job successfully added to cancel queue"]})


@router.put("/job/{id}/pause")
async def pause(request: Request, id: str) -> Response:
    """Let it stand still."""
    person, _, session = await _find_submitted(request, id)
    return JSONResponse({"messages": [(await service_of(request).pausing.pause(session.id, person))[1]]})


@router.put("/job/{id}/resume")
async def resume(request: Request, id: str) -> Response:
    """Let it go on."""
    person, _, session = await _find_submitted(request, id)
    return JSONResponse({"messages": [(await service_of(request).pausing.resume(session.id, person))[1]]})


@router.get("/job/{id}")
async def job(request: Request, id: str) -> Response:
    """All there is to know of it."""
    person, draft, session = await _job(request, id)
    service = service_of(request)
    logs = await service.drafts.draft_logs(person, session) if session else []
    events = await service.drafts.draft_events(draft)
    return JSONResponse(job_of(draft, session, events, logs))


@router.get("/job/{id}/events")
async def events(request: Request, id: str) -> Response:
    """What happened to it."""
    _, draft, _ = await _job(request, id)
    listed = await service_of(request).drafts.draft_events(draft)
    return JSONResponse([{**event_of(event), "jobId": id} for event in listed])


@router.get("/job/{id}/logs")
async def logs(request: Request, id: str) -> Response:
    """What it printed so far."""
    person, _, session = await _job(request, id)
    listed = await service_of(request).drafts.draft_logs(person, session) if session else []
    return JSONResponse([{**log, "jobId": id} for log in listed])


@router.get("/job/{id}/result-folder-content")
async def content(request: Request, id: str) -> Response:
    """The folders and files that it left, as paths."""
    person, _, session = await _job(request, id)
    return JSONResponse(paths_of(await service_of(request).output.results(session.id, person)) if session else [])


@router.get("/statistic/job/{id}")
async def statistic(request: Request, id: str) -> Response:
    """For how long it ran."""
    _, _, session = await _job(request, id)
    return JSONResponse({"runtime_in_seconds": runtime_of(session, service_of(request).now())})


@router.get("/folder")
async def folders(request: Request) -> Response:
    """The folders with results."""
    person = await _person(request, await _read_body(request))
    drafts = await service_of(request).drafts.drafts(person)
    return JSONResponse({"folder": [folder_of(draft, session) for draft, session in drafts if session]})


@router.put("/folder/{id}")
async def name_folder(request: Request, id: str) -> Response:
    """Give a job another name."""
    body = await _read_body(request)
    named = await service_of(request).drafts.name_folder(await _person(request, body), id, str(body.get("name") or ""))
    return JSONResponse({"id": id, "name": named.fields["name"]})


@router.get("/folder/{id}/download/browser")
async def browser(request: Request, id: str) -> Response:
    """All files of a result folder, as one archive."""
    person = await _person(request, await _read_body(request))
    response = await archive_response(service_of(request), person, id)
    response.headers["content-type"] = "application/x-tar+gzip"  # their clients choose the file type by this
    return response


@router.get("/user/jupyter-globus")
async def no_endpoint(request: Request) -> Response:
    """No endpoint: their forms ask before each job, and use it only where there is data to bring."""
    await _person(request, await _read_body(request))
    return JSONResponse({"endpoint": "", "root_path": "/", "container_home_path": "/"})


@router.post("/folder/{id}/download/globus-init")
@router.get("/folder/{id}/download/globus-status")
async def globus(request: Request, id: str = "") -> Response:
    """Not had here; where results can be downloaded instead is said."""
    person, service = await _person(request, await _read_body(request)), service_of(request)
    try:
        session = await service.sessions.get(id.removesuffix(CODE), person)
    except SubletError:
        raise NoGlobus from None
    raise NoGlobus(hint=f"Download the results in a browser: {results_page(service.presenter, session)}")


@router.api_route("/{path:path}", methods=["GET", "POST", "PUT", "DELETE"])
async def nothing(request: Request, path: str) -> Response:
    """What is left out says so."""
    raise NotFound(f"There is no /{path[:100]} here.", hint="docs/cybergis.md lists what is answered, and what is not.")


async def _job(request: Request, id: str) -> tuple[Person, Draft, Session | None]:
    person = await _person(request, await _read_body(request))
    service = service_of(request)
    draft = await service.drafts.draft(person, id)
    return person, draft, await service.drafts.draft_session(person, draft)


async def _find_submitted(request: Request, id: str) -> tuple[Person, Draft, Session]:
    person, draft, session = await _job(request, id)
    if session is None:
        raise BadRequest("The job is not in queue or running.", hint="Submit it first.")
    return person, draft, session


async def _apps(request: Request, person: Person | None) -> dict[str, dict[str, Any]]:
    """Return the apps by name, with their forms; apps that run nowhere here are left out."""
    service = service_of(request)
    places = sorted(await _platforms(request, person))
    states = await service.apps.catalogue.apps(person) if person else await service.apps.catalogue.list_approved()
    manifests = {}
    for version in (state.current for state in states):
        manifest = version.as_manifest() if version else None
        if version and manifest and list_supported(manifest, places):
            manifests[version.app] = manifest_of(manifest, version.repository, version.commit, places)
    return manifests


async def _platforms(request: Request, person: Person | None) -> dict[str, dict[str, Any]]:
    """Return the platforms by name; without a token only the names."""
    service = service_of(request)
    words = (
        {state.account.name: state.account.description for state in await service.access.accounts.accounts(person)}
        if person
        else {}
    )
    entries = {}
    names = await service.usable_platforms.usable(person) if person else service.platforms.by_name
    for name in names:
        platform, community = service.platforms.get(name), service.platforms.noun_of(name) == "account"
        place = {"ip": getattr(platform, "host", ""), "port": getattr(platform, "port", 22)} if person else {}
        facts = {"description": words.get(name) or name, "is_community_account": community}
        entries[name] = {"ip": "", "port": 22, **facts, **place}
    return entries


def paths_of(left: Results) -> list[str]:
    """List the folders, including empty ones, then the files, each as an absolute path."""
    files = [file.path for file in left.files]
    folders = {"/"}
    for folder in (*left.folders, *(file.rpartition("/")[0] for file in files)):
        parts = folder.split("/") if folder else []
        folders |= {f"/{'/'.join(parts[:depth])}" for depth in range(1, len(parts) + 1)}
    return [*sorted(folders), *(f"/{file}" for file in files)]


def sum_usage(sessions: Sequence[Session]) -> dict[str, Any]:
    """Sum nodes, cores, seconds and bytes of sessions that have ended."""
    ends = [(session, session.end.usage) for session in sessions if session.end and session.end.usage]
    return {
        "nodes": sum(max(1, len(session.offer.nodes)) for session in sessions),
        "cpus": sum(session.offer.shape.cores for session in sessions),
        "cpuTime": round(sum(usage.cpu for _, usage in ends)),
        "memory": sum(session.offer.shape.memory for session in sessions),
        "memoryUsage": sum(usage.peak_memory for _, usage in ends),
        "walltime": round(sum(usage.wall for _, usage in ends)),
    }
