"""A git server that keeps large files by Git LFS' batch API; git-lfs itself pushes to it and pulls from it in tests."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.git_server import PERSON, GitServer, Handler, Repository
from tests.threads import serving

JSON = "application/vnd.git-lfs+json"
TICKET = "one-download"


@dataclass
class LfsServer(GitServer):
    """Its repositories' large files are in one directory, by their digests."""

    login: str = ""  # user:password that a question needs; empty: none
    cut: dict[str, int] = field(default_factory=dict)  # digest → bytes after which its next download breaks off
    downloads: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)  # digest, headers
    elsewhere: str = ""  # how addresses of downloads begin, if not at this server

    @property
    def store(self) -> Path:
        """Where large files are."""
        return self.root / "large"

    def new_repository(self, name: str) -> Repository:
        """One that can be pushed to."""
        repository = self.repository(name)
        repository.git("config", "http.receivepack", "true")
        return repository


class LfsHandler(Handler):
    """Answers questions about large files itself, and leaves the rest to git."""

    git: LfsServer

    def do_POST(self) -> None:  # noqa: N802 - as the standard library calls it
        """A question about large files, or git's."""
        if not self.path.endswith("/info/lfs/objects/batch"):
            return super().do_POST()
        wanted = base64.b64encode(self.git.login.encode()).decode()
        asked = json.loads(self._body())
        if self.git.login and self.headers.get("Authorization") != f"Basic {wanted}":
            return self._answer(401, {"message": "Credentials needed"}, {"LFS-Authenticate": 'Basic realm="lfs"'})
        rows = [self._row(asked["operation"], one["oid"], one["size"]) for one in asked["objects"]]
        return self._answer(200, {"transfer": "basic", "objects": rows})

    def _row(self, operation: str, oid: str, size: int) -> dict[str, Any]:
        is_there = (self.git.store / oid).exists()
        row = {"oid": oid, "size": size, "authenticated": True}
        if operation == "download" and not is_there:
            return row | {"error": {"code": 404, "message": "Object does not exist"}}
        if operation == "upload" and is_there:
            return row
        header = {"X-Ticket": TICKET} | ({"Authorization": f"Bearer {TICKET}"} if self.git.login else {})
        begins = self.git.elsewhere if self.git.elsewhere and operation == "download" else self.git.url
        return row | {"actions": {operation: {"href": f"{begins}/large/{oid}", "header": header, "expires_in": 600}}}

    def do_PUT(self) -> None:  # noqa: N802 - as the standard library calls it
        """Take a large file."""
        body, oid = self._body(), self.path.rpartition("/")[2]
        is_right = hashlib.sha256(body).hexdigest() == oid and self.headers.get("X-Ticket") == TICKET
        if is_right:
            self.git.store.mkdir(exist_ok=True)
            (self.git.store / oid).write_bytes(body)
        self._answer(200 if is_right else 422, {})

    def do_GET(self) -> None:  # noqa: N802 - as the standard library calls it
        """Give a large file, or what of it is still missing; else what git says."""
        if not self.path.startswith("/large/"):
            return super().do_GET()
        oid = self.path.rpartition("/")[2]
        self.git.downloads.append((oid, dict(self.headers)))
        if self.headers.get("X-Ticket") != TICKET:
            return self._answer(403, {"message": "No ticket"})
        body = (self.git.store / oid).read_bytes()
        start = int((re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", "")) or ["", "0"])[1])
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.send_header("Content-Length", str(len(body) - start))
        self.send_header("ETag", f'"{oid}"')
        self.end_headers()
        self.wfile.write(body[start : self.git.cut.pop(oid, len(body))])
        return None

    def _answer(self, code: int, document: object, headers: Mapping[str, str] | None = None) -> None:
        body = json.dumps(document).encode()
        self.send_response(code)
        for name, value in {"Content-Type": JSON, "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def lfs_server(root: Path) -> Iterator[LfsServer]:
    """A server that lasts as long as the block."""
    handler = type("BoundLfs", (LfsHandler,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    handler.git = LfsServer(root, server.server_port)  # type: ignore[attr-defined]
    with serving(server):
        yield handler.git  # type: ignore[attr-defined]


class LfsClient:
    """A clone in which git and git-lfs work as they do for a person."""

    def __init__(self, folder: Path) -> None:
        """It is empty, and has a home of its own."""
        self.folder, self.home = folder, folder.with_name(f"{folder.name}.home")
        for place in (self.folder, self.home):
            place.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")
        self.git("lfs", "install")

    def git(self, *words: str) -> str:
        """Run git; what it printed."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_CONFIG_NOSYSTEM": "1",
            **{f"GIT_{role}_{name}": value for role in ("AUTHOR", "COMMITTER") for name, value in PERSON.items()},
        }
        ran = subprocess.run(["git", *words], cwd=self.folder, env=environment, capture_output=True, text=True)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout.strip()

    def push(self, address: str, files: Mapping[str, bytes]) -> str:
        """Make these files a commit, with *.bin in Git LFS, and push it; which commit that is."""
        self.git("lfs", "track", "*.bin")
        for path, content in files.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_bytes(content)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=Add them")
        self.git("push", "--quiet", address, "main")
        return self.git("rev-parse", "HEAD")
