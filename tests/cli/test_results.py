"""`sublet result ls, get, put, preview, keep`, as people see them; and the form without a word, which is older."""

from __future__ import annotations

import json
import struct
from datetime import timedelta
from pathlib import Path

import pytest

from sublet.booking.cli.result_previews import describe_file
from sublet.booking.views.results import ResultFileView, ResultKept, ResultList
from tests.canned import ID, NOW, Said
from tests.cli.conftest import Serve, Type

pytestmark = pytest.mark.usefixtures("in_utc")
AT = f"/v1/sessions/{ID}"
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 640, 480) + b"\x08\x02\0\0\0"
FILES = {"a.csv": b"x,y\n1,2\n3,4\n", "plots/b.png": PNG, "plots/c.txt": b"hello\n\x1b[31mred\n", "raw.bin": b"\0\1\2"}


@pytest.fixture
def answers() -> dict[str, Said]:
    items = tuple(ResultFileView(path=path, size=len(data), modified=NOW) for path, data in FILES.items())
    size = sum(map(len, FILES.values()))
    left = ResultList(items=items, size=size, kept_until=NOW + timedelta(days=30))
    return {f"GET {AT}/results": Said(left)} | {f"GET {AT}/results/{path}": Said(data) for path, data in FILES.items()}


def test_what_would_be_fetched_is_told_and_nothing_is_fetched(
    type_in: Type, canned: Serve, answers: dict[str, Said]
) -> None:
    heard = canned(answers)
    listed = type_in("result", "ls", ID, "plots/*")
    assert [line.split()[0] for line in listed.out.splitlines()] == ["FILE", "plots/b.png", "plots/c.txt"]
    assert "2 files, 44 B, kept until" in listed.err
    assert listed.err.endswith(f"Fetch with: sublet result get {ID} 'plots/*' --out DIR\n")
    assert type_in("result", "get", ID, "--dry-run").err.endswith("This would be fetched into this directory.\n")
    dry = type_in("result", "get", ID, "plots", "--dry-run", "--out", "there")
    assert dry.out == listed.out
    assert dry.err.endswith("This would be fetched into there.\n")
    assert not Path("there").exists()
    assert {request.target for request in heard.heard} == {f"{AT}/results"}


def test_files_are_fetched_by_either_form(type_in: Type, canned: Serve, answers: dict[str, Said]) -> None:
    canned(answers)
    assert type_in("result", "get", ID, "a.csv", "--out", "one", "-q").out == "one/a.csv\n"
    assert type_in("result", ID, "a.csv", "--out", "two", "-q").out == "two/a.csv\n"
    assert (
        type_in("result", "--json", ID, "a.csv", "--out", "three").out == '{\n  "files": [\n    "three/a.csv"\n  ]\n}\n'
    )
    assert Path("one/a.csv").read_bytes() == Path("two/a.csv").read_bytes() == FILES["a.csv"]


def test_a_preview_shows_text_tables_and_the_facts_of_images(
    type_in: Type, canned: Serve, answers: dict[str, Said]
) -> None:
    canned(answers)
    shown = type_in("result", "preview", ID, "a.csv", "plots", "raw.bin", "--lines", "1").out
    assert "a.csv: table, 2 rows of 2 columns, 12 B" in shown
    assert "PNG image, 640 × 480 pixels" in shown
    assert "plots/c.txt: text, 2 lines" in shown
    assert "raw.bin: not text, 3 B" in shown
    assert "\x1b[31m" not in type_in("result", "preview", ID, "plots/c.txt").out
    assert describe_file("x.csv", 0, b"", 10).facts == "empty"
    assert describe_file("x.csv", 8, b"a\n1\n", 10).facts.startswith("table, more than 1 row of 1 column,")
    assert describe_file("x.csv", 2, b"\n\n", 10).lines == ()


def test_a_preview_of_a_table_hides_no_column_whatever_a_spreadsheet_put_between_them() -> None:
    semicolons = b"\xef\xbb\xbfa;b\r\n1,5;2\r\n"
    assert describe_file("x.csv", len(semicolons), semicolons, 10).lines == ("a    b", "1,5  2")
    rows = b'a,b\n1\n1,2,3\n"x\ny",4\n'
    ragged = describe_file("x.csv", len(rows), rows, 10)
    assert ragged.facts.startswith("table, 3 rows of 3 columns")
    assert [line.split() for line in ragged.lines][2:] == [["1", "2", "3"], ["x", "y", "4"]]


def test_a_preview_names_a_folder_that_is_empty(type_in: Type, canned: Serve, answers: dict[str, Said]) -> None:
    listed = ResultList(items=(), folders=("logs",))
    canned({**answers, f"GET {AT}/results": Said(listed)})
    assert type_in("result", "preview", ID, "logs").out == "logs/: an empty folder\n"


def test_results_are_sent_and_what_fails_on_the_way_is_told(
    type_in: Type, canned: Serve, answers: dict[str, Said]
) -> None:
    lines = [json.dumps({"path": "a.csv", "size": 12, "to": "s3://b/a.csv"}).encode() + b"\n"]
    failure = json.dumps({"error": "The result raw.bin could not be sent.", "hint": "Look."}).encode() + b"\n"
    canned({**answers, f"POST {AT}/send": [Said(lines), Said([*lines, failure])]})
    assert type_in("result", "put", ID, "s3://b/").out == "Sent 1 file (12 B) to s3://b/.\n"
    failed = type_in("result", "put", ID, "s3://b/")
    assert (failed.code, failed.out) == (1, "")
    assert "raw.bin could not be sent" in failed.err


def test_results_are_kept_longer(type_in: Type, canned: Serve, answers: dict[str, Said]) -> None:
    heard = canned({**answers, f"POST {AT}/keep": Said(ResultKept(kept_until=NOW + timedelta(days=7)))})
    assert type_in("result", "keep", ID, "7d").out.startswith("Its files are kept until ")
    assert json.loads(heard.heard[-1].body) == {"duration": "P7D"}
    assert type_in("result", "keep", ID, "soon").code == 2


def test_a_file_of_ones_own_is_not_replaced_by_a_result(type_in: Type, canned: Serve, answers: dict[str, Said]) -> None:
    canned(answers)
    Path("a.csv").write_text("mine")
    for words in (("get", ID), ("get", ID, "*.csv"), (ID, "--out", ".")):
        refused = type_in("result", *words)
        assert (refused.code, Path("a.csv").read_text()) == (1, "mine")
        assert "Nothing was fetched, because ./a.csv is there already." in refused.err
        assert f"sublet result get {ID} --out . --overwrite" in " ".join(refused.err.split())
        assert [path.name for path in Path().iterdir()] == ["a.csv"]
    assert type_in("result", ID, "--archive", "a.csv").code == 1
    assert Path("a.csv").read_text() == "mine"
    replaced = type_in("result", "get", ID, "--overwrite", "--keep")
    assert (replaced.code, Path("a.csv").read_bytes()) == (0, FILES["a.csv"])
    again = type_in("result", "get", ID, "--keep")
    assert (again.code, "fetched 0 files (0 B) into .; 4 files there already" in again.err) == (0, True)
