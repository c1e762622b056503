"""A stand-in for Globus: Transfer, its sign-in and the web servers of collections, in the shapes that Globus recorded.

The answers are those which Globus' own SDK ships for tests (`tests/recorded/globus`), with the values of what was
asked; a collection is a directory, and a transfer really copies. `tests/engines/test_globus.py` has Globus' own client
talk to it.
"""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import os
import shutil
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, unquote, urlsplit

from tests import threads

RECORDED: dict[str, Any] = json.loads((Path(__file__).parent / "recorded" / "globus" / "answers.json").read_text())
TOKEN = "a-token-for-transfer"
SCOPE = "urn:globus:auth:scope:transfer.api.globus.org:all"


def record_of(answered: str, /, **values: Any) -> dict[str, Any]:
    """A recorded answer, with these values in place of its own."""
    answer: dict[str, Any] = copy.deepcopy(RECORDED[answered])
    unknown = set(values) - set(answer)
    assert not unknown, f"Globus' {answered} has no {unknown}"
    return {**answer, **values}


@dataclass
class GlobusTaskDouble:
    """One transfer."""

    id: str
    body: dict[str, Any]
    status: str = "ACTIVE"
    done: int = 0


@dataclass
class GlobusDouble:
    """What there is, what was asked, and what is to go wrong."""

    address: str = ""
    collections: dict[str, Path] = field(default_factory=dict)
    web: set[str] = field(default_factory=set)  # collections that have a web server
    tokens: set[str] = field(default_factory=lambda: {TOKEN})
    consented: set[str] = field(default_factory=set)  # scopes beside Transfer's own that tokens have
    wants_consent: str = ""  # a scope without which collections are not listed
    asked: list[tuple[str, str, Any]] = field(default_factory=list)  # method, path with its query, body
    shown: list[str] = field(default_factory=list)  # what web servers of collections were shown
    tasks: dict[str, GlobusTaskDouble] = field(default_factory=dict)
    submissions: dict[str, str] = field(default_factory=dict)
    codes: dict[str, dict[str, str]] = field(default_factory=dict)  # that were shown → what was asked for
    is_held: bool = False  # transfers don't get on
    lose_answers: int = 0  # of so many submissions the answer is lost
    busy: int = 0  # so many requests are answered 503
    outcome: dict[str, Any] = field(default_factory=dict)  # how tasks end: values of the task's document
    damages: bool = False  # what arrives is another content of the same size
    owner: int | None = None  # the user who has what arrives

    def add(self, directory: Path, *, is_web: bool = False) -> str:
        """A new collection; its UUID."""
        id = str(uuid.uuid4())
        self.collections[id] = directory
        if is_web:
            self.web.add(id)
        return id

    def sign_in(self, address: str) -> str:
        """What a person does in a browser: sign in at an address, and read the code that is shown."""
        parts = urlsplit(address)
        assert f"{parts.scheme}://{parts.netloc}{parts.path}" == f"http://{self.address}/v2/oauth2/authorize"
        code = f"code-{uuid.uuid4()}"
        self.codes[code] = {name: values[0] for name, values in parse_qs(parts.query, strict_parsing=True).items()}
        return code

    def submitted(self) -> list[dict[str, Any]]:
        """The transfers that were begun."""
        return [task.body for task in self.tasks.values()]

    def carry_out(self, task: GlobusTaskDouble) -> None:
        """Move what it moves, unless it is held or fails."""
        if task.status != "ACTIVE" or self.is_held or self.outcome:
            return
        here, there = (self.collections[task.body[f"{end}_endpoint"]] for end in ("source", "destination"))
        for item in task.body["DATA"]:
            source, target = here / item["source_path"].lstrip("/"), there / item["destination_path"].lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            if item["recursive"]:
                shutil.copytree(source, target, dirs_exist_ok=True)
            else:
                content = source.read_bytes()
                target.write_bytes(bytes(len(content)) if self.damages else content)
                task.done += len(content)
            if self.owner is not None:
                for place in (target, *target.rglob("*")):
                    os.chown(place, self.owner, self.owner)
        task.status = "SUCCEEDED"


