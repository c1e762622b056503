"""The page of a session's files: by folder, searched, a page at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from sublet.api.people import service_of
from sublet.booking.model.request import SentResults
from sublet.booking.output import ResultFile, Results
from sublet.kernel.errors import NotFound, SubletError
from sublet.web.drawing import page
from sublet.web.entry import Visitor
from sublet.web.reading import read_form, visitor

PAGE = 100
LONGEST_WORDS = 200


@dataclass(frozen=True, slots=True)
class FileRow:
    """A file, or a folder with the total of its files."""

    name: str
    path: str
    size: int
    modified: datetime | None  # of a folder: of its newest file
    count: int | None = None  # files in a folder; None for a file

    @property
    def is_folder(self) -> bool:
        """Whether the row is a folder, maybe an empty one."""
        return self.count is not None


@dataclass(frozen=True, slots=True)
class Listing:
    """One page of a folder, or of search results."""

    folder: str
    words: str
    entries: Sequence[FileRow]
    number: int  # of this page, from 0
    pages: int
    total: int  # entries in all
    files: int  # files of the session in all
    size: int

    @property
    def trail(self) -> list[tuple[str, str]]:
        """Return the name and path of each folder above, and of this one."""
        parts = self.folder.split("/") if self.folder else []
        return [(name, "/".join(parts[: index + 1])) for index, name in enumerate(parts)]


def list_files(left: Results, folder: str = "", words: str = "", number: int = 0, most: int = PAGE) -> Listing:
    """Return a page of a folder; or of all files and empty folders whose path contains some words."""
    folder, files = folder.strip("/"), left.files
    chosen = list(_matching(left, words)) if words else _inside(left, folder)
    pages = max(1, -(-len(chosen) // most))
    number = min(max(number, 0), pages - 1)
    entries = chosen[number * most : (number + 1) * most]
    return Listing(folder, words, entries, number, pages, len(chosen), len(files), sum(file.size for file in files))


def _matching(left: Results, words: str) -> Iterable[FileRow]:
    for file in left.files:
        if words.casefold() in file.path.casefold():
            yield FileRow(file.path, file.path, file.size, file.modified)
    for folder in left.folders:
        if words.casefold() in folder.casefold():
            yield _folder(folder, folder, ())


def _inside(left: Results, folder: str) -> list[FileRow]:
    """List a folder: subfolders first, each with its files counted, then files."""
    prefix = f"{folder}/" if folder else ""
    below = (path[len(prefix) :] for path in left.folders if path.startswith(prefix))
    folders: dict[str, list[ResultFile]] = {path.partition("/")[0]: [] for path in below}
    here: list[FileRow] = []
    for file in left.files:
        if not file.path.startswith(prefix):
            continue
        name, slash, _ = file.path[len(prefix) :].partition("/")
        if slash:
            folders.setdefault(name, []).append(file)
        else:
            here.append(FileRow(name, file.path, file.size, file.modified))
    above = [_folder(name, f"{prefix}{name}", inside) for name, inside in sorted(folders.items())]
    return [*above, *sorted(here, key=lambda entry: entry.name)]


def _folder(name: str, path: str, files: Sequence[ResultFile]) -> FileRow:
    newest = max((file.modified for file in files), default=None)
    return FileRow(f"{name}/", path, sum(file.size for file in files), newest, len(files))


async def look(request: Request) -> Response:
    """Show a session's files, by folder or as a search found them."""
    return await _draw(request, await visitor(request), {})


async def _draw(request: Request, who: Visitor, form: dict[str, str], wrong: SubletError | None = None) -> Response:
    service, asked = service_of(request), request.query_params
    session = await service.sessions.get(request.path_params["id"], who.person)
    left = await service.output.results(session.id, who.person)
    words, number = asked.get("find", "").strip()[:LONGEST_WORDS], asked.get("page", "")
    at = int(number) if number.isascii() and number.isdecimal() and len(number) < 9 else 0
    listing = list_files(left, asked.get("in", ""), words, at)
    is_own = session.person == who.person.name
    return page(
        request,
        "files.html",
        who,
        wrong.status if wrong else 200,
        session=session,
        listing=listing,
        is_own=is_own,
        sending=service.sendings.find(session.id) if is_own else None,
        form=form,
        wrong=wrong,
    )


async def send(request: Request) -> Response:
    """Start sending results to the visitor's own storage."""
    who, form = await read_form(request)
    service, typed = service_of(request), {name: form.get(name, "").strip() for name in ("to", "path")}
    session = await service.sessions.get(request.path_params["id"], who.person)
    try:
        await service.sendings.start(session.id, who.person, SentResults(typed["path"] or "*", typed["to"]))
    except SubletError as error:
        return await _draw(request, who, typed, error)
    return RedirectResponse(f"/web/sessions/{session.id}/files#send", 303)


async def stop(request: Request) -> Response:
    """Stop sending; files that were sent already stay there."""
    who, _ = await read_form(request)
    service = service_of(request)
    session = await service.sessions.get(request.path_params["id"], who.person)
    if session.person != who.person.name:
        raise NotFound(noun="session of yours", name=session.id)
    await service.sendings.stop(session.id)
    return RedirectResponse(f"/web/sessions/{session.id}/files#send", 303)
