"""What a namespace may use: visible nodes, quotas, what runs already, and what we may create."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from sublet.booking.model.offer import Node
from sublet.booking.model.shape import Shape
from sublet.kernel.errors import PlatformRefused, PlatformUnreachable
from sublet.platforms.kubernetes.amounts import amount_of, parse_quantity
from sublet.platforms.kubernetes.api import ApiServer, Object, ObjectMissing
from sublet.platforms.kubernetes.bounds import LITTLE, NO_BOUNDS, PodBounds, find_bounds
from sublet.platforms.kubernetes.names import MANAGED, OWNER, TIME
from sublet.platforms.kubernetes.states import read_time

MUST = {  # what every session needs: verb, resource, group
    "jobs": ("create", "jobs", "batch"),
    "finding jobs": ("get", "jobs", "batch"),
    "listing jobs": ("list", "jobs", "batch"),
    "deleting jobs": ("delete", "jobs", "batch"),
    "pods": ("list", "pods", ""),
    "watching pods": ("watch", "pods", ""),
    "secrets": ("create", "secrets", ""),
    "deleting secrets": ("delete", "secrets", ""),
    "exec": ("create", "pods/exec", ""),
    "exec by WebSocket": ("get", "pods/exec", ""),  # without it, results can't be fetched
}
MAY = {"ports": ("create", "pods/portforward", ""), "events": ("list", "events", "")}
NOTHING = "sublet-trial"  # the name of an object that is never there
VERBS = {"create": "POST", "get": "GET", "delete": "DELETE"}
UNALLOWED = "Ask whoever runs the cluster for a Role that lets you; docs/platforms/kubernetes-role.yaml is one."
REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
BARRING = ("NoSchedule", "NoExecute")
OVER = ("Succeeded", "Failed")
UNBOUNDED = 1 << 50
INDEXED = (1, 22)  # the first version of a server that has Indexed Jobs by default
BESIDE = int(parse_quantity(LITTLE["memory"]))  # bytes of a node that the helper containers take
QUOTA_NAMES = {  # our amounts → the names in a quota that limit them
    "cores": ("requests.cpu", "cpu", "limits.cpu"),
    "memory": ("requests.memory", "memory", "limits.memory"),
    "disk": ("requests.ephemeral-storage", "limits.ephemeral-storage"),
}


@dataclass(frozen=True, slots=True)
class PodUse:
    """What one pod takes, and until when, if known."""

    node: str  # empty while it waits for one
    shape: Shape
    until: datetime | None = None
    is_ours: bool = False


@dataclass(frozen=True, slots=True)
class QuotaRoom:
    """What a namespace may have in all, and what is left of it."""

    most: Node
    left: Shape
    pods_left: int = UNBOUNDED


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What a cluster has, as of a time."""

    as_of: datetime
    namespace: str
    nodes: tuple[Node, ...] = ()
    sees_nodes: bool = False
    quota: QuotaRoom | None = None
    bounds: PodBounds = NO_BOUNDS  # of each pod, by the namespace's LimitRanges
    gpu: str = ""  # what a GPU is called there
    uses: tuple[PodUse, ...] = ()
    sees_all_pods: bool = False
    missing: tuple[str, ...] = ()  # what of MAY isn't allowed
    version: str = ""
    labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # of each node
    counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # of each node: its other resources


def has_indexed_jobs(version: str) -> bool:
    """Whether a server of this version has Jobs whose pods have numbers; True if the version is unknown."""
    numbers = re.match(r"(\d+)\.(\d+)", version)
    return numbers is None or (int(numbers[1]), int(numbers[2])) >= INDEXED


async def look(api: ApiServer, owner: str, gpu: str, selector: Mapping[str, str] | None = None) -> ClusterView:
    """Ask the API server for everything at once; raise PlatformRefused, in its words, if sessions can't be created.

    Only nodes with the labels of the selector count.
    """
    missing = await review(api)
    nodes, quotas, bounds, (pods, is_whole), version = await asyncio.gather(
        _list_or_nothing(api, "/api/v1/nodes"),
        _list_or_nothing(api, api.path_of("resourcequotas")),
        find_bounds(api),
        _list_pods(api),
        api.get("/version"),
    )
    usable = [node for node in nodes or () if takes_pods(node, selector or {})]
    return ClusterView(
        as_of=datetime.now(UTC),
        namespace=api.access.namespace,
        nodes=tuple(read_node(node, gpu) for node in usable),
        sees_nodes=nodes is not None,
        quota=read_quota(quotas or (), gpu, bounds),
        bounds=bounds,
        gpu=gpu,
        uses=tuple(read_uses(pods, owner, gpu)),
        sees_all_pods=is_whole,
        missing=missing,
        version=f"{version.get('major', '')}.{version.get('minor', '')}",
        labels={node["metadata"]["name"]: node["metadata"].get("labels") or {} for node in usable},
        counts={node["metadata"]["name"]: read_counts(node) for node in usable},
    )


