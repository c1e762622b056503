"""The mover of registry images (`docker:` addresses): brought as one OCI archive, with every blob checked."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path

import httpx2

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.data.model.links import FileLink, LinkedFiles
from sublet.kernel.errors import DataNotThere
from sublet.kernel.streams import closing
from sublet.movers.arrival import guess, missing, refuse, safe_name
from sublet.movers.http import MOMENT, SPEED, HttpMover, PartFile
from sublet.movers.links import read_link
from sublet.movers.logins import login_for
from sublet.movers.oci_archive import ImageBlob, lay_out_archive
from sublet.movers.port import Policy, Progress, SourceChanged
from sublet.movers.registries import (
    ImageManifest,
    NotInRegistry,
    Reference,
    find_digest,
    manifest_of,
    read_reference,
    sign_in,
)
from sublet.movers.web_errors import describe_web_error

FILE = "image.tar"
PARTS = ".parts"
EXAMPLE = "docker://ghcr.io/owner/name:tag"


@dataclass
class OciMover:
    """Fetches images."""

    policy: Policy
    name: str = "oci"
    schemes: Sequence[str] = ("docker",)

    @property
    def http(self) -> HttpMover:
        """The HTTP mover that downloads, with the same policy."""
        return HttpMover(self.policy)

    def check(self, data: Data) -> Sequence[Reason]:
        """Return what is wrong with the address."""
        if read_reference(data.location):
            return []
        return [refuse(data, "It is not a reference to an image in a registry.", nearest=EXAMPLE)]

    async def measure(self, data: Data) -> int | None:
        """Return the total size of the image's blobs."""
        with suppress(DataNotThere, TimeoutError):
            async with asyncio.timeout(MOMENT), self._registry(data) as (client, reference):
                return (await manifest_of(client, reference)).size
        return None

    def estimate(self, data: Data) -> timedelta:
        """Guess how long it takes."""
        return guess(data, SPEED)

    async def pin(self, data: Data) -> Data:
        """Return the image that the reference currently means, named by its digest."""
        named = read_reference(data.location)
        if named and named.digest and not self.policy.public_only:
            return data
        async with self._registry(data) as (client, reference):  # a stranger's image must be public, pinned or not
            return replace(data, location=reference.pin(await find_digest(client, reference)))

    def signs_in(self, data: Data) -> bool:
        """Whether the service has a login for the image."""
        reference = read_reference(data.location)
        return reference is not None and login_for(self.policy.logins, reference) is not None

    async def links(self, data: Data) -> LinkedFiles:
        """Link the image's archive, whose version is the digest of its manifest."""
        async with self._registry(data) as (client, reference):
            manifest = await manifest_of(client, reference)
        name = f"{safe_name(reference.name.rpartition('/')[2])}.tar"
        source, size = f"oci:{manifest.name}", lay_out_archive(manifest).size
        return LinkedFiles([FileLink(name, data.location, size=size, version=manifest.name, source=source)])

    async def find_start(self, data: Data, link: FileLink, offset: int) -> int:
        """Return the offset of the image part in which reading was interrupted."""
        async with self._registry(data) as (client, reference):
            return lay_out_archive(await manifest_of(client, reference)).find_start(offset)

    async def read(self, data: Data, link: FileLink, offset: int) -> AsyncIterator[bytes]:
        """Read the archive from the start of one of its parts.

        A blob's last piece is withheld until its digest is checked.
        """
        async with self._registry(data) as (client, reference):
            manifest = await manifest_of(client, reference)
            layout = lay_out_archive(manifest)
            if manifest.name != link.version or layout.find_start(offset) != offset:
                raise SourceChanged("it is another image now, or can't be gone on with from there")
            for piece in layout.list_from(offset):
                if isinstance(piece, bytes):
                    yield piece
                    continue
                async with closing(_read_blob(client, reference, data, piece)) as pieces:
                    async for part in pieces:
                        yield part

    async def bring(self, data: Data, target: Path, progress: Progress) -> None:
        """Fetch the image into the directory as one archive; the same image always gives the same bytes."""
        if (target / FILE).is_file():
            return
        parts = target / PARTS
        parts.mkdir(exist_ok=True)
        async with self._registry(data) as (client, reference):
            manifest = await manifest_of(client, reference)
            total, done = manifest.size, 0
            for part in manifest.parts:
                file = _part_file(target, part["digest"])
                if not file.is_file():
                    where = f"{reference.url}/blobs/{part['digest']}"
                    blob = replace(data, location=where, size=part["size"], checksum=part["digest"])
                    further = partial(_further, progress, done, total)
                    await self.http.download(client, blob, PartFile(file), further)
                done += part["size"]
        await asyncio.to_thread(_pack, manifest, target)

    @asynccontextmanager
    async def _registry(self, data: Data) -> AsyncIterator[tuple[httpx2.AsyncClient, Reference]]:
        """Open a connection to the registry; errors become DataNotThere."""
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
            raise missing(data, describe_web_error(error)) from error


def _further(progress: Progress, before: int, total: int, done: int, of: int | None) -> None:
    progress(before + done, total)


def _pack(manifest: ImageManifest, target: Path) -> None:
    """Join the image's parts into one OCI archive, and delete them."""
    part = target / f"{FILE}.part"
    with part.open("wb") as archive:
        for piece in lay_out_archive(manifest).pieces:
            if isinstance(piece, bytes):
                archive.write(piece)
                continue
            with _part_file(target, piece.digest).open("rb") as opened:
                shutil.copyfileobj(opened, archive)
    part.rename(target / FILE)
    shutil.rmtree(target / PARTS)


def _part_file(target: Path, digest: str) -> Path:
    return target / PARTS / digest.replace(":", "-")


async def _read_blob(
    client: httpx2.AsyncClient, reference: Reference, data: Data, blob: ImageBlob
) -> AsyncIterator[bytes]:
    """Read a blob; its last piece is yielded only if the digest is right."""
    link = FileLink("", f"{reference.url}/blobs/{blob.digest}", size=blob.size)
    seen, held = hashlib.sha256(), b""
    async with closing(read_link(client, data, link, 0)) as pieces:
        async for piece in pieces:
            seen.update(piece)
            if held:
                yield held
            held = piece
    if (digest := f"sha256:{seen.hexdigest()}") != blob.digest:
        raise missing(data, f"what {reference.registry} has as {blob.digest} is {digest}")
    yield held
