"""A bag's tasks are really run: each one's end is recorded, failed ones are tried again, and it can be interrupted."""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.parts import INCOMPLETE
from sublet.booking.model.request import Executable
from sublet.kinds.bag import BAG
from tests.real.programs import Place

Records = list[dict[str, Any]]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def bag(place: Place, cores: int = 2, **fields: Any) -> tuple[int, str, str, Records]:
    """Run a bag; its end, output and record."""
    program = place.program(BAG, Executable("bag", fields=fields), {}, cores=cores)
    code, out, err = place.run(program)
    return code, out, err, records(place)


def records(place: Place) -> Records:
    return [json.loads(line) for line in (place.work / "tasks.jsonl").read_text().splitlines()]


def printed(place: Place, record: dict[str, Any], stream: str = "stdout") -> str:
    offset, length = record[stream]
    name = {"stdout": "tasks.out", "stderr": "tasks.err"}[stream]
    return (place.work / name).read_bytes()[offset : offset + length].decode()


def test_every_task_is_run_once_and_its_output_can_be_told_apart(place: Place) -> None:
    code, out, _, lines = bag(place, template=["echo", "value {x};$(id)"], grid={"x": list(range(50))})
    assert code == 0
    assert "50 succeeded, 0 failed" in out
    assert sorted(line["task"] for line in lines) == list(range(50))
    assert all(printed(place, line) == f"value {line['task']};$(id)\n" for line in lines)
    assert all(line["code"] == 0 and line["attempt"] == 1 and line["seconds"] >= 0 for line in lines)


def test_ends_are_told_apart_and_one_failure_fails_the_bag(place: Place) -> None:
    tasks = [
        ["true"],
        {"argv": ["sh", "-c", "echo broken >&2; exit 3"], "name": "three"},
        ["sh", "-c", "kill -9 $$"],
        ["no-such-program"],
        ["/etc/passwd"],
    ]
    code, _, err, lines = bag(place, tasks=tasks)
    by_task = {line["task"]: line for line in lines}
    assert code == 1
    assert [by_task[i]["code"] for i in range(5)] == [0, 3, None, 127, 126]
    assert by_task[2]["signal"] == 9
    assert "no-such-program: No such file" in by_task[3]["error"]
    assert printed(place, by_task[1], "stderr") == "broken\n"
    assert "task three: exit code 3: broken" in err
    assert by_task[1]["argv"] == tasks[1]["argv"]  # type: ignore[index]


def test_a_task_that_failed_is_tried_again_and_may_then_succeed(place: Place) -> None:
    flaky = ["sh", "-c", '[ "$SUBLET_TASK.$SUBLET_ATTEMPT" = 0.3 ]']
    code, out, _, lines = bag(place, tasks=[flaky, flaky], retries=2)
    assert code == 1
    assert [line["code"] for line in lines if line["task"] == 0] == [1, 1, 0]
    assert [line["attempt"] for line in lines if line["task"] == 1] == [1, 2, 3]
    assert "1 succeeded, 1 failed, 4 tried again" in out


def test_started_again_it_goes_on_with_what_has_not_succeeded(place: Place) -> None:
    tasks = [["sh", "-c", "[ -e go ] || [ $SUBLET_TASK = 0 ]"]] * 3
    assert bag(place, tasks=tasks)[0] == 1
    with open(place.work / "tasks.jsonl", "a") as file:
        file.write('{"task": 2, "code": 0, "att')  # a crash while writing
    (place.work / "go").touch()
    code, out, _ = place.run(place.program(BAG, Executable("bag", fields={"tasks": tasks}), {}))
    assert code == 0
    assert "1 succeeded earlier" in out
    lines = [json.loads(line) for line in (place.work / "tasks.jsonl").read_text().splitlines() if line[-1] == "}"]
    assert [line["attempt"] for line in lines if line["code"] == 0 and line["task"]] == [2, 2]
    assert [line["task"] for line in lines].count(0) == 1


def test_interrupted_tasks_are_written_down_and_run_again_by_the_next_start(place: Place) -> None:
    tasks = [["sh", "-c", "[ -e go ] || { touch begun.$SUBLET_TASK; exec sleep 60; }"]] * 3
    program = place.program(BAG, Executable("bag", fields={"tasks": tasks}), {})
    with place.start(program) as process:
        deadline = time.monotonic() + 20
        while len(list(place.work.glob("begun.*"))) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGTERM
    assert b"interrupted before the end" in out
    assert [(line["signal"], line["interrupted"]) for line in records(place)] == [(15, True)] * 2
    (place.work / "go").touch()
    assert place.run(program)[0] == 0
    assert sorted(line["task"] for line in records(place) if line["code"] == 0) == [0, 1, 2]


def test_no_more_tasks_run_at_a_time_than_there_are_cores(place: Place) -> None:
    count = "mkdir slot.$SUBLET_TASK; ls -d slot.* | wc -l; sleep 0.05; rmdir slot.$SUBLET_TASK"
    _, _, _, lines = bag(place, cores=2, tasks=[["sh", "-c", count]] * 12)
    at_once = [int(printed(place, line)) for line in lines]
    assert max(at_once) == 2


