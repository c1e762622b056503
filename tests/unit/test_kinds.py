"""Rules of the kinds: what they refuse and say, and the words they make."""

from __future__ import annotations

from datetime import timedelta
from importlib.metadata import EntryPoint
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.booking.model.job import Mount
from sublet.booking.model.request import GIB, Compute, Executable, Request, Volume
from sublet.booking.model.shape import Amounts, Shape
from sublet.kinds.command import COMMAND
from sublet.kinds.port import Setting
from sublet.kinds.registry import GROUP, survey_kinds
from tests.examples import examples

KINDS = survey_kinds().by_name


def setting(**changes: Any) -> Setting:
    """A session on an ordinary machine."""
    values: dict[str, Any] = {
        "work": "/s/k1/work",
        "directory": "/s/k1",
        "amounts": Amounts(changes.pop("shape", Shape(2, 4 * GIB)), 1, timedelta(hours=1), changes.pop("parts", 1)),
        "mounts": (),
        "tools": {},
    }
    return Setting(**(values | changes))


def command(**fields: Any) -> Executable:
    """A command with these fields."""
    return Executable("command", fields=fields)


def refusals(executable: Executable, request: Request | None = None) -> list[str]:
    """The fields that are refused."""
    kind = KINDS[executable.kind]
    return [reason.field for reason in kind.check(executable, request or Request(executable))]


def test_every_kind_that_is_declared_can_be_loaded() -> None:
    kinds = survey_kinds()
    assert not kinds.broken
    assert {
        "command",
        "docker-container",
        "singularity-container",
        "jupyter-notebook",
        "bag",
        "interactive",
    } <= set(kinds.by_name)


def test_a_broken_kind_is_shown_with_its_reason_and_the_others_go_on() -> None:
    points = (
        EntryPoint("command", "sublet.kinds.command:COMMAND", GROUP),
        EntryPoint("gone", "sublet.kinds.not_there:GONE", GROUP),
        EntryPoint("odd", "sublet.errors:SubletError", GROUP),
    )
    kinds = survey_kinds(points)
    assert set(kinds.by_name) == {"command"}
    assert "ModuleNotFoundError" in kinds.broken["gone"]
    assert "not a kind named odd" in kinds.broken["odd"]


def test_a_command_for_each_node_is_one_for_one_node_too_and_is_told_that_it_is_the_first() -> None:
    for fields in ({"argv": ["train"]}, {"script": "train"}):
        (way,) = COMMAND.ways(command(**fields, each_node=True), {})
        alone = way.program(setting())
        assert alone.each_node
        assert alone.environment == {
            "SUBLET_NODES": "1",
            "SUBLET_NODE_NUMBER": "0",
            "SUBLET_FIRST_NODE": "localhost",
        }
        assert way.program(setting(amounts=Amounts(Shape(1, GIB), 2))).environment == {}, "each is told there"
        (once,) = COMMAND.ways(command(**fields), {})
        assert (once.program(setting()).each_node, once.program(setting()).environment) == (False, {})
    assert refusals(command(argv=["x"], each_node="yes")) == ["executable.each_node"]


def test_a_command_is_run_with_exactly_the_words_it_was_given() -> None:
    words = ["echo", "; rm -rf $(pwd)", ""]
    (way,) = COMMAND.ways(command(argv=words), {})
    program = way.program(setting())
    assert program.argv == tuple(words)
    assert not way.contained


def test_a_script_is_a_file_run_by_sh_or_by_what_its_first_line_names() -> None:
    def argv(text: str) -> tuple[str, ...]:
        (way,) = COMMAND.ways(command(script=text), {})
        program = way.program(setting())
        assert program.files == {".sublet/script": text.encode()}
        return program.argv

    assert argv("echo hello") == ("sh", ".sublet/script")
    assert argv("#!/usr/bin/env -S python3 -u\nprint()") == ("/usr/bin/env", "-S python3 -u", ".sublet/script")
    assert argv("#! /bin/bash\r\necho") == ("/bin/bash", ".sublet/script")


def test_a_command_that_can_not_be_run_is_refused_by_the_field() -> None:
    assert refusals(command(argv=["true"])) == []
    assert refusals(command(script="true")) == []
    assert refusals(command()) == ["executable.argv"]
    assert refusals(command(argv=[])) == ["executable.argv"]
    assert refusals(command(argv="ls -l")) == ["executable.argv"]
    assert refusals(command(argv=[""])) == ["executable.argv[0]"]
    assert refusals(command(argv=["a", 3])) == ["executable.argv[1]"]
    assert refusals(command(argv=["a", "b\0c"])) == ["executable.argv[1]"]
    assert refusals(command(argv=["a"], script="b")) == ["executable.script"]
    assert refusals(command(script="  ")) == ["executable.script"]
    assert refusals(command(argv=["x" * 2_000_000])) == ["executable.argv"]
    assert refusals(command(argv=["a"], environment={"A=B": "c"})) == ["executable.environment"]
    assert refusals(command(argv=["a"], environment={"A": ["c"]})) == ["executable.environment.A"]
    assert refusals(command(argv=["a"], enviroment={})) == ["executable.enviroment"]


def test_a_command_without_a_container_is_offered_its_volume_at_a_relative_path() -> None:
    executable = command(argv=["true"])
    request = Request(executable, compute=Compute(volumes=(Volume("in", "/input/cube", "cube"),)))
    (reason,) = COMMAND.check(executable, request)
    assert (reason.field, reason.wanted, reason.nearest) == ("compute.volumes", "/input/cube", "input/cube")


def test_environment_values_become_text() -> None:
    (way,) = COMMAND.ways(command(argv=["a"], environment={"N": 3, "ON": True}), {})
    assert way.program(setting(mounts=(Mount("data/x", "x"),))).environment == {"N": "3", "ON": "true"}


NAMES = (
    *("argv", "script", "environment", "image", "command", "entrypoint", "network", "privileged", "location"),
    *("parameters", "requirements", "tasks", "template", "grid", "file", "retries", "parallel", "interface"),
    *("locations", "digest", "platform", "ports", "internal", "port", "access", "path", "name", "x"),
)
TOOLS = dict.fromkeys(
    ("sh", "python3", "podman", "docker", "apptainer", "ch-run", "unsquashfs", "papermill", "jupyter-lab"), "/bin/tool"
)
leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6)
values = st.recursive(
    leaves | st.sampled_from(["{x}", "ghcr.io/a/b:1", "/a.sif", "lab"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    "name", ["command", "docker-container", "singularity-container", "jupyter-notebook", "bag", "interactive"]
)
@examples(100)
@given(fields=st.dictionaries(st.sampled_from(NAMES), values, max_size=4))
def test_whatever_the_fields_are_a_kind_refuses_them_or_makes_a_program(name: str, fields: dict[str, Any]) -> None:
    kind, executable = KINDS[name], Executable(name, fields=fields)
    if not kind.check(executable, Request(executable)):
        kind.brings(executable)
        for way in kind.ways(executable, TOOLS):
            program = way.program(setting(tools=TOOLS))
            assert all(isinstance(word, str) for word in program.argv)
            assert all(isinstance(value, str) for value in program.environment.values())
