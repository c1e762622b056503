"""Writes changed data back to its source, unless the source has changed meanwhile."""

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
from sublet.movers.port import Links, NoLinks, TellsVersions
from sublet.platforms.port import ResultFile, Results

FOLDER = "write-back"  # in the service's home: for each session, the versions of data that may be written back
NOT_LAID_OUT = "only what can be written below the working directory is written back"
NEAREST = "{location: …, path: in.txt, writable: true, write_back: true}"
CHANGED = "it has changed there since it was fetched, and is not overwritten"


@dataclass(frozen=True, slots=True)
class DataSource:
    """The current state of data at its source."""

    is_folder: bool
    versions: dict[str, str] | None  # version of each file, by path; None: the server has no versions
    # In bytes, by path; empty: nothing is there, or the sizes aren't known
    sizes: dict[str, int] = field(default_factory=dict)


@dataclass
class BroughtVersions:
    """The source's versions of data as it was brought for a session; kept across restarts."""

    file: Path
    versions: dict[str, dict[str, str]] = field(default_factory=dict)  # name of the data → path → version
    sent: dict[str, list[str]] = field(default_factory=dict)  # files that were written back already

    @staticmethod
    def find_file(home: Path, session: str) -> Path:
        """Return the file that holds a session's versions."""
        return home / FOLDER / f"{session}.json"

    @staticmethod
    def of(home: Path, session: str) -> BroughtVersions:
        """Read a session's versions; empty if none were saved."""
        file = BroughtVersions.find_file(home, session)
        try:
            known = json.loads(file.read_text())
        except FileNotFoundError:
            return BroughtVersions(file)
        return BroughtVersions(file, known["versions"], known["sent"])

    def write(self) -> None:
        """Save the versions."""
        self.file.parent.mkdir(mode=0o700, exist_ok=True)
        part = self.file.with_suffix(".part")
        part.write_text(json.dumps({"versions": self.versions, "sent": self.sent}))
        part.replace(self.file)

    def note_sent(self, data: str, path: str) -> None:
        """Record that a file was written back, so that it isn't mistaken for someone else's change after a crash."""
        self.sent.setdefault(data, []).append(path)
        self.write()

    def has_changed(self, data: str, path: str, source: DataSource) -> bool:
        """Whether a file at the source has changed since it was brought, as far as its server can tell."""
        known = self.versions.get(data)
        if known is None or source.versions is None:
            return False
        return known.get(path, "") != source.versions.get(path, "")


async def look_at_source(movers: Movers, data: Data, *, guest: bool = False) -> DataSource:
    """Ask the server for data's current state; data that doesn't exist has no files."""
    mover, is_folder = movers.choose(data, guest=guest), data.location.endswith("/")
    try:
        if isinstance(mover, TellsVersions):
            there = await mover.list_versions(data)
            versions = {path: version and f"{version} {size}" for path, (size, version) in there.files.items()}
            sizes = {path: size for path, (size, _) in there.files.items() if size is not None}
            return DataSource(there.is_folder, versions if all(versions.values()) else None, sizes)
        if not isinstance(mover, Links):
            return DataSource(is_folder, None)
        files = await mover.links(data)
    except DataNotThere:
        return DataSource(is_folder, {})
    except NoLinks:
        return DataSource(is_folder, None)
    tags = {link.path: link.version and f"{link.version} {link.size}" for link in files.links}
    sizes = {link.path: link.size for link in files.links if link.size is not None}
    return DataSource(files.is_folder, tags if all(tags.values()) else None, sizes)


async def remember_versions(home: Path, movers: Movers, request: Request, session: str, *, guest: bool = False) -> None:
    """Save the source's versions before data is brought, to compare them when it is written back."""
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
    """List the data to write back, with its paths in the working directory."""
    return [
        SentResults(volume.path, data.location, always=data.write_back_always, source=data.name)
        for data, volume in list_laid_out(request)
        if data.write_back
    ]


def list_changed(
    output: SentResults, source: DataSource, brought: BroughtVersions, results: Results
) -> list[tuple[ResultFile, str]]:
    """List the changed files to write back that weren't sent yet, each with its path at the source.

    Unchanged files aren't results. If the data is a single file, other files beside it are ordinary results.
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
    """Return the reasons why data can't be written back."""
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
