"""What a request asks of nodes besides sizes (labels, a GPU type, licences): which nodes have it, or why none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sublet.booking.model.choices import list_names, read_licenses
from sublet.booking.model.gpu_sorts import GpuSort, find_labelled_driver, sort_gpus
from sublet.booking.model.limits import LIMIT, NOT_SUPPORTED
from sublet.booking.model.offer import Answer, Node, Reason
from sublet.booking.model.request import Request
from sublet.booking.model.shape import is_enough
from sublet.platforms.kubernetes.labels import WantedLabel, list_own_labels, list_values, list_wanted
from sublet.platforms.kubernetes.licenses import size_licenses
from sublet.platforms.kubernetes.survey import ClusterView

INVALID = "urn:invalid-value"
TAKEN = ("constraint", "gpu_type", "licenses")  # the scheduler options that are supported
BY_CALENDAR = "its nodes are booked by a calendar that knows no such thing"
UNSEEN = "its nodes may not be seen, so that nobody knows which of them have"


@dataclass(frozen=True, slots=True)
class NodeChoice:
    """How GPU types and licences are identified, by a platform's settings."""

    platform: str
    gpu_label: str = ""  # the node label that names the type of its GPUs
    licenses: Mapping[str, str] = field(default_factory=dict)  # a licence → the resource as which it is counted
    is_booked: bool = False

    def unfit(self, request: Request) -> Iterator[Reason]:
        """Yield the reasons for which the request could never run here, without looking at the cluster."""
        asked = request.scheduler
        try:
            list_wanted(asked, self.gpu_label)
        except ValueError as error:
            yield Reason(INVALID, "constraint", f"{self.platform}: {error}.", asked.constraint)
        try:
            size_licenses(asked.licenses, self.licenses)
        except ValueError as error:
            there = ", ".join(sorted(self.licenses))
            yield Reason(NOT_SUPPORTED, "licenses", f"{self.platform}: {error}.", asked.licenses, there, there)
        if asked.gpu_type and not request.compute.gpus.min:
            message = f"{self.platform}: a type of GPU was asked for, and no GPU."
            yield Reason(INVALID, "gpu_type", message, asked.gpu_type, "", "gpus: 1")
        for name in asked.list_asked() if self.is_booked else ():
            yield Reason(NOT_SUPPORTED, name, f"{self.platform}: {name}: {BY_CALENDAR}.", nearest=f"leave {name} out")

    def find_missing(self, view: ClusterView, request: Request) -> Iterator[Reason]:
        """Yield what no node has, each with what there is; for a request that `unfit` has no objection to."""
        for label in list_wanted(request.scheduler, self.gpu_label):
            if not any(label.is_on(labels) for labels in view.labels.values()):
                yield self._miss_label(view, label, request)
        for name, count in read_licenses(request.scheduler.licenses).items():
            most = max((counts.get(self.licenses[name], 0) for counts in view.counts.values()), default=0)
            bound = view.bounds.find_most(self.licenses[name])
            most = most if bound is None else min(most, bound)
            if count > most:
                message = f"{self.platform} has at most {most} licenses of {name} on a node; {count} were asked for."
                unseen = f"{self.platform}: {UNSEEN} licenses of {name}."
                nearest = f"{name}:{most}" if most else ""
                yield Reason(LIMIT, "licenses", message if view.sees_nodes else unseen, str(count), str(most), nearest)

    def _miss_label(self, view: ClusterView, label: WantedLabel, request: Request) -> Reason:
        is_type = label == WantedLabel(self.gpu_label, request.scheduler.gpu_type)
        there = ", ".join(list_values(view.labels.values(), label.name))
        has = f"nodes there have {label.name}: {there}" if there else f"no node there has a label {label.name}"
        if not there and (names := list_own_labels(view.labels.values())):
            has += f"; they have: {list_names(names)}"
        message = f"{self.platform} has no node with {label}; {has}."
        if not view.sees_nodes:
            message = f"{self.platform}: {UNSEEN} {label}."
        return Reason(NOT_SUPPORTED, "gpu_type" if is_type else "constraint", message, str(label), there, there)

    def choose(self, view: ClusterView, request: Request, nodes: Sequence[Node]) -> list[Node]:
        """Return the nodes that have all labels and licences of a request."""
        wanted = list_wanted(request.scheduler, self.gpu_label)
        counted = size_licenses(request.scheduler.licenses, self.licenses)
        return [
            node
            for node in nodes
            if all(label.is_on(view.labels.get(node.name, {})) for label in wanted)
            and all(view.counts.get(node.name, {}).get(name, 0) >= int(count) for name, count in counted.items())
        ]

    def state_gpus(self, view: ClusterView, request: Request, answer: Answer) -> Answer:
        """Add to each offer the sorts of GPU of the nodes that a pod may run on."""
        if not request.compute.gpus.min or not answer.offers:
            return answer
        able = [node for node in view.nodes if is_enough(node, request.compute.least)]
        labels = [view.labels.get(node.name, {}) for node in self.choose(view, request, able)]
        sorts = sort_gpus(GpuSort(each.get(self.gpu_label, ""), find_labelled_driver(each)) for each in labels)
        return replace(answer, offers=tuple(replace(offer, gpu_sorts=sorts) for offer in answer.offers))


ANY_NODE = NodeChoice("")
