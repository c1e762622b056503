"""Fetches files that a session left: those that were chosen, and on from where it was broken off."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Container, Iterable, Sequence

from sublet.booking.calls import results
from sublet.booking.model.request import matches_pattern
from sublet.booking.views.results import ResultFileView, ResultList
from sublet.client.call import Call
from sublet.kernel.errors import Changed, InTheWay, NotFound, SubletError

Stream = Callable[[Call[bytes]], Iterable[bytes]]
SAME_TIME = 0.00001  # seconds: the service tells microseconds
NAMED = 5  # so many files are named that are in the way


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


def find_files_there(
    stream: Stream, session: str, left: ResultList, directory: str, *, overwrite: bool = False
) -> frozenset[str]:
    """Which of these files a directory has already, as they are; InTheWay if another file would be replaced there."""
    there = frozenset(
        file.path for file in left.items if _looks_the_same(file, os.path.join(directory, inside(file.path)))
    )
    if overwrite:
        return there
    others = [file for file in left.items if file.path not in there]
    in_the_way, same = [], set()
    for file in others:
        to = os.path.join(directory, inside(file.path))
        if _has_same_content(stream, session, file, to):
            same.add(file.path)
        elif found := _find_in_the_way(to):
            in_the_way.append(found)
    in_the_way += [
        place for path in left.folders if (place := _find_in_the_way(os.path.join(directory, inside(path), "")))
    ]
    if in_the_way:
        raise _in_the_way(list(dict.fromkeys(in_the_way)), session, directory)
    return there | same


def _looks_the_same(file: ResultFileView, to: str) -> bool:
    """Whether an earlier fetch put it there, and nobody has changed it since."""
    try:
        status = os.stat(to)
    except OSError:
        return False
    return status.st_size == file.size and abs(status.st_mtime - file.modified.timestamp()) < SAME_TIME


def _has_same_content(stream: Stream, session: str, file: ResultFileView, to: str) -> bool:
    if not os.path.isfile(to) or os.path.getsize(to) != file.size:
        return False
    with open(to, "rb") as here:
        return all(here.read(len(piece)) == piece for piece in stream(results.result(session, file.path)))


def _find_in_the_way(to: str) -> str:
    """What stands where a file, or with a `/` a folder, is to be: it, or a file in place of a folder above."""
    above = os.path.dirname(to)
    while above and not os.path.lexists(above):
        above = os.path.dirname(above)
    if above and not os.path.isdir(above):
        return above
    return to if os.path.basename(to) and os.path.lexists(to) else ""


def _in_the_way(places: list[str], session: str, directory: str) -> InTheWay:
    named = ", ".join(places[:NAMED]) + (f" and {len(places) - NAMED} more" if len(places) > NAMED else "")
    verb = "is" if len(places) == 1 else "are"
    return InTheWay(files=named, verb=verb, session=session, directory=shlex.quote(directory))


def fetch(
    stream: Stream, session: str, left: ResultList, directory: str, there: Container[str] = frozenset()
) -> list[str]:
    """Fetch files into a directory, but for those that are there, and make the folders that are empty.

    Returns where all of them are now, a folder with a `/`.
    """
    made = [
        os.path.join(directory, inside(file.path))
        if file.path in there
        else fetch_file(stream, session, file, directory)
        for file in left.items
    ]
    for path in left.folders:
        folder = os.path.join(directory, inside(path))
        os.makedirs(folder, exist_ok=True)
        made.append(f"{folder}/")
    return made


def _fits(path: str, wanted: str) -> bool:
    name = os.path.normpath(wanted)
    return path == name or name == "." or path.startswith(f"{name}/") or matches_pattern(path, name)


def fetch_file(stream: Stream, session: str, file: ResultFileView, directory: str) -> str:
    """Fetch one file into a directory; it appears there when it is whole, and what came before is not fetched again."""
    to = os.path.join(directory, inside(file.path))
    if not file.etag:
        return _date(save(stream(results.result(session, file.path)), to), file)
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
    return _date(to, file)


def _date(to: str, file: ResultFileView) -> str:
    """Give it the time of the original, by which it is known again."""
    modified = file.modified.timestamp()
    os.utime(to, (modified, modified))
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
