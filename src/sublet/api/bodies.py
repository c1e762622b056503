"""Bodies of requests and answers: read up to a limit, and written as JSON or YAML, as the caller prefers."""

from __future__ import annotations

from typing import Any

import yaml
from fastapi import Request
from pydantic_core import to_json
from starlette.responses import Response

from sublet.kernel.errors import NotAcceptable, TooLarge
from sublet.kernel.views import plain

LIMIT = 1024 * 1024  # bytes of a document
JSON = "application/json"
YAML = "application/yaml"
YAML_TYPES = (YAML, "text/yaml", "application/x-yaml", "application/yml", "text/x-yaml")


async def read_body(request: Request, limit: int = LIMIT) -> bytes:
    """Return the whole body; raise TooLarge beyond the limit, whatever Content-Length says."""
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > limit:
        raise too_large(limit)
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > limit:
            raise too_large(limit)
        parts.append(part)
    return b"".join(parts)


def too_large(limit: int = LIMIT) -> TooLarge:
    """Return the error for a body beyond the limit."""
    return TooLarge(limit=_mebibytes(limit))


def choose_media_type(request: Request) -> str:
    """Return the type to answer in, by `Accept`; for `*/*` or without it, the request's own type, or else JSON.

    JSON is valid YAML, so a client that expects the draft's default (YAML if nothing is declared) can read it.
    """
    accept = request.headers.get("accept", "")
    if not accept or accept == "*/*":
        return _find_sent_type(request)
    if accept == JSON:
        return JSON
    best, weight = "", 0.0
    for item in accept.split(","):
        wanted, *parameters = (part.strip().lower() for part in item.split(";"))
        quality = _quality(parameters)
        if quality > weight and (kind := _match(wanted, request)):
            best, weight = kind, quality
    if not best:
        raise NotAcceptable(type=accept[:100])
    return best


def document_response(document: Any, kind: str, status: int = 200, location: str = "") -> Response:
    """Return a document as a response of this media type."""
    body = to_json(document) if kind == JSON else to_yaml(document)
    headers = {"location": location, "vary": "accept"} if location else {"vary": "accept"}
    return Response(body, status, headers, media_type=kind)


def json_response(view: Any, status: int = 200) -> Response:
    """Return a view as a JSON response, without validating it again."""
    return Response(to_json(plain(view)), status, media_type=JSON)


def to_yaml(document: Any) -> bytes:
    """Return YAML that YAML 1.1 readers understand, too: YES, NO and instants are quoted, and nothing is aliased."""
    text: str = yaml.dump(document, Dumper=_PlainYaml, sort_keys=False, allow_unicode=True, width=120)
    return text.encode()


class _PlainYaml(yaml.CSafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _find_sent_type(request: Request) -> str:
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return YAML if sent in YAML_TYPES or sent.endswith("+yaml") else JSON


def _match(wanted: str, request: Request) -> str:
    if wanted in {"*/*", "application/*"}:
        return _find_sent_type(request)
    if wanted == JSON or wanted.endswith("+json"):
        return JSON
    if wanted == "text/*":
        return "text/yaml"
    if wanted in YAML_TYPES:
        return wanted
    return YAML if wanted.endswith("+yaml") else ""


def _quality(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return min(max(float(value), 0.0), 1.0)
            except ValueError:
                return 0.0
    return 1.0


def _mebibytes(limit: int) -> str:
    return f"{limit // (1024 * 1024)} MiB"
