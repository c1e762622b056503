"""What can be run here: the kinds of executable, their ways to run, and the movers that bring what they need."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data, Executable
from sublet.kinds.port import Kind, Way
from sublet.movers.port import SIMPLE, Mover, kinds_of

KNOWN_DATA = "simple-data-resource with a file: or http(s): location, and S3 or ivoa data with an http(s): address"


@dataclass(frozen=True)
class ExecutableKinds:
    """The kinds that are installed."""

    by_name: Mapping[str, Kind]
    contained_only: bool  # a gateway runs nothing outside a container

    def ways(self, executable: Executable, tools: Mapping[str, str]) -> list[Way]:
        """The ways to run it with these tools."""
        kind = self.by_name.get(executable.kind)
        ways = kind.ways(executable, tools) if kind else ()
        return [way for way in ways if way.contained or not self.contained_only]

    def inputs_of(self, executable: Executable | None, data: Iterable[Data]) -> list[Data]:
        """All that must be there before the executable starts: the asker's data, and what the kind itself needs."""
        kind = self.by_name.get(executable.kind) if executable else None
        return [*data, *(kind.brings(executable) if kind and executable else ())]


@dataclass(frozen=True)
class Movers:
    """The movers that are installed, as they may be used by whom."""

    usual: Sequence[Mover]
    for_guests: Sequence[Mover] = ()  # none of these sees this machine's files
    reviewed: Sequence[Mover] = ()  # these use the service's own logins, for what was reviewed

    def choose(self, data: Data, *, guest: bool = False, asked: bool = False, reviewed: bool = False) -> Mover | Reason:
        """The mover that can bring it; or why none can. What is asked for can't be what only kinds bring."""
        movers = self.for_guests if guest else self.reviewed if reviewed else self.usual
        if asked:
            movers = [mover for mover in movers if SIMPLE in kinds_of(mover)]
        field_name = f"data[{data.name}]"
        if not any(data.kind in kinds_of(mover) for mover in movers):
            return Reason(
                "urn:not-supported",
                f"{field_name}.kind",
                f"Data of kind {data.kind} can't be brought here; only {KNOWN_DATA}.",
                wanted=data.kind,
                limit="simple-data-resource",
                nearest=KNOWN_DATA,
            )
        scheme = data.location.partition(":")[0].lower() if ":" in data.location else "file"
        for mover in movers:
            if scheme in mover.schemes and data.kind in kinds_of(mover):
                return mover
        schemes = ", ".join(f"{s}:" for mover in movers if data.kind in kinds_of(mover) for s in mover.schemes)
        return Reason(
            "urn:not-supported",
            f"{field_name}.location",
            f"Nothing here can bring data from {scheme}: addresses; these can be used: {schemes}.",
            wanted=f"{scheme}:",
            limit=schemes,
            nearest="an https: address of the same data",
        )
