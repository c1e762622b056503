"""Runs notebooks and web applications in a container: in the requested image, or the operator's default."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from sublet.booking.model.job import Program
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data, Executable
from sublet.kinds import container, images
from sublet.kinds import fields as f
from sublet.kinds.pod_images import KUBERNETES, NO_REGISTRY, find_pod_image
from sublet.kinds.port import Setting, Way, WayNeed
from sublet.kinds.travel import PROGRAM, pack

IMAGE = "image"  # the requested image
STANDARD = "standard_image"  # the operator's default; set by the service, never by a document
WORK = "/work"
OWN = f"{WORK}/.sublet"  # the session's own files that are no results
NEEDS = "Kubernetes, podman, apptainer or docker with an image"
NO_IMAGE = "no image is named, and none is set for such requests"
# Makes the plan of what runs in the image, and its files
Make = Callable[[Setting], tuple[dict[str, Any], dict[str, bytes]]]


def check_image(fields: Mapping[str, Any]) -> list[Reason]:
    """Return what is wrong with the requested image, if there is one."""
    named = fields.get(IMAGE)
    return [] if named is None else container.check_image({"locations": [named]} if isinstance(named, str) else named)


def find_image(fields: Mapping[str, Any]) -> tuple[list[str], str]:
    """Return the image's locations and digest; no locations if there is no image."""
    named = fields.get(IMAGE) or fields.get(STANDARD) or {}
    if isinstance(named, str):
        location, _, digest = named.partition("@")
        return [location if digest.startswith("sha256:") else named], digest
    return list(named.get("locations") or ()), str(named.get("digest") or "")


def to_bring(fields: Mapping[str, Any]) -> Sequence[Data]:
    """List an image that has an address."""
    return images.to_bring(find_image(fields)[0])


def list_archives(fields: Mapping[str, Any]) -> Sequence[str]:
    """List an image archive that is named by a path."""
    return images.list_archives(find_image(fields)[0])


def to_fetch(fields: Mapping[str, Any]) -> Sequence[Data]:
    """List a registry image."""
    locations, digest = find_image(fields)
    return images.to_fetch(locations, digest) if locations else ()


def to_fetch_for(fields: Mapping[str, Any], way: str) -> Sequence[Data]:
    """List a registry image, if this way uses a container tool."""
    return to_fetch(fields) if way in container.TOOLS else ()


def list_ways(
    executable: Executable,
    tools: Mapping[str, str],
    make: Make,
    make_as_it_is: Callable[[Setting], Program] | None,
    *,
    connects: str = "",
    by_port: bool = True,
) -> list[Way]:
    """Return a way for each available container tool that can run the image, and one as a pod.

    Applications on a port need a tool that can map ports; those on a Unix socket run with all tools. A pod needs a
    program that runs unmodified in the image (`make_as_it_is`).
    """
    locations, digest = find_image(executable.fields)
    sources = [images.read_location(location, number) for number, location in enumerate(locations)]
    left_out = container.SHARES_PORTS if connects and by_port else frozenset()
    by_tool = [
        way for way in _list_tool_ways(executable, tools, sources, digest, make, connects) if way.name not in left_out
    ]
    image = find_pod_image(sources, digest)
    if KUBERNETES not in tools or not image or make_as_it_is is None:
        return by_tool
    program = partial(run_as_pod, image, make_as_it_is)
    return [*by_tool, Way(KUBERNETES, contained=True, program=program, interactive=bool(connects))]


def _list_tool_ways(
    executable: Executable,
    tools: Mapping[str, str],
    sources: Sequence[Mapping[str, str]],
    digest: str,
    make: Make,
    connects: str,
) -> list[Way]:
    is_theirs = bool(executable.fields.get(IMAGE)) and any(images.is_ours(source) for source in sources)
    return [
        Way(
            tool,
            contained=container.TOOLS[tool][1] and not is_theirs,
            program=partial(run_in, tool, sources, digest, make, connects),
            interactive=bool(connects),
        )
        for tool in (container.tools_for(sources, tools) if sources else ())
    ]


