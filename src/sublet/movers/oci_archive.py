"""The layout of an image as one OCI archive, so that it can be written in order.

The same image always gives the same bytes.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sublet.movers.registries import ImageManifest, digest_of

LAYOUT = b'{"imageLayoutVersion": "1.0.0"}'
INDEX = "sublet.index"  # in the archive: the index that the image was named by


@dataclass(frozen=True)
class ImageBlob:
    """A config or layer blob of the registry."""

    digest: str  # sha256:…
    size: int


@dataclass(frozen=True)
class ImageArchiveLayout:
    """The archive in order: known bytes, and blobs of the registry."""

    pieces: Sequence[bytes | ImageBlob]

    @property
    def size(self) -> int:
        """The size of the whole archive in bytes."""
        return sum(_length(piece) for piece in self.pieces)

    def find_start(self, offset: int) -> int:
        """Return the offset of the piece that has this byte, as a blob is checked and written as a whole."""
        at = 0
        for piece in self.pieces:
            if at + _length(piece) > offset:
                return at
            at += _length(piece)
        return at

    def list_from(self, offset: int) -> Iterator[bytes | ImageBlob]:
        """Yield the pieces that begin at this offset or later."""
        at = 0
        for piece in self.pieces:
            if at >= offset:
                yield piece
            at += _length(piece)


def _length(piece: bytes | ImageBlob) -> int:
    return piece.size if isinstance(piece, ImageBlob) else len(piece)


def lay_out_archive(manifest: ImageManifest) -> ImageArchiveLayout:
    """Lay out the archive of an image."""
    entry: dict[str, object] = {"mediaType": manifest.media_type, "digest": manifest.digest, "size": len(manifest.raw)}
    texts = {manifest.digest: manifest.raw}
    if manifest.index:
        texts[digest_of(manifest.index)] = manifest.index
        entry["annotations"] = {INDEX: digest_of(manifest.index)}
    table = json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode()
    pieces: list[bytes | ImageBlob] = [_header(folder, 0, tarfile.DIRTYPE) for folder in ("blobs", "blobs/sha256")]
    for name, content in (("oci-layout", LAYOUT), ("index.json", table)):
        pieces.append(_header(name, len(content)) + content + _padding(len(content)))
    for digest, content in sorted(texts.items()):
        pieces.append(_header(_name_blob(digest), len(content)) + content + _padding(len(content)))
    for digest, size in sorted({(part["digest"], part["size"]) for part in manifest.parts}):
        pieces += [_header(_name_blob(digest), size), ImageBlob(digest, size), _padding(size)]
    length = sum(map(_length, pieces)) + 2 * tarfile.BLOCKSIZE
    pieces.append(bytes(2 * tarfile.BLOCKSIZE + -length % tarfile.RECORDSIZE))
    return ImageArchiveLayout([piece for piece in pieces if _length(piece)])


def _name_blob(digest: str) -> str:
    return "blobs/" + digest.replace(":", "/")


def _header(name: str, size: int, type: bytes = tarfile.REGTYPE) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.type, member.mode = size, type, 0o755 if type == tarfile.DIRTYPE else 0o644
    return member.tobuf(tarfile.PAX_FORMAT)


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)
