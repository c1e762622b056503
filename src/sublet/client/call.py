"""One call of the service, as a value: what is sent, and how the answer is read. Nothing is sent here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from os import PathLike, fspath
from typing import Any, Generic, TypeVar

from sublet.client.problems import raise_for
from sublet.kernel.errors import BadRequest, UnknownAnswer
from sublet.kernel.quoting import quote as quote  # also for those who make calls
from sublet.kernel.views import read

T = TypeVar("T")
PATIENCE = 120.0
JSON = "application/json"


@dataclass(frozen=True)
class HttpAnswer:
    """What the service said."""

    status: int
    headers: Mapping[str, str]  # names in small letters
    body: bytes


@dataclass(frozen=True)
class Call(Generic[T]):
    """A method and a path, and what is made of the answer."""

    method: str
    path: str
    reader: Callable[[HttpAnswer], T]
    query: Mapping[str, object] = field(default_factory=dict)  # a list repeats its name; None is left out
    body: bytes | None = None
    type: str = "application/json"  # of the body
    accept: str = "application/json"
    more: Mapping[str, str] = field(default_factory=dict)  # further headers
    accepts: frozenset[int] = frozenset()  # statuses beyond 399 whose body is an answer, not a problem
    patience: float = PATIENCE  # seconds without a byte, after which it is given up

    @property
    def target(self) -> str:
        """The path with its query."""
        given = [(name, value) for name, values in self.query.items() for value in _each(values)]
        words = [f"{name}={quote(value)}" for name, value in given]
        return f"{self.path}?{'&'.join(words)}" if words else self.path

    def headers(self, token: str = "") -> dict[str, str]:
        """What goes before the body."""
        headers = {"Accept": self.accept, "User-Agent": "sublet"}
        if self.body is not None:
            headers["Content-Type"] = self.type
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return headers | dict(self.more)

    def read(self, answer: HttpAnswer) -> T:
        """What the answer means; a problem becomes the error that it names."""
        is_answer = answer.status in self.accepts and answer.headers.get("content-type", "").startswith(JSON)
        if not is_answer:
            raise_for(answer.status, answer.body)
        return self.reader(answer)


def under(key: str | None) -> dict[str, str]:
    """The header that says under which key something is asked: sent again, it starts nothing twice."""
    if key is None:
        return {}
    if not key.strip():
        raise BadRequest(
            detail="the key is empty", hint="Give a text that is for this alone, such as its name and day."
        )
    return {"Idempotency-Key": key if key.isascii() and key.isprintable() else quote(key)}


def path_of(*parts: str) -> str:
    """The path under /v1 with these parts, each quoted whole."""
    return "/v1/" + "/".join(quote(part) for part in parts)


def body_of(value: Any) -> bytes:
    """A value as a JSON body; NumPy's arrays and numbers are lists and numbers, paths, times and lengths are text."""
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
    """Reads the answer's JSON as this view."""

    def read_view(answer: HttpAnswer) -> T:
        try:
            return read(view, json.loads(answer.body))
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise UnknownAnswer(why=_describe_answer(answer)) from error

    return read_view


def _describe_answer(answer: HttpAnswer) -> str:
    """What came in place of the answer: a page of something else, or JSON of another version."""
    kind = answer.headers.get("content-type", "").partition(";")[0] or "without a content type"
    version = answer.headers.get("sublet-version", "")
    return f"{kind} from Sublet {version}" if version else f"{kind}, and not from a Sublet service"


def as_bytes(answer: HttpAnswer) -> bytes:
    """The answer's body as it is."""
    return answer.body


def nothing(_: HttpAnswer) -> None:
    """For answers that say no more than that it was done."""


def _each(values: object) -> list[str]:
    given = values if isinstance(values, list | tuple) else [values]
    return ["true" if value is True else str(value) for value in given if value not in (None, "", False)]
