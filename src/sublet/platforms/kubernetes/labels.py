"""Which nodes a session may run on, by their labels: features and a GPU type that a request asks for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sublet.booking.model.scheduler import SchedulerOptions
from sublet.platforms.kubernetes.api import Object

BETWEEN = re.compile(r"[,&]")
LABEL = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?")
VALUE = re.compile(r"([A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?)?")
FORM = "write NAME=VALUE, or NAME for a label that has any value, with & between several"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class WantedLabel:
    """A label that a node must have."""

    name: str
    value: str | None = None  # None: any

    def is_on(self, labels: Mapping[str, str]) -> bool:
        """Whether the label is among these."""
        return self.name in labels and self.value in (None, labels[self.name])

    def __str__(self) -> str:
        """Write the label as a person would."""
        return self.name if self.value is None else f"{self.name}={self.value}"


def read_labels(text: str) -> tuple[WantedLabel, ...]:
    """Read the labels of a constraint; raise ValueError with a message if one isn't valid."""
    wanted = []
    for part in filter(None, BETWEEN.split(text)):
        name, equals, value = part.partition("=")
        if not LABEL.fullmatch(name) or not VALUE.fullmatch(value):
            raise ValueError(f"{part!r} is no label of a node: {FORM}")
        wanted.append(WantedLabel(name, value if equals else None))
    return tuple(wanted)


def list_wanted(asked: SchedulerOptions, gpu_label: str) -> tuple[WantedLabel, ...]:
    """Return all labels that a request wants of its nodes."""
    type_of_gpu = (WantedLabel(gpu_label, asked.gpu_type),) if asked.gpu_type else ()
    return (*read_labels(asked.constraint), *type_of_gpu)


def list_values(labels: Iterable[Mapping[str, str]], name: str) -> list[str]:
    """Return the values of a label that nodes have."""
    return sorted({each[name] for each in labels if name in each})


def list_own_labels(labels: Iterable[Mapping[str, str]]) -> list[str]:
    """Return the labels that a cluster's administrators gave its nodes, with values, without Kubernetes' own."""
    own = {
        f"{name}={value}" if value else name
        for each in labels
        for name, value in each.items()
        if not _is_of_kubernetes(name)
    }
    return sorted(own)


def _is_of_kubernetes(name: str) -> bool:
    prefix = name.rpartition("/")[0]
    return prefix.endswith(("kubernetes.io", "k8s.io"))


def make_affinity(nodes: Sequence[str], wanted: Sequence[WantedLabel]) -> Object:
    """Return the part of a pod's spec that restricts it to these nodes, if any are named, and labels."""
    labels: dict[str, Any] = {"matchExpressions": [_match(label) for label in wanted]} if wanted else {}
    names = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]} for name in nodes]
    terms = [{**name, **labels} for name in names or [{}]]  # one of the terms must hold: a field has one value
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}


def keep_apart(labels: Mapping[str, str]) -> Object:
    """Return the part of a pod's spec that keeps pods with these labels on different nodes."""
    term = {"labelSelector": {"matchLabels": dict(labels)}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {REQUIRED: [term]}}


def _match(label: WantedLabel) -> Object:
    if label.value is None:
        return {"key": label.name, "operator": "Exists"}
    return {"key": label.name, "operator": "In", "values": [label.value]}
