"""Resolves the links of a tree, so that nothing has to follow links later."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sublet.apps.model.tree import MOST_BYTES, MOST_FILES, TreeFile
from sublet.kernel.errors import BadTree

MOST_STEPS = 40  # links on the way to one file
MOST_LOOKS = 2_000_000  # files visited, for all links to directories together


def without_links(files: Sequence[TreeFile]) -> list[TreeFile]:
    """Return the files with links replaced by their targets.

    Dangling links are dropped, and BadTree is raised for cycles.
    """
    links = _Links(files)
    files_there: list[TreeFile] = []
    size = 0
    for file in files:
        for each in links.of(file, file.path, 0):
            files_there.append(each)
            size += len(each.content)
            if len(files_there) > MOST_FILES or size > MOST_BYTES:
                raise BadTree(why=f"with its links it has more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB")
    return files_there


class _Links:
    def __init__(self, files: Sequence[TreeFile]) -> None:
        self._held = {file.path: file for file in files}
        self._left = MOST_LOOKS

    def of(self, file: TreeFile, place: str, depth: int) -> Iterator[TreeFile]:
        """Yield a file, or everything that a link leads to, at a path."""
        if not file.link:
            yield replace(file, path=place)
            return
        if depth > MOST_STEPS:
            raise BadTree(why=f"the link {file.path!r} never ends")
        where = self._end(file)
        if where in self._held:
            yield replace(self._held[where], path=place)
            return
        self._left -= len(self._held)
        if self._left < 0:
            raise BadTree(why="it has too many links to directories")
        below = f"{where}/" if where else ""
        for path, other in self._held.items():
            if path.startswith(below):
                yield from self.of(other, f"{place}/{path[len(below) :]}", depth + 1)

    def _end(self, file: TreeFile) -> str:
        """Return the path that a link finally leads to; empty for the tree itself."""
        left = _join(file.path, file.link).split("/")
        at, steps = "", 0
        while left:
            at = posixpath.join(at, left.pop(0))
            if at in self._held and self._held[at].link:
                steps += 1
                if steps > MOST_STEPS:
                    raise BadTree(why=f"the link {file.path!r} never ends")
                left, at = [*_join(at, self._held[at].link).split("/"), *left], ""
        return "" if at == "." else at


def _join(path: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), link))
