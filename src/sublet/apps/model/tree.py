"""The files of an app as one reproducible archive, and the hash that names it."""

from __future__ import annotations

import hashlib
import io
import posixpath
import re
import tarfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sublet.kernel.errors import BadTree

MOST_FILES = 20_000
MOST_BYTES = 256 << 20
LONGEST_PATH = 1000
SCHEME = "app"
KIND = "app-tree"  # of data: brought by a kind of executable only, never named by a request
_HASH = re.compile(r"[0-9a-f]{64}")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class TreeFile:
    """One file of a tree, or a symbolic link."""

    path: str  # below the tree, with /
    content: bytes = b""
    executable: bool = False
    link: str = ""  # the target of a symbolic link


def archive_of(files: Iterable[TreeFile]) -> bytes:
    """Pack files as a tar, with the same bytes for the same files; raise BadTree if one can't be included."""
    held = sorted(files, key=lambda file: file.path.encode("utf-8", "surrogateescape"))
    check(held)
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for file in held:
            archive.addfile(_entry(file), None if file.link else io.BytesIO(file.content))
    return target.getvalue()


def _entry(file: TreeFile) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(file.path)
    entry.mode = 0o755 if file.executable else 0o644
    if file.link:
        entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, file.link, 0o777
    else:
        entry.size = len(file.content)
    return entry


def hash_of(archive: bytes) -> str:
    """Return the hash that names an archive."""
    return hashlib.sha256(archive).hexdigest()


def location_of(tree: str) -> str:
    """Return the location by which the app mover finds a tree."""
    return f"{SCHEME}:{tree}"


def tree_of(location: str) -> str:
    """Return the hash in a location; empty if there is none."""
    scheme, _, tree = location.partition(":")
    return tree if scheme == SCHEME and _HASH.fullmatch(tree) else ""


def files_of(archive: bytes) -> list[TreeFile]:
    """Read the files of an archive; raise BadTree if it has anything else, or too much."""
    files: list[TreeFile] = []
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as opened:
            for entry in opened:
                if len(files) >= MOST_FILES:
                    raise BadTree(why=f"it has more than {MOST_FILES} files")
                files.append(_file(opened, entry))
    except tarfile.TarError as error:
        raise BadTree(why=f"it is not a whole archive: {error}") from error
    check(files)
    return files


def _file(opened: tarfile.TarFile, entry: tarfile.TarInfo) -> TreeFile:
    if entry.issym():
        return TreeFile(entry.name, link=entry.linkname)
    if entry.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
        raise BadTree(why=f"{entry.name!r} is neither a file nor a symbolic link")
    content = opened.extractfile(entry)
    return TreeFile(entry.name, content.read() if content else b"", bool(entry.mode & 0o100))


def check(files: Sequence[TreeFile]) -> None:
    """Raise BadTree unless all files stay inside the tree and within the limits."""
    if len(files) > MOST_FILES:
        raise BadTree(why=f"it has more than {MOST_FILES} files")
    if sum(len(file.content) for file in files) > MOST_BYTES:
        raise BadTree(why=f"its files have more than {MOST_BYTES >> 20} MiB")
    paths: set[str] = set()
    folders: set[str] = set()
    for file in files:
        _check_path(file.path)
        if file.path in paths:
            raise BadTree(why=f"{file.path!r} is there twice")
        paths.add(file.path)
        folders |= set(_above(file.path))
        if file.link:
            _check_link(file)
    if both := sorted(paths & folders):
        raise BadTree(why=f"{both[0]!r} is both a file or link and a directory")


def _above(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: end + 1]) for end in range(len(parts))]


def _check_path(path: str) -> None:
    parts = path.split("/")
    if not path or len(path.encode("utf-8", "surrogatepass")) > LONGEST_PATH:
        raise BadTree(why=f"{path[:80]!r} is empty, or longer than {LONGEST_PATH} bytes")
    if _CONTROL.search(path) or any(part in ("", ".", "..") for part in parts):
        raise BadTree(why=f"{path[:200]!r} is not a plain path below the tree")


def _check_link(file: TreeFile) -> None:
    """Raise BadTree unless a link stays inside the tree; upward steps must come first."""
    where = posixpath.normpath(posixpath.join(posixpath.dirname(file.path), file.link))
    inside = not file.link.startswith("/") and where != ".." and not where.startswith("../")
    steps = [step for step in file.link.split("/") if step not in ("", ".")]
    ups_first = ".." not in steps[next((i for i, step in enumerate(steps) if step != ".."), len(steps)) :]
    if not (inside and ups_first) or _CONTROL.search(file.link) or len(file.link) > LONGEST_PATH:
        raise BadTree(why=f"the link {file.path!r} leads out of it, to {file.link[:200]!r}")
