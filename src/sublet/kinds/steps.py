"""The kind `steps`: several programs in one session, in sequence or in parallel, each with its own output and end."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sublet.booking.model.amounts import parse_duration
from sublet.booking.model.job import Program
from sublet.booking.model.offer import Reason
from sublet.booking.model.places import variable_of
from sublet.booking.model.request import Data, Executable, Request
from sublet.booking.model.steps import STEP_NAME
from sublet.kernel.errors import SubletError
from sublet.kinds import container, in_image
from sublet.kinds import fields as f
from sublet.kinds.port import Kind, Setting, Way, WayNeed
from sublet.kinds.travel import PROGRAM, pack

FIELDS = ("steps", "together", "keep_going", "environment", in_image.IMAGE)
OF_STEP = ("name", "argv", "environment", "cores", "time")
MOST = 100
PLAN = ".sublet/steps.json"
IN_IMAGE = ".sublet/steps.pyz"
WITHOUT_PYTHON = "steps need python3 in the image, which has none"
START = f"command -v python3 >/dev/null || {{ echo '{WITHOUT_PYTHON}' >&2; exit 127; }}; exec python3 {IN_IMAGE}"


class StepsKind(Kind):
    """The kind `steps`."""

    name = "steps"
    uri = "urn:sublet:kind:executable:steps"

    def check(self, executable: Executable, request: Request) -> Sequence[Reason]:
        """Return what is wrong with the steps: their number, words, names or amounts."""
        fields = executable.fields
        reasons = f.unknown_fields(fields, FIELDS) + f.check_environment(fields.get("environment"))
        reasons += in_image.check_image(fields)
        reasons += [] if fields.get(in_image.IMAGE) else f.check_local_volumes(request, "a step")
        reasons += [
            f.invalid(name, f"{name} is true or false.", wanted=fields[name])
            for name in ("together", "keep_going")
            if not isinstance(fields.get(name, False), bool)
        ]
        if (nodes := request.compute.nodes.min) > 1:
            facts = (f"steps run on one node, not {nodes}.", str(nodes), "1", "1")
            reasons.append(Reason("urn:resource-limit", "compute.nodes.min", *facts))
        steps = fields.get("steps")
        if not isinstance(steps, list) or not 0 < len(steps) <= MOST:
            return [*reasons, f.invalid("steps", f"steps must be a list of 1 to {MOST} programs.")]
        for number, step in enumerate(steps):
            reasons += _check_step(step, f"steps[{number}]", request.compute.cores.min)
        names = [name_of(step, number) for number, step in enumerate(steps) if isinstance(step, Mapping)]
        twice = sorted({name for name in names if names.count(name) > 1})
        return [*reasons, *(f.invalid("steps", f"two steps are called {name}.", wanted=name) for name in twice)]

    def ways(self, executable: Executable, tools: Mapping[str, str]) -> Sequence[Way]:
        """Return the way by the steps runner, which records how each step ended; in the image, if one is requested."""
        if executable.fields.get(in_image.IMAGE):
            return in_image.list_ways(
                executable, tools, partial(make_in_image, executable), partial(make_in_pod, executable)
            )
        if "python3" not in tools:
            return []
        return [Way("steps", contained=False, program=partial(make_program, executable))]

    def list_needs(self, executable: Executable) -> Sequence[WayNeed]:
        """Return the needs: Python for the steps runner, or a container tool."""
        if executable.fields.get(in_image.IMAGE):
            return in_image.list_needs(executable)
        return [WayNeed("steps", ("python3",))]

    def needs(self, executable: Executable) -> str:
        """Return that it needs Python for the steps runner, or a container tool."""
        if executable.fields.get(in_image.IMAGE):
            return f"Kubernetes, or {container.DOCKER_TOOLS}"
        return "python3, and permission to run outside a container"

    def brings(self, executable: Executable) -> Sequence[Data]:
        """List an image that has an address."""
        return in_image.to_bring(executable.fields)

    def archives(self, executable: Executable) -> Sequence[str]:
        """List the image, if it is named by a path."""
        return in_image.list_archives(executable.fields)

    def fetches(self, executable: Executable) -> Sequence[Data]:
        """List the registry image."""
        return in_image.to_fetch(executable.fields)


def _check_step(step: Any, where: str, cores: int) -> list[Reason]:
    if not isinstance(step, Mapping):
        return [f.invalid(where, "a step has argv, and may have a name, an environment, cores and time.", wanted=step)]
    reasons = f.unknown_fields(step, OF_STEP, f"{where}.") + f.check_words(f"{where}.argv", step.get("argv"))
    reasons += f.check_environment(step.get("environment"))
    name = step.get("name")
    if name is not None and not (isinstance(name, str) and STEP_NAME.fullmatch(name)):
        message = "the name of a step has letters, digits, `-`, `_` and `.`."
        reasons.append(f.invalid(f"{where}.name", message, wanted=name, nearest="prepare"))
    return [*reasons, *_check_sizes(step, where, cores)]


def _check_sizes(step: Mapping[str, Any], where: str, cores: int) -> list[Reason]:
    """Return what is wrong with a step's own cores or time."""
    reasons, needed = [], step.get("cores")
    if needed is not None and (isinstance(needed, bool) or not isinstance(needed, int) or needed < 1):
        reasons.append(f.invalid(f"{where}.cores", "cores is a number from 1 on.", wanted=needed, nearest="2"))
    elif needed is not None and needed > cores:
        words = f"a step of {needed} cores does not fit into the {cores} of its session."
        reasons.append(Reason("urn:resource-limit", f"executable.{where}.cores", words, str(needed), str(cores)))
    if (length := step.get("time")) is not None:
        try:
            parse_duration(str(length))
        except SubletError as error:
            reasons.append(f.invalid(f"{where}.time", error.message, wanted=length, nearest="10m"))
    return reasons


