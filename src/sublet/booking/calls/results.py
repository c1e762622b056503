"""The files that sessions leave."""

from __future__ import annotations

import os

from sublet.booking.views.results import ResultList
from sublet.client.call import Call, as_bytes, as_view, nothing, path_of


def results(id: str) -> Call[ResultList]:
    """Which files there are."""
    return Call("GET", path_of("sessions", id, "results"), as_view(ResultList))


def result(id: str, path: str | os.PathLike[str]) -> Call[bytes]:
    """One of them."""
    return Call("GET", _path(id, path), as_bytes, accept="*/*")


def rest(id: str, path: str | os.PathLike[str], first: int, etag: str) -> Call[bytes]:
    """One of them from a byte on, if it is still this version of it."""
    more = {"Range": f"bytes={first}-", "If-Match": etag}
    return Call("GET", _path(id, path), as_bytes, accept="*/*", more=more)


def archive(id: str) -> Call[bytes]:
    """All of them, as one tar.gz."""
    return Call("GET", path_of("sessions", id, "archive"), as_bytes, accept="*/*")


def fetched(id: str) -> Call[None]:
    """All of them are home: none need stay where the session was a guest."""
    return Call("POST", path_of("sessions", id, "fetched"), nothing)


def _path(id: str, path: str | os.PathLike[str]) -> str:
    return path_of("sessions", id, "results", *os.fspath(path).split("/"))
