"""Inputs that a job's system keeps for many jobs: instead of the file, a note with its path is sent.

The bridge's plug-in (`near_plugin.py`) puts a note into a sandbox in place of a file, or of a directory's archive.
"""

from __future__ import annotations

import os
import shutil
import tarfile

MARK = b"sublet-kept 3f0d8c1e-6f0a-4b0e-9a51-6c1c8a4f7b52 "  # the beginning of every note, and of nothing else
LONGEST_NOTE = 4200  # bytes of the longest note
FILE, TREE = "file", "tree"


def read_note(path: str) -> tuple[str, str] | None:
    """Return a note's type (file or tree) and path; None if the file isn't a note."""
    if os.path.islink(path) or not os.path.isfile(path) or os.path.getsize(path) > LONGEST_NOTE:
        return None
    with open(path, "rb") as file:
        text = file.read(LONGEST_NOTE)
    if not text.startswith(MARK):
        return None
    kind, _, place = text[len(MARK) :].rstrip(b"\n").decode("utf-8", "surrogateescape").partition(" ")
    return kind, place


def find_content(place: str, kept: str) -> str:
    """Return the path of the content; raise ValueError if it isn't in the system's cache."""
    content = os.path.realpath(os.path.join(os.path.dirname(place), "content"))
    if not kept or os.path.dirname(os.path.dirname(content)) != os.path.realpath(kept):
        raise ValueError("a note leads elsewhere than to what the system keeps")
    return content


def heed_notes(sandbox: str, kept: str) -> None:
    """Replace the notes in a sandbox by copies of the kept files."""
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
    """Unpack an archive; raise ValueError if a member would leave the directory."""
    archive.extraction_filter = lambda member, path: member  # newer Pythons have another default
    for member in archive:
        if member.name.startswith("/") or ".." in member.name.split("/") or member.isdev():
            raise ValueError("the archive has a member that it may not have: " + member.name)
        archive.extract(member, directory)
