"""The files that sessions leave."""

from __future__ import annotations

import os
from datetime import timedelta

from sublet.booking.views.results import ResultKeepAsk, ResultKept, ResultList, SendAsk
from sublet.client.call import Call, as_bytes, as_view, body_of, nothing, path_of
from sublet.kernel.views import plain


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


def keep(id: str, duration: timedelta) -> Call[ResultKept]:
    """Keep them for so long from now on."""
    body = body_of(plain(ResultKeepAsk(duration=duration)))
    return Call("POST", path_of("sessions", id, "keep"), as_view(ResultKept), body=body)


def send(id: str, to: str, path: str = "*", *, progress: bool = False) -> Call[bytes]:
    """Send them to an address, with one's own credentials: a line of JSON for each, as it is there."""
    body = body_of(plain(SendAsk(to=to, path=path, progress=progress)))
    return Call("POST", path_of("sessions", id, "send"), as_bytes, accept="*/*", body=body)


def part(id: str, path: str | os.PathLike[str], size: int) -> Call[bytes]:
    """The beginning of one of them."""
    return Call("GET", _path(id, path), as_bytes, accept="*/*", more={"Range": f"bytes=0-{size - 1}"})


def fetched(id: str) -> Call[None]:
    """All of them are home: none need stay where the session was a guest."""
    return Call("POST", path_of("sessions", id, "fetched"), nothing)


def _path(id: str, path: str | os.PathLike[str]) -> str:
    return path_of("sessions", id, "results", *os.fspath(path).split("/"))
