"""A service that says what it was told to say, over a real Unix socket: for tests of those who call one."""

from __future__ import annotations

import json
import os
import socketserver
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from typing import Any

from sublet.booking.views.offers import OfferSetView, OfferView
from sublet.booking.views.quotes import QuoteView, TermsView
from sublet.booking.views.sessions import EndView, SessionView, UsageView
from sublet.kernel.views import plain
from tests.threads import serving

NOW = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)
ID = "3f2a91c0-0000-4000-8000-000000000001"


@dataclass(frozen=True)
class Heard:
    """One request as it came."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Said:
    """One answer: JSON of a value, or bytes; in pieces when it is a list of bytes."""

    value: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: bool = False  # stop in the middle of a chunked answer


class Canned:
    """Answers by method and path; a list is used up one by one, its last answer stays."""

    def __init__(self, answers: Mapping[str, Said | list[Said] | Callable[[Heard], Said]]) -> None:
        self.answers = dict(answers)
        self.heard: list[Heard] = []

    def answer(self, heard: Heard) -> Said:
        self.heard.append(heard)
        found = self.answers.get(f"{heard.method} {heard.target.partition('?')[0]}")
        if found is None:
            problem = {"code": "not-found", "detail": f"There is no {heard.target}.", "hint": "Look elsewhere."}
            return Said(problem, 404)
        if isinstance(found, list):
            return found.pop(0) if len(found) > 1 else found[0]
        return found(heard) if callable(found) else found

    @contextmanager
    def serving(self, directory: os.PathLike[str] | str) -> Iterator[str]:
        """Listen; gives the URL."""
        path = os.path.join(directory, "canned.sock")
        server = _Server(path, _handler(self))
        with serving(server):
            yield f"unix://{path}"


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True


def _handler(canned: Canned) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def address_string(self) -> str:
            return "here"

        def log_message(self, *_: Any) -> None:
            """Nothing is logged."""

        def do_GET(self) -> None:
            size = int(self.headers.get("content-length", 0))
            heard = Heard(self.command, self.path, dict(self.headers), self.rfile.read(size))
            self._say(canned.answer(heard))

        do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815 - the standard library's names

        def _say(self, said: Said) -> None:
            self.send_response(said.status)
            self.send_header("Connection", "close")
            for name, value in said.headers.items():
                self.send_header(name, value)
            if isinstance(said.value, list) and all(isinstance(piece, bytes) for piece in said.value):
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for piece in said.value:
                    self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                if not said.cut:
                    self.wfile.write(b"0\r\n\r\n")
            else:
                body = said.value if isinstance(said.value, bytes) else json.dumps(plain(said.value)).encode()
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if body:  # who is told that there is none has gone already
                    self.wfile.write(body)
            self.close_connection = True

    return Handler


def a_session(**changes: Any) -> SessionView:
    """A session that runs, or as the changes have it."""
    view: dict[str, Any] = {
        "id": ID,
        "short": ID[:8],
        "offerset": "0" * 36,
        "person": "ada",
        "name": "fit",
        "kind": "command",
        "phase": "RUNNING",
        "platform": "here",
        "way": "exec",
        "nodes": ("n1",),
        "cores": 2,
        "memory": 2 * 1024**3,
        "gpus": 0,
        "duration": timedelta(hours=1),
        "created": NOW,
        "modified": NOW,
        "expires": NOW + timedelta(minutes=5),
        "start": NOW,
        "until": NOW + timedelta(hours=1),
        "started": NOW,
        "terms": TermsView(kind="booked"),
    }
    return SessionView(**{**view, **changes})


def an_end(kind: str = "exited", **changes: Any) -> EndView:
    """The end of a session."""
    sentence = changes.pop("sentence", f"It ended: {kind}.")
    return EndView(kind=kind, sentence=sentence, usage=UsageView(wall=2, cpu=1.5, peak_memory=3 * 1024**2), **changes)


def an_offer(**changes: Any) -> OfferView:
    """An offer that starts now, or as the changes have it."""
    view: dict[str, Any] = {
        "id": ID,
        "short": ID[:8],
        "phase": "OFFERED",
        "platform": "here",
        "way": "exec",
        "start": NOW,
        "latest_start": NOW,
        "duration": timedelta(minutes=10),
        "until": NOW + timedelta(minutes=10),
        "prepare": timedelta(0),
        "nodes": ("n1",),
        "cores": 2,
        "memory": 2 * 1024**3,
        "gpus": 0,
        "costs": (QuoteView(type="urn:ivoa:calycopis:cost:monetary", min=0, max=0, description="in EUR"),),
        "terms": TermsView(kind="booked"),
        "why": "earliest",
        "expires": NOW + timedelta(minutes=5),
    }
    return OfferView(**{**view, **changes})


def a_yes(*offers: OfferView, **changes: Any) -> OfferSetView:
    """An answer with offers."""
    expires = NOW + timedelta(minutes=5)
    return OfferSetView(
        **{"id": "0" * 36, "result": "YES", "created": NOW, "expires": expires, "offers": offers, **changes}
    )


def a_no(*reasons: Any, **changes: Any) -> OfferSetView:
    """An answer without."""
    return OfferSetView(**{"id": "0" * 36, "result": "NO", "created": NOW, "reasons": reasons, **changes})
