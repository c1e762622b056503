"""Uploads folders and files in pieces, without those that the service has already."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from time import sleep
from typing import Any, Generic, TypeVar

from sublet.client.call import Call
from sublet.client.folder import list_ignored
from sublet.data.calls import uploads
from sublet.data.model.uploads import WrongUpload, check_upload_name, check_upload_path, make_upload_name
from sublet.data.views.uploads import UploadFileView, UploadShown
from sublet.kernel.errors import BadRequest, Changed, NotFound, ServiceUnreachable, UploadBusy, WrongOffset
from sublet.kernel.folders import LinkLeadsOut, walk
from sublet.kernel.ignore import CLUTTER, SECRETS, Ignore

T = TypeVar("T")
PIECE = 8 << 20  # bytes per request
PAUSES = (0.5, 1, 2, 4, 8, 16)  # seconds before each retry
SAME = 0.001  # seconds by which the times of an unchanged file may differ


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file to upload."""

    source: str
    path: str  # its path in the upload
    size: int
    modified: float
    is_executable: bool


@dataclass(frozen=True, slots=True)
class UploadPlan:
    """The files to upload, and the upload's name."""

    name: str
    files: tuple[LocalFile, ...]

    @property
    def size(self) -> int:
        """The total size in bytes."""
        return sum(file.size for file in self.files)


@dataclass
class UploadTally:
    """The progress of an upload; `show` is called after each piece."""

    total: int = 0
    done: int = 0
    sent: int = 0  # bytes that were sent
    skipped: int = 0  # files that the service had already
    show: Callable[[UploadTally], None] = field(default=lambda _: None)

    def add(self, size: int, *, sent: bool = True) -> None:
        """Record further bytes that the service has."""
        self.done += size
        self.sent += size if sent else 0
        self.show(self)


Steps = Generator[Call[Any] | timedelta, Any, T]  # yields calls and pauses, receives the answers


def plan_upload(places: Sequence[str | os.PathLike[str]], name: str = "", ignore: Sequence[str] = ()) -> UploadPlan:
    """Return which files of these folders to upload; raise BadRequest if one doesn't exist or can't be sent."""
    paths = [os.fspath(place) for place in places]
    if len(paths) > 1 and not name:
        raise BadRequest(detail="several places are one upload", hint="Say what to call it: --name NAME.")
    if not paths:
        raise BadRequest(detail="nothing is named that could be uploaded", hint="Name a folder or files.")
    called = name or make_upload_name(os.path.basename(os.path.realpath(paths[0])))
    is_alone = len(paths) == 1
    files = [
        file for path in paths for file in list_files(path, ignore, prefix="" if is_alone else f"{_last_name(path)}/")
    ]
    _check_names(called, files)
    return UploadPlan(called, tuple(files))


def _check_names(name: str, files: Sequence[LocalFile]) -> None:
    """Raise BadRequest if the upload's name or a path can't be used, or if two files have the same path."""
    try:
        check_upload_name(name)
        for file in files:
            check_upload_path(file.path)
    except WrongUpload as error:
        raise BadRequest(detail=str(error), hint="Rename it, or say another name: --name NAME.") from None
    if path := find_repeated(file.path for file in files):
        raise BadRequest(detail=f"several files would be at {path}", hint="Send them as two uploads.")


def find_repeated(paths: Iterable[str]) -> str:
    """Return the first path that occurs a second time, or ""."""
    known: set[str] = set()
    for path in paths:
        if path in known:
            return path
        known.add(path)
    return ""


def _last_name(path: str) -> str:
    return (
        os.path.basename(os.path.realpath(os.path.expanduser(path))) if os.path.isdir(os.path.expanduser(path)) else "."
    )


def list_files(place: str, ignore: Sequence[str] = (), prefix: str = "") -> Iterator[LocalFile]:
    """Yield the files of a folder to upload, or the file itself; raise BadRequest if one can't be sent."""
    path = os.path.expanduser(place)
    if os.path.isfile(path):
        yield _measure(path, f"{prefix}{os.path.basename(os.path.realpath(path))}".removeprefix("./"))
        return
    if not os.path.isdir(path):
        raise BadRequest(detail=f"there is no folder or file {place} here", hint=f"This is {os.getcwd()}.")
    rules = Ignore([*CLUTTER, *SECRETS, *list_ignored(path), *ignore])
    try:
        for entry in walk(path, rules):
            if not entry.is_folder:
                yield _measure(entry.source, f"{prefix}{entry.path}")
    except LinkLeadsOut as error:
        hint = "Name the link in .subletignore to leave it behind, or upload what it leads to."
        raise BadRequest(detail=f"the folder {place} can't be uploaded: {error}", hint=hint) from error
    except OSError as error:
        raise BadRequest(detail=f"the folder {place} can't be uploaded: {error.filename}: {error.strerror}") from error


