"""Several commands in one session by the command line, against the real service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_end_to_end import Person


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    place = tmp_path_factory.mktemp("steps")
    (place / "cwd").mkdir()
    someone = Person(place / "home", place / "cwd")
    yield someone
    someone.types("down")


def test_steps_of_the_command_line_share_a_directory_and_bring_the_files_that_they_name(person: Person) -> None:
    (person.directory / "prepare.py").write_text("open('x', 'w').write('7')\nprint('prepared')\n")
    (person.directory / "show.py").write_text("print('x is', open('x').read())\n")
    done = person.types(
        *("run", "--time", "1m", "--out", "results"),
        *("--step", "prepare=python3 prepare.py", "--step", "python3 show.py"),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "prepared\nx is 7\n"
    assert "brings prepare.py, show.py" in done.stderr
    steps = person.directory / "results" / "steps"
    assert (steps / "prepare" / "stdout").read_text() == "prepared\n"
    assert json.loads((steps / "step-2" / "end.json").read_text())["code"] == 0


def test_a_step_that_fails_is_the_exit_code_and_the_rest_begins_only_if_that_is_said(person: Person) -> None:
    words = ("run", "--time", "1m", "--step", "sh -c 'exit 5'", "--step", "echo after")
    stopped = person.types(*words)
    assert (stopped.returncode, stopped.stdout) == (5, "")
    went_on = person.types(*words, "--keep-going")
    assert (went_on.returncode, went_on.stdout) == (5, "after\n")


def test_steps_that_wait_for_each_other_run_together(person: Person) -> None:
    meet = "sh -c 'touch {0}; until [ -e {1} ]; do sleep 0.02; done; echo met'"
    done = person.types(
        *("run", "--time", "2m", "--together"),
        *("--step", f"a={meet.format('one', 'two')}", "--step", f"b={meet.format('two', 'one')}"),
    )
    assert (done.returncode, sorted(done.stdout.splitlines())) == (0, ["[a] met", "[b] met"]), done.stderr


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("run", "--together", "--", "true"), "--together and --keep-going are for steps"),
        (("run", "--step", "true", "--", "true"), "Say one thing to run."),
        (("run", "--step", "python3 nowhere.py"), "There is no file nowhere.py"),
        (("run", "--step", "a=true", "--step", "a=false"), "two steps are called a."),
    ],
)
def test_what_does_not_go_together_is_refused(person: Person, words: tuple[str, ...], sentence: str) -> None:
    done = person.types(*words)
    assert done.returncode != 0
    assert sentence in done.stdout + done.stderr


def test_the_help_has_an_example(person: Person, tmp_path: Path) -> None:
    assert "--step 'prepare=python prepare.py'" in person.types("run", "--help").stdout
