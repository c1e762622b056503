"""Parses the locations of images, and lists what has to be staged for them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from sublet.booking.model.image import REFERENCE, ImageArchive
from sublet.booking.model.request import Data
from sublet.kinds import fields as f
from sublet.kinds.inside.container_images import pin
from sublet.kinds.inside.image_files import Archive, NotAnImage, sha256_of, squashfs_offset
from sublet.kinds.port import Setting

BROUGHT = "sublet.image"
# Schemes that images are brought from
ADDRESSES = ("http", "https", "file", "s3", "s3+http", "s3+https", "dav", "davs", "globus")
ARCHIVES = ("docker-archive", "oci-archive")
TARS = (".tar", ".tar.gz", ".tgz")
SQUASHED = (".sif", ".simg", ".sqfs", ".squashfs", ".img")


def read_location(location: str, number: int, sif: bool = False) -> dict[str, str]:
    """Parse a location: `how` says what it is (registry, archive, directory, sif, library, unknown)."""
    scheme, separator, rest = location.partition("://")
    if separator and scheme in ADDRESSES:
        how = "sif" if sif or _path(location).endswith(SQUASHED) else "archive"
        return {"how": how, "brought": f"{BROUGHT}-{number}", "said": location}
    if separator and scheme in ("library", "oras", "shub"):
        return {"how": "library" if sif else "unknown", "ref": location, "said": location}
    if separator and scheme == "docker":
        return _reference(rest, location, number)
    if location.startswith("/"):
        return _at_path(location, location, sif)
    prefix, colon, path = location.partition(":")
    if colon and prefix in (*ARCHIVES, "dir") and path.startswith("/"):
        return _at_path(path, location, sif) if prefix == "dir" else {"how": "archive", "path": path, "said": location}
    # Otherwise it would be taken for a file without its full path
    if sif or separator or location.lower().endswith((*SQUASHED, *TARS)):
        return {"how": "unknown", "said": location}
    return _reference(location, location, number)


@dataclass(frozen=True)
class ArchiveFile:
    """A file of this machine that may be an image archive."""

    path: str

    def find_id(self) -> str:
        """Return the image's id in a store, which covers its whole content; empty if it is no image archive."""
        try:
            archive = Archive(self.path)
        except NotAnImage:
            return ""
        archive.close()
        return archive.id

    def find_squashed_id(self) -> str:
        """Return the file's digest, if it is a Singularity image; otherwise an empty string."""
        try:
            status = os.stat(self.path)
            return _read_squashed(self.path, status.st_size, status.st_mtime_ns)
        except (NotAnImage, OSError):
            return ""

    def describe(self) -> ImageArchive | None:
        """Return the archive's form and digests, with each layer checked; None if it is no image archive."""
        try:
            archive = Archive(self.path)
        except NotAnImage:
            return None
        try:
            archive.verify_layers()
            return ImageArchive("oci-archive" if archive.digests else "docker-archive", tuple(archive.list_digests()))
        except NotAnImage:
            return None
        finally:
            archive.close()


@lru_cache(maxsize=256)
def _read_squashed(path: str, size: int, time: int) -> str:
    """Return the digest of a Singularity image, cached as long as the file is unchanged."""
    squashfs_offset(path)
    return sha256_of(path)


def _reference(text: str, written: str, number: int) -> dict[str, str]:
    if not REFERENCE.match(text):
        return {"how": "unknown", "said": written}
    return {"how": "registry", "ref": text, "fetched": f"{BROUGHT}-{number}", "said": written}


def _at_path(path: str, written: str, sif: bool) -> dict[str, str]:
    if path.endswith(TARS):
        return {"how": "archive", "path": path, "said": written}
    squashed = path.endswith(SQUASHED) or (sif and "." in path.rpartition("/")[2])
    return {"how": "sif" if squashed else "directory", "path": path.rstrip("/") or "/", "said": written}


def _path(location: str) -> str:
    return unquote(urlsplit(location).path)


def list_archives(locations: Sequence[str], sif: bool = False) -> list[str]:
    """List the image files that are named by paths on the machine that runs them."""
    sources = [read_location(location, number, sif) for number, location in enumerate(locations)]
    return [source["path"] for source in sources if source["how"] in ("archive", "sif") and "path" in source]


def is_ours(source: Mapping[str, str]) -> bool:
    """Whether the source is a path among the account's own files, which strangers must not name."""
    return "path" in source or source["said"].startswith("file:")


def to_bring(locations: Sequence[str], sif: bool = False) -> list[Data]:
    """List the images that have an address, as data to stage."""
    sources = [read_location(location, number, sif) for number, location in enumerate(locations)]
    return [f.bring(source["brought"], source["said"], shared=True) for source in sources if "brought" in source]


def to_fetch(locations: Sequence[str], digest: str = "", sif: bool = False) -> list[Data]:
    """List registry images, any one of which is enough; empty if there are other locations too."""
    sources = [read_location(location, number, sif) for number, location in enumerate(locations)]
    if any(source["how"] != "registry" for source in sources):
        return []
    return [f.bring(source["fetched"], f"docker://{pin(source['ref'], digest)}", shared=True) for source in sources]


def place_source(source: Mapping[str, str], setting: Setting) -> dict[str, str]:
    """Return the source as the runner finds it: with the directory of what was staged."""
    name = source.get("brought") or source.get("fetched")
    return {**source, "folder": setting.find_brought(name)} if name else dict(source)
