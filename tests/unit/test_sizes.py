"""A file can be read in a few minutes: none is longer than 400 lines, tests included."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
MOST = 400


def test_no_file_is_longer_than_can_be_read_in_one_go() -> None:
    files = [file for place in ("src", "tests", "testbed", "benchmarks") for file in (ROOT / place).rglob("*.py")]
    lengths = {str(file.relative_to(ROOT)): len(file.read_bytes().splitlines()) for file in sorted(files)}
    assert {name: length for name, length in lengths.items() if length > MOST} == {}, "cut it by its subjects"
