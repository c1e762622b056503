"""SQL on a copy of the archive: one question, on what was sent, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sublet.archive.cli.archive import split_lines
from sublet.archive.cli.querying import COLUMNS, has_duckdb, run_query, write_parquet
from sublet.archive.model import records
from sublet.kernel.errors import BadQuery, ExtraNotInstalled

pytestmark = pytest.mark.skipif(has_duckdb(), reason="DuckDB is installed, which is asked instead of SQLite")


def lines(*some: dict[str, Any]) -> Iterator[bytes]:
    for each in some:
        yield json.dumps(each).encode() + b"\n"


WAITS = [{"platform": "a", "wait": 10.0}, {"platform": "a", "wait": 30.0}, {"platform": "b", "wait": None}]


def test_a_question_is_answered_from_what_was_sent() -> None:
    answer = run_query("SELECT platform, avg(wait) AS mean FROM sessions GROUP BY 1 ORDER BY 1", lines(*WAITS))
    assert (answer.columns, answer.rows, answer.engine) == (("platform", "mean"), [("a", 20.0), ("b", None)], "SQLite")
    assert run_query("SELECT count(*) FROM sessions", lines()).rows == [(0,)]


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM sessions",
        "DROP TABLE sessions",
        "CREATE TABLE other (a)",
        "ATTACH '/etc/passwd' AS x",
        "PRAGMA writable_schema = 1",
        "SELECT 1; SELECT 2",
        "SELEC 1",
        "SELECT nothing FROM sessions",
    ],
)
def test_anything_but_one_right_question_is_refused_with_the_reason(statement: str) -> None:
    with pytest.raises(BadQuery) as raised:
        run_query(statement, lines(*WAITS))
    assert "SQLite can't run this query" in raised.value.message


def test_every_column_of_a_record_can_be_asked_for() -> None:
    assert set(COLUMNS) == {*records.COLUMNS, "person", "name"}


def test_parquet_says_what_it_needs(tmp_path: Path) -> None:
    with pytest.raises(ExtraNotInstalled) as raised:
        write_parquet(lines(*WAITS), tmp_path / "sessions.parquet")
    assert "sublet[archive]" in raised.value.advice
    assert list(tmp_path.iterdir()) == []


def test_lines_are_whole_wherever_pieces_end() -> None:
    assert list(split_lines(iter([b'{"a"', b": 1}\n{", b"}\n", b"[]"]))) == [b'{"a": 1}\n', b"{}\n", b"[]\n"]