def list_needs(executable: Executable, *, is_reached: bool = False) -> list[WayNeed]:
    """List the container tools and pods that could run it, if there is an image."""
    locations = find_image(executable.fields)[0]
    lacks = "" if locations else NO_IMAGE
    by_tool = [
        WayNeed(tool, ("python3", *parts), lacks)
        for tool, (parts, _) in container.TOOLS.items()
        if not (is_reached and tool in container.SHARES_PORTS) and tool != "singularity"
    ]
    return [*by_tool, WayNeed(KUBERNETES, (KUBERNETES,), lacks or NO_REGISTRY)]


def run_as_pod(image: str, make_as_it_is: Callable[[Setting], Program], setting: Setting) -> Program:
    """Build the program as for a machine that has the image's content."""
    return replace(make_as_it_is(setting), image=image, tools=())


def run_in(
    tool: str, sources: Sequence[Mapping[str, str]], digest: str, make: Make, connects: str, setting: Setting
) -> Program:
    """Build the container runner, with the plan for this container."""
    plan, files = make(setting)
    mounts = [[f"{setting.directory}/{m.source}", m.target, m.read_only] for m in setting.mounts]
    whole = container.image_plan(tool, sources, digest, setting) | {
        "entrypoint": ["/bin/sh"],
        "inside": WORK,
        "start": WORK,
        "port": 0,
        "path": "/",
        "tasks": 0,
        "program": PROGRAM,
        "mpi": "",
        **plan,
        "mounts": [*mounts, *plan.get("mounts", ())],
    }
    whole["environment"] = {"HOME": f"{OWN}/home"} | container.tell_places(setting) | plan["environment"]
    travels = {PROGRAM: pack("container_job", *container.PARTS), ".sublet/home/.keep": b""}
    travels |= {".sublet/container.json": json.dumps(whole).encode(), **files}
    environment = {"SUBLET_SECRET": setting.secret} if connects else {}
    return Program((setting.tool("python3"), PROGRAM), environment, travels, tools=(tool,), connects=connects)


def make_notebook(fields: Mapping[str, Any], brought: str, requirements: Sequence[str], setting: Setting) -> Any:
    """Run papermill in the image, on the staged notebook."""
    folder = "/sublet/notebook"
    plan = {
        "notebook": folder,
        "parameters": dict(fields.get("parameters") or {}),
        "requirements": list(requirements),
        "papermill": "",  # found in the image's PATH
        "environment": f"{OWN}/venv",
        "own": f"{OWN}/jupyter",
    }
    files = {".sublet/notebook.pyz": pack("notebook_runner"), ".sublet/notebook.json": json.dumps(plan).encode()}
    words = ["-c", "exec python3 .sublet/notebook.pyz"]
    mounts = [[setting.find_brought(brought), folder, True]]
    return {"command": words, "environment": f.environment_of(fields), "mounts": mounts}, files


def make_lab(fields: Mapping[str, Any], config: str, settings_file: str, setting: Setting) -> Any:
    """Run JupyterLab in the image; only holders of the session's secret can reach its port."""
    inner = hashlib.sha256(f"inner {setting.secret}".encode()).hexdigest()
    port = 8888
    own = {f"JUPYTER_{name}_DIR": f"{OWN}/jupyter/{name.lower()}" for name in ("RUNTIME", "CONFIG", "DATA")}
    environment = f.environment_of(fields) | own | {"SUBLET_HOST": "0.0.0.0", "SUBLET_PORT": str(port)}  # noqa: S104
    plan = {
        "command": ["-c", f"exec jupyter-lab --config={settings_file}"],
        "environment": environment | {"SUBLET_SECRET": inner, "IPYTHONDIR": f"{OWN}/ipython"},
        "port": port,
        "path": "lab",
        "keeps_path": True,  # it is told the path under which it is served
        "shows": ["Authorization", f"token {inner}"],
    }
    return plan, {settings_file: config.encode()}
