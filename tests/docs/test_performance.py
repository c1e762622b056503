"""The published figures say which code they are of, and are measured again before they are of code long gone."""

from __future__ import annotations

from datetime import date
from importlib.metadata import version

import pytest
from benchmarks.__main__ import list_benchmarks
from benchmarks.page import (
    MARK,
    PAGE,
    ROOT,
    Stamp,
    code_digest,
    has_history,
    is_in_history,
    is_stale,
    read_releases,
    read_sections,
    read_stamp,
    replace_section,
)
from benchmarks.row import Row

OLD = Stamp(date(2026, 1, 2), "0.1.0", "0a1b2c3d", "ffff")


@pytest.mark.parametrize("name", list_benchmarks())
def test_each_published_table_says_of_which_code_it_is_and_is_not_stale(name: str) -> None:
    stamp = read_stamp(read_sections(PAGE.read_text())[name])
    assert stamp, f"no stamp above the table of {name}: python -m benchmarks {name} --write"
    releases = read_releases((ROOT / "CHANGELOG.md").read_text())
    assert releases[0] == version("sublet")
    assert not is_stale(stamp, code_digest(name), releases), f"measure again: python -m benchmarks {name} --write"


@pytest.mark.parametrize("name", list_benchmarks())
def test_each_published_table_names_a_commit_of_this_repository(name: str) -> None:
    if not has_history():
        pytest.skip("the history is not here")
    stamp = read_stamp(read_sections(PAGE.read_text())[name])
    assert stamp
    assert is_in_history(stamp.commit), f"no commit {stamp.commit}; measure again: python -m benchmarks {name} --write"


def test_a_commit_that_is_not_in_the_history_is_told_from_one_that_is() -> None:
    if not has_history():
        pytest.skip("the history is not here")
    assert is_in_history("HEAD")
    assert is_in_history("HEAD+")
    assert not is_in_history("unknown")
    assert not is_in_history("0" * 40)


@pytest.mark.parametrize(
    ("code", "releases", "stale"),
    [
        ("ffff", ["0.3.0", "0.2.0", "0.1.0"], False),  # the same benchmark, whatever was released
        ("0000", ["0.1.0"], False),
        ("0000", ["0.2.0", "0.1.0"], False),  # changed, and a release behind at most
        ("0000", ["0.3.0", "0.2.0", "0.1.0"], True),
        ("0000", ["0.3.0"], True),  # of a release that nobody remembers
    ],
)
def test_a_table_is_stale_when_its_benchmark_changed_more_than_a_release_ago(
    code: str, releases: list[str], stale: bool
) -> None:
    assert is_stale(OLD, code, releases) is stale


def test_writing_one_table_keeps_the_others_in_order() -> None:
    page = f"# Intro\n\n{MARK}\n"
    for name in ("p10", "p2", "p1"):
        page = replace_section(page, name, f"title of {name}", OLD, [Row(f"row of {name}", "1 ×", "≤ 2 ×", True)])
    page = replace_section(page, "p2", "title of p2", OLD, [Row("another row", "3 ×", "≤ 2 ×", False)])
    assert page.startswith("# Intro\n")
    assert [line for line in page.splitlines() if line.startswith(("## ", "| row", "| another"))] == [
        "## P1: title of p1",
        "| row of p1 | 1 × | ≤ 2 × | met |",
        "## P2: title of p2",
        "| another row | 3 × | ≤ 2 × | **not met** |",
        "## P10: title of p10",
        "| row of p10 | 1 × | ≤ 2 × | met |",
    ]
    assert read_stamp(read_sections(page)["p2"]) == OLD
