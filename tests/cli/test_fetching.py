"""What a run left is fetched into a directory that has files of the same names: by the real service."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.test_end_to_end import Person


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Person]:
    someone = Person(tmp_path / "home", tmp_path)
    yield someone
    someone.types("down")


def test_a_run_replaces_no_file_of_ones_own_and_what_it_left_is_fetched_later(person: Person) -> None:
    mine = person.directory / "pi.yaml"
    mine.write_text("my own\n")
    done = person.types("run", "--time", "1m", "--out", ".", "--", "sh", "-c", "echo 3.14 > pi.yaml; echo x > more")
    assert (done.returncode, mine.read_text()) == (1, "my own\n"), done.stderr
    assert "Nothing was fetched, because ./pi.yaml is there already." in done.stderr
    assert not (person.directory / "more").exists()
    session = person.types("ps", "--all", "--quiet").stdout.split()[0]
    assert person.types("result", "get", session, "--out", "there").returncode == 0
    assert (person.directory / "there" / "pi.yaml").read_text() == "3.14\n"
    again = person.types("result", "get", session, "--out", "there")
    assert (again.returncode, "2 files there already" in again.stderr) == (0, True), again.stderr
    assert person.types("result", "get", session, "--overwrite").returncode == 0
    assert mine.read_text() == "3.14\n"