async def _list_or_nothing(api: ApiServer, path: str) -> list[Object] | None:
    """Return a list; None if we aren't allowed to see it."""
    try:
        return (await api.list(path)).get("items") or []
    except PlatformRefused:
        return None


async def _list_pods(api: ApiServer) -> tuple[list[Object], bool]:
    """Return all pods of the cluster, or those of our namespace, and whether these are all."""
    everywhere = await _list_or_nothing(api, "/api/v1/pods")
    if everywhere is not None:
        return everywhere, True
    return (await api.list(api.path_of("pods"))).get("items") or [], False


async def review(api: ApiServer) -> tuple[str, ...]:
    """Ask what we may do, and return what of MAY is denied; raise PlatformRefused if something of MUST is."""
    wanted = {**MUST, **MAY}
    allowed = dict(zip(wanted, await asyncio.gather(*(_may(api, *each) for each in wanted.values())), strict=True))
    for what, (verb, resource, _) in MUST.items():
        if not allowed[what]:
            words = await _ask_in_vain(api, verb, resource)
            why = words or f"you may not {verb} {resource} in the namespace {api.access.namespace}"
            raise PlatformRefused(platform=api.platform, why=why, hint=UNALLOWED)
    return tuple(what for what in MAY if not allowed[what])


async def _ask_in_vain(api: ApiServer, verb: str, resource: str) -> str:
    """Return the server's own words for what it doesn't allow, by a call that changes nothing."""
    kind, _, part = resource.partition("/")
    path = api.path_of(kind, NOTHING, part)
    try:
        if verb == "create" and not part:
            await api.create(api.path_of(kind), _make_trial(kind), dryRun="All")
        elif verb in ("list", "watch"):
            await api.get(api.path_of(kind), **({"watch": "true", "timeoutSeconds": "1"} if verb == "watch" else {}))
        else:
            await api.call(VERBS[verb], path)
    except PlatformRefused as error:
        return str(error.values.get("why", ""))
    except (ObjectMissing, PlatformUnreachable):
        pass  # it was allowed after all, and there is nothing
    return ""


def _make_trial(kind: str) -> Object:
    trial: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": {"generateName": f"{NOTHING}-"}}
    if kind == "secrets":
        return trial
    spec = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "trial", "image": "none"}]}}}
    return {**trial, "apiVersion": "batch/v1", "kind": "Job", "spec": spec}


async def _may(api: ApiServer, verb: str, resource: str, group: str) -> bool:
    name, _, part = resource.partition("/")
    attributes = {
        "namespace": api.access.namespace,
        "verb": verb,
        "resource": name,
        "subresource": part,
        "group": group,
    }
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    answer = await api.create(REVIEW, {**body, "spec": {"resourceAttributes": attributes}})
    return bool((answer.get("status") or {}).get("allowed"))


def takes_pods(node: Mapping[str, Any], selector: Mapping[str, str]) -> bool:
    """Whether new pods with this selector may go to a node."""
    spec, status = node.get("spec") or {}, node.get("status") or {}
    is_ready = any(each["type"] == "Ready" and each["status"] == "True" for each in status.get("conditions") or ())
    barred = any(taint.get("effect") in BARRING for taint in spec.get("taints") or ())
    is_selected = selector.items() <= (node["metadata"].get("labels") or {}).items()
    return is_ready and is_selected and not barred and not spec.get("unschedulable")


def read_node(node: Mapping[str, Any], gpu: str) -> Node:
    """Return what pods may use of a node."""
    room = (node.get("status") or {}).get("allocatable") or {}
    disk = amount_of(room, "ephemeral-storage") or 0
    return Node(
        node["metadata"]["name"],
        amount_of(room, "cpu") or 0,
        max(0, (amount_of(room, "memory") or 0) - BESIDE),
        amount_of(room, gpu) or 0,
        disk,
    )


def read_counts(node: Mapping[str, Any]) -> dict[str, int]:
    """Return a node's extended resources, such as GPUs and licences."""
    room = (node.get("status") or {}).get("allocatable") or {}
    return {name: amount_of(room, name) or 0 for name in room if "/" in name}


def read_quota(quotas: Iterable[Mapping[str, Any]], gpu: str, bounds: PodBounds = NO_BOUNDS) -> QuotaRoom | None:
    """Return what all quotas of a namespace together allow; None if none limits what we count."""
    most: dict[str, int] = {}
    left: dict[str, int] = {}
    beside = _name_in_quota(bounds.size_helper())
    names = {**QUOTA_NAMES, "gpus": (f"requests.{gpu}",), "pods": ("pods", "count/pods", "count/jobs.batch")}
    for quota in quotas:
        spec, status = quota.get("spec") or {}, quota.get("status") or {}
        if spec.get("scopes") or spec.get("scopeSelector"):
            continue  # for other pods than ours, or only for some of them
        hard = status.get("hard") or spec.get("hard") or {}  # a new quota has no status yet
        used = status.get("used") or {}
        for amount, called in names.items():
            for name in (name for name in called if name in hard):
                limit = parse_quantity(hard[name]) - parse_quantity(beside.get(name, "0"))
                free = int(limit - parse_quantity(used.get(name, "0")))
                most[amount] = min(max(0, int(limit)), most.get(amount, UNBOUNDED))
                left[amount] = min(max(0, free), left.get(amount, UNBOUNDED))
    if not most:
        return None
    sizes = ("cores", "memory", "gpus", "disk")
    whole = Node("", *(most.get(name, UNBOUNDED) for name in sizes))
    return QuotaRoom(whole, Shape(*(left.get(name, UNBOUNDED) for name in sizes)), left.get("pods", UNBOUNDED))


