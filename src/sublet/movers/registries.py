"""Container registries, by the OCI distribution API: resolve references and read manifests."""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import json
import re
from dataclasses import dataclass
from typing import Any

import httpx2

from sublet.booking.model.image import REFERENCE
from sublet.kernel.streams import read_up_to
from sublet.movers.bounded import OverlongAnswer
from sublet.movers.web_errors import is_distrust

DOCKER_HUB = "registry-1.docker.io"
INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
ACCEPT = {"Accept": ", ".join((*INDEXES, *MANIFESTS))}
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
KEPT = ("content-type", "www-authenticate")  # headers that are kept
CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
LARGEST = 4 << 20  # bytes of a manifest
ARCHITECTURE = "amd64"
TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
PAUSES = (0.5, 2.0)  # seconds


class NotInRegistry(Exception):
    """The registry doesn't have it, or doesn't give it; the message says why."""


@dataclass(frozen=True)
class Reference:
    """An image's name: registry, repository, and tag or digest."""

    registry: str
    name: str
    tag: str
    digest: str = ""  # sha256:…; identifies exactly one image

    @property
    def url(self) -> str:
        """The repository's address in the API; a registry on this very machine needs no TLS."""
        scheme = "http" if is_loopback(self.registry) else "https"
        return f"{scheme}://{self.registry}/v2/{self.name}"

    @property
    def place(self) -> str:
        """`docker.io/owner/tool`: the repository as people write it."""
        return f"{'docker.io' if self.registry == DOCKER_HUB else self.registry}/{self.name}"

    def pin(self, digest: str) -> str:
        """Return the address of exactly the image with this digest."""
        return f"docker://{self.place}@{digest}"


def read_reference(location: str) -> Reference | None:
    """Parse `docker://ghcr.io/owner/name:tag` or `alpine@sha256:…`; return None if it is no reference."""
    match = REFERENCE.match(location.removeprefix("docker://"))
    if not match:
        return None
    registry, slash, rest = match["name"].partition("/")
    if not slash or not (set(registry) & set(".:") or registry == "localhost"):
        registry, rest = DOCKER_HUB, match["name"] if slash else f"library/{match['name']}"
    registry = DOCKER_HUB if registry in ("docker.io", "index.docker.io") else registry
    return Reference(registry, rest, match["tag"] or "latest", match["digest"] or "")


def is_loopback(registry: str) -> bool:
    """Whether a registry is on this very machine."""
    host = registry.rpartition(":")[0] or registry
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class ImageManifest:
    """An image's manifest as it is in the registry, and the index that led to it, if any."""

    raw: bytes
    media_type: str
    index: bytes = b""

    @property
    def digest(self) -> str:
        """The digest of the manifest."""
        return digest_of(self.raw)

    @property
    def name(self) -> str:
        """The digest that names the image: of its index if there is one, or else of the manifest."""
        return digest_of(self.index) if self.index else self.digest

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The config and layers, each with digest and size."""
        manifest = json.loads(self.raw)
        return [manifest["config"], *manifest["layers"]]

    @property
    def size(self) -> int:
        """The total size of the parts in bytes."""
        return sum(int(part["size"]) for part in self.parts)


def digest_of(data: bytes) -> str:
    """Return the digest `sha256:…` of the data."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


async def sign_in(client: httpx2.AsyncClient, reference: Reference, login: str = "") -> None:
    """Get the token that a registry wants even for public images, and set it on the client.

    `login` is an Authorization header for a registry that the service has an account at.
    """
    answer = await _get(client, f"{reference.url}/manifests/{reference.digest or reference.tag}")
    challenge = answer.headers.get("www-authenticate", "")
    if answer.status_code == 401 and login and challenge.lower().startswith("basic"):
        client.headers["Authorization"] = login
        return
    if answer.status_code != 401 or not challenge.lower().startswith("bearer "):
        return
    asked = dict(CHALLENGE.findall(challenge))
    realm = httpx2.URL(asked.pop("realm", ""))
    if realm.scheme != "https" and not is_loopback(realm.host):
        raise NotInRegistry(f"{reference.registry} wants a token from {realm}, which is no safe address")
    wanted = {name: asked[name] for name in ("service", "scope") if name in asked}
    token = await _get_bounded(client, realm.copy_merge_params(wanted), {"Authorization": login} if login else {})
    if not token.is_success:
        whom = "this login" if login else "strangers"
        raise NotInRegistry(f"{reference.registry} gives no token to {whom} ({token.status_code})")
    said = _read(reference, token.content)
    client.headers["Authorization"] = f"Bearer {said.get('token') or said.get('access_token') or ''}"


