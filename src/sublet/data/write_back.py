"""Writing back: data that a session changed goes to where it came from, unless it was changed there meanwhile."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from pathlib import Path

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data, Request, SentResults
from sublet.data.executables import Movers
from sublet.data.layout import list_laid_out
from sublet.kernel.errors import DataNotThere
from sublet.kernel.value_names import last_name
from sublet.movers.port import Links, TellsVersions
from sublet.platforms.port import ResultFile, Results

FOLDER = "write-back"  # in the service's home: of each session, what was brought that may go back
NOT_LAID_OUT = "only what can be written below the working directory is written back"
NEAREST = "{location: …, path: in.txt, writable: true, write_back: true}"
CHANGED = "it has changed there since it was fetched, and is not overwritten"


@dataclass(frozen=True, slots=True)
class DataSource:
    """Data as it is where it comes from, now."""

    is_folder: bool
    versions: dict[str, str] | None  # the validators of its files, by their paths; None: its server tells none
    sizes: dict[str, int] = field(default_factory=dict)  # in bytes, by their paths; empty: nothing is there, or known


@dataclass
class BroughtVersions:
    """The server's validators of what a session may write back, as it was brought; remembered over restarts."""

    file: Path
    versions: dict[str, dict[str, str]] = field(default_factory=dict)  # the data's name → path → version
    sent: dict[str, list[str]] = field(default_factory=dict)  # what went back already

    @staticmethod
    def find_file(home: Path, session: str) -> Path:
        """Where those of a session are remembered."""
        return home / FOLDER / f"{session}.json"

    @staticmethod
    def of(home: Path, session: str) -> BroughtVersions:
        """Those of a session; none, if nothing was remembered."""
        file = BroughtVersions.find_file(home, session)
        try:
            known = json.loads(file.read_text())
        except FileNotFoundError:
            return BroughtVersions(file)
        return BroughtVersions(file, known["versions"], known["sent"])

    def write(self) -> None:
        """Remember them."""
        self.file.parent.mkdir(mode=0o700, exist_ok=True)
        part = self.file.with_suffix(".part")
        part.write_text(json.dumps({"versions": self.versions, "sent": self.sent}))
        part.replace(self.file)

    def note_sent(self, data: str, path: str) -> None:
        """A file went back: after a crash it is not taken for another's change."""
        self.sent.setdefault(data, []).append(path)
        self.write()

    def has_changed(self, data: str, path: str, source: DataSource) -> bool:
        """Whether a file is another there than it was when it was brought, as far as its server tells."""
        known = self.versions.get(data)
        if known is None or source.versions is None:
            return False
        return known.get(path, "") != source.versions.get(path, "")


async def look_at_source(movers: Movers, data: Data, *, guest: bool = False) -> DataSource:
    """What its server says of data; what is not there has no files."""
    mover, is_folder = movers.choose(data, guest=guest), data.location.endswith("/")
    try:
        if isinstance(mover, TellsVersions):
            there = await mover.list_versions(data)
            versions = {path: f"{version} {size}" for path, (size, version) in there.files.items()}
            return DataSource(there.is_folder, versions, {path: size for path, (size, _) in there.files.items()})
        if not isinstance(mover, Links):
            return DataSource(is_folder, None)
        files = await mover.links(data)
    except DataNotThere:
        return DataSource(is_folder, {})
    tags = {link.path: link.version and f"{link.version} {link.size}" for link in files.links}
    sizes = {link.path: link.size for link in files.links if link.size is not None}
    return DataSource(files.is_folder, tags if all(tags.values()) else None, sizes)


async def remember_versions(home: Path, movers: Movers, request: Request, session: str, *, guest: bool = False) -> None:
    """Before data is brought: what its server says of it, to be compared when it goes back."""
    wanted = [data for data in request.data if data.write_back]
    if not wanted:
        return
    brought = BroughtVersions(BroughtVersions.find_file(home, session))
    for data in wanted:
        source = await look_at_source(movers, data, guest=guest)
        if source.versions is not None:
            brought.versions[data.name] = source.versions
    await asyncio.to_thread(brought.write)


def list_write_backs(request: Request) -> list[SentResults]:
    """What goes back, each with where it lies in the working directory."""
    return [
        SentResults(volume.path, data.location, always=data.write_back_always, source=data.name)
        for data, volume in list_laid_out(request)
        if data.write_back
    ]


def list_changed(
    output: SentResults, source: DataSource, brought: BroughtVersions, results: Results
) -> list[tuple[ResultFile, str]]:
    """The files that the session left of this data and that did not go back yet, each with its path in the source.

    What lies there as it was brought is no result. Beside data that is one file, others are results like any.
    """
    sent = brought.sent.get(output.source, ())
    places = [(file, path) for file in results.files if (path := output.place(file.path))]
    if not source.is_folder:
        names = {*brought.versions.get(output.source, ()), last_name(output.to)}
        whole = output.path.strip("/")
        places = [(file, last_name(output.to)) for file, path in places if file.path == whole or path in names][:1]
        places = [(file, next(iter(brought.versions.get(output.source, ())), path)) for file, path in places]
    return [(file, path) for file, path in places if path not in sent]


def check_write_backs(request: Request, movers: Movers, *, guest: bool = False) -> list[Reason]:
    """Why data could not be written back."""
    laid_out = {output.source for output in list_write_backs(request)}
    reasons = []
    for data in request.data:
        if not data.write_back:
            continue
        field_name = f"data[{data.name}].write_back"
        if data.unpack or data.name not in laid_out:
            why = "what is unpacked can't be written back" if data.unpack else NOT_LAID_OUT
            reasons.append(Reason("urn:invalid-value", field_name, f"{data.name}: {why}.", data.location, "", NEAREST))
            continue
        found = movers.choose_push(SentResults("", data.location), guest=guest)
        if isinstance(found, Reason):
            reasons.append(Reason(found.kind, field_name, found.message, data.location, found.limit, found.nearest))
    return reasons
