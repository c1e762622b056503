"""Notes for people about a cluster."""

from __future__ import annotations

from collections.abc import Mapping

from sublet.booking.model.choices import Choices
from sublet.platforms.kubernetes.labels import list_own_labels, list_values
from sublet.platforms.kubernetes.survey import ClusterView


def describe_view(view: ClusterView, gpu_label: str, licenses: Mapping[str, str]) -> tuple[str, ...]:
    """Return notes for people about a survey of the cluster."""
    notes = [f"Kubernetes {view.version}, namespace {view.namespace}"]
    if not view.sees_nodes:
        notes.append("its nodes may not be seen: what is offered follows the namespace's quota")
    if view.quota and view.quota.pods_left == 0:
        notes.append("the quota has no pod left: what is submitted now waits")
    if "ports" in view.missing:
        notes.append("ports of pods may not be forwarded: no interactive sessions")
    return (*notes, *list_choices(view, gpu_label, licenses).describe())


def list_choices(view: ClusterView, gpu_label: str, licenses: Mapping[str, str]) -> Choices:
    """Return the GPU types, labels and licences that nodes have."""
    labels = view.labels.values()
    counted = {
        name: sum(counts.get(resource, 0) for counts in view.counts.values()) for name, resource in licenses.items()
    }
    own = [label for label in list_own_labels(labels) if label.partition("=")[0] != gpu_label]
    return Choices(tuple(list_values(labels, gpu_label)), tuple(own), counted)
