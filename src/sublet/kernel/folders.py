"""Lists the files of a folder that is sent to a session, without the ignored ones."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass

from sublet.kernel.ignore import Ignore


class LinkLeadsOut(Exception):
    """A symbolic link in a folder points outside of it, is broken, or forms a loop."""


@dataclass(frozen=True, slots=True)
class FolderEntry:
    """A file or folder: its path relative to the top, the path to read it from, and its size."""

    path: str
    source: str
    is_folder: bool
    size: int = 0


def walk(top: str, ignore: Ignore, without: str = "") -> Iterator[FolderEntry]:
    """Yield everything in a folder, each subfolder before its content; links are followed if they stay inside.

    The folder `without` is left out, even if a link leads to it: a copy can't contain the folder that it is made in.
    """
    top = os.path.realpath(top)
    left_out = os.path.realpath(without) if without else ""
    yield from _below(top, top, "", ignore, (top,), left_out)


def _below(
    top: str, folder: str, prefix: str, ignore: Ignore, above: tuple[str, ...], left_out: str
) -> Iterator[FolderEntry]:
    with os.scandir(folder) as listing:
        entries = sorted(listing, key=lambda entry: entry.name)
    for entry in entries:
        path = f"{prefix}{entry.name}"
        if ignore.skips(path, is_folder=entry.is_dir()):
            continue
        source = _follow(top, path, entry) if entry.is_symlink() else entry.path
        if not entry.is_dir():
            size = entry.stat().st_size if stat.S_ISREG(entry.stat().st_mode) else 0
            yield FolderEntry(path, source, is_folder=False, size=size)
            continue
        if source == left_out:
            continue
        if source in above:
            raise LinkLeadsOut(f"the link {path} in it leads in a circle")
        yield FolderEntry(path, source, is_folder=True)
        yield from _below(top, source, f"{path}/", ignore, (*above, source), left_out)


def _follow(top: str, path: str, entry: os.DirEntry[str]) -> str:
    source = os.path.realpath(entry.path)
    if not os.path.exists(source):
        raise LinkLeadsOut(f"the link {path} in it leads nowhere")
    if os.path.commonpath([top, source]) != top:
        raise LinkLeadsOut(f"the link {path} in it leads elsewhere, to {source}")
    return source
