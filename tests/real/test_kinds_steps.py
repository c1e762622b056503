"""Several programs in one session: each with its own output and end, and one end of the session told from all."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.request import Executable
from sublet.kinds.steps import STEPS
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
