"""Fetches files that a session left: those that were chosen, and on from where it was broken off."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase

from sublet.booking.calls import results
from sublet.booking.views.results import ResultFileView, ResultList
from sublet.client.call import Call
from sublet.kernel.errors import Changed, NotFound, SubletError

Stream = Callable[[Call[bytes]], Iterable[bytes]]


def choose_results(left: ResultList, wanted: Sequence[str]) -> ResultList:
    """Those that are named, are below a directory that is named, or fit a pattern; all if nothing is."""
    if not wanted:
        return left
    for name in wanted:
        if not any(_fits(path, name) for path in (*(file.path for file in left.items), *left.folders)):
            raise NotFound(f"The session left no file {name}.", hint="`sublet result SESSION` lists the files.")
    some = tuple(file for file in left.items if any(_fits(file.path, name) for name in wanted))
    folders = tuple(path for path in left.folders if any(_fits(path, name) for name in wanted))
    size = sum(file.size for file in some)
    return ResultList(items=some, size=size, folders=folders, kept_until=left.kept_until)


def fetch(stream: Stream, session: str, left: ResultList, directory: str) -> list[str]:
    """Fetch files into a directory, and make the folders that are empty; where they are now, a folder with a `/`."""
    made = [fetch_file(stream, session, file, directory) for file in left.items]
    for path in left.folders:
        folder = os.path.join(directory, inside(path))
        os.makedirs(folder, exist_ok=True)
        made.append(f"{folder}/")
    return made


def _fits(path: str, wanted: str) -> bool:
    name = os.path.normpath(wanted)
    return path == name or name == "." or path.startswith(f"{name}/") or fnmatchcase(path, name)


def fetch_file(stream: Stream, session: str, file: ResultFileView, directory: str) -> str:
    """Fetch one file into a directory; it appears there when it is whole, and what came before is not fetched again."""
    to = os.path.join(directory, inside(file.path))
    if not file.etag:
        return save(stream(results.result(session, file.path)), to)
    part, mark = f"{to}.part", f"{to}.part.version"
    first = _came(part, mark, file)
    os.makedirs(os.path.dirname(to) or ".", exist_ok=True)
    if first != file.size or not first:
        call = results.rest(session, file.path, first, file.etag) if first else results.result(session, file.path)
        with open(mark, "w", encoding="utf-8") as version:
            version.write(file.etag)
        try:
            with open(part, "ab" if first else "wb") as kept:
                kept.writelines(stream(call))
        except Changed:
            os.unlink(mark)
            raise
    os.replace(part, to)
    os.unlink(mark)
    return to


def save(pieces: Iterable[bytes], to: str) -> str:
    """Write a file, which appears when it is whole."""
    os.makedirs(os.path.dirname(to) or ".", exist_ok=True)
    part = f"{to}.part"
    with open(part, "wb") as file:
        file.writelines(pieces)
    os.replace(part, to)
    return to


def _came(part: str, mark: str, file: ResultFileView) -> int:
    """How many bytes of this very version came before."""
    try:
        with open(mark, encoding="utf-8") as version:
            same = version.read() == file.etag
        size = os.path.getsize(part)
    except OSError:
        return 0
    return size if same and size <= file.size else 0


def inside(path: str) -> str:
    """A path that stays below the directory, whatever a service says."""
    kept = os.path.normpath(path)
    if os.path.isabs(kept) or kept.split("/")[0] == "..":
        raise SubletError(f"The service names a file outside of the session: {path}", hint="It is not fetched.")
    return kept
