"""Images of registries: `docker:` addresses, brought as one archive in the OCI layout, every part checked."""

from __future__ import annotations

import asyncio
import io
import json
import shutil
import tarfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import httpx2

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.kernel.errors import DataNotThere
from sublet.movers.arrival import guess, missing, refuse
from sublet.movers.http import MOMENT, SPEED, HttpMover, PartFile, words
from sublet.movers.logins import login_for
from sublet.movers.port import Policy, Progress
from sublet.movers.registries import (
    ImageManifest,
    NotInRegistry,
    Reference,
    digest_of,
    manifest_of,
    raw_manifest,
    read_reference,
    sign_in,
)

FILE = "image.tar"
PARTS = ".parts"
LAYOUT = b'{"imageLayoutVersion": "1.0.0"}'
INDEX = "sublet.index"  # in the archive: the index that the image was named by
EXAMPLE = "docker://ghcr.io/owner/name:tag"


@dataclass
class OciMover:
    """Fetches images."""

    policy: Policy
    name: str = "oci"
    schemes: Sequence[str] = ("docker",)

    @property
    def http(self) -> HttpMover:
        """What downloads, under the same policy."""
        return HttpMover(self.policy)

    def check(self, data: Data) -> Sequence[Reason]:
        """What is wrong with its address."""
        if read_reference(data.location):
            return []
        return [refuse(data, "It is not a reference to an image in a registry.", nearest=EXAMPLE)]

    async def measure(self, data: Data) -> int | None:
        """The size of all that it is made of."""
        with suppress(DataNotThere, TimeoutError):
            async with asyncio.timeout(MOMENT), self._registry(data) as (client, reference):
                return (await manifest_of(client, reference)).size
        return None

    def estimate(self, data: Data) -> timedelta:
        """How long it is going to take."""
        return guess(data, SPEED)

    async def pin(self, data: Data) -> Data:
        """The image that the reference means now, by a name that can't mean another one later."""
        named = read_reference(data.location)
        if named and named.digest and not self.policy.public_only:
            return data
        async with self._registry(data) as (client, reference):  # a stranger's one must be public, pinned or not
            raw, _ = await raw_manifest(client, reference, reference.digest or reference.tag)
            return replace(data, location=reference.pin(digest_of(raw)))

    def signs_in(self, data: Data) -> bool:
        """Whether there is a login for it."""
        reference = read_reference(data.location)
        return reference is not None and login_for(self.policy.logins, reference) is not None

    async def bring(self, data: Data, target: Path, progress: Progress) -> None:
        """Fetch it into the directory, as one archive: the same image is always the same bytes."""
        if (target / FILE).is_file():
            return
        parts = target / PARTS
        parts.mkdir(exist_ok=True)
        async with self._registry(data) as (client, reference):
            manifest = await manifest_of(client, reference)
            total, done = manifest.size, 0
            for part in manifest.parts:
                file = parts / part["digest"].replace(":", "-")
                if not file.is_file():
                    where = f"{reference.url}/blobs/{part['digest']}"
                    blob = replace(data, location=where, size=part["size"], checksum=part["digest"])
                    further = partial(_further, progress, done, total)
                    await self.http.download(client, blob, PartFile(file), further)
                done += part["size"]
        await asyncio.to_thread(_pack, manifest, target)

    @asynccontextmanager
    async def _registry(self, data: Data) -> AsyncIterator[tuple[httpx2.AsyncClient, Reference]]:
        """Speak to the registry; what goes wrong is told as DataNotThere."""
        reference = read_reference(data.location)
        if reference is None:
            raise missing(data, "it is not a reference to an image in a registry")
        try:
            async with self.http.client() as client:
                login = login_for(self.policy.logins, reference)
                await sign_in(client, reference, login.authorization if login else "")
                yield client, reference
        except NotInRegistry as error:
            raise missing(data, str(error)) from error
        except httpx2.HTTPError as error:
            raise missing(data, words(error)) from error


def _further(progress: Progress, before: int, total: int, done: int, of: int | None) -> None:
    progress(before + done, total)


def _pack(manifest: ImageManifest, target: Path) -> None:
    """Put its parts together as one archive in the OCI layout, and let go of them."""
    entry: dict[str, object] = {"mediaType": manifest.media_type, "digest": manifest.digest, "size": len(manifest.raw)}
    texts = {manifest.digest: manifest.raw}
    if manifest.index:
        texts[digest_of(manifest.index)] = manifest.index
        entry["annotations"] = {INDEX: digest_of(manifest.index)}
    table = json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode()
    part = target / f"{FILE}.part"
    with tarfile.open(part, "w") as tar:
        for folder in ("blobs", "blobs/sha256"):
            tar.addfile(_member(folder, 0, tarfile.DIRTYPE))
        for name, content in (("oci-layout", LAYOUT), ("index.json", table)):
            tar.addfile(_member(name, len(content)), io.BytesIO(content))
        for digest, content in sorted(texts.items()):
            tar.addfile(_member(_blob(digest), len(content)), io.BytesIO(content))
        for digest in sorted({entry["digest"] for entry in manifest.parts}):
            file = target / PARTS / digest.replace(":", "-")
            with file.open("rb") as opened:
                tar.addfile(_member(_blob(digest), file.stat().st_size), opened)
    part.rename(target / FILE)
    shutil.rmtree(target / PARTS)


def _blob(digest: str) -> str:
    return "blobs/" + digest.replace(":", "/")


def _member(name: str, size: int, type: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.size, made.type, made.mode = size, type, 0o755 if type == tarfile.DIRTYPE else 0o644
    return made
