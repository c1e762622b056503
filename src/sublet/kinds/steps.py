"""Steps: several programs in one session, one after the other or side by side, each with its own output and end."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from sublet.booking.model.job import Program
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Executable, Request
from sublet.kinds import fields as f
from sublet.kinds.port import Kind, Setting, Way, WayNeed
from sublet.kinds.travel import PROGRAM, pack

FIELDS = ("steps", "together", "keep_going", "environment")
OF_STEP = ("name", "argv", "environment")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}")
MOST = 100


class StepsKind(Kind):
    """The kind `steps`."""

    name = "steps"
    uri = "urn:sublet:kind:executable:steps"
    outside = True

    def check(self, executable: Executable, request: Request) -> Sequence[Reason]:
        """From one to a hundred steps with words of their own and names that differ, on one node."""
        fields = executable.fields
        reasons = f.unknown_fields(fields, FIELDS) + f.check_environment(fields.get("environment"))
        reasons += f.check_local_volumes(request, "a step")
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
            reasons += _check_step(step, f"steps[{number}]")
        names = [name_of(step, number) for number, step in enumerate(steps) if isinstance(step, Mapping)]
        twice = sorted({name for name in names if names.count(name) > 1})
        return [*reasons, *(f.invalid("steps", f"two steps are called {name}.", wanted=name) for name in twice)]

    def ways(self, executable: Executable, tools: Mapping[str, str]) -> Sequence[Way]:
        """By a small program that starts them and writes down how each ended."""
        if "python3" not in tools:
            return []
        return [Way("steps", contained=False, program=partial(make_program, executable))]

    def list_needs(self, executable: Executable) -> Sequence[WayNeed]:
        """A Python for the small program."""
        return [WayNeed("steps", ("python3",))]

    def needs(self, executable: Executable) -> str:
        """A Python for the small program."""
        return "python3"


def _check_step(step: Any, where: str) -> list[Reason]:
    if not isinstance(step, Mapping):
        return [f.invalid(where, "a step has argv, and may have a name and an environment.", wanted=step)]
    reasons = f.unknown_fields(step, OF_STEP, f"{where}.") + f.check_words(f"{where}.argv", step.get("argv"))
    reasons += f.check_environment(step.get("environment"))
    name = step.get("name")
    if name is not None and not (isinstance(name, str) and NAME.fullmatch(name)):
        message = "the name of a step has letters, digits, `-`, `_` and `.`."
        reasons.append(f.invalid(f"{where}.name", message, wanted=name, nearest="prepare"))
    return reasons


def name_of(step: Mapping[str, Any], number: int) -> str:
    """What a step is called: as it says, else by its place."""
    return str(step.get("name") or f"step-{number + 1}")


def make_program(executable: Executable, setting: Setting) -> Program:
    """The small program, and what it is to run."""
    fields = executable.fields
    steps = [
        {"name": name_of(step, number), "argv": list(step["argv"]), "environment": f.environment_of(step)}
        for number, step in enumerate(fields["steps"])
    ]
    plan = {"steps": steps, **{name: bool(fields.get(name)) for name in ("together", "keep_going")}}
    travels = {PROGRAM: pack("steps_runner"), ".sublet/steps.json": json.dumps(plan).encode()}
    return Program((setting.tool("python3"), PROGRAM), f.environment_of(fields), travels)


STEPS = StepsKind()
