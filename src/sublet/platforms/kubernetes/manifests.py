"""A session as Kubernetes' objects: a Secret with all its files, and a Job whose pods start once.

The pod has three containers. `stage` lays the session out and ends; `main` is the program in its own image; `keeper`
watches its time, stops it, and keeps its files until they have been fetched. No secret is in a pod's spec.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from importlib.resources import files

from sublet.booking.model.job import Job
from sublet.booking.model.shape import Shape
from sublet.platforms.batch.quoting import function, variable, word
from sublet.platforms.kubernetes.api import Object
from sublet.platforms.kubernetes.bounds import NO_BOUNDS, PodBounds
from sublet.platforms.kubernetes.kept import KEPT, find_folder
from sublet.platforms.kubernetes.labels import keep_apart, list_wanted, make_affinity
from sublet.platforms.kubernetes.licenses import size_licenses
from sublet.platforms.kubernetes.names import (
    INDEX,
    KEEPER,
    KEY,
    MAIN,
    PERSON,
    STAGE,
    TIME,
    TITLE,
    first_name_of,
    label_of,
    labels_of,
    name_of,
)
from sublet.platforms.kubernetes.names import SESSION as SESSION_LABEL
from sublet.platforms.told import tell_amounts

SESSION = "/sublet/session"  # the session's directory in the pod
SCRATCH = "/".join((SESSION, "tmp"))
PORT = 8888  # on the pod's own loopback, where an interactive program listens
START = ["/sublet/bin/busybox", "sh", "/sublet/own/start.sh"]
INDEXED = "Indexed"  # the mode of a Job whose pods have numbers
FIRST = "address"  # of the first of several pods, in its own Secret
VARIABLE = "variable."  # before the name of a variable in the Secret
LISTENS = ["/sublet/bin/busybox", "grep", "-q", f":{PORT:04X} 00000000:0000 0A", "/proc/net/tcp"]
FORGOTTEN = 7 * 24 * 3600  # seconds after which a cluster may remove an ended Job that nobody removed


@dataclass(frozen=True)
class PodPlace:
    """How pods are made in a namespace, by a platform's settings."""

    owner: str
    image: str
    helper: str
    pull: str = "IfNotPresent"
    pull_secrets: Sequence[str] = ()
    user: int | None = None
    account: str = ""
    priority: str = ""
    gpu: str = "nvidia.com/gpu"
    gpu_label: str = "nvidia.com/gpu.product"
    licenses: Mapping[str, str] = field(default_factory=dict)
    claim: str = ""  # where data that sessions bring is kept
    unused: timedelta = timedelta(days=30)
    selector: Mapping[str, str] = field(default_factory=dict)
    grace: timedelta = timedelta(seconds=5)
    keep: timedelta = timedelta(days=1)
    patience: timedelta = timedelta(minutes=10)


@cache
def read_script(name: str) -> str:
    """Read one of this package's scripts, for a pod."""
    return files("sublet.platforms.kubernetes").joinpath("shell", f"{name}.sh").read_text()


def seconds_of(time: timedelta) -> int:
    """Return a time in whole seconds, at least one."""
    return max(1, round(time.total_seconds()))


