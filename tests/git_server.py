"""A real git server on loopback: git's own http-backend behind a small HTTP server, and repositories that tests fill.

Trees are written byte by byte, so that they can hold what no client of git would put there.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.threads import serving

FILE, PROGRAM, LINK, SUBMODULE = "100644", "100755", "120000", "160000"
PERSON = {"NAME": "Ann Author", "EMAIL": "ann@example.org", "DATE": "2026-01-02T03:04:05Z"}


@dataclass(frozen=True)
class Entry:
    """One entry of a tree: a file unless its mode says otherwise; of a submodule the content is a commit."""

    content: bytes
    mode: str = FILE


def program(text: str) -> Entry:
    """A script that may be executed."""
    return Entry(text.encode(), PROGRAM)


def link(target: str) -> Entry:
    """A symbolic link."""
    return Entry(target.encode(), LINK)


def submodule(commit: str = "1" * 40) -> Entry:
    """Another repository at one of its commits."""
    return Entry(commit.encode(), SUBMODULE)


class Repository:
    """A bare repository that the server serves."""

    def __init__(self, path: Path, url: str) -> None:
        """It is made empty."""
        self.path, self.url = path, url
        path.mkdir(parents=True)
        self.git("init", "--quiet", "--bare", "--initial-branch=main")
        self.git("config", "uploadpack.allowFilter", "true")
        self.git("config", "uploadpack.allowAnySHA1InWant", "true")

    def git(self, *words: str, stdin: bytes = b"") -> str:
        """Run git in it; what it printed."""
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            **{f"GIT_{role}_{name}": value for role in ("AUTHOR", "COMMITTER") for name, value in PERSON.items()},
        }
        ran = subprocess.run(["git", *words], cwd=self.path, env=environment, input=stdin, capture_output=True)
        assert ran.returncode == 0, ran.stderr.decode()
        return ran.stdout.decode().strip()

    def commit(
        self,
        files: Mapping[str, str | bytes | Entry],
        message: str = "Change it",
        *,
        branch: str = "main",
        orphan: bool = False,
    ) -> str:
        """Make these files all that a branch has, and say which commit that is; `orphan`: as if nothing was before."""
        nested: dict[str, object] = {}
        for path, content in files.items():
            *folders, name = path.split("/")
            at = nested
            for folder in folders:
                at = at.setdefault(folder, {})  # type: ignore[assignment]
            at[name] = _entry(content)
        tip = "" if orphan else self.tip(branch)
        made = self.git("commit-tree", self._tree(nested), *(("-p", tip) if tip else ()), stdin=message.encode())
        self.git("update-ref", f"refs/heads/{branch}", made)
        return made

    def tip(self, branch: str = "main") -> str:
        """The commit that a branch is at; empty if there is no such branch."""
        return self.git("for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}")

    def tag(self, name: str, commit: str) -> None:
        """Put a tag on a commit, wherever it was."""
        self.git("tag", "--force", "--annotate", "--message=A tag", name, commit)

    def _tree(self, nested: Mapping[str, object]) -> str:
        """Write a tree as it is given; nothing of it is checked."""
        rows = []
        for name, one in nested.items():
            if isinstance(one, Entry):
                rows.append((name, one.mode, self._blob(one)))
            else:
                rows.append((f"{name}/", "40000", self._tree(one)))  # type: ignore[arg-type]
        said = b"".join(
            f"{mode} {name.rstrip('/')}".encode() + b"\0" + bytes.fromhex(id) for name, mode, id in sorted(rows)
        )
        return self.git("hash-object", "-t", "tree", "-w", "--stdin", "--literally", stdin=said)

    def _blob(self, entry: Entry) -> str:
        return entry.content.decode() if entry.mode == SUBMODULE else self.git(*WRITE, stdin=entry.content)


WRITE = ("hash-object", "-w", "--stdin")


def _entry(content: str | bytes | Entry) -> Entry:
    return content if isinstance(content, Entry) else Entry(content.encode() if isinstance(content, str) else content)


@dataclass
class GitServer:
    """Repositories below one directory, by HTTP."""

    root: Path
    port: int
    host: str = "127.0.0.1"
    redirects: dict[str, str] = field(default_factory=dict)  # how a path begins → where it leads instead
    asked: list[str] = field(default_factory=list)  # paths, in the order in which they were asked for

    @property
    def url(self) -> str:
        """How its repositories' addresses begin."""
        return f"http://{self.host}:{self.port}"

    def repository(self, name: str) -> Repository:
        """A new, empty repository of this name, as in `owner/hello`."""
        return Repository(self.root / name, f"{self.url}/{name}")


class Handler(BaseHTTPRequestHandler):
    """Hands each request to `git http-backend`."""

    protocol_version = "HTTP/1.0"
    git: GitServer

    def do_GET(self) -> None:
        """What a client asks for."""
        self.git.asked.append(self.path)
        for begins, target in self.git.redirects.items():
            if self.path.startswith(begins):
                self.send_response(302)
                self.send_header("Location", target + self.path.removeprefix(begins))
                self.end_headers()
                return
        where = urlsplit(self.path)
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.git.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REQUEST_METHOD": self.command,
            "PATH_INFO": where.path,
            "QUERY_STRING": where.query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
        }
        ran = subprocess.run(["git", "http-backend"], env=environment, input=self._body(), capture_output=True)
        head, _, body = ran.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        self.send_response(int(headers.pop("Status", "200 OK").split()[0]))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            pass  # whoever asked has had enough

    def do_POST(self) -> None:
        """What a client sends."""
        self.do_GET()

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        pieces = []
        while size := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        return b"".join(pieces)

    def log_message(self, *words: object) -> None:
        """Say nothing."""


@contextmanager
def git_server(root: Path, host: str = "127.0.0.1") -> Iterator[GitServer]:
    """A git server that lasts as long as the block."""
    handler = type("Bound", (Handler,), {})
    server = ThreadingHTTPServer((host, 0), handler)
    server.daemon_threads = True
    handler.git = GitServer(root, server.server_port, host)  # type: ignore[attr-defined]
    with serving(server):
        yield handler.git  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def git(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitServer]:
    """One for all tests of a file."""
    with git_server(tmp_path_factory.mktemp("git")) as running:
        yield running
