"""What a service offers to apps besides their images, and so whether an app can be run there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sublet.apps.model.manifest import Manifest
from sublet.apps.model.needs import Need, NeedKind, find_least_node, name_place, node_text
from sublet.booking.model.amounts import memory_text


@dataclass(frozen=True, kw_only=True)
class Facilities:
    """What is available, with platforms by name."""

    images: Mapping[str, str] = field(default_factory=dict)  # names that manifests may use → locations
    mpi: tuple[str, ...] = ()  # where Slurm starts MPI tasks
    gpus: Mapping[str, int] = field(default_factory=dict)  # → the most in a node
    # → cores and memory of each node size
    nodes: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    online: tuple[str, ...] = ()  # where containers have network access
    offline: tuple[str, ...] = ()  # where they have none
    unknown: tuple[str, ...] = ()  # where it isn't known whether nodes have network access
    data: tuple[str, ...] = ()  # schemes of addresses that data is brought from
    places: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # path in containers → platforms
    largest: int = 0  # bytes of a file that can be brought; 0: no limit


@dataclass(frozen=True)
class Had:
    """Whether something is available, and where, or why not."""

    has: bool | None  # None: not known
    words: str


def find_lacking_node(manifest: Manifest, there: Facilities) -> list[Need]:
    """Return the node that a run needs, if none is large enough for even the smallest run."""
    need = find_least_node(manifest)
    return [need] if find_had(need, there).has is False else []


def find_had(need: Need, there: Facilities) -> Had:
    """Return whether a need is met."""
    return ANSWERS[need.kind](need, there)


def _mpi(need: Need, there: Facilities) -> Had:
    return Had(True, f"on {_names(there.mpi)}") if there.mpi else Had(False, "no platform has Slurm")


def _gpus(need: Need, there: Facilities) -> Had:
    texts = [f"{name} (at most {count} in a node)" for name, count in there.gpus.items() if count]
    return Had(True, f"on {_names(texts)}") if texts else Had(False, "no platform has GPUs")


def _node(need: Need, there: Facilities) -> Had:
    fits = [name for name, nodes in there.nodes.items() if any(_is_large(node, need) for node in nodes)]
    if fits:
        return Had(True, f"on {_names(fits)}")
    unseen = [name for name in (*there.online, *there.offline, *there.unknown) if not there.nodes.get(name)]
    if unseen:
        return Had(None, f"how large the nodes of {_names(unseen)} are is not known")
    largest = {name: node_text(*max(nodes, key=_memory)) for name, nodes in there.nodes.items()}
    words = "; ".join(f"the largest node of {name} has {text}" for name, text in largest.items())
    return Had(False, words or "there is no platform")


def _is_large(node: tuple[int, int], need: Need) -> bool:
    cores, memory = node
    return cores >= need.cores and memory >= need.memory


def _memory(node: tuple[int, int]) -> int:
    return node[1]


def _network(need: Need, there: Facilities) -> Had:
    parts = (
        (there.online, "containers on {} have a network"),
        (there.offline, "containers on {} have no network"),
        (there.unknown, "whether the nodes of {} have a way out is not known"),
    )
    words = "; ".join(phrase.format(_names(names)) for names, phrase in parts if names)
    return Had(True if there.online else None if there.unknown else False, words or "there is no platform")


def _upload(need: Need, there: Facilities) -> Had:
    if "https" not in there.data:
        return Had(False, "no data is brought")
    most = f", a file of at most {memory_text(there.largest)}" if there.largest else ""
    return Had(True, f"from {_names([f'{scheme}:' for scheme in there.data])} addresses{most}")


def _mount(need: Need, there: Facilities) -> Had:
    name = name_place(need.what)
    platforms = [*there.places.get(need.what, ()), *there.places.get(f"/{name}", ())]
    if platforms:
        return Had(True, f"as a place of {_names([*dict.fromkeys(platforms)])}")
    declare = f"sublet place add {name} --on SYSTEM --path DIRECTORY"
    return Had(False, f"there is no place {name}; an operator declares it: {declare}")


def _image(need: Need, there: Facilities) -> Had:
    if where := there.images.get(need.what):
        return Had(True, f"as {where}")
    return Had(False, f"it knows {_names([*there.images]) or 'none by name'}")


def _unseen(need: Need, there: Facilities) -> Had:
    return Had(None, f"what {need.what} does is not known; its author can say it")


ANSWERS: dict[NeedKind, Callable[[Need, Facilities], Had]] = {
    NeedKind.MOUNT: _mount,
    NeedKind.UPLOAD: _upload,
    NeedKind.MPI: _mpi,
    NeedKind.NETWORK: _network,
    NeedKind.GPU: _gpus,
    NeedKind.IMAGE: _image,
    NeedKind.NODE: _node,
    NeedKind.UNSEEN: _unseen,
}


def _names(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(names)
