"""A policy service for the tests: HTTP as Open Policy Agent's data API has it, with a decision in Python."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.threads import serving

Decide = Callable[[dict[str, Any]], Any]


@dataclass
class PolicyQuestions:
    """What it was asked, in order, and the tokens that it was shown."""

    inputs: list[dict[str, Any]] = field(default_factory=list)
    tokens: list[str] = field(default_factory=list)

    @property
    def actions(self) -> list[str]:
        """What each question was about."""
        return [document["action"] for document in self.inputs]


@contextlib.contextmanager
def policy_server(decide: Decide) -> Iterator[tuple[str, PolicyQuestions]]:
    """One that answers with what `decide` makes of the input: a JSON value, or bytes as they are."""
    asked = PolicyQuestions()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked.inputs.append(body["input"])
            asked.tokens.append(self.headers.get("authorization", ""))
            answer = decide(body["input"])
            content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with serving(server):
        yield f"http://127.0.0.1:{server.server_port}/v1/data/sublet/decision", asked


@contextlib.contextmanager
def json_server(document: Any) -> Iterator[str]:
    """The address at which a document is answered, whoever asks."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            content = json.dumps(document).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    with serving(server):
        yield f"http://127.0.0.1:{server.server_port}/"
