"""What a person may want to know of a cluster, in words."""

from __future__ import annotations

from sublet.platforms.kubernetes.labels import list_values
from sublet.platforms.kubernetes.survey import ClusterView


def describe_view(view: ClusterView, gpu_label: str) -> tuple[str, ...]:
    """What a person may want to know of what was seen."""
    notes = [f"Kubernetes {view.version}, namespace {view.namespace}"]
    if not view.sees_nodes:
        notes.append("its nodes may not be seen: what is offered follows the namespace's quota")
    if view.quota and view.quota.pods_left == 0:
        notes.append("the quota has no pod left: what is submitted now waits")
    if "ports" in view.missing:
        notes.append("ports of pods may not be forwarded: no interactive sessions")
    if types := list_values(view.labels.values(), gpu_label):
        notes.append(f"types of GPU: {', '.join(types)}")
    return tuple(notes)
