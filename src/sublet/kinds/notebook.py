"""The kind `jupyter-notebook`: takes parameters, and produces the executed notebook and an HTML page of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sublet.booking.model.job import Program
from sublet.booking.model.kernels import BROUGHT, KERNEL, KERNEL_PLAN
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data, Executable, Request
from sublet.kinds import container, in_image
from sublet.kinds import fields as f
from sublet.kinds.container import KINDS
from sublet.kinds.pod_images import KUBERNETES
from sublet.kinds.port import Kind, Setting, Way, WayNeed
from sublet.kinds.travel import PROGRAM, pack

FIELDS = ("location", "parameters", "requirements", "environment", in_image.IMAGE, in_image.STANDARD)


class NotebookKind(Kind):
    """The kind `jupyter-notebook`."""

    name = "jupyter-notebook"
    uri = f"{KINDS}/jupyter-notebook.yaml"
    extra = "notebook"

    def check(self, executable: Executable, request: Request) -> Sequence[Reason]:
        """Return what is wrong with the location, parameters or requirements."""
        fields = executable.fields
        reasons = f.unknown_fields(fields, FIELDS) + f.check_environment(fields.get("environment"))
        reasons += f.check_local_volumes(request, "a notebook") + in_image.check_image(fields)
        location = fields.get("location")
        if not isinstance(location, str) or not location.strip():
            reasons.append(
                f.missing("location", "the location of the notebook is needed.", nearest="https://…/a.ipynb")
            )
        return reasons + check_parameters(fields.get("parameters")) + check_requirements(fields.get("requirements"))

    def ways(self, executable: Executable, tools: Mapping[str, str]) -> Sequence[Way]:
        """Return ways by papermill, by a kernel of a Jupyter service, or in an image.

        A requested image is always used.
        """
        fields, ways = executable.fields, []
        if "papermill" in tools and "python3" in tools and not fields.get(in_image.IMAGE):
            ways.append(Way("papermill", contained=KUBERNETES in tools, program=partial(program, executable)))
        if KERNEL in tools and not fields.get(in_image.IMAGE):
            ways.append(Way("kernel", "contained-servers" in tools, partial(kernel_program, executable)))
        needed = [requirement(item) for item in fields.get("requirements") or ()]
        make = partial(in_image.make_notebook, fields, BROUGHT, needed)
        return [*ways, *in_image.list_ways(executable, tools, make, partial(program, executable))]

    def list_needs(self, executable: Executable) -> Sequence[WayNeed]:
        """Return the needs of papermill, of a kernel, and of papermill in an image."""
        lacks = "an image was named, and it runs in that only" if executable.fields.get(in_image.IMAGE) else ""
        own = [WayNeed("papermill", ("papermill", "python3"), lacks), WayNeed("kernel", (KERNEL,), lacks)]
        return [*own, *in_image.list_needs(executable)]

    def needs(self, executable: Executable) -> str:
        """Return that it needs papermill, a Jupyter service, or a container tool with an image."""
        if executable.fields.get(in_image.IMAGE):
            return f"Kubernetes, or {container.DOCKER_TOOLS}"
        return f"papermill, a Jupyter service, or {in_image.NEEDS}"

    def brings(self, executable: Executable) -> Sequence[Data]:
        """List the notebook, and an image that has an address."""
        return [f.bring(BROUGHT, str(executable.fields["location"])), *in_image.to_bring(executable.fields)]

    def archives(self, executable: Executable) -> Sequence[str]:
        """List the image, if it is named by a path."""
        return in_image.list_archives(executable.fields)

    def fetches(self, executable: Executable) -> Sequence[Data]:
        """List the registry image."""
        return in_image.to_fetch(executable.fields)

    def fetches_for(self, executable: Executable, way: str) -> Sequence[Data]:
        """List the registry image for container tools only: other ways don't use the operator's default image."""
        return in_image.to_fetch_for(executable.fields, way)


def check_parameters(parameters: Any) -> list[Reason]:
    """Return reasons for parameters whose names aren't valid variable names."""
    if parameters is None:
        return []
    if not isinstance(parameters, Mapping):
        return [f.invalid("parameters", "parameters must be a map of names to values.", wanted=parameters)]
    message = "{0!r} can't be the name of a variable."
    wrong = [name for name in parameters if not (isinstance(name, str) and name.isidentifier())]
    return [f.invalid(f"parameters.{name}", message.format(name), wanted=name) for name in wrong]


def check_requirements(requirements: Any) -> list[Reason]:
    """Return reasons for requirements that aren't one line each, or are installer options."""
    if requirements is None:
        return []
    if not isinstance(requirements, Sequence) or isinstance(requirements, str):
        return [f.invalid("requirements", "requirements must be a list.", wanted=requirements, nearest="[numpy>=2]")]
    reasons = []
    for number, item in enumerate(requirements):
        text = requirement(item)
        if not text or text.startswith(("-", "#")) or any(sign in text for sign in "\n\r\0"):
            message = f"{item!r} is not a requirement: a package's name, and its version if it matters."
            reasons.append(f.invalid(f"requirements[{number}]", message, wanted=item, nearest="numpy>=2"))
    return reasons


def requirement(item: Any) -> str:
    """Return a requirement as a line: `numpy>=2`, or `{numpy: ">=2"}`; empty if it is neither."""
    if isinstance(item, str):
        return item.strip()
    if not isinstance(item, Mapping) or len(item) != 1:
        return ""
    ((name, version),) = item.items()
    text = "" if version in (None, "*") else str(version).strip()
    return f"{name}{'==' if text[:1].isdigit() else ''}{text}"


def program(executable: Executable, setting: Setting) -> Program:
    """Build the runner and its plan."""
    fields = executable.fields
    plan = {
        "notebook": setting.find_brought(BROUGHT),
        "parameters": dict(fields.get("parameters") or {}),
        "requirements": [requirement(item) for item in fields.get("requirements") or ()],
        "papermill": setting.tool("papermill"),
        "environment": f"{setting.directory}/venv",
        "own": f"{setting.directory}/jupyter",
    }
    travels = {PROGRAM: pack("notebook_runner"), ".sublet/notebook.json": json.dumps(plan).encode()}
    words = (setting.tool("python3"), PROGRAM)
    return Program(words, f.environment_of(fields), travels, tools=("papermill",))


def kernel_program(executable: Executable, setting: Setting) -> Program:
    """Build the plan for a Jupyter service to run the staged notebook."""
    fields = executable.fields
    plan = {
        "parameters": dict(fields.get("parameters") or {}),
        "requirements": [requirement(item) for item in fields.get("requirements") or ()],
    }
    return Program((KERNEL,), f.environment_of(fields), {KERNEL_PLAN: json.dumps(plan).encode()})


NOTEBOOK = NotebookKind()
