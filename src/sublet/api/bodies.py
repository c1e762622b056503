"""What comes in and goes out: a body within its limit, and JSON or YAML as the caller prefers."""

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
    """The whole body, read no further than the limit, whatever its length is said to be."""
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
    """The error for a body that has more than that."""
    return TooLarge(limit=_mebibytes(limit))


def choose_media_type(request: Request) -> str:
    """The type to answer in: what is accepted; for `*/*` or no word, the type that was sent, else JSON.

    JSON is YAML too, so a client that takes the draft's default (YAML when nothing is declared) can read it.
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
    """A document in the type that was preferred."""
    body = to_json(document) if kind == JSON else to_yaml(document)
    headers = {"location": location, "vary": "accept"} if location else {"vary": "accept"}
    return Response(body, status, headers, media_type=kind)


def json_response(view: Any, status: int = 200) -> Response:
    """A view as JSON, in the views' own writing of instants and durations; not validated again."""
    return Response(to_json(plain(view)), status, media_type=JSON)


def to_yaml(document: Any) -> bytes:
    """YAML that YAML 1.1 readers understand too: YES, NO and instants quoted, nothing aliased."""
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
