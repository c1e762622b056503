"""Reads the file listings of rsync servers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from sublet.booking.model.request import Data
from sublet.data.model.links import FileLink, LinkedFiles
from sublet.movers.arrival import missing
from sublet.movers.port import NoLinks
from sublet.movers.sftp_reading import YOUNG
from sublet.movers.trees import MOST_FILES, safe_path

TOO_MANY = f"it has more than {MOST_FILES} files; bring an archive of them instead"
LIST = ("--list-only", "--8-bit-output", "--no-human-readable")
LISTED = re.compile(r"(?P<kind>.)(?P<rights>\S+)\s+(?P<size>\d+) (?P<time>\S+ \S+) (?P<path>.+)")
TIME = "%Y/%m/%d %H:%M:%S"


def _plain(path: str) -> str:
    """Unescape a path: rsync prints control characters as `\\#ooo`."""
    return re.sub(r"\\#([0-7]{3})", lambda match: chr(int(match[1], 8)), path)


class RsyncListing:
    """A list of files, parsed as it streams in."""

    def __init__(self, data: Data) -> None:
        """Start empty."""
        self.files: dict[str, tuple[int, str]] = {}
        self.executable: set[str] = set()
        self._folders: list[str] = []
        self._data, self._rest = data, b""

    def take(self, piece: bytes) -> None:
        """Parse complete lines; raise DataNotThere if there are too many files."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            row = LISTED.match(line.decode("utf-8", "replace"))
            if row and row["kind"] == "-":
                path = _plain(row["path"])
                self.files[path] = (int(row["size"]), row["time"])
                if set(row["rights"]) & set("xst"):
                    self.executable.add(path)
            elif row and row["kind"] == "d" and row["path"] != ".":
                self._folders.append(_plain(row["path"]))
        if len(self.files) + len(self._folders) > MOST_FILES:
            raise missing(self._data, TOO_MANY)

    @property
    def empty(self) -> list[str]:
        """The folders that have nothing in them."""
        above = {str(folder) for path in (*self.files, *self._folders) for folder in PurePosixPath(path).parents}
        return [folder for folder in self._folders if folder not in above]


def list_links(data: Data, listing: RsyncListing, headers: Mapping[str, str]) -> tuple[LinkedFiles, LinkedFiles]:
    """Return links to all files, and the same without versions that are too recent to be relied on.

    Raise NoLinks if there are no files.
    """
    is_folder, files = data.location.endswith("/"), listing.files
    name = unquote(urlsplit(data.location).path).rpartition("/")[2]
    if not files or (not is_folder and set(files) != {name}):
        raise NoLinks
    if is_folder and data.checksum:
        raise missing(data, "it is a folder, and a checksum is of a file")
    links = []
    for path, (size, version) in files.items():
        url = f"{data.location}{path}" if is_folder else data.location
        is_executable = path in listing.executable
        link = FileLink(str(safe_path(data, path)), url, headers, size, data.checksum, version)
        links.append(replace(link, is_executable=is_executable))
    now = datetime.now(UTC)
    named = [replace(link, version="" if _is_young(link.version, now) else link.version) for link in links]
    empty = [str(safe_path(data, folder)) for folder in listing.empty] if is_folder else []
    return LinkedFiles(links, is_folder, empty), LinkedFiles(named, is_folder, empty)


def _is_young(version: str, now: datetime) -> bool:
    """Whether a file changed so recently that it may change again within the same second, or its time can't be read."""
    try:
        changed = datetime.strptime(version, TIME).replace(tzinfo=UTC)
    except ValueError:
        return True
    return (now - changed).total_seconds() < YOUNG
