"""The pages under /web: a separate application with its own authentication, errors and stricter headers."""

from __future__ import annotations

from html import escape
from http import HTTPStatus
from importlib import resources
from urllib.parse import quote

import structlog
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Message, Scope

from sublet.access.pages import access, audit, rules, usage
from sublet.annexes.pages import annexes
from sublet.api.answers import AnswerHeads
from sublet.api.paths import allow_any_path
from sublet.api.people import explain_refusal
from sublet.api.problems import FULL, describe_log
from sublet.apps.pages import apps
from sublet.apps.pages import runs as app_runs
from sublet.booking.pages import (
    ask,
    files,
    hints,
    logs,
    offersets,
    opening,
    operate,
    overview,
    platforms,
    previews,
    results,
    sessions,
    systems,
)
from sublet.booking.pages import series as bookings
from sublet.data.pages import caches, credentials, tus, uploads
from sublet.kernel.errors import NotSignedIn, ServiceFull, SubletError, TooMany
from sublet.notices.pages import hooks
from sublet.people.pages import account, factors, login, oidc, people, signing_in
from sublet.web.drawing import page
from sublet.web.entry import UsedCodes, Visitor
from sublet.web.reading import visitor

log = structlog.get_logger()

HEADERS = {
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'; object-src 'none'",
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
KEPT = "public, max-age=31536000, immutable"  # static URLs change with the files' content


def mount(app: FastAPI) -> None:
    """Mount the pages in the application, with the same service."""
    allow_any_path()
    pages = Starlette(
        routes=[
            Route("/", overview.overview, name="overview"),
            Route("/login", login.look, methods=["GET"]),
            Route("/login", login.sign_in, methods=["POST"]),
            Route("/login/code", signing_in.code, methods=["POST"]),
            Route("/login/second", signing_in.second, methods=["POST"]),
            Route("/account", account.look, methods=["GET"]),
            Route("/account/revoke", account.revoke, methods=["POST"]),
            Route("/logout", login.sign_out, methods=["POST"]),
            Route("/code", login.code, methods=["POST"]),
            Route("/sign-in/oidc/{name}", oidc.begin, methods=["GET"]),
            Route("/sign-in/oidc/{name}/back", oidc.back, methods=["GET"]),
            Route("/account/link/{name}", oidc.link, methods=["POST"]),
            Route("/account/factor", factors.look, methods=["GET"]),
            Route("/account/factor/{change}", factors.change, methods=["POST"]),
            Route("/ask", ask.look, methods=["GET"]),
            Route("/ask", ask.send, methods=["POST"]),
            Route("/offersets/{id}", offersets.look),
            Route("/offersets/{id}/hints/{number:int}", hints.take, methods=["POST"]),
            Route("/offersets/{id}/{change}", offersets.change, methods=["POST"]),
            Route("/bookings", bookings.look, methods=["GET"]),
            Route("/bookings/{id}/{change}", bookings.change, methods=["POST"]),
            Route("/sessions", sessions.listing),
            Route("/sessions/{id}", sessions.look),
            Route("/sessions/{id}/open", opening.look),
            Route("/sessions/{id}/log", logs.log),
            Route("/sessions/{id}/log/download", logs.download),
            Route("/sessions/{id}/archive", results.archive),
            Route("/sessions/{id}/files", files.look),
            Route("/sessions/{id}/send", files.send, methods=["POST"]),
            Route("/sessions/{id}/send/stop", files.stop, methods=["POST"]),
            Route("/sessions/{id}/preview/{path:path}", previews.look),
            Route("/sessions/{id}/raw/{path:path}", previews.raw),
            Route("/sessions/{id}/results/{path:path}", results.result),
            Route("/sessions/{id}/{change}", sessions.change, methods=["POST"]),
            Route("/hooks", hooks.look, methods=["GET"]),
            Route("/hooks", hooks.add, methods=["POST"]),
            Route("/hooks/{id}/{change}", hooks.change, methods=["POST"]),
            Route("/uploads", uploads.listing),
            Route("/uploads/{name}", uploads.look),
            Route("/uploads/{name}/files", uploads.files),
            Route("/uploads/{name}/{change}", uploads.change, methods=["POST"]),
            Route("/tus", tus.create, methods=["POST"]),
            Route("/tus/{id}", tus.look, methods=["GET"]),
            Route("/tus/{id}", tus.append, methods=["PATCH"]),
            Route("/tus/{id}", tus.remove, methods=["DELETE"]),
            Route("/credentials", credentials.look, methods=["GET"]),
            Route("/credentials", credentials.add, methods=["POST"]),
            Route("/credentials/remove", credentials.remove, methods=["POST"]),
            Route("/caches", caches.look, methods=["GET"]),
            Route("/caches/{platform}/remove", caches.remove, methods=["POST"]),
            Route("/annexes", annexes.listing),
            Route("/annexes/{name}", annexes.look),
            Route("/annexes/{name}/{change}", annexes.change, methods=["POST"]),
            Route("/apps", apps.listing, methods=["GET"]),
            Route("/apps", apps.propose, methods=["POST"]),
            Route("/apps/{name}", app_runs.look, methods=["GET"]),
            Route("/apps/{name}", app_runs.send, methods=["POST"]),
            Route("/apps/{name}/{number:int}", apps.version),
            Route("/apps/{name}/{number:int}/{change}", apps.decide, methods=["POST"]),
            Route("/access", access.look),
            Route("/access/ask", access.ask, methods=["POST"]),
            Route("/access/requests/{id}", access.one),
            Route("/access/requests/{id}/{change}", access.decide, methods=["POST"]),
            Route("/rules", rules.look, methods=["GET"]),
            Route("/rules", rules.add, methods=["POST"]),
            Route("/rules/{id}/remove", rules.remove, methods=["POST"]),
            Route("/operate", operate.look),
            Route("/operate/cancel", operate.ask, methods=["GET"]),
            Route("/operate/cancel", operate.cancel, methods=["POST"]),
            Route("/platforms", platforms.listing),
            Route("/platforms/{name}", platforms.look),
            Route("/platforms/{name}/{change}", platforms.change, methods=["POST"]),
            Route("/people", people.look),
            Route("/people/{change}", people.change, methods=["POST"]),
            Route("/audit", audit.look),
            Route("/audit/export", audit.export),
            Route("/usage", usage.look),
            Route("/usage/export", usage.export),
            Route("/systems/{name}", systems.look),
            Route("/systems/{name}/state", systems.state),
            Route("/systems/{name}/{change}", systems.change, methods=["POST"]),
            Mount("/static", StaticFiles(directory=str(resources.files("sublet.web") / "static"))),
        ],
        exception_handlers={SubletError: _ours, HTTPException: _http, Exception: _answer_unexpected},
    )
    pages.state = app.state
    pages.state.used_codes = UsedCodes()
    app.router.routes.append(Route("/web", lambda _: RedirectResponse("/web/"), include_in_schema=False))
    app.router.routes.append(Mount("/web", app=AnswerHeads(pages, _guard)))


def _guard(scope: Scope, head: Message) -> Message:
    """Add security headers to every answer, and forbid caching of all but static files."""
    is_static = scope["path"].startswith("/web/static/")
    headers = MutableHeaders(scope=head)
    for name, value in HEADERS.items():
        headers.setdefault(name, value)
    is_found = head["status"] in (HTTPStatus.OK, HTTPStatus.NOT_MODIFIED)
    headers["cache-control"] = KEPT if is_static and is_found else "no-store"
    return head


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, SubletError)  # noqa: S101 - this is what it is registered for
    if isinstance(error, NotSignedIn):
        if request.method != "GET":
            return RedirectResponse("/web/login", 303)
        here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        if request.headers.get("sec-fetch-site") == "cross-site":
            return _come_again(here)
        return RedirectResponse(f"/web/login?next={quote(here, safe='')}", 303)
    told = explain_refusal(request, error)
    answer = await _error(request, told.status, told.message, told.advice)
    if isinstance(error, TooMany):
        answer.headers["retry-after"] = str(error.values.get("seconds", 60))
    return answer


def _come_again(here: str) -> Response:
    """Return a page that reloads itself, after a link from another site, with which our strict cookie isn't sent."""
    words = f'<meta http-equiv="refresh" content="0; url={escape(here)}"><title>Sublet</title>'
    return Response(f'<!doctype html><html lang="en"><head>{words}</head></html>', media_type="text/html")


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - this is what it is registered for
    words = {404: "There is no such page.", 405: "This page can't be used that way."}
    return await _error(request, error.status_code, words.get(error.status_code, f"{error.detail}."), "")


async def _answer_unexpected(request: Request, error: Exception) -> Response:
    if isinstance(error, OSError) and error.errno in FULL:
        return await _ours(request, ServiceFull())
    log.error("page.failed", method=request.method, path=request.url.path, exc_info=error)
    return await _error(request, 500, "Something went wrong inside the service.", describe_log(request))


async def _error(request: Request, status: int, message: str, hint: str) -> Response:
    return page(request, "error.html", await _maybe(request), status, message=message, hint=hint, code=status)


async def _maybe(request: Request) -> Visitor | None:
    try:
        return await visitor(request)
    except SubletError:
        return None
