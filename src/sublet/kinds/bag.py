"""The kind `bag`: many small tasks from a list, a grid of values or a file of lines, a few at a time.

They run on one node, or if a shared queue gets the bag in parts, on as many nodes as the queue gives them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial

from sublet.booking.model import bag
from sublet.booking.model.job import Program
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data, Executable, Request
from sublet.kinds import fields as f
from sublet.kinds.port import Kind, Setting, Way
from sublet.kinds.travel import PROGRAM, pack

BROUGHT = "sublet.tasks"  # the file of lines
INSIDE = ("kinds/inside/bag_joining.py", "kinds/inside/bag_output.py")
MODULES = ("booking/model/bag.py", "booking/model/parts.py", *INSIDE)  # modules that the bag runner consists of


class BagKind(Kind):
    """The kind `bag`."""

    name = "bag"
    uri = "urn:sublet:kind:executable:bag"
    outside = True

    def check(self, executable: Executable, request: Request) -> Sequence[Reason]:
        """Return what is wrong with the tasks, their number, or the nodes."""
        fields = executable.fields
        reasons = f.unknown_fields(fields, bag.FIELDS) + f.check_environment(fields.get("environment"))
        reasons += f.check_local_volumes(request, "a bag")
        for problem in bag.problems(fields):
            kind = "urn:resource-limit" if problem.limit else f.INVALID
            facts = (problem.message, problem.wanted, problem.limit, problem.nearest)
            reasons.append(Reason(kind, f"executable.{problem.field}", *facts))
        if (nodes := request.compute.nodes.min) > 1:
            nearest = "1 node, and `parts` for several jobs"
            facts = (f"each part of a bag runs on one node, not {nodes}.", str(nodes), "1", nearest)
            reasons.append(Reason("urn:resource-limit", "compute.nodes.min", *facts))
        return reasons

    def ways(self, executable: Executable, tools: Mapping[str, str]) -> Sequence[Way]:
        """Return the way by the bag runner, which starts the tasks and records how each ended."""
        if "python3" not in tools:
            return []
        return [Way("bag", contained=False, program=partial(program, executable))]

    def needs(self, executable: Executable) -> str:
        """Return that the bag runner needs Python."""
        return "python3"

    def brings(self, executable: Executable) -> Sequence[Data]:
        """List the file of lines, if there is one."""
        location = executable.fields.get("file")
        return [f.bring(BROUGHT, str(location))] if location is not None else []

    def parts(self, executable: Executable, cores: int) -> int:
        """Return the number of parts: as stated, or as many as its tasks are worth."""
        return bag.parts(executable.fields, cores)


def program(executable: Executable, setting: Setting) -> Program:
    """Build the bag runner and its plan."""
    fields = executable.fields
    plan = {
        "fields": {name: fields[name] for name in bag.FIELDS if name in fields and name != "environment"},
        "parallel": fields.get("parallel") or setting.amounts.shape.cores * setting.amounts.parts,
        "lines": setting.find_brought(BROUGHT) if fields.get("file") is not None else "",
    }
    travels = {PROGRAM: pack("bag_runner", *MODULES), ".sublet/bag.json": json.dumps(plan).encode()}
    words = (setting.tool("python3"), PROGRAM)
    return Program(words, f.environment_of(fields), travels, join=(*words, "join"))


BAG = BagKind()