async def raw_manifest(client: httpx2.AsyncClient, reference: Reference, which: str) -> tuple[bytes, str]:
    """Return a manifest or index and its type; one named by digest is checked against it."""
    answer = await _get(client, f"{reference.url}/manifests/{which}")
    if answer.status_code in (401, 403):
        raise NotInRegistry(f"{reference.registry} has no such image, or shows it only to those who sign in")
    if answer.status_code == 404:
        raise NotInRegistry(f"{reference.registry} has no such image")
    if not answer.is_success:
        raise NotInRegistry(f"{reference.registry} answered {answer.status_code} {answer.reason_phrase}")
    raw = answer.content
    document = _read(reference, raw)
    if not isinstance(document.get("manifests"), list) and not isinstance(document.get("layers"), list):
        raise NotInRegistry(f"{reference.registry} has no manifest there, but something else")
    if which.startswith("sha256:") and digest_of(raw) != which:
        raise NotInRegistry(f"what {reference.registry} has as {which} is {digest_of(raw)}")
    return raw, answer.headers.get("content-type", "").partition(";")[0]


async def find_digest(client: httpx2.AsyncClient, reference: Reference) -> str:
    """Return the digest that a reference currently means.

    HEAD is tried first, as registries rate-limit manifest fetches.
    """
    which = reference.digest or reference.tag
    answer = await client.head(f"{reference.url}/manifests/{which}", headers=ACCEPT)
    digest, kind = (answer.headers.get(name, "") for name in ("docker-content-digest", "content-type"))
    is_manifest = answer.is_success and kind.partition(";")[0] in (*INDEXES, *MANIFESTS)
    if is_manifest and DIGEST.fullmatch(digest) and reference.digest in ("", digest):
        return digest
    raw, _ = await raw_manifest(client, reference, which)
    return digest_of(raw)


async def manifest_of(client: httpx2.AsyncClient, reference: Reference) -> ImageManifest:
    """Return the manifest for this machine's architecture, following an index."""
    raw, kind = await raw_manifest(client, reference, reference.digest or reference.tag)
    try:
        document = json.loads(raw)
        if not document.get("manifests"):
            return _whole(ImageManifest(raw, kind if kind in MANIFESTS else document.get("mediaType") or MANIFESTS[0]))
        fits = [entry for entry in document["manifests"] if _fits(entry.get("platform") or {})]
        if not fits:
            raise NotInRegistry(f"it has nothing for linux on {ARCHITECTURE}")
        inner, kind = await raw_manifest(client, reference, fits[0]["digest"])
        return _whole(ImageManifest(inner, kind if kind in MANIFESTS else MANIFESTS[0], index=raw))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise NotInRegistry(f"{reference.registry} has no manifest there that can be read") from error


def _whole(manifest: ImageManifest) -> ImageManifest:
    """Return the manifest; raise ValueError unless all parts have valid digests (never paths) and sizes."""
    for part in manifest.parts:
        if not DIGEST.fullmatch(part["digest"]) or type(part["size"]) is not int or part["size"] < 0:
            raise ValueError(part["digest"])
    return manifest


def _read(reference: Reference, raw: bytes) -> dict[str, Any]:
    """Parse an answer as a JSON object; raise NotInRegistry if it is none."""
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise NotInRegistry(f"what {reference.registry} says can't be read: it may be no registry")
    return document


def _fits(platform: dict[str, Any]) -> bool:
    return platform.get("architecture") == ARCHITECTURE and platform.get("os", "linux") == "linux"


async def _get(client: httpx2.AsyncClient, url: str) -> httpx2.Response:
    """Get a manifest, with retries while the registry is busy or unreachable, unless they wouldn't help."""
    for pause in PAUSES:
        try:
            answer = await _get_bounded(client, url, ACCEPT)
            if answer.status_code not in TRY_AGAIN:
                return answer
        except (httpx2.TimeoutException, httpx2.UnsupportedProtocol, OverlongAnswer):
            raise
        except httpx2.TransportError as error:
            if is_distrust(error):
                raise
        await asyncio.sleep(pause)
    return await _get_bounded(client, url, ACCEPT)


async def _get_bounded(client: httpx2.AsyncClient, url: httpx2.URL | str, headers: dict[str, str]) -> httpx2.Response:
    """Get an answer, reading no more than a manifest may have."""
    async with client.stream("GET", url, headers=headers) as answer:
        content = await read_up_to(LARGEST, answer.aiter_bytes())
        if len(content) > LARGEST:
            raise NotInRegistry("the registry has no manifest there, but something very large")
        plain = {name: value for name, value in answer.headers.items() if name in KEPT}
        return httpx2.Response(answer.status_code, headers=plain, content=content)
