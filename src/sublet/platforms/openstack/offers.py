"""The offers of a cloud for a request: the smallest flavor that is enough, as soon as the project's quota has room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import yaml

from sublet.booking.model.amounts import memory_text
from sublet.booking.model.choices import Choices, find_lacking, has_features, merge_names
from sublet.booking.model.gpu_sorts import GpuSort, find_driver, sort_gpus
from sublet.booking.model.offer import Answer, Node, Reason
from sublet.booking.model.request import Request
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.platforms.batch.fitting import BRACKETS, InQueue, answer, find_excess, find_untyped, listens, offer_for
from sublet.platforms.batch.site import SiteNode, SiteQueue
from sublet.platforms.openstack.door import DoorSettings
from sublet.platforms.openstack.readers import MIB, UNLIMITED, Flavor, Image, ProjectQuota, choose_flavor

USUAL_START = timedelta(seconds=40)
UNKNOWN_END = timedelta(hours=1)  # how long other people's servers are assumed to stay
TAKEN = ("constraint", "gpu_type")  # the scheduler options that are supported
UNSET = "its `address` is not set"
HOPELESS = 1 << 20  # bytes of files that no compression makes small enough for user data
CONTAINERS = ("podman", "docker", "apptainer", "singularity", "charliecloud")  # whose runner is too large for user data


@dataclass(frozen=True, slots=True)
class OwnServer:
    """A server of this service, and when its session's time ends."""

    cores: int
    memory: int
    until: datetime


@dataclass(frozen=True, slots=True)
class CloudView:
    """What a project has and may have, as of a time."""

    as_of: datetime
    project: str
    user: str
    quota: ProjectQuota
    flavors: tuple[Flavor, ...]
    image: Image


@dataclass(frozen=True, slots=True)
class OfferTerms:
    """What a platform's settings add to every offer."""

    platform: str
    way: str
    reserve: int
    longest: timedelta | None
    door: DoorSettings


def is_compose(request: Request) -> bool:
    """Whether the request is a Docker Compose file."""
    return request.executable is not None and request.executable.kind == "docker-compose"


def publishes_ports(request: Request) -> bool:
    """Whether someone is to connect to a service of the request's Compose file."""
    compose = request.executable.fields.get("compose") if request.executable and is_compose(request) else None
    try:
        written = yaml.safe_load(compose) if isinstance(compose, str) else compose
    except yaml.YAMLError:  # its kind reports what is wrong with it
        return False
    services = written.get("services") if isinstance(written, dict) else None
    return isinstance(services, dict) and any(
        isinstance(service, dict) and service.get("ports") for service in services.values()
    )


def refuse_request(request: Request, platform: str, door: DoorSettings) -> Sequence[Reason]:
    """Return why the request could never run there."""
    reasons = []
    if (listens(request) or publishes_ports(request)) and not door.is_open:
        why = f"{platform}: nothing leads into a virtual machine there ({UNSET}), so nobody can connect to it."
        reasons.append(Reason("urn:not-supported", "executable.kind", why, platform=platform))
    if is_compose(request) and not door.has_network:
        why = f"{platform}: its virtual machines have no network (its `network` is none), so they can pull no image."
        reasons.append(Reason("urn:not-supported", "executable.kind", why, platform=platform))
    if (count := request.compute.nodes.min) > 1:
        why = f"{platform} runs each session in one virtual machine, and {count} nodes were asked for."
        reasons.append(Reason("urn:resource-limit", "compute.nodes.min", why, str(count), "1", "1", platform))
    if (size := sum(data.size or 0 for data in request.data)) > HOPELESS and not door.is_open:
        wanted = memory_text(size)
        room = "which has room for about 30 kB packed"
        why = f"{platform} brings files in user data ({UNSET}), {room}; these are {wanted}."
        reasons.append(Reason("urn:resource-limit", "data", why, wanted, "30kB", platform=platform))
    if BRACKETS & set(request.scheduler.constraint):
        why = f"{platform}: write features with & between those that must all be there, or | between alternatives."
        reasons.append(Reason("urn:invalid-value", "constraint", why, request.scheduler.constraint, platform=platform))
    return reasons


def refuse_way(request: Request, way: str, platform: str, door: DoorSettings) -> Reason | None:
    """Return why a way can't be used there: the runner of containers is itself too large for user data."""
    is_app = request.executable is not None and request.executable.kind == "app"
    if door.is_open or not (is_app or way in CONTAINERS):
        return None
    why = f"{platform} brings what runs containers in user data ({UNSET}), which has no room for it."
    return Reason("urn:not-supported", "executable.kind", why, platform=platform)


def select_flavors(flavors: Sequence[Flavor], asked: SchedulerOptions) -> tuple[Flavor, ...]:
    """Return the flavors with the requested features and GPU type."""
    return tuple(
        each
        for each in flavors
        if has_features(asked.constraint, each.features) and (not asked.gpu_type or asked.gpu_type in each.gpu_types)
    )


