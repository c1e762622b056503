"""The container tools that tests run images with, or in one sentence why they can't."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from typing import Any

import pytest

from sublet.booking.model.request import Executable
from sublet.kernel.container_network import find_program
from sublet.platforms import machine
from tests.real import images

TOOLS = {"podman": ("podman",), "charliecloud": ("ch-run",)}


def find_tools(name: str) -> dict[str, str]:
    """One container tool and what helps it; the test is skipped, with the reason, where it can't run anything."""
    if why := explain_absence(name):
        pytest.skip(why)
    return {part: path for part in (*TOOLS[name], "unsquashfs") if (path := shutil.which(part))}


@cache
def explain_absence(name: str) -> str:
    """Why images can't be run with a tool here; empty if they can."""
    if not all(map(shutil.which, TOOLS[name])) or not images.made_busybox():
        return f"{name} or busybox-static is not installed"
    needs_groups = name == "podman" and os.geteuid() == 0 and not find_program("crun")
    if needs_groups and "cgroup" not in machine.memory_note(True):
        return "no control group can be made here, and without crun Podman can't do without as root"
    return ""


def docker(*locations: str, **fields: Any) -> Executable:
    """A container of an image that can be had at these locations."""
    image = {"locations": list(locations), **({"digest": fields.pop("digest")} if "digest" in fields else {})}
    return Executable("docker-container", fields={"image": image, **fields})


def sh(location: str, script: str, *words: str, **fields: Any) -> Executable:
    """A script that the image's own shell runs."""
    return docker(location, entrypoint="/bin/sh", command=["-c", script, *words], **fields)


def is_known(name: str) -> bool:
    """Whether Podman has a session's container; it is asked by name, as it lists none at all if one is broken."""
    code = subprocess.run(["podman", "container", "exists", f"sublet-{name}"], capture_output=True).returncode
    assert code in (0, 1)
    return code == 0


def images_kept() -> str:
    """The names of the images that Podman has."""
    argv = ["podman", "images", "--format", "{{.Repository}}"]
    return subprocess.run(argv, capture_output=True, text=True).stdout
