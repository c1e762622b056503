"""Several programs in one session: each with its own output and end, and one end of the session told from all."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.request import Executable
from sublet.kinds.steps import STEPS
from tests.real import images
from tests.real.container_tools import TOOLS, find_tools
from tests.real.jupyter_image import python_archive
from tests.real.programs import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def run(place: Place, *steps: tuple[str, str], **fields: Any) -> tuple[int, str, str]:
    """Run shell lines as steps, by their names."""
    named = [{"name": name, "argv": ["sh", "-c", line]} for name, line in steps]
    return place.run(place.program(STEPS, Executable("steps", fields={"steps": named, **fields}), {}))


def end_of(place: Place, name: str) -> dict[str, Any]:
    end: dict[str, Any] = json.loads((place.work / "steps" / name / "end.json").read_text())
    return end


def text_of(place: Place, name: str, stream: str = "stdout") -> str:
    return (place.work / "steps" / name / stream).read_text()


def test_steps_run_in_order_in_one_place_and_each_has_its_own_output_and_end(place: Place) -> None:
    code, out, err = run(place, ("one", "echo 1 > x; echo a"), ("two", "cat x; echo $SUBLET_STEP; echo e >&2"))
    assert (code, out) == (0, "a\n1\ntwo\n")
    assert (text_of(place, "one"), text_of(place, "two"), text_of(place, "two", "stderr")) == ("a\n", "1\ntwo\n", "e\n")
    assert [end_of(place, name)["code"] for name in ("one", "two")] == [0, 0]
    assert "steps: one succeeded, two succeeded" in err


def test_a_step_that_fails_ends_the_session_with_its_code_and_the_rest_does_not_begin(place: Place) -> None:
    code, out, err = run(place, ("one", "exit 3"), ("two", "echo never"))
    assert (code, out) == (3, "")
    assert (end_of(place, "one")["code"], end_of(place, "two")) == (3, {"name": "two", "skipped": True})
    assert "two did not begin" in err


def test_with_keep_going_all_begin_and_the_first_failure_is_the_end(place: Place) -> None:
    code, out, _ = run(place, ("one", "exit 3"), ("two", "echo yes"), ("three", "kill -9 $$"), keep_going=True)
    assert (code, out) == (3, "yes\n")
    assert end_of(place, "three")["signal"] == "SIGKILL"


def test_side_by_side_each_waits_for_the_other_and_lines_say_whose_they_are(place: Place) -> None:
    meet = "touch {0}; until [ -e {1} ]; do sleep 0.02; done; echo met"
    code, out, _ = run(place, ("a", meet.format("a", "b")), ("b", meet.format("b", "a")), together=True)
    assert (code, sorted(out.splitlines())) == (0, ["[a] met", "[b] met"])


def test_steps_with_cores_of_their_own_begin_in_order_when_so_many_are_free(place: Place) -> None:
    leave = (
        "echo $SUBLET_CORES $OMP_NUM_THREADS; [ -e {0} ] && echo {0} was first; touch {1}; sleep 0.1; touch {1}.over"
    )
    lines = {"wide": leave.format("none", "w"), "a": leave.format("w.over", "a"), "b": leave.format("w.over", "b")}
    sizes = {"wide": 2, "a": 1, "b": 1}
    steps = [{"name": name, "argv": ["sh", "-c", line], "cores": sizes[name]} for name, line in lines.items()]
    executable = Executable("steps", fields={"steps": steps, "together": True})
    code, out, _ = place.run(place.program(STEPS, executable, {}))
    assert (code, text_of(place, "wide")) == (0, "2 2\n")
    assert [text_of(place, name) for name in ("a", "b")] == ["1 1\nw.over was first\n"] * 2, "the two cores were taken"
    assert len(out.splitlines()) == 5


def test_side_by_side_what_waits_for_cores_does_not_begin_after_a_failure(place: Place) -> None:
    steps = [{"name": name, "argv": ["sh", "-c", line], "cores": 2} for name, line in (("a", "exit 3"), ("b", "true"))]
    code, _, err = place.run(place.program(STEPS, Executable("steps", fields={"steps": steps, "together": True}), {}))
    assert (code, end_of(place, "b")) == (3, {"name": "b", "skipped": True}), err


@pytest.mark.parametrize("line", ["sleep 100", "trap 'exit 0' TERM; sleep 100 & wait"])
def test_a_step_that_reaches_its_own_time_limit_has_failed_and_others_are_not_bound_by_it(
    place: Place, line: str
) -> None:
    steps = [{"name": "a", "argv": ["sh", "-c", line], "time": "1s"}, {"name": "b", "argv": ["echo", "went on"]}]
    executable = Executable("steps", fields={"steps": steps, "keep_going": True})
    code, out, err = place.run(place.program(STEPS, executable, {}))
    assert (code, out, end_of(place, "a")["timed_out"]) == (124, "went on\n", True)
    assert "a: it reached its time limit of 1 s" in err


def test_a_program_that_is_not_there_is_a_step_that_failed(place: Place) -> None:
    steps = [{"argv": ["/no/such/program"]}, {"argv": ["true"]}]
    code, _, err = place.run(place.program(STEPS, Executable("steps", fields={"steps": steps}), {}))
    assert (code, end_of(place, "step-1")["code"]) == (127, 127)
    assert "No such file" in err


def test_a_session_that_is_cancelled_asks_its_steps_to_end_and_begins_no_more(place: Place) -> None:
    lines = ["trap 'echo bye; exit 4' TERM; echo ready; while :; do sleep 0.02; done", "echo never"]
    steps = [{"argv": ["sh", "-c", line]} for line in lines]
    process = place.start(place.program(STEPS, Executable("steps", fields={"steps": steps}), {}))
    assert process.stdout
    assert process.stdout.readline() == b"ready\n"
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, out) == (4, b"bye\n")
    assert end_of(place, "step-2") == {"name": "step-2", "skipped": True}


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Images with and without Python."""
    place = tmp_path_factory.mktemp("images")
    python_archive(place / "python.tar")
    images.docker_archive(place / "busybox.tar", Labels={"of": str(os.getpid())})  # its own
    return {name: f"docker-archive:{place / name}.tar" for name in ("python", "busybox")}