class Refused(Exception):
    """An answer that is no good news."""

    def __init__(self, status: int, answer: dict[str, Any]) -> None:
        super().__init__(status)
        self.status, self.answer = status, answer


class GlobusHandler(BaseHTTPRequestHandler):
    """Answers as Globus does."""

    globus: ClassVar[GlobusDouble]
    turn: ClassVar[threading.Lock]
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._handle()

    def do_POST(self) -> None:
        self._handle()

    def do_PUT(self) -> None:
        self._handle()

    def do_HEAD(self) -> None:
        self._handle()

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with self.turn:
            if self.path.startswith("/web/"):
                return self._serve_file(body)
            is_form = self.path == "/v2/oauth2/token"
            known = dict(parse_qs(body.decode())) if is_form else json.loads(body or b"null")
            self.globus.asked.append((self.command, self.path, known))
            try:
                answer, status = (self._give_token(known) if is_form else self._answer(known)), 200
            except Refused as refused:
                answer, status = refused.answer, refused.status
        if answer is None:
            self.close_connection = True
            return None
        return self._send(status, json.dumps(answer).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str, **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _give_token(self, form: dict[str, list[str]]) -> dict[str, Any]:
        login = base64.b64decode(self.headers.get("Authorization", "").partition(" ")[2]).decode()
        kind = form["grant_type"][0]
        if kind == "client_credentials" and login != "a-client:a-secret":
            raise Refused(401, {"error": "invalid_client"})
        if kind == "refresh_token" and form["refresh_token"] != ["a-refresh-token"]:
            raise Refused(400, {"error": "invalid_grant"})
        if kind == "authorization_code":
            return self._take_code({name: values[0] for name, values in form.items()})
        scope = form.get("scope", [SCOPE])[0]
        self.globus.consented.add(scope)
        token = f"token-{uuid.uuid4()}"
        self.globus.tokens.add(token)
        names = " ".join(part.partition("[")[0] for part in scope.split())
        return record_of("oauth2_client_credentials_tokens.default", access_token=token, scope=names)

    def _take_code(self, form: dict[str, str]) -> dict[str, Any]:
        """A code is taken once, from the app that it was shown for, with the proof that belongs to it."""
        asked = self.globus.codes.pop(form["code"], None)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form["code_verifier"].encode()).digest()).rstrip(b"=")
        is_right = asked and [asked[name] for name in ("client_id", "redirect_uri", "code_challenge")] == [
            form["client_id"],
            form["redirect_uri"],
            challenge.decode(),
        ]
        if asked is None or not is_right:
            raise Refused(400, {"error": "invalid_grant"})
        token = f"token-{uuid.uuid4()}"
        self.globus.tokens.add(token)
        self.globus.consented.add(asked["scope"])
        given = record_of("oauth2_client_credentials_tokens.default", access_token=token, scope=SCOPE)
        return {**given, "refresh_token": "a-refresh-token", "state": asked["state"]}

    def _answer(self, body: Any) -> dict[str, Any] | None:
        globus = self.globus
        if globus.busy:
            globus.busy -= 1
            raise Refused(503, {"code": "ServiceUnavailable", "message": "Down for maintenance."})
        if self.headers.get("Authorization", "").partition(" ")[2] not in globus.tokens:
            raise Refused(401, {"code": "AuthenticationFailed", "message": "Token is not active"})
        parts = urlsplit(self.path)
        words = parts.path.removeprefix("/v0.10/").split("/")
        path = parse_qs(parts.query).get("path", [""])[0]
        if words[0] == "operation":
            return self._operate(words[2], words[3], path, body)
        if words[0] == "endpoint":
            self._find(words[1])
            web = f"http://{globus.address}/web/{words[1]}" if words[1] in globus.web else None
            return {**record_of("get_endpoint.default", id=words[1]), "https_server": web}
        if words[0] == "submission_id":
            return record_of("get_submission_id.default", value=str(uuid.uuid4()))
        if words[0] == "transfer":
            return self._submit(body)
        return self._manage(words)

    def _find(self, collection: str, path: str = "") -> Path:
        place = self.globus.collections.get(collection)
        if place is None:
            raise Refused(404, {"code": "EndpointNotFound", "message": f"No such endpoint '{collection}'"})
        if path and not (place / path.lstrip("/")).exists():
            raise Refused(404, record_of("operation_stat.not_found"))
        return place / path.lstrip("/") if path else place

    def _operate(self, collection: str, operation: str, path: str, body: Any) -> dict[str, Any]:
        scope = self.globus.wants_consent
        if scope and scope not in self.globus.consented:
            message = "Missing required data_access consent"
            raise Refused(403, {"code": "ConsentRequired", "message": message, "required_scopes": [scope]})
        root = self._find(collection)
        if operation == "mkdir":
            place = root / body["path"].lstrip("/")
            if place.exists():
                raise Refused(502, {"code": "ExternalError.MkdirFailed.Exists", "message": "Path already exists"})
            self._find(collection, str(place.parent.relative_to(root)) if place.parent != root else "")
            place.mkdir()
            return record_of("operation_mkdir.default")
        if operation == "rename":
            self._find(collection, body["old_path"]).replace(root / body["new_path"].lstrip("/"))
            return record_of("operation_rename.default")
        place = self._find(collection, path)
        if operation == "stat":
            return describe(place)
        return {"DATA_TYPE": "file_list", "DATA": [describe(child) for child in sorted(place.iterdir())]}

    def _submit(self, body: dict[str, Any]) -> dict[str, Any] | None:
        globus, submission = self.globus, body["submission_id"]
        code = "Duplicate" if submission in globus.submissions else "Accepted"
        id = globus.submissions.setdefault(submission, str(uuid.uuid4()))
        globus.tasks.setdefault(id, GlobusTaskDouble(id, body))
        if globus.lose_answers:
            globus.lose_answers -= 1
            return None
        return record_of("submit_transfer.default", task_id=id, submission_id=submission, code=code)

    def _manage(self, words: list[str]) -> dict[str, Any]:
        task = self.globus.tasks.get(words[1])
        if task is None:
            raise Refused(404, {"code": "TaskNotFound", "message": f"No task {words[1]}"})
        if words[-1] == "cancel":
            task.status = "FAILED"
            return record_of("cancel_task.default", resource=f"/task/{task.id}/cancel")
        self.globus.carry_out(task)
        document = record_of("task_list.default")["DATA"][0]
        outcome = self.globus.outcome if task.status == "ACTIVE" else {}
        assert not set(outcome) - set(document)
        return {**document, "task_id": task.id, "status": task.status, "bytes_transferred": task.done, **outcome}

    def _serve_file(self, body: bytes) -> None:
        """The web server of a collection, which shows files to whoever has a token for it."""
        self.globus.shown.append(self.headers.get("Authorization", ""))
        _, _, collection, path = unquote(urlsplit(self.path).path).split("/", 3)
        if self.headers.get("Authorization", "").partition(" ")[2] not in self.globus.tokens:
            is_plain = self.headers.get("X-Requested-With") == "XMLHttpRequest"
            where = {} if is_plain else {"Location": "https://auth.globus.org/v2/oauth2/authorize"}
            return self._send(401 if is_plain else 302, b"", "text/html", **where)
        file = self.globus.collections[collection] / path
        if self.command == "PUT":
            file.write_bytes(body)
            return self._send(201, b"", "text/plain")
        if not file.is_file():
            return self._send(404, b"", "text/plain")
        return self._send(200, file.read_bytes(), "application/octet-stream")


def describe(place: Path) -> dict[str, Any]:
    """A file as Globus describes it."""
    facts = {"name": place.name, "size": place.stat().st_size, "type": "dir" if place.is_dir() else "file"}
    target = str(place.readlink()) if place.is_symlink() else None
    return record_of("operation_stat.default", **facts, link_target=target)


@contextmanager
def serve_globus() -> Iterator[GlobusDouble]:
    """It answers on a port of its own."""
    globus = GlobusDouble()
    handler = type("Handler", (GlobusHandler,), {"globus": globus, "turn": threading.Lock()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    globus.address = f"127.0.0.1:{server.server_port}"
    with threads.serving(server):
        yield globus
