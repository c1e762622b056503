"""Images that a platform runs by itself, as pods of Kubernetes: no tool has to be there, and no Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from sublet.booking.model.job import Program
from sublet.booking.model.places import variable_of
from sublet.booking.model.request import Executable
from sublet.kinds import fields as f
from sublet.kinds.inside.container_images import pin
from sublet.kinds.port import Setting, Way

KUBERNETES = "kubernetes"
NO_REGISTRY = "its image is in no registry, from which a pod could have it"


def find_pod_image(sources: Sequence[Mapping[str, str]], digest: str) -> str:
    """The image as a pod names it; empty: it is in no registry."""
    return pin(sources[0]["ref"], digest) if sources and sources[0]["how"] == "registry" else ""


def find_pod_ways(
    executable: Executable, tools: Mapping[str, str], sources: Sequence[Mapping[str, str]], digest: str
) -> list[Way]:
    """As a pod, if the first source is a registry; several tasks, and ports to be reached, need a tool."""
    fields = executable.fields
    is_plain = not fields.get("tasks") and not (fields.get("network") or {}).get("ports")
    image = find_pod_image(sources, digest)
    if KUBERNETES not in tools or not is_plain or not image:
        return []
    return [Way(KUBERNETES, contained=True, program=partial(make_pod_program, executable, image))]


def make_pod_program(executable: Executable, image: str, setting: Setting) -> Program:
    """The image's own entrypoint with the command as its arguments; or an entrypoint that was named."""
    fields = executable.fields
    entrypoint, command = fields.get("entrypoint"), tuple(fields.get("command") or ())
    words = (entrypoint,) if isinstance(entrypoint, str) else tuple(entrypoint or ())
    places = {variable_of(place.name): place.target for place in setting.places}
    return Program(
        (*words, *command),
        f.tell_only_node(fields, setting.amounts.nodes) | f.environment_of(fields) | places,
        each_node=bool(fields.get("each_node")),
        image=image,
        keeps_entrypoint=not words,
        in_work=setting.has_files and bool(command),
    )
