"""Links to data's files, to be read by this machine or by the system that needs them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

SHA256 = "sha256"
# Signature parameters of S3 version 4, S3 version 2, and Google.
SIGNATURE = re.compile(r"(?i)(X-Amz-|X-Goog-|(AWSAccessKeyId|GoogleAccessId|Signature|Expires)=)")
STRONG = ("sha256:", "sha512:")  # checksums without known collisions
# Addresses that may be public; a registry checks access for each person who wants an image.
OPEN = ("http", "https", "docker", "rsync")


@dataclass(frozen=True, slots=True)
class FileLink:
    """One file: its address, the headers for that host only, and what is known of it."""

    path: str  # its name, or its path in the data's folder
    url: str = field(repr=False)  # may be signed, so it is as secret as a password
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    size: int | None = None
    checksum: str = ""  # sha256:…
    version: str = ""  # an ETag, or else a date
    source: str = ""  # the address without signature; empty: the address itself
    is_executable: bool = False

    @property
    def address(self) -> str:
        """The address that may be shown and stored."""
        return self.source or self.url

    @property
    def host(self) -> str:
        """The server that has the file."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    @property
    def is_open(self) -> bool:
        """Whether anyone may read the file: its address holds no secret, and no headers are needed."""
        parts = urlsplit(self.url)
        return not self.headers and not parts.query and "@" not in parts.netloc and parts.scheme in OPEN

    @property
    def identity(self) -> str:
        """A text that changes whenever the content does; empty if a change could go unnoticed."""
        checksum = self.checksum.lower()
        if checksum.startswith(STRONG):
            return checksum
        is_known = self.version and self.size is not None
        may_run = " x" if self.is_executable else ""
        return f"{self.address} {self.version} {self.size} {checksum}{may_run}" if is_known else ""


@dataclass(frozen=True, slots=True)
class LinkedFiles:
    """All files of some data: a single one, or those of a folder."""

    links: Sequence[FileLink]
    is_folder: bool = False
    folders: Sequence[str] = ()  # empty folders in it, if known

    @property
    def size(self) -> int | None:
        """The total size in bytes, or None if a file's size isn't known."""
        sizes = [link.size for link in self.links]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    @property
    def address(self) -> str:
        """The host that the files come from, as it may be shown."""
        return self.links[0].host if self.links else ""


def without_signature(url: str) -> str:
    """Return an address without its signature parameters, which differ each time it is signed."""
    parts = urlsplit(url)
    kept = [pair for pair in parts.query.split("&") if not SIGNATURE.match(pair)]
    return urlunsplit(parts._replace(query="&".join(kept)))


def can_be_known(files: LinkedFiles) -> bool:
    """Whether the same content will get the same cache entry again."""
    return bool(files.links) and all(link.identity for link in files.links)


def name_entry(files: LinkedFiles, person: str, session: str) -> str:
    """Name data's cache entry: the same content has the same name.

    Public data is shared by everyone, data read with a person's credentials is shared by that person's sessions, and
    data whose changes could go unnoticed belongs to one session.
    """
    links = files.links
    identities = [link.identity for link in links]
    is_open = all(link.is_open for link in links)
    if is_open and not files.is_folder and identities[0].startswith(f"{SHA256}:"):
        return f"{SHA256}-{identities[0].partition(':')[2]}"
    owner = "" if is_open else person
    if not all(identities):
        owner, identities = f"session {session}", [link.address for link in links]
    pairs = (
        sorted(zip((link.path for link in links), identities, strict=True)) if files.is_folder else [("", *identities)]
    )
    empty = (f"{folder}/" for folder in sorted(files.folders))
    text = "\0".join([owner, *(part for pair in pairs for part in pair), *empty])
    return f"data-{hashlib.sha256(text.encode('utf-8', 'surrogateescape')).hexdigest()}"