def name_of(step: Mapping[str, Any], number: int) -> str:
    """Return a step's name: its own, or one made of its position."""
    return str(step.get("name") or f"step-{number + 1}")


def make_program(executable: Executable, setting: Setting) -> Program:
    """Build the steps runner and its plan."""
    travels = {PROGRAM: pack("steps_runner"), PLAN: write_plan(executable.fields, setting.amounts.shape.cores)}
    return Program((setting.tool("python3"), PROGRAM), f.environment_of(executable.fields), travels)


def make_in_image(executable: Executable, setting: Setting) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Build the steps runner in the image, once for all steps: they share its files and the working directory."""
    plan = {"command": ["-c", START], "environment": f.environment_of(executable.fields)}
    files = {IN_IMAGE: pack("steps_runner"), PLAN: write_plan(executable.fields, setting.amounts.shape.cores)}
    return plan, files


def make_in_pod(executable: Executable, setting: Setting) -> Program:
    """Build the steps runner for a pod, which is the image."""
    plan, files = make_in_image(executable, setting)
    places = {variable_of(place.name): place.target for place in setting.places}
    return Program(("sh", *plan["command"]), plan["environment"] | places, files)


def write_plan(fields: Mapping[str, Any], cores: int) -> bytes:
    """Return the steps runner's plan, with so many cores in total."""
    steps = [
        {
            "name": name_of(step, number),
            "argv": list(step["argv"]),
            "environment": f.environment_of(step),
            **({"cores": step["cores"]} if step.get("cores") else {}),
            **({"seconds": parse_duration(str(step["time"])).total_seconds()} if step.get("time") else {}),
        }
        for number, step in enumerate(fields["steps"])
    ]
    plan = {"steps": steps, "cores": cores, **{name: bool(fields.get(name)) for name in ("together", "keep_going")}}
    return json.dumps(plan).encode()


STEPS = StepsKind()
