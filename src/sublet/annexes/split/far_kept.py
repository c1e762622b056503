"""What a job needs and its system keeps for many: it doesn't travel, but a note of where it lies, which is heeded here.

The bridge's plug-in (`near_kept.sh`) leaves a note in a sandbox in the place of a file, or of a directory's archive.
"""

from __future__ import annotations

import os
import shutil
import tarfile

MARK = b"sublet-kept 3f0d8c1e-6f0a-4b0e-9a51-6c1c8a4f7b52 "  # what a note begins with, and nothing else does
LONGEST = 4200  # bytes that a note has at most
FILE, TREE = "file", "tree"


def read_note(path: str) -> tuple[str, str] | None:
    """What a note says: whether it stands for a file or a tree, and for which; None: it is no note."""
    if os.path.islink(path) or not os.path.isfile(path) or os.path.getsize(path) > LONGEST:
        return None
    with open(path, "rb") as file:
        text = file.read(LONGEST)
    if not text.startswith(MARK):
        return None
    kind, _, place = text[len(MARK) :].rstrip(b"\n").decode("utf-8", "surrogateescape").partition(" ")
    return kind, place


def find_content(place: str, kept: str) -> str:
    """Where the content lies; ValueError if that is not below the cache of the system."""
    content = os.path.realpath(os.path.join(os.path.dirname(place), "content"))
    if not kept or os.path.dirname(os.path.dirname(content)) != os.path.realpath(kept):
        raise ValueError("a note leads elsewhere than to what the system keeps")
    return content


def heed_notes(sandbox: str, kept: str) -> None:
    """Put what is kept in the place of the notes in a sandbox, each job its own copy."""
    for name in sorted(os.listdir(sandbox)):
        path = os.path.join(sandbox, name)
        note = read_note(path)
        if note is None:
            continue
        content = find_content(note[1], kept)
        os.remove(path)
        if note[0] == TREE:
            with tarfile.open(content, "r|") as archive:
                unpack(archive, sandbox)
        else:
            shutil.copyfile(content, path)


def unpack(archive: tarfile.TarFile, directory: str) -> None:
    """All of an archive; no member may lead out of the directory."""
    archive.extraction_filter = lambda member, path: member  # the same with every Python: newer ones have another
    for member in archive:
        if member.name.startswith("/") or ".." in member.name.split("/") or member.isdev():
            raise ValueError("the archive has a member that it may not have: " + member.name)
        archive.extract(member, directory)