@pytest.fixture
def named_place(tmp_path: Path) -> Place:
    directory = tmp_path / f"steps-{os.getpid()}-{time.monotonic_ns()}"  # containers are named after it
    directory.mkdir()
    return Place(directory)


@pytest.mark.parametrize("tool", list(TOOLS))
def test_in_an_image_steps_see_its_files_and_each_has_its_own_output_and_end(
    named_place: Place, archives: dict[str, str], tool: str
) -> None:
    steps = [
        {"name": "one", "argv": ["sh", "-c", "cat /app/doc; echo 1 >/tmp/x; echo kept >y"]},
        {"name": "two", "argv": ["sh", "-c", "cat /tmp/x; echo $V $SUBLET_STEP; exit 3"], "environment": {"V": "v"}},
        {"name": "three", "argv": ["true"]},
    ]
    executable = Executable("steps", fields={"steps": steps, "image": archives["python"]})
    program = named_place.program(STEPS, executable, find_tools(tool))
    code, out, err = named_place.run(program)
    assert (code, out) == (3, "made for tests\n1\nv two\n"), err
    assert text_of(named_place, "two") == "1\nv two\n"
    assert (end_of(named_place, "two")["code"], end_of(named_place, "three")["skipped"]) == (3, True)
    assert (named_place.work / "y").read_text() == "kept\n"


def test_an_image_without_python_says_what_it_lacks(named_place: Place, archives: dict[str, str]) -> None:
    tools = find_tools(next(iter(TOOLS)))
    executable = Executable("steps", fields={"steps": [{"argv": ["true"]}], "image": archives["busybox"]})
    code, _, err = named_place.run(named_place.program(STEPS, executable, tools))
    assert (code, "steps need python3 in the image" in err) == (127, True), err


def test_an_image_is_the_only_way_where_one_is_named() -> None:
    executable = Executable("steps", fields={"steps": [{"argv": ["true"]}], "image": "docker.io/library/python:3"})
    assert [way.name for way in STEPS.ways(executable, {"python3": "/usr/bin/python3"})] == []
    ways = STEPS.ways(executable, {"python3": "/usr/bin/python3", "podman": "/usr/bin/podman"})
    assert [(way.name, way.contained) for way in ways] == [("podman", True)]
    assert [need.location for need in STEPS.fetches(executable)] == ["docker://docker.io/library/python:3"]