def write_program(job: Job, key: str, time: timedelta, patience: timedelta = timedelta(0)) -> str:
    """Write the shell assignments and functions that `start.sh` reads.

    Raise ValueError for values that no shell can hold.
    """
    first, seconds = job.program.argv[0] if job.program.argv else "", seconds_of(time)
    values: dict[str, object] = {
        "session": key,
        "duration": seconds,
        "warn": min(round(job.warn.total_seconds()), seconds // 2),
        "first": first,
        "missing": json.dumps(f"{first[:300]}: no such program is in its image"),
        "nodes": count_pods(job),
        "together": max(seconds, seconds_of(patience)),
    }
    variables = list_variables(job)
    links = [
        f"link {word(mount.source)} {word(mount.target)} {int(mount.read_only)}"
        for mount in job.mounts
        if not mount.target.startswith("/")
    ]
    lines = [f"{name}={word(str(value))}" for name, value in values.items()]
    lines += [
        function("links", links),
        function("environment", [f"export {variable(name)}={word(value)}" for name, value in variables.items()]),
        function("program", ["exec " + " ".join(word(value) for value in job.program.argv)]),
    ]
    return "\n".join(lines) + "\n"


def count_pods(job: Job) -> int:
    """Return how many pods a job runs in: one per node, if its program is for each node."""
    return job.amounts.nodes if job.program.each_node else 1


def list_variables(job: Job) -> dict[str, str]:
    """Return a program's environment variables, besides those that only its pod knows."""
    port = {"SUBLET_HOST": "127.0.0.1", "SUBLET_PORT": str(PORT)} if job.program.connects else {}
    return {
        **tell_amounts(job.amounts, each_node=job.program.each_node),
        "SUBLET_PART": "0",
        "SUBLET_PARTS": "1",
        **port,
        **job.program.environment,
    }


def _list_entrypoint_variables(job: Job, key: str) -> dict[str, str]:
    """Return the variables for an image's own entrypoint, which no script of ours starts."""
    own = {"SUBLET_SESSION": key, "SUBLET_DATA": f"{SESSION}/data", "SUBLET_WARNING": f"{SESSION}/warning"}
    return {**own, "TMPDIR": SCRATCH, **list_variables(job)}


def make_secret(job: Job, key: str, place: PodPlace, program: str, packed: bytes | None) -> Object:
    """Make the Secret with all parts of a session.

    `packed` are its files, unless they are too large and are sent later.
    """
    given = {"start.sh": read_script("start").encode(), "program": program.encode("utf-8", "surrogateescape")}
    if packed is not None:
        given["files"] = packed
    if job.program.keeps_entrypoint:
        variables = _list_entrypoint_variables(job, key)
        given |= {f"{VARIABLE}{name}": value.encode("utf-8", "surrogateescape") for name, value in variables.items()}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name_of(key), "labels": labels_of(key, place.owner), "annotations": {KEY: key}},
        "type": "Opaque",
        "data": {name: base64.b64encode(content).decode() for name, content in given.items()},
    }


def make_job(job: Job, key: str, place: PodPlace, time: timedelta, bounds: PodBounds = NO_BOUNDS) -> Object:
    """Make the Job: one try, one pod per node within the bounds of its namespace, and nothing that restarts it."""
    labels, pods = labels_of(key, place.owner), count_pods(job)
    notes = {KEY: key, TIME: str(seconds_of(time)), PERSON: job.person[:200], TITLE: job.name[:200]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name_of(key), "labels": labels, "annotations": notes},
        "spec": {
            "backoffLimit": 0,
            "completions": pods,
            "parallelism": pods,
            **({"completionMode": INDEXED} if pods > 1 else {}),
            "ttlSecondsAfterFinished": FORGOTTEN,
            # Newer servers then don't replace a lost pod; this is untested, and 1.20 ignores it.
            "podReplacementPolicy": "Failed",
            "template": {
                "metadata": {"labels": labels, "annotations": notes},
                "spec": _make_pod(job, key, place, bounds),
            },
        },
    }


def _make_pod(job: Job, key: str, place: PodPlace, bounds: PodBounds) -> Object:
    shared = {"name": "session", "mountPath": "/sublet"}
    given = {"name": "given", "mountPath": "/given", "readOnly": True}
    kept = _mount_kept(job, place)
    spec: Object = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "shareProcessNamespace": True,
        "terminationGracePeriodSeconds": seconds_of(place.grace),
        "initContainers": [_helper(STAGE, place, bounds, [str(seconds_of(place.patience))], [shared, given, *kept])],
        "containers": [
            _helper(KEEPER, place, bounds, [str(seconds_of(place.keep)), str(seconds_of(place.grace))], [shared]),
            _make_main(job, key, place, bounds, [shared, *({**each, "readOnly": True} for each in kept)]),
        ],
        "volumes": [_make_volume(job.amounts.shape), {"name": "given", "secret": {"secretName": name_of(key)}}],
        "securityContext": {} if place.user is None else _be_user(place.user),
    }
    if place.selector:
        spec["nodeSelector"] = dict(place.selector)
    wanted = list_wanted(job.scheduler, place.gpu_label)
    if job.nodes or wanted:
        spec["affinity"] = make_affinity(job.nodes, wanted)
    if count_pods(job) > 1:
        spec["affinity"] = spec.get("affinity", {}) | keep_apart({SESSION_LABEL: label_of(key)})
    if kept:
        spec["volumes"].append({"name": "kept", "persistentVolumeClaim": {"claimName": place.claim}})
    named = {"serviceAccountName": place.account, "priorityClassName": place.priority}
    spec |= {name: value for name, value in named.items() if value}
    if place.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in place.pull_secrets]
    return spec


