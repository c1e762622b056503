"""Downloads a session's result files: the chosen ones, resuming interrupted downloads."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Container, Iterable, Sequence
from typing import BinaryIO

from sublet.booking.calls import results
from sublet.booking.model.request import matches_pattern
from sublet.booking.views.results import ResultFileView, ResultList
from sublet.client.call import Call
from sublet.kernel.errors import Changed, InTheWay, NotFound, SubletError
from sublet.kernel.part_names import name_part

Stream = Callable[[Call[bytes]], Iterable[bytes]]
SAME_TIME = 0.00001  # seconds: the service's times have microseconds
NAMED = 5  # conflicting files that an error names


def choose_results(left: ResultList, wanted: Sequence[str]) -> ResultList:
    """Return the results that are named, are in a named directory, or match a pattern; all if nothing is named."""
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
    """Return which results the directory has already, unchanged; raise InTheWay if another file is in their place."""
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
    """Whether a file has the size and time of the result, so that an earlier download put it there."""
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
    """Return the existing file at a path, or in place of a parent folder; "" if the path is free.

    A path that ends in `/` is a folder, which may exist.
    """
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
    """Download the files that aren't in `there`, and create the empty folders.

    Return the local paths of all files and folders; those of folders end in `/`.
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
    """Download one file, resuming a partial download; it appears under its name when it is complete."""
    to = os.path.join(directory, inside(file.path))
    if not file.etag:
        return _date(save(stream(results.result(session, file.path)), to), file)
    part = name_part(to)
    mark = f"{part}.version"
    os.makedirs(os.path.dirname(to) or ".", exist_ok=True)
    with _open_alone(part, to) as kept:
        first = _came(part, mark, file)
        kept.truncate(first)
        if first != file.size or not first:
            call = results.rest(session, file.path, first, file.etag) if first else results.result(session, file.path)
            with open(mark, "w", encoding="utf-8") as version:
                version.write(file.etag)
            try:
                kept.writelines(stream(call))
            except Changed:
                os.unlink(mark)
                raise
        kept.flush()
        os.unlink(mark)
        if (size := os.path.getsize(part)) != file.size:
            os.unlink(part)
            raise SubletError(f"{file.path} came with {size} bytes instead of {file.size}.", hint="Fetch it again.")
        os.replace(part, to)
    return _date(to, file)


def _open_alone(part: str, to: str) -> BinaryIO:
    """Open a partial file for appending; raise SubletError if another command is writing it.

    Two that write one file would mix their pieces.
    """
    import fcntl

    while True:
        kept = open(part, "ab")  # noqa: SIM115 - the caller closes it
        try:
            fcntl.flock(kept, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(kept.fileno()), os.stat(part)):
                return kept
        except BlockingIOError:
            kept.close()
            hint = "Wait until that one is done, or end it."
            raise SubletError(f"Another command is fetching {to} just now.", hint=hint) from None
        except FileNotFoundError:
            pass  # another command completed it meanwhile: a new one is begun
        except OSError:  # a file system without locks
            return kept
        kept.close()


def _date(to: str, file: ResultFileView) -> str:
    """Give the file the original's time, by which later downloads recognize it."""
    modified = file.modified.timestamp()
    os.utime(to, (modified, modified))
    return to


def save(pieces: Iterable[bytes], to: str) -> str:
    """Write a file atomically; raise SubletError if another command is writing it."""
    os.makedirs(os.path.dirname(to) or ".", exist_ok=True)
    part = name_part(to)
    with _open_alone(part, to) as file:
        file.truncate(0)
        file.writelines(pieces)
        file.flush()
        os.replace(part, to)
    return to


def _came(part: str, mark: str, file: ResultFileView) -> int:
    """Return how many bytes of this version of the file were downloaded before."""
    try:
        with open(mark, encoding="utf-8") as version:
            same = version.read() == file.etag
        size = os.path.getsize(part)
    except OSError:
        return 0
    return size if same and size <= file.size else 0


def inside(path: str) -> str:
    """Normalize a path; raise SubletError if it would leave the directory, whatever the service says."""
    kept = os.path.normpath(path)
    if os.path.isabs(kept) or kept.split("/")[0] == "..":
        raise SubletError(f"The service names a file outside of the session: {path}", hint="It is not fetched.")
    return kept
