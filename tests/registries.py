"""A small registry of container images: it really speaks the distribution API, out of archives that tests make."""

from __future__ import annotations

import base64
import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.real.images import digest
from tests.threads import serving

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


class Registry(ThreadingHTTPServer):
    """Images by name and tag, or by digest."""

    daemon_threads = True

    def __init__(self, host: str = "127.0.0.1", *, token: str = "", login: str = "") -> None:
        """It is empty; with a `token` it gives nothing to those who did not fetch one, with a `login` to no others.

        A login alone is said with each request; with a token, to get that.
        """
        super().__init__((host, 0), Handler)
        self.host, self.token = host, token
        self.basic = f"Basic {base64.b64encode(login.encode()).decode()}" if login else ""
        self.manifests: dict[tuple[str, str], tuple[str, bytes]] = {}
        self.blobs: dict[str, bytes] = {}
        self.served: list[str] = []  # paths, in the order in which they were asked for

    @property
    def address(self) -> str:
        """How its images' names begin."""
        return f"{self.host}:{self.server_port}"

    def push(self, name: str, tag: str, archive: Path) -> str:
        """Have the image of an archive in the OCI layout; returns the digest of its manifest."""
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.name.startswith("blobs/sha256/") and (file := tar.extractfile(member)):
                    content = file.read()
                    self.blobs[digest(content)] = content
            entry = json.loads(tar.extractfile("index.json").read())["manifests"][0]  # type: ignore[union-attr]
        return self._put(name, tag, entry["digest"], MANIFEST, self.blobs[entry["digest"]])

    def push_file(self, name: str, tag: str, file: Path) -> str:
        """Have a Singularity image as it is, as `oras://` names it; returns the digest of its manifest."""
        parts = {"config": b"{}", "layer": file.read_bytes()}
        self.blobs |= {digest(content): content for content in parts.values()}
        sif = "application/vnd.sylabs.sif"
        kinds = {"config": f"{sif}.config.v1+json", "layer": f"{sif}.layer.v1.sif"}
        entries = {
            part: {"mediaType": kinds[part], "digest": digest(content), "size": len(content)}
            for part, content in parts.items()
        }
        entries["layer"]["annotations"] = {"org.opencontainers.image.title": file.name}
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": entries["config"],
            "layers": [entries["layer"]],
        }
        text = json.dumps(manifest).encode()
        return self._put(name, tag, digest(text), MANIFEST, text)

    def push_index(self, name: str, tag: str, manifest: str) -> str:
        """Have an index with one image for each of two sorts of machine; returns its digest."""
        other = {"digest": "sha256:" + "0" * 64, "platform": {"architecture": "arm64", "os": "linux"}}
        ours = {"digest": manifest, "platform": {"architecture": "amd64", "os": "linux"}}
        text = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": [other, ours]}).encode()
        return self._put(name, tag, digest(text), INDEX, text)

    def _put(self, name: str, tag: str, its_digest: str, kind: str, text: bytes) -> str:
        self.manifests[name, tag] = self.manifests[name, its_digest] = kind, text
        return its_digest

    def fetched(self, part: str = "/blobs/") -> int:
        """How many times something was asked for."""
        return sum(part in path for path in self.served)


class Handler(BaseHTTPRequestHandler):
    """Answers as a registry does."""

    server: Registry

    def do_GET(self) -> None:
        """A manifest, a blob or a token."""
        self.server.served.append(self.path)
        here = f"http://{self.server.address}"
        said, basic, token = self.headers.get("Authorization"), self.server.basic, self.server.token
        if self.path.startswith("/token") and basic in ("", said):
            self._answer(200, "application/json", json.dumps({"token": token}).encode())
        elif (token or basic) and said != (f"Bearer {token}" if token else basic):
            asks = f'Bearer realm="{here}/token",service="tests",scope="pull"' if token else 'Basic realm="tests"'
            self.send_response(401)
            self.send_header("WWW-Authenticate", asks)
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.path == "/v2/":
            self._answer(200, "application/json", b"{}")
        else:
            name, _, rest = self.path.removeprefix("/v2/").rpartition("/")
            name, _, what = name.rpartition("/")
            found = (
                self.server.manifests.get((name, rest))
                if what == "manifests"
                else ("application/octet-stream", self.server.blobs[rest])
                if rest in self.server.blobs
                else None
            )
            self._answer(*((200, *found) if found else (404, "application/json", b'{"errors": []}')))

    def do_HEAD(self) -> None:
        """The same, without the content."""
        self.do_GET()

    def _answer(self, code: int, kind: str, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Docker-Content-Digest", digest(body))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *words: object) -> None:
        """Say nothing."""


@contextmanager
def registry(host: str = "127.0.0.1", *, token: str = "", login: str = "") -> Iterator[Registry]:
    """A registry that lasts as long as the block."""
    server = Registry(host, token=token, login=login)
    with serving(server):
        yield server