def _helper(name: str, place: PodPlace, bounds: PodBounds, words: list[str], mounts: list[Object]) -> Object:
    return {
        "name": name,
        "image": place.helper,
        "imagePullPolicy": place.pull,
        "command": ["sh", "-c", read_script({STAGE: "stage", KEEPER: "keep"}[name]), name, *words],
        "volumeMounts": mounts,
        "resources": bounds.size_helper(),
        "securityContext": _confine(place),
    }


def _mount_kept(job: Job, place: PodPlace) -> list[Object]:
    """Return the mount of the person's folder in the claim, if there is a claim."""
    if not place.claim:
        return []
    return [{"name": "kept", "mountPath": KEPT, "subPath": find_folder(place.owner, job.person)}]


def _make_main(job: Job, key: str, place: PodPlace, bounds: PodBounds, mounts: Sequence[Object]) -> Object:
    main: Object = {
        "name": MAIN,
        "image": job.program.image or place.image,
        "imagePullPolicy": place.pull,
        **(_keep_entrypoint(job, key) if job.program.keeps_entrypoint else {"command": START}),
        "volumeMounts": [*mounts, *_mount_absolute(job)],
        "resources": bounds.size_main(_size(job, place)),
        "securityContext": _confine(place),
    }
    if job.program.connects:
        main["readinessProbe"] = {"exec": {"command": LISTENS}, "periodSeconds": 1}
    return main


def _keep_entrypoint(job: Job, key: str) -> Object:
    """Return the parts of a container that uses the image's own entrypoint; its variables come from the Secret."""
    variables = _list_entrypoint_variables(job, key)
    source = name_of(key)
    return {
        **({"args": list(job.program.argv)} if job.program.argv else {}),
        **({"workingDir": f"{SESSION}/work"} if job.program.in_work else {}),
        "env": [
            {"name": name, "valueFrom": {"secretKeyRef": {"name": source, "key": f"{VARIABLE}{name}"}}}
            for name in variables
        ]
        + (_list_node_variables(key) if count_pods(job) > 1 else []),
    }


def _list_node_variables(key: str) -> list[Object]:
    """Return the variables of an entrypoint in one of several pods: its number, and the first pod's address."""
    return [
        {"name": "SUBLET_NODE_NUMBER", "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{INDEX}']"}}},
        {
            "name": "SUBLET_FIRST_NODE",
            "valueFrom": {"secretKeyRef": {"name": first_name_of(key), "key": FIRST}},
        },
    ]


def make_first_secret(key: str, owner: str, job_uid: str, address: str) -> Object:
    """Make the Secret with the address of the first of several pods; it is deleted with their Job."""
    reference = {"apiVersion": "batch/v1", "kind": "Job", "name": name_of(key), "uid": job_uid}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": first_name_of(key),
            "labels": labels_of(key, owner),
            "annotations": {KEY: key},
            "ownerReferences": [reference],
        },
        "type": "Opaque",
        "data": {FIRST: base64.b64encode(address.encode()).decode()},
    }


def _mount_absolute(job: Job) -> list[Object]:
    """Return the mounts outside the working directory."""
    return [
        {
            "name": "session",
            "mountPath": mount.target,
            "subPath": f"session/{mount.source}",
            "readOnly": mount.read_only,
        }
        for mount in job.mounts
        if mount.target.startswith("/")
    ]


def _size(job: Job, place: PodPlace) -> dict[str, str]:
    shape = job.amounts.shape
    amounts = {"cpu": str(shape.cores), "memory": str(shape.memory)}
    amounts |= {place.gpu: str(shape.gpus)} if shape.gpus else {}
    amounts |= {"ephemeral-storage": str(shape.disk)} if shape.disk else {}
    return amounts | size_licenses(job.scheduler.licenses, place.licenses)


def _make_volume(shape: Shape) -> Object:
    return {"name": "session", "emptyDir": {"sizeLimit": str(shape.disk)} if shape.disk else {}}


def _be_user(user: int) -> Object:
    """Return the security context that restricted namespaces require."""
    return {
        "runAsUser": user,
        "runAsGroup": user,
        "fsGroup": user,
        "runAsNonRoot": True,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _confine(place: PodPlace) -> Object:
    """Return a security context without privilege escalation, and for a plain user without capabilities."""
    if place.user is None:
        return {"allowPrivilegeEscalation": False}
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