def test_lines_of_a_file_that_was_brought_are_tasks(place: Place) -> None:
    brought = place.directory / "data" / "sublet.tasks"
    brought.mkdir(parents=True)
    (brought / "lines.txt").write_bytes(b"a b\n\n\xff $(id)\n")
    code, _, _, lines = bag(place, cores=1, file="/lines.txt", template=["printf", "%s|", "{line}", "{1}"])
    assert code == 0
    offsets = [line["stdout"] for line in lines]
    log = (place.work / "tasks.out").read_bytes()
    assert [log[at : at + size] for at, size in offsets] == [b"a b|a|", b"\xff $(id)|\xff|"]


def test_the_record_can_be_read_while_the_bag_runs(place: Place) -> None:
    wait = ["sh", "-c", "while [ ! -e go ]; do sleep 0.02; done"]
    program = place.program(BAG, Executable("bag", fields={"tasks": [["true"], wait]}), {})
    with place.start(program) as process:
        deadline = time.monotonic() + 20
        record = place.work / "tasks.jsonl"
        while not (record.exists() and record.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert [line["task"] for line in records(place)] == [0]
        os.close(os.open(place.work / "go", os.O_CREAT))
        process.communicate(timeout=20)
    assert process.returncode == 0


def in_parts(place: Place, parts: int, claims: bool, **fields: Any) -> tuple[list[int], int, str]:
    """Run a bag in parts, one after the other, and join them: the parts' exit codes, the whole's, its last words."""
    executable = Executable("bag", fields=fields)
    program = place.program(BAG, executable, {}, cores=1, parts=parts)
    common = place.directory / "claims"
    common.mkdir()
    told = {"SUBLET_PARTS": str(parts)} | ({"SUBLET_CLAIMS": str(common)} if claims else {})
    codes = [place.run(program, SUBLET_PART=str(number), **told)[0] for number in range(parts)]
    code, out, _ = place.run(replace(program, argv=program.join))
    return codes, code, out.splitlines()[-1]


@pytest.mark.parametrize("claims", [True, False])
def test_a_bag_in_parts_leaves_what_one_in_one_piece_leaves(place: Place, claims: bool) -> None:
    script = 'echo "out $1"; [ "$1" != 17 ] || { echo "err $1" >&2; exit 3; }'
    fields = {"template": ["sh", "-c", script, "sh", "{x}"], "grid": {"x": list(range(60))}}
    codes, code, words = in_parts(place, 3, claims, **fields)
    assert code == 1
    assert sum(codes) == 1
    assert words == "bag: 59 succeeded, 1 failed, 0 tried again"
    lines = records(place)
    assert sorted(line["task"] for line in lines) == list(range(60))
    assert all(printed(place, line) == f"out {line['task']}\n" for line in lines)
    (bad,) = (line for line in lines if line["code"])
    assert (bad["task"], bad["code"], printed(place, bad, "stderr")) == (17, 3, "err 17\n")
    assert sorted(path.name for path in place.work.iterdir() if path.name != ".sublet") == [
        "tasks.err",
        "tasks.jsonl",
        "tasks.out",
    ]
    part = {line["task"]: line["part"] for line in lines}
    assert set(part.values()) == ({0} if claims else {0, 1, 2}), "who comes first takes all that it can"
    if not claims:
        assert [part[task] for task in range(6)] == [0, 1, 2, 0, 1, 2]


def test_parts_that_run_side_by_side_run_every_task_once(place: Place) -> None:
    fields = {"template": ["sh", "-c", "sleep 0.01; echo {x}"], "grid": {"x": list(range(200))}}
    program = place.program(BAG, Executable("bag", fields=fields), {}, cores=2, parts=4)
    common = place.directory / "claims"
    common.mkdir()
    told = {"SUBLET_PARTS": "4", "SUBLET_CLAIMS": str(common)}
    running = [place.start(program, SUBLET_PART=str(number), **told) for number in range(4)]
    for process in running:
        with process:
            process.communicate(timeout=60)
    assert [process.returncode for process in running] == [0] * 4
    assert (common / "none-left").exists()
    assert place.run(replace(program, argv=program.join))[0] == 0
    lines = records(place)
    assert sorted(line["task"] for line in lines) == list(range(200))
    assert len({line["part"] for line in lines}) > 1


def test_tasks_of_a_part_that_was_lost_are_named_and_joining_can_be_repeated(place: Place) -> None:
    fields = {"template": ["sh", "-c", "[ {x} != 40 ] || kill -9 $PPID"], "grid": {"x": list(range(96))}}
    codes, code, words = in_parts(place, 2, True, **fields)
    assert codes == [-9, 0]
    assert code == INCOMPLETE
    assert words.endswith("have no result: 40-41"), "of the chunk of three that it had claimed, the first was done"
    program = place.program(BAG, Executable("bag", fields=fields), {}, parts=2)
    again = place.run(replace(program, argv=program.join))
    assert (again[0], again[1].splitlines()[-1]) == (code, words)
    assert len(records(place)) == 94
