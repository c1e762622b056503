"""The only mapping from errors to RFC 9457 problems."""

from __future__ import annotations

import errno
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import compile_path

from sublet.api.people import explain_refusal, service_of
from sublet.kernel.errors import BadRequest, ServiceFull, ServiceShort, SubletError, TooLarge, TooMany
from sublet.kernel.shortage import find_shortage

FULL = (errno.ENOSPC, errno.EDQUOT)
MEDIA_TYPE = "application/problem+json"
TITLES = {460: "Checksum Mismatch"}  # a status of tus
log = structlog.get_logger()


def problem(
    status: int, code: str, detail: str, hint: str = "", errors: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """Return the members of a problem document."""
    document: dict[str, Any] = {
        "type": f"urn:sublet:problem:{code}",
        "title": TITLES.get(status) or HTTPStatus(status).phrase,
        "status": status,
        "code": code,
        "detail": detail,
        "hint": hint,
    }
    return document if errors is None else document | {"errors": errors}


def problem_response(error: SubletError) -> Response:
    """Return the response for a SubletError."""
    headers = {}
    if error.status == HTTPStatus.UNAUTHORIZED:
        headers["www-authenticate"] = 'Bearer realm="sublet"'
    if isinstance(error, TooMany):
        headers["retry-after"] = str(error.values.get("seconds", 60))
    if isinstance(error, TooLarge):
        headers["connection"] = "close"  # the rest of the body isn't read
    errors = error.values.get("errors")
    document = problem(
        error.status, error.code, error.message, error.advice, errors if isinstance(errors, list) else None
    )
    return Response(to_json(document), error.status, headers, media_type=MEDIA_TYPE)


def raw_response(error: SubletError) -> bytes:
    """Return the bytes of the response for an error before there is a request; the connection is closed after it."""
    answer = problem_response(error)
    head = [f"HTTP/1.1 {error.status} {HTTPStatus(error.status).phrase}", "connection: close"]
    head += [f"{name}: {value}" for name, value in answer.headers.items()]
    return "\r\n".join([*head, "", ""]).encode() + bytes(answer.body)


async def _ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, SubletError)  # noqa: S101 - this is what it is registered for
    return problem_response(explain_refusal(request, error))


def methods(app: FastAPI, path: str) -> list[str]:
    """Return all methods that a path supports, since each route knows only its own.

    A path with a description of its own (`/v1/sessions/cancel`) has no methods of a pattern (`/v1/sessions/{id}`).
    """
    described = app.openapi()["paths"]
    operations = described.get(path) or _operations_of_patterns(described, path)
    return sorted(method.upper() for method in operations)


def _operations_of_patterns(described: dict[str, dict[str, object]], path: str) -> set[str]:
    matching = (operations for template, operations in described.items() if compile_path(template)[0].fullmatch(path))
    return {method for operations in matching for method in operations}


async def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - this is what it is registered for
    status = HTTPStatus(error.status_code)
    code = status.phrase.lower().replace(" ", "-")
    headers = dict(error.headers or {})
    if status == HTTPStatus.METHOD_NOT_ALLOWED and (allowed := methods(request.app, request.scope["path"])):
        headers["Allow"] = ", ".join(allowed)
    document = problem(status, code, f"{error.detail.rstrip('.')}.", HINTS.get(status, ""))
    return Response(to_json(document), status, headers, media_type=MEDIA_TYPE)


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101 - this is what it is registered for
    errors = [{"field": ".".join(str(part) for part in each["loc"]), "message": each["msg"]} for each in error.errors()]
    first = errors[0] if errors else {"field": "the request", "message": "is not valid"}
    hint = "docs/reference/endpoints.md and /openapi.json say what each address takes."
    return problem_response(BadRequest(detail=f"{first['field']}: {first['message']}.", hint=hint, errors=errors))


async def _answer_gone(_: Request, __: Exception) -> Response:
    """Answer a client that disconnected before its request was complete; nobody reads this."""
    return Response(status_code=400)


async def _machine(request: Request, error: Exception) -> Response:
    """Answer errors caused by a shortage of the machine; re-raise all others."""
    if isinstance(error, OSError) and error.errno in FULL:
        return problem_response(ServiceFull())
    if short := find_shortage(error):
        log.warning("request.short", method=request.method, path=request.url.path, why=short)
        return problem_response(ServiceShort(what=short))
    raise error


def describe_log(request: Request) -> str:
    """Return where to find the service's log: the file in the settings, or else the default."""
    service = service_of(request)
    if service.settings.logs.file or service.authority.has_owner:
        return f"Its log says what: {service.settings.logs.file or 'logs/service.log'}."
    return "Its operator finds what in its log: `journalctl`, or wherever its standard error goes."


async def answer_unexpected(request: Request, error: Exception) -> Response:
    """Log an error that nobody foresaw, and answer with a 500 that names the log."""
    log.error("request.failed", method=request.method, path=request.url.path, exc_info=error)
    document = problem(500, "internal", "Something went wrong inside the service.", describe_log(request))
    return Response(to_json(document), 500, media_type=MEDIA_TYPE)


HINTS = {
    HTTPStatus.NOT_FOUND: "/openapi.json lists all endpoints; ids and names in an address have no slash.",
    HTTPStatus.METHOD_NOT_ALLOWED: "The Allow header lists what this address can do.",
}


def add_problems(app: FastAPI) -> None:
    """Answer every error with a problem document."""
    app.add_exception_handler(SubletError, _ours)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(ClientDisconnect, _answer_gone)
    app.add_exception_handler(OSError, _machine)
    app.add_exception_handler(MemoryError, _machine)
    app.add_exception_handler(Exception, answer_unexpected)
