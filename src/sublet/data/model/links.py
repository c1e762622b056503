"""Where the files of some data can be read, by this machine or by the system that needs them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit, urlunsplit

SHA256 = "sha256"
# What S3 and others that sign as it does put into an address: version 4, version 2, and Google's.
SIGNATURE = re.compile(r"(?i)(X-Amz-|X-Goog-|(AWSAccessKeyId|GoogleAccessId|Signature|Expires)=)")
STRONG = ("sha256:", "sha512:")  # checksums that no other content has
# Addresses that may be anybody's; an image's registry is asked by each who wants it.
OPEN = ("http", "https", "docker", "rsync")


@dataclass(frozen=True, slots=True)
class FileLink:
    """One file: its address, what must be shown to that host (and to no other), and what is known of it."""

    path: str  # its name, or its path below the folder that the data is
    url: str = field(repr=False)  # it may be signed, so it is as secret as a password
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    size: int | None = None
    checksum: str = ""  # sha256:…
    version: str = ""  # the server's validator: an ETag, else a date
    source: str = ""  # the address without what opens it; empty: the address itself
    is_executable: bool = False

    @property
    def address(self) -> str:
        """Where it comes from, as it may be shown and remembered."""
        return self.source or self.url

    @property
    def host(self) -> str:
        """Who is asked for it."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    @property
    def is_open(self) -> bool:
        """Whether anybody who knows the address may read it: nothing is shown for it, and the address is no secret."""
        parts = urlsplit(self.url)
        return not self.headers and not parts.query and "@" not in parts.netloc and parts.scheme in OPEN

    @property
    def identity(self) -> str:
        """What is another where the content is another; empty where nothing tells whether it still is the same."""
        checksum = self.checksum.lower()
        if checksum.startswith(STRONG):
            return checksum
        is_known = self.version and self.size is not None
        return f"{self.address} {self.version} {self.size} {checksum}" if is_known else ""


@dataclass(frozen=True, slots=True)
class LinkedFiles:
    """All files of some data: one, or those of a folder."""

    links: Sequence[FileLink]
    is_folder: bool = False
    folders: Sequence[str] = ()  # those in it that are empty, where that is known

    @property
    def size(self) -> int | None:
        """Bytes in all, if they are known of each."""
        sizes = [link.size for link in self.links]
        return None if None in sizes else sum(size for size in sizes if size is not None)

    @property
    def address(self) -> str:
        """Where they come from, as it may be shown."""
        return self.links[0].host if self.links else ""


def without_signature(url: str) -> str:
    """An address without the parameters that open it for a while, which are others each time it is signed."""
    parts = urlsplit(url)
    kept = [pair for pair in parts.query.split("&") if not SIGNATURE.match(pair)]
    return urlunsplit(parts._replace(query="&".join(kept)))


def can_be_known(files: LinkedFiles) -> bool:
    """Whether the same content is known again by its name in a cache."""
    return bool(files.links) and all(link.identity for link in files.links)


def name_entry(files: LinkedFiles, person: str, session: str) -> str:
    """What some data is called in a cache: the same content has the same name.

    What anybody may read is shared by all; what was opened with a person's credentials is that person's; and what can't
    be known again is one session's.
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
