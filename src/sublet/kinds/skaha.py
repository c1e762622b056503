"""Containers and JupyterLab on CANFAR's Skaha: a registry image, words without spaces, and variables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sublet.booking.model.job import Program
from sublet.booking.model.kernels import SKAHA, SKAHA_PLAN
from sublet.booking.model.request import Executable
from sublet.kinds import fields as f
from sublet.kinds import images
from sublet.kinds.inside.container_images import pin
from sublet.kinds.port import Setting, Way, WayNeed

SPACES = "one of its words has a space in it, and Skaha takes words that are separated by spaces"
ELSEWHERE = "its image is in no registry"
NOT_THERE = "Skaha runs one copy of it, and lets nobody in to a port"


def find_lack(executable: Executable, locations: Sequence[str]) -> str:
    """Return why Skaha can't run a container; empty if it can."""
    fields = executable.fields
    if not any(images.read_location(location, 0)["how"] == "registry" for location in locations):
        return ELSEWHERE
    if fields.get("tasks") or (fields.get("network") or {}).get("ports"):
        return NOT_THERE
    words = (*_words(fields.get("entrypoint")), *(fields.get("command") or ()))
    if any(len(str(word).split()) != 1 for word in words):
        return SPACES
    return "" if not any("\n" in value for value in f.environment_of(fields).values()) else "a variable has two lines"


def list_container_ways(executable: Executable, tools: Mapping[str, str], image: Mapping[str, Any]) -> list[Way]:
    """Return the way as a headless session, if Skaha can run it."""
    if SKAHA not in tools or find_lack(executable, image["locations"]):
        return []
    return [Way(SKAHA, contained=True, program=partial(container_program, executable, image))]


def list_container_needs(executable: Executable, locations: Sequence[str]) -> list[WayNeed]:
    """Return what Skaha needs for a container."""
    return [WayNeed(SKAHA, (SKAHA,), find_lack(executable, locations))]


def list_lab_ways(executable: Executable, tools: Mapping[str, str], locations: Sequence[str], digest: str) -> list[Way]:
    """Return the way by Skaha's notebook sessions, which have their own environment."""
    if SKAHA not in tools or find_lab_lack(executable, locations):
        return []
    reference = pin(locations[0], digest) if locations else ""
    return [Way(SKAHA, contained=True, program=lambda setting: lab_program(reference), interactive=True)]


def find_lab_lack(executable: Executable, locations: Sequence[str]) -> str:
    """Return why Skaha can't provide a notebook session; empty if it can."""
    if executable.fields.get("environment"):
        return "Skaha's notebook sessions take no environment"
    here = [location for location in locations if images.read_location(location, 0)["how"] != "registry"]
    return ELSEWHERE if here else ""


def container_program(executable: Executable, image: Mapping[str, Any], setting: Setting) -> Program:
    """Build the plan of a headless session."""
    fields = executable.fields
    own = _words(fields.get("entrypoint"))
    sources = [images.read_location(location, number) for number, location in enumerate(image["locations"])]
    reference = next(source["ref"] for source in sources if source["how"] == "registry")
    plan = {
        "image": pin(reference, image.get("digest") or ""),
        "type": "headless",
        "cmd": own[0] if own else "",
        "args": [*own[1:], *(fields.get("command") or ())],
        "env": f.environment_of(fields),
    }
    return Program((SKAHA,), {}, {SKAHA_PLAN: json.dumps(plan).encode()})


def lab_program(image: str) -> Program:
    """Build the plan of a notebook session."""
    plan = {"image": image, "type": "notebook", "cmd": "", "args": [], "env": {}}
    return Program((SKAHA,), {}, {SKAHA_PLAN: json.dumps(plan).encode()}, connects="uri:jupyter-lab")


def _words(entrypoint: Any) -> list[str]:
    return [entrypoint] if isinstance(entrypoint, str) else list(entrypoint or ())
