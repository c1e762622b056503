"""Files on pages: thousands in folders and pages, and previews in which nothing of a session's runs."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from sublet.booking.output import ResultFile, Results
from sublet.booking.pages.files import list_files
from sublet.booking.pages.notebooks import draw_notebook
from sublet.booking.pages.previews import MOST_IMAGE, MOST_ROWS, SANDBOX, draw_preview, kind_of

NOON = datetime(2027, 3, 1, 12, tzinfo=UTC)


def files(*paths: str, empty: tuple[str, ...] = ()) -> Results:
    return Results(tuple(ResultFile(path, 10, NOON) for path in paths), empty)


def test_a_folder_is_one_entry_with_its_files_counted_and_comes_first() -> None:
    found = list_files(files("z.txt", "run/1.csv", "run/deep/2.csv", "a.txt"))
    assert [(one.name, one.count) for one in found.entries] == [("run/", 2), ("a.txt", None), ("z.txt", None)]
    inside = list_files(files("z.txt", "run/1.csv", "run/deep/2.csv"), folder="run")
    assert [one.path for one in inside.entries] == ["run/deep", "run/1.csv"]
    assert list_files(files("a/b/c"), folder="a/b").trail == [("a", "a"), ("b", "a/b")]
    assert list_files(files("run2/x"), folder="run").entries == []


def test_a_folder_with_nothing_in_it_is_shown_too() -> None:
    left = files("a.txt", "run/1.csv", empty=("plots", "run/maps/day"))
    found = [(one.name, one.count, one.is_folder) for one in list_files(left).entries]
    assert found == [("plots/", 0, True), ("run/", 1, True), ("a.txt", None, False)]
    assert [one.path for one in list_files(left, folder="run").entries] == ["run/maps", "run/1.csv"]
    assert list_files(left, folder="plots").entries == []
    assert [one.name for one in list_files(left, words="DAY").entries] == ["run/maps/day/"]


def test_thousands_of_files_are_pages_and_can_be_searched() -> None:
    many = files(*(f"out/{number:04}.csv" for number in range(2500)))
    last = list_files(many, folder="out", number=24)
    assert (len(last.entries), last.pages, last.entries[-1].name) == (100, 25, "2499.csv")
    assert list_files(many, folder="out", number=10**9).number == 24
    assert [one.path for one in list_files(many, words="0042.CSV").entries] == ["out/0042.csv"]


@pytest.mark.parametrize(
    ("path", "size", "kind"),
    [
        ("a.PNG", 10, "image"),
        ("a.svg", MOST_IMAGE + 1, "none"),
        ("report.html", 10, "frame"),
        ("n.ipynb", 10, "frame"),
        ("t.tsv", 10, "table"),
        ("log", 10, "text"),
    ],
)
def test_a_file_is_shown_by_its_name(path: str, size: int, kind: str) -> None:
    assert kind_of(path, size) == kind


def test_tables_json_text_and_what_is_none_of_them() -> None:
    table = draw_preview("a.csv", b'x,y\n1,"a\nb"\n', is_cut=False)
    assert (table.kind, table.rows) == ("table", [["x", "y"], ["1", "a\nb"]])
    saved = draw_preview("a.csv", b"\xef\xbb\xbfx;y\r\n1,5;2\r\n", is_cut=False)
    assert saved.rows == [["x", "y"], ["1,5", "2"]]
    cut = draw_preview("a.csv", b"x,y\n1,2\n3,", is_cut=True)
    assert (cut.rows, cut.is_cut) == ([["x", "y"], ["1", "2"]], True)
    long = draw_preview("a.csv", b"x\n" * (MOST_ROWS + 9), is_cut=False)
    assert (len(long.rows), long.is_cut) == (MOST_ROWS, True)
    assert draw_preview("a.json", b'{"a":[1]}', is_cut=False).text == '{\n  "a": [\n    1\n  ]\n}'
    assert draw_preview("a.json", b"{broken", is_cut=False).text == "{broken"
    assert draw_preview("a.json", b"[" * 100_000, is_cut=False).kind == "text"
    assert draw_preview("a.bin", b"\x7fELF\0", is_cut=False).kind == "none"


def test_a_notebook_is_drawn_and_what_is_none_says_so() -> None:
    outputs = [
        {"output_type": "stream", "text": ["\x1b[31m<b>red</b>\n"]},
        {"output_type": "display_data", "data": {"image/png": "aGk=\n"}},
        {"output_type": "execute_result", "data": {"text/html": "<table></table>", "text/plain": "t"}},
        {"output_type": "error", "traceback": ["Zero", "Division"]},
    ]
    cell = {"cell_type": "code", "source": ["1 < 2"], "outputs": outputs}
    drawn = draw_notebook(json.dumps({"cells": [cell]}).encode())
    for part in ("1 &lt; 2", "&lt;b&gt;red", 'src="data:image/png;base64,aGk="', "<table></table>", "Zero\nDivision"):
        assert part in drawn
    for broken in (b"", b"[]", b'{"cells": 3}', b'{"cells": [3]}', b'{"cells": [{}]}', b"\xff"):
        assert "not a notebook" in draw_notebook(broken)


def test_what_a_session_wrote_is_drawn_without_scripts_and_without_anything_from_elsewhere() -> None:
    policy = SANDBOX["content-security-policy"].split("; ")
    assert policy[:2] == ["sandbox", "default-src 'none'"]
    assert not [rule for rule in policy if "script" in rule or "http" in rule or "allow-" in rule]
