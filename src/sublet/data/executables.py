"""What can be run here: the kinds of executable, their ways, and the movers that bring their data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data, Executable, SentResults
from sublet.data.model.credentials import Credential
from sublet.kinds.port import Kind, Way
from sublet.movers.port import SIMPLE, AnyMover, Pushes, kinds_of

KNOWN_DATA = (
    "simple-data-resource with a location that a mover knows (file:, https:, s3:, davs:, root:, rucio:, …), "
    "and IVOA's S3, ivoa, rucio and skao data"
)


@dataclass(frozen=True)
class ExecutableKinds:
    """The installed kinds of executable."""

    by_name: Mapping[str, Kind]
    contained_only: bool  # a gateway runs nothing outside a container

    def ways(self, executable: Executable, tools: Mapping[str, str]) -> list[Way]:
        """Return the ways to run the executable with these tools."""
        kind = self.by_name.get(executable.kind)
        ways = kind.ways(executable, tools) if kind else ()
        return [way for way in ways if way.contained or not self.contained_only]

    def is_contained(self, kind: str) -> bool:
        """Whether this kind runs in a container, where bound directories appear at paths of their own."""
        return kind in self.by_name and self.by_name[kind].in_container

    def inputs_of(self, executable: Executable | None, data: Iterable[Data]) -> list[Data]:
        """List all that must be staged before the executable starts: the request's data, and what its kind needs."""
        kind = self.by_name.get(executable.kind) if executable else None
        return [*data, *(kind.brings(executable) if kind and executable else ())]


@dataclass(frozen=True)
class Movers:
    """The installed movers, by who may use them."""

    usual: Sequence[AnyMover]
    for_guests: Sequence[AnyMover] = ()  # these can't read this machine's files
    reviewed: Sequence[AnyMover] = ()  # these use the service's own logins, for reviewed apps
    # Makes the same movers with one person's credentials
    remake: Callable[[Sequence[Credential]], Movers] | None = None

    def with_credentials(self, credentials: Sequence[Credential]) -> Movers:
        """Return the same movers, which present these credentials to the places they are for."""
        return self.remake(credentials) if credentials and self.remake else self

    def choose_push(self, output: SentResults, *, guest: bool = False) -> Pushes | Reason:
        """Return the mover that can send results to the output's address, or the reason why none can."""
        scheme = output.to.partition(":")[0].lower() if ":" in output.to else "file"
        movers = self.for_guests if guest else self.usual
        pushing = [mover for mover in movers if isinstance(mover, Pushes)]
        for mover in pushing:
            if scheme in mover.schemes:
                why = mover.check_push(output.to)
                return _refuse_output(output, f"Results can't be sent to {output.to}: {why}.") if why else mover
        schemes = ", ".join(f"{scheme}:" for mover in pushing for scheme in mover.schemes)
        why = f"Nothing here can send results to {scheme}: addresses; these can be used: {schemes}."
        if any(scheme in mover.schemes for mover in movers):
            by_hand = "; push the results yourself once they are fetched" if scheme.startswith("git+") else ""
            why = f"{scheme}: addresses are only read here{by_hand}. Results can be sent to: {schemes}."
        return _refuse_output(output, why, limit=schemes)

    def choose(
        self, data: Data, *, guest: bool = False, asked: bool = False, reviewed: bool = False
    ) -> AnyMover | Reason:
        """Return the mover that can bring the data, or the reason why none can.

        `asked`: the data is the request's own, so movers that only kinds of executable use are left out.
        """
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


def _refuse_output(output: SentResults, why: str, limit: str = "") -> Reason:
    return Reason("urn:not-supported", "outputs", why, wanted=output.to, limit=limit, nearest="s3://bucket/folder/")