def _measure(source: str, path: str) -> LocalFile:
    facts = os.stat(source)
    if not stat.S_ISREG(facts.st_mode):
        raise BadRequest(detail=f"{source} can't be uploaded: it is not a file or folder")
    return LocalFile(source, path, facts.st_size, facts.st_mtime, bool(facts.st_mode & 0o100))


def upload_steps(plan: UploadPlan, tally: UploadTally) -> Steps[UploadShown]:
    """Upload the files that are missing or have changed; return the finished upload."""
    try:
        there: UploadShown | None = yield uploads.upload(plan.name)
    except NotFound:
        there = None
    tally.total = plan.size
    known = {file.path: file for file in there.items} if there else {}
    for file in plan.files:
        before = known.get(file.path)
        same = before if before and _is_same(before, file) else None
        if same and same.whole:
            tally.skipped += 1
            tally.add(file.size, sent=False)
        else:
            yield from _send_file(plan.name, file, same, tally)
    shown: UploadShown = yield uploads.upload(plan.name)
    return shown


def _is_same(there: UploadFileView, file: LocalFile) -> bool:
    """Whether the service's file, or a part of it, is of the same version as the local one."""
    if there.size != file.size or there.modified is None:
        return False
    return abs(there.modified.timestamp() - file.modified) < SAME


def _send_file(name: str, file: LocalFile, before: UploadFileView | None, tally: UploadTally) -> Steps[None]:
    with open(file.source, "rb") as reader:
        if before is None:
            first = _read_piece(reader, file, 0)
            id: str = yield from _insist(
                uploads.begin(name, file.path, file.size, first, modified=file.modified, executable=file.is_executable)
            )
            offset = len(first)
            tally.add(offset)
        else:
            id, offset = before.id, before.offset
            tally.add(offset, sent=False)
        tries = iter(PAUSES)
        while offset < file.size:
            try:
                at: int = yield uploads.append(id, offset, _read_piece(reader, file, offset))
                tries = iter(PAUSES)
            except (ServiceUnreachable, UploadBusy, WrongOffset):
                pause = next(tries, None)
                if pause is None:
                    raise
                yield timedelta(seconds=pause)
                at = yield from _insist(uploads.offset(id))
            tally.add(at - offset)
            offset = at


def _insist(call: Call[T]) -> Steps[T]:
    """Make an idempotent call, retrying while the service is unreachable."""
    pauses = iter(PAUSES)
    while True:
        try:
            answer: T = yield call
            return answer
        except ServiceUnreachable:
            pause = next(pauses, None)
            if pause is None:
                raise
            yield timedelta(seconds=pause)


def _read_piece(reader: Any, file: LocalFile, offset: int) -> bytes:
    reader.seek(offset)
    piece: bytes = reader.read(PIECE)
    if len(piece) != min(PIECE, file.size - offset):
        raise Changed(
            f"{file.source} changed while it was being sent.", hint="Upload it again when no program is writing to it."
        )
    return piece


class _StepWalk(Generic[T]):
    """Runs steps one at a time: receives each call's answer or error, and provides the next step."""

    def __init__(self, steps: Steps[T]) -> None:
        self._steps = steps
        self.step: Call[Any] | timedelta | None = None  # None: finished
        self.result: T
        self._go(lambda: next(steps))

    def answer(self, value: Any) -> None:
        self._go(lambda: self._steps.send(value))

    def fail(self, error: Exception) -> None:
        self._go(lambda: self._steps.throw(error))

    def _go(self, move: Callable[[], Call[Any] | timedelta]) -> None:
        try:
            self.step = move()
        except StopIteration as end:
            self.step, self.result = None, end.value


def drive(steps: Steps[T], do: Callable[[Call[Any]], Any]) -> T:
    """Carry out the steps synchronously, and return their result."""
    walk = _StepWalk(steps)
    while (step := walk.step) is not None:
        try:
            answer = None
            if isinstance(step, timedelta):
                sleep(step.total_seconds())
            else:
                answer = do(step)
        except Exception as error:  # the steps decide how to continue
            walk.fail(error)
        else:
            walk.answer(answer)
    return walk.result


async def drive_async(steps: Steps[T], do: Callable[[Call[Any]], Awaitable[Any]]) -> T:
    """Carry out the steps asynchronously, and return their result."""
    walk = _StepWalk(steps)
    while (step := walk.step) is not None:
        try:
            answer = None
            if isinstance(step, timedelta):
                await asyncio.sleep(step.total_seconds())
            else:
                answer = await do(step)
        except Exception as error:  # the steps decide how to continue
            walk.fail(error)
        else:
            walk.answer(answer)
    return walk.result
