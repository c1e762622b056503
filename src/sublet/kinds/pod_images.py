"""Images run as Kubernetes pods by the platform itself, without any tool or Python."""

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
    """Return the image as a pod names it; empty if it is in no registry."""
    return pin(sources[0]["ref"], digest) if sources and sources[0]["how"] == "registry" else ""


def find_pod_ways(
    executable: Executable, tools: Mapping[str, str], sources: Sequence[Mapping[str, str]], digest: str
) -> list[Way]:
    """Return the way as a pod, if the first source is a registry; several tasks or reachable ports need a tool."""
    fields = executable.fields
    is_plain = not fields.get("tasks") and not (fields.get("network") or {}).get("ports")
    image = find_pod_image(sources, digest)
    if KUBERNETES not in tools or not is_plain or not image:
        return []
    return [Way(KUBERNETES, contained=True, program=partial(make_pod_program, executable, image))]


def make_pod_program(executable: Executable, image: str, setting: Setting) -> Program:
    """Build the image's own entrypoint with the command as arguments, or the given entrypoint."""
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
