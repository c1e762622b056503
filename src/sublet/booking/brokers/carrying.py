"""Data that only this service can read, in requests for other brokers: small files go along, the rest is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sublet.booking.asked import Asked
from sublet.booking.documents.request import read_document
from sublet.booking.model.offer import IGNORED, Reason
from sublet.booking.model.request import Data, Request
from sublet.data.executables import ExecutableKinds, Movers
from sublet.kernel.clock import Clock
from sublet.kernel.data_urls import MOST, write_data_url
from sublet.kernel.errors import SubletError
from sublet.movers.port import Resolves
from sublet.people.model.person import Person

OWN_DATA = ("file:", "upload:", "session:", "system:", "/", "./", "~")
CARRIED = ("file:", "upload:", "/")  # of these, single files are read here and sent along
MOST_TOGETHER = 4 * MOST  # bytes: the record of each forwarded request contains all of it
LOCATIONS = ("location", "file")  # fields of a document that name a file
ELSEWHERE = "an address that others can read"


@dataclass
class Carrying:
    """Rewrites a request so that another broker can read all of its data."""

    kinds: ExecutableKinds
    now: Clock

    async def carry(self, asked: Asked, person: Person, movers: Movers) -> Asked | Reason:
        """Return the request with the person's own small files inlined, or the reason why it can't be forwarded."""
        request, document = asked.request, asked.passable or {}
        if away := next((output for output in request.outputs if output.to.startswith(OWN_DATA)), None):
            why = f"Another broker can't send results to {away.to}: that is on this service's machine."
            return Reason(
                "urn:not-supported", "outputs", why, away.to, nearest=f"{ELSEWHERE}, or `--out` to fetch them"
            )
        own = [*self._list_own_data(request, document), *self._list_own_parts(request, document)]
        if not own:
            return asked
        addresses: dict[str, str] = {}
        left = MOST_TOGETHER
        for location, data in own:
            content = await self._read(data, person, movers, left)
            if isinstance(content, Reason):
                return content
            left -= len(content)
            addresses[location] = content
        return replace(asked, passable=write_addresses(document, addresses))

    def _list_own_data(self, request: Request, document: Mapping[str, Any]) -> list[tuple[str, Data]]:
        """Return the data that only this service can read, each with its location as the document writes it."""
        written = read_document(document, self.now()).request.data if document else ()
        pairs = zip(written, request.data, strict=len(written) == len(request.data))
        return [(before.location, data) for before, data in pairs if data.location.startswith(OWN_DATA)]

    def _list_own_parts(self, request: Request, document: Mapping[str, Any]) -> list[tuple[str, Data]]:
        """Return the executable's own files that are read here: a notebook, an image, a file of lines."""
        executable = request.executable
        kind = self.kinds.by_name.get(executable.kind) if executable else None
        if executable is None or kind is None:
            return []
        if any(reason.kind != IGNORED for reason in kind.check(executable, request)):
            return []
        written = set(list_texts(document.get("executable")))
        names = [(data.location, data.location.removeprefix("file://"), data) for data in kind.brings(executable)]
        own = [(whole if whole in written else path, data) for whole, path, data in names if {whole, path} & written]
        return [(location, data) for location, data in own if data.location.startswith(OWN_DATA)]

    async def _read(self, data: Data, person: Person, movers: Movers, left: int) -> str | Reason:
        """Return a data URL that holds the file, or the reason why it can't go with the request."""
        if data.write_back:
            return _refuse(data, "It would be written back to this service's machine, which another broker can't do.")
        if not data.location.startswith(CARRIED):
            return _refuse(data, f"{data.name} is data of this service or machine, which another broker can't read.")
        mover = movers.choose(data, guest=person.guest)
        if isinstance(mover, Reason):
            return mover
        if isinstance(mover, Resolves):
            return _refuse(data, f"{data.name} is only named here, and another broker can't read that.")
        if reasons := mover.check(data):
            return reasons[0]
        try:
            size = await mover.measure(data)
            if size is not None and size <= min(MOST, left):
                with TemporaryDirectory(prefix="sublet-") as directory:
                    await mover.bring(data, Path(directory), lambda done, total: None)
                    return await asyncio.to_thread(_pack, data, Path(directory))
        except (SubletError, OSError) as error:
            return _refuse(data, f"{data.name} can't be read: {error}")
        most = f"at most {MOST >> 10} KiB of a file, and {MOST_TOGETHER >> 10} KiB in all, go with a request"
        return _refuse(data, f"{data.name} is on this service's machine, where another broker can't read it: {most}.")


def write_addresses(document: Any, addresses: Mapping[str, str]) -> Any:
    """Return the document with these locations replaced."""
    if isinstance(document, Mapping):
        return {
            name: addresses.get(value, value)
            if name in LOCATIONS and isinstance(value, str)
            else write_addresses(value, addresses)
            for name, value in document.items()
        }
    return [write_addresses(item, addresses) for item in document] if isinstance(document, list) else document


def list_texts(document: Any) -> Iterator[str]:
    """Yield all strings in a document."""
    if isinstance(document, str):
        yield document
    parts: Sequence[Any] = ()
    if isinstance(document, Mapping):
        parts = list(document.values())
    elif isinstance(document, list):
        parts = document
    for part in parts:
        yield from list_texts(part)


def _pack(data: Data, directory: Path) -> str | Reason:
    files = list(directory.iterdir())
    if len(files) != 1 or not files[0].is_file():
        return _refuse(data, f"{data.name} is a folder of this service's machine, and only files go with a request.")
    mode = files[0].stat().st_mode
    return write_data_url(files[0].name, files[0].read_bytes(), is_executable=bool(mode & 0o100))


def _refuse(data: Data, why: str) -> Reason:
    return Reason("urn:not-supported", "data", why, data.location, nearest=ELSEWHERE)
