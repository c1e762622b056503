"""Data that sessions bring, kept by its content in a claim of the namespace, so that it is sent once."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

LARGE = 1 << 20  # bytes: the least size of a file that is kept
MOST = 500  # files of one session, which are arguments of one command
KEPT = "/kept"  # the mount point in the containers of a pod
BLOCK = 1 << 20


@dataclass(frozen=True)
class KeptInput:
    """A file of a session that is kept by its content."""

    path: str  # below the session's directory
    digest: str
    size: int


def find_folder(owner: str, person: str) -> str:
    """Return the folder of a person's files in the claim, which nobody else's sessions see."""
    return f"sublet/{owner}/{hashlib.sha256(person.encode()).hexdigest()[:24]}"


def list_large(root: Path, writable: Sequence[str]) -> list[KeptInput]:
    """Return the large files among the data with their digests, without those that the session may change."""
    kept: list[tuple[str, Path, int]] = []
    for folder, _, names in os.walk(root / "data"):
        for name in sorted(names):
            file = Path(folder, name)
            path, seen = str(file.relative_to(root)), file.lstat()
            is_shared = not any(path == each or path.startswith(f"{each}/") for each in writable)
            if stat.S_ISREG(seen.st_mode) and seen.st_size >= LARGE and is_shared:
                kept.append((path, file, seen.st_size))
    largest = sorted(kept, key=lambda each: -each[2])[:MOST]
    return [KeptInput(path, _digest(file), size) for path, file, size in largest]


def _digest(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while block := opened.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()
