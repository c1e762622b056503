"""Questions to the archive, and Parquet, by a real DuckDB: right ones are answered, and nothing reaches further."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.engines.environments import have_environment

pytestmark = pytest.mark.engines
SOURCE = Path(__file__).parents[2] / "src"
PROGRAM = r"""
import json, sys
from pathlib import Path
from sublet.archive.cli.querying import COLUMNS, run_query, write_parquet
from sublet.kernel.errors import BadQuery

record = dict.fromkeys(COLUMNS) | {"asked": "2026-11-17T09:00:00.5Z", "ended": "2026-11-17T10:00:00Z"}
some = [record | {"session": str(n), "platform": "x", "wait": float(n)} for n in range(10)]
lines = [json.dumps(each).encode() + b"\n" for each in some]


def ask(statement):
    try:
        answer = run_query(statement, lines)
        return [answer.engine, [[str(cell) for cell in row] for row in answer.rows]]
    except BadQuery as error:
        return error.message


parquet = Path(sys.argv[1])
write_parquet(lines, parquet)
import duckdb

read = duckdb.sql(f"SELECT count(*), sum(wait), typeof(any_value(asked)) FROM read_parquet('{parquet}')").fetchall()[0]
answers = [ask(each) for each in json.loads(sys.argv[2])]
json.dump({"answers": answers, "parquet": [str(cell) for cell in read]}, sys.stdout)
"""


def run(folder: Path, *statements: str) -> dict[str, Any]:
    python = have_environment("duckdb") / "bin" / "python"
    words = [python, "-c", PROGRAM, folder / "out.parquet", json.dumps(statements)]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


def test_a_question_is_answered_and_parquet_has_every_record_with_its_types(tmp_path: Path) -> None:
    asked = "SELECT platform, avg(wait), date_part('hour', max(asked)) FROM sessions GROUP BY ALL"
    outcome = run(tmp_path, asked)
    assert outcome == {"answers": [["DuckDB", [["x", "4.5", "9"]]]], "parquet": ["10", "45.0", "TIMESTAMP"]}
    assert [path.name for path in tmp_path.iterdir()] == ["out.parquet"]


def test_no_statement_writes_or_reads_a_file(tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\nhidden\n")
    refused = run(
        tmp_path,
        f"SELECT * FROM read_csv('{secret}')",
        f"COPY sessions TO '{tmp_path}/taken.csv'",
        f"ATTACH '{tmp_path}/other.db'",
        "SET enable_external_access = true",
        "DELETE FROM sessions",
        "SELECT 1; SELECT 2",
    )["answers"]
    assert all(isinstance(answer, str) and answer.startswith("DuckDB can't run this query") for answer in refused), (
        refused
    )
    assert {path.name for path in tmp_path.iterdir()} == {"secret.csv", "out.parquet"}
