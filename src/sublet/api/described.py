"""What OpenAPI says about the endpoints: their bodies, answers and problems."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from http import HTTPStatus
from inspect import getdoc
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as HttpRoute

from sublet.api.bodies import JSON, YAML
from sublet.api.problems import MEDIA_TYPE
from sublet.api.schemas import COMPONENTS, Schema, ref
from sublet.booking.api.precedence import BROKER_PARAMETERS

Responses = dict[int | str, dict[str, Any]]
Route = dict[str, Any]  # keyword arguments of a route

WHEN = {
    400: "The request can't be understood.",
    401: "A token is needed.",
    403: "It belongs to someone else, or only an operator may.",
    404: "There is no such thing.",
    406: "It is available only in JSON and YAML.",
    409: "Not now, or not any more: the detail says why.",
    412: "The file has changed since the download began.",
    413: "The document is larger than 1 MiB.",
    415: "The document is neither JSON nor YAML.",
    422: "The `Idempotency-Key` was already used for another request.",
    429: "Too many tries that were not good came from there; `Retry-After` says how long to wait.",
    502: "Who is on the other side did not answer as it should.",
    503: "A platform, or a mail server, can't be reached at the moment.",
}
IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "A text of your own, as a UUID: the same request under the same key, sent again, does nothing "
    "anew and gets the same answer; another request under it is a 422. A key counts for at least a week.",
    "schema": {"type": "string"},
}


def describe_keyed(responses: Responses) -> Route:
    """Return the description of an endpoint that takes an idempotency key."""
    return {"responses": {**responses, **problems(422)}, "openapi_extra": {"parameters": [IDEMPOTENCY_KEY]}}


LOCATION = {"Location": {"required": True, "schema": {"type": "string", "format": "uri"}}}
BYTES: Schema = {"type": "string"}


def problems(*codes: int) -> Responses:
    """Return the problems that an endpoint can answer with; one that needs a token can also answer 429."""
    return {
        code: {"description": WHEN[code], "content": {MEDIA_TYPE: {"schema": ref("Problem")}}}
        for code in sorted({*codes, *((429,) if 401 in codes else ())})
    }


def _document(name: str, description: str) -> dict[str, Any]:
    return {"description": description, "content": {JSON: {"schema": ref(name)}, YAML: {"schema": ref(name)}}}


def _body(name: str, examples: dict[str, Any], description: str = "") -> dict[str, Any]:
    media = {"schema": ref(name), "examples": {title: {"value": value} for title, value in examples.items()}}
    return {"requestBody": {"required": True, "description": description, "content": {JSON: media, YAML: media}}}


REQUESTS = {
    "container": {
        "executable": {
            "kind": "https://www.purl.org/ivoa.net/Calycopis-openapi/schema/v1.0/kinds/executable/docker-container.yaml",
            "image": {"locations": ["docker.io/library/alpine:3.20"]},
            "command": ["echo", "hello"],
        },
        "schedule": {"requested": {"duration": "PT1H"}},
    }
}
SHORTS = {"command": {"run": ["python", "sim.py"], "cores": 4, "memory": "8GiB", "time": "2h"}}
UPDATES = {
    "accept": {"kind": "uri:enum-value-update", "path": "phase", "value": "ACCEPTED"},
    "half an hour more": {
        "kind": "uri:integer-delta-update",
        "path": "schedule.available.duration",
        "delta": 30,
        "units": "minutes",
    },
}

_UUID = {"name": "uuid", "in": "path", "required": True, "schema": {"type": "string", "format": "uuid"}}
_FAILED = _document("ExecutionSession", "It can't be run: a FAILED session with the reasons; or a problem.")
FOLLOWED = "The same, for a client that follows `Location` by itself, as many that are generated do."
_ASK = {
    "parameters": [*BROKER_PARAMETERS, IDEMPOTENCY_KEY],
    "responses": {
        200: _document("OfferSetResponse", FOLLOWED),
        303: _document("OfferSetResponse", "The offers, and where to look at them again.") | {"headers": LOCATION},
        **problems(400, 401, 406, 413, 415, 422),
    },
    **_body("ExecutionRequest", REQUESTS),
}
# IVOA's own names of the operations, with their bodies and answers.
BROKER: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/requests"): {"operationId": "ExecutionRequest", **_ASK},
    ("POST", "/offersets"): {"operationId": "ExecutionRequestOlder", "deprecated": True, **_ASK},
    ("POST", "/direct"): {
        "operationId": "DirectExecution",
        "parameters": [*BROKER_PARAMETERS, IDEMPOTENCY_KEY],
        "responses": {
            200: _document("ExecutionSession", FOLLOWED),
            303: _document("ExecutionSession", "It is accepted.") | {"headers": LOCATION},
            400: _FAILED | {"content": _FAILED["content"] | {MEDIA_TYPE: {"schema": ref("Problem")}}},
            **problems(401, 406, 409, 413, 415, 422),
        },
        **_body("ExecutionRequest", REQUESTS),
    },
    ("GET", "/offersets/{uuid}"): {
        "operationId": "OfferSetSelect",
        "parameters": [_UUID],
        "responses": {200: _document("OfferSetResponse", "The offer set."), **problems(401, 403, 404, 406)},
    },
    ("GET", "/sessions/{uuid}"): {
        "operationId": "SessionSelect",
        "parameters": [_UUID],
        "responses": {200: _document("ExecutionSession", "The session."), **problems(401, 403, 404, 406)},
    },
    ("POST", "/sessions/{uuid}"): {
        "operationId": "SessionUpdate",
        "parameters": [_UUID, IDEMPOTENCY_KEY],
        "responses": {
            200: _document("ExecutionSession", "The session, changed."),
            **problems(400, 401, 403, 404, 406, 409, 413, 415, 422, 503),
        },
        **_body("Update", UPDATES),
    },
}


def _broker(routes: Sequence[HttpRoute]) -> dict[str, dict[str, Any]]:
    """Return the paths of the broker, in the order of its routes."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        (method,) = (route.methods or set()) - {"HEAD"}
        operation = BROKER[method, route.path]
        answers = {str(code): answer for code, answer in operation["responses"].items()}
        words = getdoc(route.endpoint) or ""
        paths.setdefault(route.path, {})[method.lower()] = operation | {
            "tags": ["IVOA Execution Broker"],
            "summary": words.partition(":")[0].partition(".")[0].partition(";")[0],
            "description": words,
            "responses": answers,
        }
    return paths