def _name_in_quota(helper: Object) -> dict[str, str]:
    """Return what the helper container beside a program takes of a quota, by the quota's names."""
    requests = {
        f"{prefix}{name}": amount for name, amount in helper["requests"].items() for prefix in ("requests.", "")
    }
    return requests | {f"limits.{name}": amount for name, amount in helper["limits"].items()}


def read_uses(pods: Iterable[Mapping[str, Any]], owner: str, gpu: str) -> Iterator[PodUse]:
    """Yield what pods take: each session by itself, and all pods without an end together by node, in whole cores."""
    endless: dict[str, list[dict[str, Decimal]]] = {}
    for pod in pods:
        if (pod.get("status") or {}).get("phase") in OVER:
            continue
        labels, node = pod["metadata"].get("labels") or {}, pod["spec"].get("nodeName", "")
        is_ours = labels.get(MANAGED) == "sublet" and labels.get(OWNER) == owner
        until, taken = _find_end(pod), _sum_requests(pod, gpu)
        if node and not is_ours and until is None:
            endless.setdefault(node, []).append(taken)
        else:
            yield PodUse(node, _round([taken]), until, is_ours)
    for node, several in endless.items():
        yield PodUse(node, _round(several))


def _sum_requests(pod: Mapping[str, Any], gpu: str) -> dict[str, Decimal]:
    asked = [(each.get("resources") or {}).get("requests") or {} for each in pod["spec"].get("containers") or ()]
    names = ("cpu", "memory", gpu, "ephemeral-storage")
    return {name: sum((parse_quantity(each.get(name, "0")) for each in asked), Decimal(0)) for name in names}


def _round(several: Sequence[Mapping[str, Decimal]]) -> Shape:
    """Return what several pods take together, in whole units."""
    return Shape(*(math.ceil(sum(each[name] for each in several)) for name in several[0]))


def _find_end(pod: Mapping[str, Any]) -> datetime | None:
    """Return when a session of Sublet ends at the latest; None if the pod doesn't say."""
    seconds = str((pod["metadata"].get("annotations") or {}).get(TIME, ""))
    began = read_time((pod.get("status") or {}).get("startTime"))
    return began + timedelta(seconds=int(seconds)) if began and seconds.isdigit() else None


def limit_nodes(view: ClusterView, stated: Shape | None) -> Sequence[Node]:
    """Return the nodes to offer: the visible ones within the quota, or else the quota as one node."""
    quota = view.quota.most if view.quota else None
    if view.sees_nodes:
        return [_bind(_within(node, quota, stated), view) for node in view.nodes]
    if quota is None and stated is None:
        return ()
    whole = Node(view.namespace, UNBOUNDED, UNBOUNDED, 0 if stated else UNBOUNDED, 0)
    if stated:
        whole = Node(view.namespace, stated.cores, stated.memory, stated.gpus, 0)
    bounded = _bind(_within(whole, quota, None), view)
    gpus = 0 if bounded.gpus == UNBOUNDED else bounded.gpus
    return [Node(view.namespace, bounded.cores, bounded.memory, gpus, 0)]


def share_quota(nodes: Sequence[Node], quota: QuotaRoom | None) -> Sequence[Node]:
    """Return the nodes cut so that all together are within the quota, so that it can't be booked twice."""
    if quota is None:
        return nodes
    left = {name: getattr(quota.most, name) for name in ("cores", "memory", "gpus", "disk")}
    shared = []
    for node in nodes:
        part = {name: min(getattr(node, name), left[name]) for name in left}
        left = {name: left[name] - part[name] for name in left}
        if part["cores"] and part["memory"]:
            shared.append(Node(node.name, **part))
    return shared


def _bind(node: Node, view: ClusterView) -> Node:
    """Return a node cut to what the namespace allows one pod."""
    names = {"cores": "cpu", "memory": "memory", "gpus": view.gpu, "disk": "ephemeral-storage"}
    most = {amount: view.bounds.find_most(name) for amount, name in names.items()}
    return replace(node, **{name: min(getattr(node, name), bound) for name, bound in most.items() if bound is not None})


def _within(node: Node, quota: Node | None, stated: Shape | None) -> Node:
    """Return a node cut to what the quota and the settings allow."""
    bounds = [bound for bound in (quota, stated) if bound is not None]
    cores, memory, gpus = (min(getattr(each, name) for each in (node, *bounds)) for name in ("cores", "memory", "gpus"))
    disk = min(each.disk for each in (node, *([quota] if quota else [])))
    return Node(node.name, cores, memory, gpus, disk)
