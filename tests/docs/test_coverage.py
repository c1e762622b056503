"""`docs/coverage.md` names tests that exist, and has a row for each promise."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.marks import other_command, tried_on

ROOT = Path(__file__).parents[2]
ROWS = re.findall(
    r"^\| ([A-Z]\d+) \| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$", (ROOT / "docs" / "coverage.md").read_text(), re.M
)
COUNTS = {"A": 17, "S": 6, "C": 9, "E": 10, "N": 6}


def test_every_row_is_there() -> None:
    names = [row[0] for row in ROWS]
    assert names == [f"{letter}{number}" for letter, count in COUNTS.items() for number in range(1, count + 1)]


def test_every_named_test_exists() -> None:
    missing = []
    for name, _, _, _, tests in ROWS:
        for path, test in re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", tests):
            file = ROOT / path
            if not file.exists() or (test and f"def {test}(" not in file.read_text()):
                missing.append(f"{name}: {path}::{test}")
    assert missing == []


@pytest.mark.parametrize(
    ("page", "heads"),
    [
        ("annex-compared", "feature"),
        ("security", "attack"),
        ("cybergis-points", "asked|there|complaint"),
        ("guides/split", "found, or asked"),
    ],
)
def test_every_row_of_a_table_of_claims_names_a_test_that_exists(page: str, heads: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text()
    rows = re.findall(rf"^\| (?!(?:{heads}) \||---)(.*?) \|.*\| (.*?) \|$", text, re.M)
    missing = []
    for name, tests in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", tests)
        there = [f"def {test}(" in (ROOT / path).read_text() for path, test in named if (ROOT / path).exists()]
        if not named or len(there) < len(named) or not all(there):
            missing.append(f"{name}: {tests}")
    assert len(rows) > 15
    assert missing == []


def test_a_row_that_is_done_or_begun_names_its_tests() -> None:
    assert [
        name for name, _, state, _, tests in ROWS if not state.startswith("not yet") and "tests/" not in tests
    ] == []


def test_every_row_of_annexes_compared_says_truly_what_its_test_is_tried_on() -> None:
    text = (ROOT / "docs" / "annex-compared.md").read_text()
    rows = re.findall(r"^\| (.+?) \|.*\| ([^|]+) \| `(tests/[\w/]+\.py)::(\w+)` \|$", text, re.M)
    assert len(rows) > 35
    assert [(name, said) for name, said, path, test in rows if said != tried_on(path, test)] == []
    assert {ring_of(path) for _, said, path, _ in rows if said.startswith("real ")} == {"real"}


def ring_of(path: str) -> str:
    """The ring of tests that a file is of."""
    return Path(path).parts[1]


@pytest.mark.parametrize("page", ["coverage", "guides/split"])
def test_every_test_that_another_command_runs_is_marked_so(page: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text()
    named = re.findall(r"`(tests/[\w/]+/test_\w+\.py)(?:::(\w+))?`(?: \((soak|engines)\))?", text)
    wrong = [(path, test) for path, test, said in named if said != other_command(path, test)]
    assert len(named) > 15
    assert wrong == []
