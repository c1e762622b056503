"""Calls about the files that sessions leave."""

from __future__ import annotations

import os
from datetime import timedelta

from sublet.booking.views.results import ResultKeepAsk, ResultKept, ResultList, SendAsk
from sublet.client.call import Call, as_bytes, as_view, body_of, nothing, path_of
from sublet.kernel.views import plain


def results(id: str) -> Call[ResultList]:
    """List a session's files."""
    return Call("GET", path_of("sessions", id, "results"), as_view(ResultList))


def result(id: str, path: str | os.PathLike[str]) -> Call[bytes]:
    """Fetch one file."""
    return Call("GET", _path(id, path), as_bytes, accept="*/*")


def rest(id: str, path: str | os.PathLike[str], first: int, etag: str) -> Call[bytes]:
    """Fetch one file from a byte on, if it is still this version."""
    more = {"Range": f"bytes={first}-", "If-Match": etag}
    return Call("GET", _path(id, path), as_bytes, accept="*/*", more=more)


def archive(id: str) -> Call[bytes]:
    """Fetch all files as one tar.gz."""
    return Call("GET", path_of("sessions", id, "archive"), as_bytes, accept="*/*")


def keep(id: str, duration: timedelta) -> Call[ResultKept]:
    """Keep a session's files for this long from now on."""
    body = body_of(plain(ResultKeepAsk(duration=duration)))
    return Call("POST", path_of("sessions", id, "keep"), as_view(ResultKept), body=body)


def send(id: str, to: str, path: str = "*", *, progress: bool = False) -> Call[bytes]:
    """Send files to an address with the person's own credentials; the answer has a line of JSON for each file."""
    body = body_of(plain(SendAsk(to=to, path=path, progress=progress)))
    return Call("POST", path_of("sessions", id, "send"), as_bytes, accept="*/*", body=body)


def part(id: str, path: str | os.PathLike[str], size: int) -> Call[bytes]:
    """Fetch the beginning of one file."""
    return Call("GET", _path(id, path), as_bytes, accept="*/*", more={"Range": f"bytes=0-{size - 1}"})


def fetched(id: str) -> Call[None]:
    """Report that all files were fetched, so that they can be removed from a system on which Sublet is a guest."""
    return Call("POST", path_of("sessions", id, "fetched"), nothing)


def _path(id: str, path: str | os.PathLike[str]) -> str:
    return path_of("sessions", id, "results", *os.fspath(path).split("/"))
