"""Sends folders and files to a service, in pieces: what is there already isn't sent again."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable, Generator, Iterator, Sequence
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
PIECE = 8 << 20  # bytes that are sent at once
PAUSES = (0.5, 1, 2, 4, 8, 16)  # seconds before each further try
SAME = 0.001  # seconds by which times of the same file may differ


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file that is to be sent."""

    source: str
    path: str  # in the upload
    size: int
    modified: float
    is_executable: bool


@dataclass(frozen=True, slots=True)
class UploadPlan:
    """What is to be sent, and under which name."""

    name: str
    files: tuple[LocalFile, ...]

    @property
    def size(self) -> int:
        """Bytes in all."""
        return sum(file.size for file in self.files)


@dataclass
class UploadTally:
    """How far it is; whoever shows it is called after each piece."""

    total: int = 0
    done: int = 0
    sent: int = 0  # bytes that had to be sent
    skipped: int = 0  # files that were there already
    show: Callable[[UploadTally], None] = field(default=lambda _: None)

    def add(self, size: int, *, sent: bool = True) -> None:
        """So much more is there."""
        self.done += size
        self.sent += size if sent else 0
        self.show(self)


Steps = Generator[Call[Any] | timedelta, Any, T]  # calls to be made, and pauses; sent back is the answer


def plan_upload(places: Sequence[str | os.PathLike[str]], name: str = "", ignore: Sequence[str] = ()) -> UploadPlan:
    """What of these folders and files is sent; BadRequest if one isn't there, or can't be sent."""
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
    try:
        check_upload_name(called)
        for file in files:
            check_upload_path(file.path)
    except WrongUpload as error:
        raise BadRequest(detail=str(error), hint="Rename it, or say another name: --name NAME.") from None
    twice = (
        {file.path for file in files if sum(other.path == file.path for other in files) > 1} if len(paths) > 1 else ()
    )
    for path in twice:
        raise BadRequest(detail=f"several files would be at {path}", hint="Send them as two uploads.")
    return UploadPlan(called, tuple(files))


def _last_name(path: str) -> str:
    return (
        os.path.basename(os.path.realpath(os.path.expanduser(path))) if os.path.isdir(os.path.expanduser(path)) else "."
    )


def list_files(place: str, ignore: Sequence[str] = (), prefix: str = "") -> Iterator[LocalFile]:
    """What of a folder, or the file itself, is sent; BadRequest if it isn't there, or can't be sent."""
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
    """The calls that send what is missing; the upload as it is then."""
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
    """Whether what is there, or a part of it, came from this very version of the file."""
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
            except (ServiceUnreachable, UploadBusy, WrongOffset) as error:
                pause = next(tries, None)
                if pause is None:
                    raise
                yield timedelta(seconds=pause)
                at = yield from _insist(uploads.offset(id), error)
            tally.add(at - offset)
            offset = at


def _insist(call: Call[T], error: Exception | None = None) -> Steps[T]:
    """Make a call that may be made again, until the service is there."""
    for pause in PAUSES:
        try:
            answer: T = yield call
            return answer
        except ServiceUnreachable as failure:
            error = failure
            yield timedelta(seconds=pause)
    raise error or ServiceUnreachable


def _read_piece(reader: Any, file: LocalFile, offset: int) -> bytes:
    reader.seek(offset)
    piece: bytes = reader.read(PIECE)
    if len(piece) != min(PIECE, file.size - offset):
        raise Changed(
            f"{file.source} changed while it was being sent.", hint="Upload it again when no program is writing to it."
        )
    return piece


class _StepWalk(Generic[T]):
    """Steps on their way: each call gets its answer, or the error that came of it, and says what is next."""

    def __init__(self, steps: Steps[T]) -> None:
        self._steps = steps
        self.step: Call[Any] | timedelta | None = None  # None: it is over
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
    """Make the calls one after another, and pause where that is asked for."""
    walk = _StepWalk(steps)
    while (step := walk.step) is not None:
        try:
            answer = None
            if isinstance(step, timedelta):
                sleep(step.total_seconds())
            else:
                answer = do(step)
        except Exception as error:  # it is the steps' to know what is next
            walk.fail(error)
        else:
            walk.answer(answer)
    return walk.result


async def drive_async(steps: Steps[T], do: Callable[[Call[Any]], Awaitable[Any]]) -> T:
    """The same, for a client that does not wait."""
    walk = _StepWalk(steps)
    while (step := walk.step) is not None:
        try:
            answer = None
            if isinstance(step, timedelta):
                await asyncio.sleep(step.total_seconds())
            else:
                answer = await do(step)
        except Exception as error:  # it is the steps' to know what is next
            walk.fail(error)
        else:
            walk.answer(answer)
    return walk.result
