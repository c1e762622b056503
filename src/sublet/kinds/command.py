"""The kind `command`: words or a script, run as they are in the session's working directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from sublet.booking.model.job import Program
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Executable, Request
from sublet.kinds import fields as f
from sublet.kinds.port import Kind, Setting, Way, WayNeed

SCRIPT = ".sublet/script"
FIELDS = ("argv", "script", "environment", "each_node")


class CommandKind(Kind):
    """The kind `command`."""

    name = "command"
    uri = "urn:sublet:kind:executable:command"

    def check(self, executable: Executable, request: Request) -> Sequence[Reason]:
        """Return what is wrong with the words or script, or with the environment."""
        fields = executable.fields
        reasons = f.unknown_fields(fields, FIELDS) + f.check_environment(fields.get("environment"))
        reasons += f.check_local_volumes(request, "a command") + f.check_each_node(fields)
        argv, script = fields.get("argv"), fields.get("script")
        if argv is not None and script is not None:
            reasons.append(f.invalid("script", "give either argv or script, not both."))
        elif argv is not None:
            reasons += f.check_words("argv", argv)
        elif script is None:
            reasons.append(f.missing("argv", "a command needs argv (a list of words) or script (text)."))
        elif not isinstance(script, str) or not script.strip():
            reasons.append(f.invalid("script", "script must be the text of a script.", wanted=script))
        elif "\0" in script:
            reasons.append(f.invalid("script", "script contains a NUL character; only text can be run."))
        return reasons

    def ways(self, executable: Executable, tools: Mapping[str, str]) -> Sequence[Way]:
        """Return the way to start it as a process."""
        name = "exec" if "argv" in executable.fields else "sh"
        return [Way(name, contained=False, program=partial(make_program, executable))]

    def list_needs(self, executable: Executable) -> Sequence[WayNeed]:
        """Return the need of that way: nothing."""
        return [WayNeed("exec" if "argv" in executable.fields else "sh", ())]

    def needs(self, executable: Executable) -> str:
        """Return that it needs permission to run outside a container."""
        return "permission to run outside a container"


def make_program(executable: Executable, setting: Setting) -> Program:
    """Build the program from words or a script, to be started once, or once on each node."""
    fields = executable.fields
    environment = f.tell_only_node(fields, setting.amounts.nodes) | f.environment_of(fields)
    if "argv" in fields:
        program = Program(tuple(fields["argv"]), environment)
    else:
        program = script_program(str(fields["script"]), environment, setting)
    return replace(program, each_node=bool(fields.get("each_node")))


def script_program(text: str, environment: Mapping[str, str], setting: Setting) -> Program:
    """Build a program from a script in a file, run by the interpreter of its first line, or by sh."""
    return Program((*interpreter(text, setting), SCRIPT), environment, {SCRIPT: text.encode()})


def interpreter(text: str, setting: Setting) -> tuple[str, ...]:
    """Parse a `#!` line as the kernel does: a program and at most one argument."""
    first = text.split("\n", 1)[0].rstrip("\r")
    words = first[2:].strip().split(None, 1) if first.startswith("#!") else []
    return tuple(word.strip() for word in words) or (setting.tool("sh"),)


COMMAND = CommandKind()