ASK_SHORT: Route = {
    "responses": {201: {"headers": LOCATION}, **problems(400, 401, 413, 415, 422, 429)},
    "openapi_extra": {"parameters": [IDEMPOTENCY_KEY], **_body("ShortRequest", SHORTS)},
}

ASK_WAYS: Route = {
    "responses": problems(400, 401, 409, 413, 415, 429),
    "openapi_extra": _body("ShortRequest", SHORTS),
}


def _raw(kind: str, description: str, *codes: int, **headers: Schema) -> Route:
    answer: dict[str, Any] = {"description": description, "content": {kind: {"schema": BYTES}}}
    if headers:
        answer["headers"] = {name.replace("_", "-"): {"schema": schema} for name, schema in headers.items()}
    return {"responses": {200: answer, **problems(*codes)}}


LOGS = _raw(
    "text/plain",
    "What was printed.",
    *(400, 401, 403, 404, 409, 503),
    Sublet_Offset={"type": "integer"},
    Sublet_Next_Offset={"type": "integer"},
    Sublet_Ended={"type": "string", "enum": ["true", "false"]},
)
FILE = _raw("application/octet-stream", "The file.", 401, 403, 404, 409, 412, 503)
FILE["responses"][206] = {"description": "A part of it.", "content": {"application/octet-stream": {"schema": BYTES}}}
SENT = _raw("application/jsonl", "A line for each file that was sent.", 400, 401, 403, 404, 409, 502, 503)
ARCHIVE = _raw("application/gzip", "All files.", 401, 403, 404, 409, 503)
EXPORT: Route = {
    "responses": {
        200: {
            "description": "The file.",
            "content": {"application/jsonl": {"schema": BYTES}, "text/csv": {"schema": BYTES}},
        },
        **problems(400, 401, 403),
    }
}
METRICS = _raw("text/plain", "The metrics.", 401, 403)
EVENTS: Route = {
    "responses": {
        200: {"content": {"text/event-stream": {"schema": BYTES}}},
        **problems(400, 401, 403, 404, 409),
    },
}

SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A token, as `sublet token` prints it."},
    "basic": {"type": "http", "scheme": "basic", "description": "Any name, with a token as the password."},
}
SIGNING_IN = {f"/v1/sign-in{step}" for step in ("", "/code", "/ways", "/second", "/once")}
INVALID = str(HTTPStatus.UNPROCESSABLE_ENTITY.value)
OPEN = frozenset(
    {"/health", "/metrics", "/capabilities", "/availability", "/.well-known/jwks.json", *SIGNING_IN}
)  # these need no token


def openapi(app: FastAPI, broker: Sequence[HttpRoute]) -> dict[str, Any]:
    """Return the whole description, made once."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        made["paths"] = _broker(broker) | made["paths"]
        schemas = made["components"]["schemas"]
        for name in ("HTTPValidationError", "ValidationError"):
            schemas.pop(name, None)
        schemas.update(COMPONENTS)
        made["components"]["securitySchemes"] = SECURITY
        made["security"] = [{name: []} for name in SECURITY]
        for path, operations in made["paths"].items():
            for operation in operations.values():
                _tidy(path, operation)
        app.openapi_schema = made
    return app.openapi_schema


def describe_at(path: str, app: FastAPI) -> HttpRoute:
    """Return a route that answers with the description, encoded once: it is large, and needs no token."""

    @cache
    def encode() -> bytes:
        return json.dumps(app.openapi(), ensure_ascii=False, separators=(",", ":")).encode()

    async def describe(request: Request) -> Response:
        return Response(encode(), media_type=JSON)

    return HttpRoute(path, describe, methods=["GET"], include_in_schema=False)


def _tidy(path: str, operation: dict[str, Any]) -> None:
    """Correct FastAPI's defaults: invalid requests are answered with 400 here, not with 422."""
    if MEDIA_TYPE not in operation["responses"].get(INVALID, {}).get("content", {}):  # ours is for a reused key
        operation["responses"].pop(INVALID, None)
    if path in OPEN:
        operation["security"] = []
    elif path.startswith("/v1/"):  # unknown parameters are refused
        operation["responses"] |= {str(code): answer for code, answer in problems(400).items() if code != 429}
