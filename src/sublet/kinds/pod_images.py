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


def find_pod_ways(
    executable: Executable, tools: Mapping[str, str], sources: Sequence[Mapping[str, str]], digest: str
) -> list[Way]:
    """As a pod, if the first source is a registry; several tasks, and ports to be reached, need a tool."""
    fields = executable.fields
    is_plain = not fields.get("tasks") and not (fields.get("network") or {}).get("ports")
    if KUBERNETES not in tools or not is_plain or sources[0]["how"] != "registry":
        return []
    image = pin(sources[0]["ref"], digest)
    return [Way(KUBERNETES, contained=True, program=partial(make_pod_program, executable, image))]


def make_pod_program(executable: Executable, image: str, setting: Setting) -> Program:
    """The image's own entrypoint with the command as its arguments; or an entrypoint that was named."""
    fields = executable.fields
    entrypoint, command = fields.get("entrypoint"), tuple(fields.get("command") or ())
    words = (entrypoint,) if isinstance(entrypoint, str) else tuple(entrypoint or ())
    places = {variable_of(place.name): place.target for place in setting.places}
    return Program(
        (*words, *command),
        f.environment_of(fields) | places,
        image=image,
        keeps_entrypoint=not words,
        in_work=setting.has_files and bool(command),
    )
