"""Uploads: folders and files that a person sent to the service, kept for a while, and used as data by name."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from posixpath import normpath

SCHEME = "upload"
EXAMPLE = "upload:run1/forcing/"
NAME = re.compile(r"\w[\w.-]{0,99}")
LONGEST_PATH, LONGEST_PART = 1000, 255  # bytes
LATEST = 253402300799  # the last second that a datetime can hold


class WrongUpload(ValueError):
    """An upload has an invalid name, path or metadata; the message is a sentence that says what is wrong."""


@dataclass(frozen=True, slots=True)
class Upload:
    """A folder of files under a name that its owner chose."""

    id: str
    person: str
    name: str
    created: datetime
    keep_until: datetime
    files: int = 0  # including incomplete ones
    size: int = 0  # their total bytes, once complete


@dataclass(frozen=True, slots=True)
class UploadedFile:
    """One file of an upload; sessions use it only when it is complete."""

    id: str
    upload: str
    path: str
    size: int
    created: datetime
    expires: datetime  # an incomplete file is removed then
    is_whole: bool = False
    modified: datetime | None = None  # according to its owner's machine
    is_executable: bool = False


@dataclass(frozen=True, slots=True)
class UploadWish:
    """Where a sent file goes: the upload, and the path in it."""

    name: str
    path: str
    size: int
    modified: datetime | None = None
    is_executable: bool = False


def split_upload(location: str) -> tuple[str, str]:
    """Return the upload that an address names and the path in it; empty if it is another kind of address."""
    scheme, _, rest = location.partition(":")
    name, _, path = rest.partition("/") if scheme == SCHEME else ("", "", "")
    return name, path


def check_upload_name(name: str) -> str:
    """Return the name; raise WrongUpload if it isn't valid for an upload."""
    if not NAME.fullmatch(name):
        raise WrongUpload(
            f"{name[:100]!r} can't be the name of an upload: it has letters, digits, `.`, `_` and `-`, at most 100."
        )
    return name


def make_upload_name(text: str) -> str:
    """Make a valid upload name from that of a folder or file."""
    plain = re.sub(r"[^\w.-]+", "-", text).strip("-.")[:100]
    return plain if NAME.fullmatch(plain) else "upload"


def check_upload_path(path: str) -> str:
    """Return the path; raise WrongUpload if it could leave the upload, or is unprintable or too long."""
    parts = path.split("/")
    if not path or path.startswith("/") or {".", ".."} & {*parts} or normpath(path) != path:
        raise WrongUpload(f"{path[:200]!r} can't be the path of a file in an upload: it must stay inside it.")
    if any(ord(letter) < 32 or 0x7F <= ord(letter) < 0xA0 or 0xD800 <= ord(letter) < 0xE000 for letter in path):
        raise WrongUpload(f"{path[:200]!r} can't be the path of a file: it has control characters in it.")
    if len(path.encode()) > LONGEST_PATH or any(len(part.encode()) > LONGEST_PART for part in parts):
        raise WrongUpload(f"{path[:200]!r} can't be the path of a file: it is too long.")
    return path


def parse_metadata(header: str) -> dict[str, str]:
    """Parse tus' `Upload-Metadata` header: comma-separated pairs of a name and a Base64 value."""
    values: dict[str, str] = {}
    for pair in filter(None, (pair.strip() for pair in header.split(","))):
        name, _, value = pair.partition(" ")
        try:
            values[name] = base64.b64decode(value.strip(), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise WrongUpload(f"Upload-Metadata has a value for {name[:60]!r} that is not text in Base64.") from None
    return values


def write_metadata(values: Mapping[str, str]) -> str:
    """Format values as tus' `Upload-Metadata` header."""
    return ",".join(f"{name} {base64.b64encode(value.encode()).decode()}" for name, value in values.items() if value)


def read_wish(metadata: Mapping[str, str], size: int) -> UploadWish:
    """Read from a tus client's metadata where a file goes.

    `upload` is the upload's name and `path` the path in it. Other clients send `relativePath` for a file of a folder,
    whose first part becomes the name, or just `filename` (or `name`).
    """
    path = metadata.get("path") or _plain(metadata.get("relativePath")) or metadata.get("filename")
    path = path or metadata.get("name") or ""
    if not path:
        raise WrongUpload("Upload-Metadata says nothing of the file's name: send `filename`, or `upload` and `path`.")
    path, name = check_upload_path(path), metadata.get("upload", "")
    if not name:
        folder, slash, rest = path.partition("/")
        name, path = make_upload_name(folder), rest if slash else path
    is_executable = metadata.get("executable", "").lower() in ("1", "true", "yes")
    modified = _read_modified(metadata)
    return UploadWish(check_upload_name(name), path, size, modified, is_executable)


def _plain(path: str | None) -> str:
    """Return a relative path, or an empty string for the `null` that some clients send."""
    return "" if path in (None, "null", "undefined") else str(path)


def _read_modified(metadata: Mapping[str, str]) -> datetime | None:
    seconds = metadata.get("modified", "")
    if not re.fullmatch(r"[0-9]{1,12}(\.[0-9]{1,9})?", seconds) or float(seconds) > LATEST:
        return None
    return datetime.fromtimestamp(float(seconds), UTC)
