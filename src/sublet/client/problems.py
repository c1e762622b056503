"""Turns a problem document back into the exception that it stands for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from sublet.kernel.errors import NotSignedIn, SubletError

# Statuses of a reverse proxy that can't reach the service behind it.
PROXY = {
    502: "The web server answers, but the Sublet service behind it is not running (502).",
    503: "The web server answers, but the Sublet service behind it is not available (503).",
    504: "The web server answers, but the Sublet service behind it did not answer in time (504).",
}
NOT_FOUND, UNROUTED = 404, "Not Found."  # what a service says of an address that it doesn't have
NO_SUCH_PLACE = "The service has nothing of that name."
NAMES_OR_AGE = (
    "Check the name: only those of sessions and files can have a slash. If it is right, the service may be older than "
    "this client: `sublet doctor`."
)
WAIT = "Try again in a minute; if it persists, tell the service's operator."


def raise_for(status: int, body: bytes) -> None:
    """Raise the error that an HTTP status and body stand for, if it is one."""
    if status < 400:
        return
    problem = _problem(body)
    kind = _by_code().get(str(problem.get("code")), NotSignedIn if status == 401 else SubletError)
    message = str(
        problem.get("detail")
        or problem.get("title")
        or PROXY.get(status, f"The service answered with status {status}.")
    )
    if status == NOT_FOUND and message == UNROUTED:
        raise kind(NO_SUCH_PLACE, hint=NAMES_OR_AGE)
    advice = WAIT if status in PROXY and not problem else ""
    raise kind(message, hint=str(problem.get("hint") or advice), **_values(problem))


def _problem(body: bytes) -> dict[str, Any]:
    try:
        problem = json.loads(body)
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}


def _values(problem: dict[str, Any]) -> dict[str, object]:
    known = {"type", "title", "status", "code", "detail", "hint", "instance"}
    return {str(name): value for name, value in problem.items() if name not in known and str(name).isidentifier()}


def _by_code() -> dict[str, type[SubletError]]:
    return {kind("-").code: kind for kind in _tree(SubletError)}


def _tree(kind: type[SubletError]) -> Iterator[type[SubletError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _tree(child)
