"""All ways to run a request, on all platforms: which are possible, and why the others are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sublet.booking.asked import Asked
from sublet.booking.asking import Asking
from sublet.booking.brokers.forwarding import WAY, is_named
from sublet.booking.candidates import Candidates
from sublet.booking.model.kernels import HUB, KERNEL, SKAHA
from sublet.booking.model.offer import EXECUTABLE_REQUIRED, IGNORED, Reason
from sublet.booking.model.request import Executable, Request
from sublet.booking.platforms.known import KnownPlatforms
from sublet.data.executables import ExecutableKinds
from sublet.kernel.errors import NoOffers, SubletError
from sublet.kinds.container import TOOLS
from sublet.kinds.pod_images import KUBERNETES
from sublet.kinds.port import WayNeed
from sublet.people.model.person import Person
from sublet.platforms.brokering import is_broker
from sublet.platforms.port import Platform

OUTSIDE = "it would run outside a container, which is not allowed here"
UNDECLARED = "its servers are not known to be containers (its setting `contained`), as is required here"
SHARING = "it does not isolate a program from the account that runs it, as is required here"
OWN_IMAGE = "the image is a file of the account that runs it, which is not allowed here"

SERVICES = {
    KERNEL: "a Jupyter service",
    HUB: "a JupyterHub",
    SKAHA: "CANFAR's Skaha",
    KUBERNETES: "a Kubernetes cluster",
}
IN_SERVERS = ("kernel", HUB)  # the ways in which a Jupyter service runs something in a server of its own


@dataclass(frozen=True, slots=True)
class WayFinding:
    """Whether one way is possible on one platform."""

    platform: str
    way: str
    is_possible: bool
    why: str = ""  # why not; for another broker, who decides


@dataclass
class Ways:
    """Explains in which ways a request can be run; nothing is held for it."""

    kinds: ExecutableKinds
    platforms: KnownPlatforms
    asking: Asking
    candidates: Candidates

    async def explain(self, person: Person, asked: Asked) -> list[WayFinding]:
        """List the kind's ways on every platform that this person may use; raise NoOffers if the request is wrong."""
        request = await self.asking.resolve(person, asked.request)
        if asked.reasons or isinstance(request, Reason):
            raise NoOffers.because((*asked.reasons, *((request,) if isinstance(request, Reason) else ())))
        executable = request.executable
        kind = self.kinds.by_name.get(executable.kind) if executable else None
        if executable is None or kind is None:
            known = ", ".join(sorted(self.kinds.by_name))
            raise NoOffers.because((replace(EXECUTABLE_REQUIRED, nearest=known),))
        if wrong := [reason for reason in kind.check(executable, request) if reason.kind != IGNORED]:
            raise NoOffers.because(wrong)
        needs = kind.list_needs(executable)
        findings: list[WayFinding] = []
        open_to = await self.candidates.open_to(person, request.platform)
        refusals = await self.candidates.find_refusals(person, open_to, request)
        for name, platform in open_to.items():
            if is_broker(platform) and (not request.platform or is_named(request.platform, name)):
                passed = await self._describe_passing(name, replace(asked, request=request), person)
                findings.append(_refuse(name, passed.way, refusals[name]) if name in refusals else passed)
            elif not is_broker(platform) and request.platform in ("", name):
                ways = await self._look_at(platform, request, executable, list(needs), person)
                findings += [_refuse(name, each.way, refusals[name]) for each in ways] if name in refusals else ways
        if request.platform and not findings:
            names = ", ".join(open_to)
            why = f"There is no platform {request.platform} here; there are: {names}."
            raise NoOffers.because((Reason("urn:invalid-value", "platform", why, request.platform, names, names),))
        return findings

    async def _describe_passing(self, broker: str, asked: Asked, person: Person) -> WayFinding:
        """Say whether a request can be sent to another broker, which chooses the way itself."""
        carried = await self.candidates.carry(asked, person)
        if isinstance(carried, Reason):
            return WayFinding(broker, WAY, False, carried.message)
        return WayFinding(broker, WAY, True, "the other broker is asked, and chooses the way")

    async def _look_at(
        self, platform: Platform, request: Request, executable: Executable, needs: list[WayNeed], person: Person
    ) -> list[WayFinding]:
        name = platform.name
        kind = self.kinds.by_name[executable.kind]
        try:
            tools = (await self.platforms.survey_soon(name)).tools
        except SubletError as error:
            return [WayFinding(name, need.name, False, error.message) for need in needs]
        known = [way.name for way in kind.ways(executable, tools)]
        is_guest = person.guest or platform.hosts(person.name)
        allowed = [way.name for way in self.kinds.ways(executable, tools) if way.contained or not is_guest]
        needs += [WayNeed(way, ()) for way in sorted(set(known) - {need.name for need in needs})]
        if not needs:
            return [WayFinding(name, executable.kind, False, f"that needs {kind.needs(executable)}")]
        return [self._judge(platform, request, need, known, allowed, tools) for need in needs]

    def _judge(
        self,
        platform: Platform,
        request: Request,
        need: WayNeed,
        known: Sequence[str],
        allowed: Sequence[str],
        tools: Mapping[str, str],
    ) -> WayFinding:
        if need.name in allowed:
            refusal = platform.refuse_way(request, need.name)
            return _refuse(platform.name, need.name, refusal) if refusal else WayFinding(platform.name, need.name, True)
        if need.name in known:
            return WayFinding(platform.name, need.name, False, describe_uncontained(need.name))
        missing = [tool for tool in need.tools if tool not in tools]
        absent = describe_missing(missing) if missing else ""
        instead = f", and {allowed[0]} is used instead" if allowed else ""
        return WayFinding(
            platform.name, need.name, False, absent or need.lacks or f"{need.name} can't run this there{instead}"
        )


def _refuse(platform: str, way: str, reason: Reason) -> WayFinding:
    return WayFinding(platform, way, False, reason.message)


def describe_uncontained(way: str) -> str:
    """Return why a way isn't allowed where everything must be contained."""
    if way in IN_SERVERS:
        return UNDECLARED
    if way not in TOOLS:
        return OUTSIDE
    isolates = TOOLS[way][1]
    return OWN_IMAGE if isolates else SHARING


def describe_missing(tools: Sequence[str]) -> str:
    """Return that a platform lacks these tools, or isn't the service that a way runs on."""
    services = [SERVICES[tool] for tool in tools if tool in SERVICES]
    if services:
        return f"it is not {' or '.join(services)}"
    return f"{' and '.join(tools)} {'is' if len(tools) == 1 else 'are'} not installed there"
