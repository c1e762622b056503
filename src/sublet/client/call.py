"""One call to the service as a value: what to send, and how to read the answer. Nothing is sent here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from os import PathLike, fspath
from typing import Any, Generic, TypeVar

from sublet.client.problems import raise_for
from sublet.kernel.empty_names import refuse_empty
from sublet.kernel.errors import BadRequest, UnknownAnswer
from sublet.kernel.quoting import SLASH
from sublet.kernel.quoting import quote as quote  # also for those who make calls
from sublet.kernel.views import read

T = TypeVar("T")
PATIENCE = 120.0
JSON = "application/json"


@dataclass(frozen=True)
class HttpAnswer:
    """The service's response."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request to the service, and the function that reads its answer."""

    method: str
    path: str
    reader: Callable[[HttpAnswer], T]
    query: Mapping[str, object] = field(default_factory=dict)  # a list repeats the name; None is omitted
    body: bytes | None = None
    type: str = "application/json"  # of the body
    accept: str = "application/json"
    more: Mapping[str, str] = field(default_factory=dict)  # additional headers
    accepts: frozenset[int] = frozenset()  # statuses from 400 on whose body is an answer, not a problem
    patience: float = PATIENCE  # read timeout in seconds

    @property
    def target(self) -> str:
        """The path with its query."""
        given = [(name, value) for name, values in self.query.items() for value in _each(values)]
        words = [f"{name}={quote(value)}" for name, value in given]
        return f"{self.path}?{'&'.join(words)}" if words else self.path

    def headers(self, token: str = "") -> dict[str, str]:
        """Return the request's headers."""
        headers = {"Accept": self.accept, "User-Agent": "sublet"}
        if self.body is not None:
            headers["Content-Type"] = self.type
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return headers | dict(self.more)

    def read(self, answer: HttpAnswer) -> T:
        """Read the answer; raise the error that a problem document names."""
        is_answer = answer.status in self.accepts and answer.headers.get("content-type", "").startswith(JSON)
        if not is_answer:
            raise_for(answer.status, answer.body)
        return self.reader(answer)


def under(key: str | None) -> dict[str, str]:
    """Return the header with the idempotency key, which makes repeating a request safe."""
    if key is None:
        return {}
    if not key.strip():
        raise BadRequest(
            detail="the key is empty", hint="Give a text that is for this alone, such as its name and day."
        )
    return {"Idempotency-Key": key if key.isascii() and key.isprintable() else quote(key)}


def path_of(*parts: str) -> str:
    """Return the path under /v1 with these parts, each percent-encoded; raise BadRequest if one is empty."""
    refuse_empty(*parts)
    if parts[0] == "sessions" and "/" in (name := "".join(parts[1:2])):
        parts = ("sessions", name.replace("/", SLASH), *parts[2:])
    return "/v1/" + "/".join(quote(part) for part in parts)


def body_of(value: Any) -> bytes:
    """Encode a value as a JSON body; NumPy values become lists and numbers, paths, times and durations become text."""
    return json.dumps(value, default=_to_said).encode()


def _to_said(value: Any) -> Any:
    if callable(listed := getattr(value, "tolist", None)):
        return listed()
    if isinstance(value, PathLike):
        return fspath(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, timedelta):
        return f"{value.total_seconds():f}s"
    kind = type(value).__name__
    raise BadRequest(detail=f"a value of type {kind} can't be sent.", hint="Send text, numbers, lists and maps.")


def as_view(view: type[T]) -> Callable[[HttpAnswer], T]:
    """Return a reader that parses the answer's JSON as this view."""

    def read_view(answer: HttpAnswer) -> T:
        try:
            return read(view, json.loads(answer.body))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise UnknownAnswer(why=_describe_answer(answer)) from error

    return read_view


def _describe_answer(answer: HttpAnswer) -> str:
    """Describe an answer that can't be read: another server's page, or another version's JSON."""
    kind = answer.headers.get("content-type", "").partition(";")[0] or "without a content type"
    version = answer.headers.get("sublet-version", "")
    return f"{kind} from Sublet {version}" if version else f"{kind}, and not from a Sublet service"


def as_bytes(answer: HttpAnswer) -> bytes:
    """Return the answer's body unchanged."""
    return answer.body


def nothing(_: HttpAnswer) -> None:
    """Ignore the answer's body, which is empty."""


def _each(values: object) -> list[str]:
    given = values if isinstance(values, list | tuple) else [values]
    return ["true" if value is True else str(value) for value in given if value not in (None, "", False)]
