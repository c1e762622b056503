"""Files in Globus collections: parse addresses, list files, and read the state of transfers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from email.utils import format_datetime
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from sublet.data.model.collections import COLLECTION
from sublet.movers.globus_api import GlobusClient, GlobusFailed
from sublet.movers.port import TransferPhase, TransferState
from sublet.movers.trees import MOST_FILES

MOST_FOLDERS = 10_000
HOPELESS = {  # errors that Globus retries in vain, and what they mean
    "PERMISSION_DENIED": "permission was denied",
    "FILE_NOT_FOUND": "it is not there",
    "DIRECTORY_NOT_FOUND": "its folder is not there",
    "PATH_NOT_FOUND": "it is not there",
}
NO_ROOM = ("QUOTA", "NO_SPACE", "DISK_FULL")


@dataclass(frozen=True)
class CollectionPlace:
    """A collection, and a path in it."""

    collection: str
    path: str

    @property
    def is_folder(self) -> bool:
        """Whether the path is a folder's."""
        return self.path.endswith("/")

    @property
    def address(self) -> str:
        """The place as a globus: address."""
        return f"globus://{self.collection}{quote(self.path)}"

    def below(self, path: str) -> CollectionPlace:
        """Return the place of a file in this folder."""
        return CollectionPlace(self.collection, self.path + path)


@dataclass(frozen=True)
class CollectionFile:
    """A file of a collection."""

    path: str  # below the listed place; for a single file its name
    size: int
    version: str  # its modification time, in HTTP's format


def read_place(location: str) -> CollectionPlace:
    """Parse an address; raise ValueError if it is wrong."""
    address = urlsplit(location)
    collection = address.netloc.lower()
    if not COLLECTION.fullmatch(collection):
        raise ValueError("it names no collection, which is a UUID")
    path = unquote(address.path)
    if not path.startswith("/") or path == "/" or ".." in path.split("/") or re.search(r"[\x00-\x1f\x7f]", path):
        raise ValueError("it names no path in that collection")
    return CollectionPlace(collection, path)


async def list_files(client: GlobusClient, place: CollectionPlace) -> list[CollectionFile]:
    """List the file, or all files of a folder; symbolic links are left out, as in transfers."""
    operation = f"/operation/endpoint/{place.collection}"
    if not place.is_folder:
        facts = await client.get(f"{operation}/stat", path=place.path)
        if facts.get("type") == "dir":
            raise GlobusFailed("it is a folder; write a / at the end of its address to fetch its files")
        return [_read_file(facts, "")]
    waiting, files, asked = [""], list[CollectionFile](), 0
    while waiting:
        folder, asked = waiting.pop(), asked + 1
        rows = (await client.get(f"{operation}/ls", path=place.path + folder)).get("DATA") or ()
        for row in rows:
            if row.get("link_target") is None and row.get("type") == "dir":
                waiting.append(f"{folder}{row['name']}/")
            elif row.get("link_target") is None and row.get("type") == "file":
                files.append(_read_file(row, folder))
        if asked > MOST_FOLDERS or len(files) > MOST_FILES:
            raise GlobusFailed(f"it has more than {MOST_FILES} files; bring an archive of them instead")
    if not files:
        raise GlobusFailed("there is no file in it")
    return files


def _read_file(row: Mapping[str, Any], folder: str) -> CollectionFile:
    try:
        return CollectionFile(f"{folder}{row['name']}", int(row["size"]), _read_time(row.get("last_modified")))
    except (KeyError, TypeError, ValueError) as error:
        raise GlobusFailed("the answer of Globus can't be read: it is no list of files") from error


def _read_time(text: object) -> str:
    """Return a time in the format of `Last-Modified`, to be compared with the collection's HTTPS server."""
    with suppress(TypeError, ValueError):
        return format_datetime(datetime.fromisoformat(str(text)), usegmt=True)
    return ""


async def find_web_server(client: GlobusClient, collection: str) -> str:
    """Return the HTTPS server of a collection; empty if it has none."""
    return str((await client.get(f"/endpoint/{collection}")).get("https_server") or "").rstrip("/")


def read_task(answer: Mapping[str, Any]) -> TransferState:
    """Read a transfer's progress, or how it ended."""
    status, nice = str(answer.get("status")), str(answer.get("nice_status") or "")
    done = int(answer.get("bytes_transferred") or 0)
    if status == "SUCCEEDED":
        return TransferState(TransferPhase.DONE, done)
    fatal = answer.get("fatal_error")
    code = str(fatal.get("code") or "") if isinstance(fatal, dict) else ""
    message = str(fatal.get("description") or code) if isinstance(fatal, dict) else ""
    message = message or str(answer.get("nice_status_short_description") or nice)
    is_full = any(word in f"{code} {nice}".upper() for word in NO_ROOM)
    if status == "FAILED":
        by = answer.get("canceled_by_admin_message") or message or "it was cancelled"
        return TransferState(TransferPhase.FULL if is_full else TransferPhase.FAILED, done, f"Globus gave up: {by}")
    if nice in HOPELESS or is_full:
        why = HOPELESS.get(nice, message)
        return TransferState(TransferPhase.FULL if is_full else TransferPhase.FAILED, done, f"Globus can't: {why}")
    if status == "INACTIVE":
        why = (
            f"Globus has suspended the transfer ({message or 'a sign-in has expired'}); sign in to the collection again"
        )
        return TransferState(TransferPhase.FAILED, done, why)
    waits = "paused by who runs the collection" if answer.get("is_paused") else "" if nice in ("", "OK") else message
    return TransferState(TransferPhase.MOVING, done, waits)