def list_choices(view: CloudView) -> Choices:
    """Return the GPU types and features that flavors have; a cloud counts no licences."""
    flavors = view.flavors
    return Choices(merge_names(each.gpu_types for each in flavors), merge_names(each.features for each in flavors))


def list_nodes(view: CloudView, reserve: int) -> list[Node]:
    """Return the largest possible servers: each flavor that is within the quota, as a node."""
    quota = view.quota
    within = [each for each in view.flavors if each.cores <= quota.cores and each.memory <= quota.memory]
    return [
        Node(each.name, each.cores, each.memory - reserve, each.gpus, each.disk)
        for each in within
        if each.memory > reserve and each.memory >= view.image.least_memory and each.disk >= view.image.least_disk
    ]


def make_offers(
    view: CloudView, request: Request, terms: OfferTerms, own: Sequence[OwnServer], now: datetime
) -> Answer:
    """Return an offer on predicted terms, or why there is none, with the nearest that would do."""
    platform, reserve = terms.platform, terms.reserve
    if refused := refuse_request(request, platform, terms.door):
        return Answer(reasons=tuple(refused))
    if too_large := refuse_way(request, terms.way, platform, terms.door):
        return Answer(reasons=(too_large,))
    choices = list_choices(view)
    typed = [SiteNode(node, (), gpu_types=choices.gpu_types) for node in list_nodes(view, reserve)]
    if lacking := find_untyped(request, typed, platform) or find_lacking(request.scheduler, choices, platform):
        return Answer(reasons=(lacking,))
    view = replace(view, flavors=select_flavors(view.flavors, request.scheduler))
    nodes = [SiteNode(node, ()) for node in list_nodes(view, reserve)]
    if not nodes:
        asked = " with these features" if request.scheduler.constraint or request.scheduler.gpu_type else ""
        why = f"{platform} has no flavor with a disk{asked} that is within the quota of {view.project}."
        return Answer(reasons=(Reason("urn:not-supported", "platform", why, platform=platform),))
    if excess := find_excess(request, SiteQueue("", max_time=terms.longest), nodes, platform):
        return Answer(reasons=(excess,))
    least = request.least
    flavor = choose_flavor(view.flavors, least.shape, view.image, reserve)
    if flavor is None:
        why = f"{platform} has no flavor with all that was asked for together."
        return Answer(reasons=(Reason("urn:resource-limit", "compute", why, platform=platform),))
    start, words = find_start(view.quota, flavor, own, now)
    note = f"{words}, {terms.door.describe()}"
    offer = offer_for(platform, request, InQueue("", least), start + USUAL_START, terms.way, platform, now, note)
    if isinstance(offer, Reason):
        return answer([], [offer])
    return answer([replace(offer, gpu_sorts=list_gpus(flavor, request.scheduler.gpu_type))], [])


def list_gpus(flavor: Flavor, asked: str) -> tuple[GpuSort, ...]:
    """Return the sorts of GPU of a flavor, with the driver that its traits name."""
    types = (asked,) if asked else flavor.gpu_types
    return sort_gpus(GpuSort(name, find_driver(flavor.features)) for name in types) if flavor.gpus else ()


def find_start(quota: ProjectQuota, flavor: Flavor, own: Sequence[OwnServer], now: datetime) -> tuple[datetime, str]:
    """Return when the quota will have room for one more server, as far as is known, and describe it."""
    cores = quota.cores - quota.cores_used - flavor.cores
    memory = quota.memory - quota.memory_used - flavor.memory
    servers = quota.servers - quota.servers_used - 1
    words = f", as {flavor.describe()}"
    if min(cores, memory, servers) >= 0:
        return now, words
    for each in sorted(own, key=lambda server: server.until):
        cores, memory, servers = cores + each.cores, memory + each.memory, servers + 1
        if min(cores, memory, servers) >= 0:
            return max(now, each.until), f"{words}, when the quota has room"
    return now + UNKNOWN_END, f"{words}, when others have left the quota room"


def describe_view(view: CloudView) -> tuple[str, ...]:
    """Return notes for people about the project."""
    quota = view.quota
    left = [
        f"{max(0, most - used)} of {most} {noun} left"
        for noun, most, used in (
            ("servers", quota.servers, quota.servers_used),
            ("cores", quota.cores, quota.cores_used),
        )
        if most < UNLIMITED
    ]
    if quota.memory < UNLIMITED * MIB:
        left.append(f"{memory_text(max(0, quota.memory - quota.memory_used))} of memory left")
    notes = [f"project {view.project}, as {view.user}", *([f"quota: {', '.join(left)}"] if left else [])]
    return (*notes, *list_choices(view).describe())
