"""What fits a terminal, and how wide text is on it."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sublet.cli.columns import Columns, Manner
from sublet.cli.screen import columns_of, fit, has_colours, pad, paint, width_of, wrap


@pytest.mark.parametrize(
    ("text", "width"),
    [("abc", 3), ("日本語", 6), ("e\u0301", 1), ("🚀", 2), ("❤\ufe0f", 2), ("ｆ", 2), ("ﾊ", 1), ("", 0), ("é", 1)],
)
def test_wide_characters_take_two_columns_and_marks_none(text: str, width: int) -> None:
    assert width_of(text) == width
    assert width_of(pad(text, 10)) == 10


@given(st.text(), st.integers(1, 40))
def test_text_that_is_cut_is_never_wider_than_it_may_be(text: str, width: int) -> None:
    assert width_of(fit(text, width)) <= width


def test_a_cut_is_shown_and_falls_between_characters() -> None:
    assert fit("日本語", 6) == "日本語"
    assert fit("日本語", 5) == "日本…"
    assert fit("日本語", 4) == "日…"
    assert fit("hello world", 7) == "hello…"


def rows() -> Columns:
    head = ["ID", "NAME", "PHASE", "CORES", "NOTE"]
    cells = [["3f2a91c0", "a name that is rather long", "RUNNING", "2", "its inputs are on their way from far away"]]
    return Columns(head, cells, Manner(keep=("PHASE",), least=("CORES",)))


@pytest.mark.parametrize("width", [60, 70, 80, 100, 120])
def test_a_table_fits_the_width_with_its_ids_and_phases_whole(width: int) -> None:
    for line in rows().fit(width):
        assert width_of(line) <= width
    assert "3f2a91c0" in rows().fit(width)[1]
    assert "RUNNING" in rows().fit(width)[1]


def test_a_table_is_as_wide_as_it_is_where_there_is_room() -> None:
    assert rows().fit(None) == rows().fit(200)
    assert "…" not in "".join(rows().fit(None))


def test_the_least_important_column_goes_before_others_become_unreadable() -> None:
    assert "CORES" in rows().fit(80)[0]
    assert "CORES" not in rows().fit(44)[0]


def test_cells_that_are_folded_lose_nothing() -> None:
    table = Columns(["", "WHAT"], [["bad", "one two three four five six seven"]])
    lines = table.fit(20)
    assert all(len(line) <= 20 for line in lines)
    assert " ".join(line[5:] for line in lines[1:]).split() == ["one", "two", "three", "four", "five", "six", "seven"]


def test_a_word_is_never_broken_and_what_has_no_room_goes_below_its_row() -> None:
    head, why = ["ID", "NAME", "WHY"], "its inputs are on their way from far away"
    lines = Columns(head, [["3f2a91c0", "a-name-of-one-long-word", why], ["4e1b91c0", "short", ""]]).fit(40)
    assert lines == [
        "ID        NAME",
        "3f2a91c0  a-name-of-one-long-word",
        "    why: its inputs are on their way",
        "    from far away",
        "4e1b91c0  short",
    ]


def test_lines_break_between_words_and_never_inside_what_is_typed_or_clicked() -> None:
    assert wrap("one two three", 8) == ["one two", "three"]
    assert wrap("Take it with: sublet accept 3f2a", 24) == ["Take it with:", "sublet accept 3f2a"]
    assert wrap("hint: `sublet ps --all` lists them", 20) == ["hint:", "`sublet ps --all`", "lists them"]
    assert wrap("http://127.0.0.1:44265/connect/", 20) == ["http://127.0.0.1:44265/connect/"]
    assert wrap("anything at all", None) == ["anything at all"]


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "terminal", "colours"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({"CLICOLOR": "0"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"CLICOLOR_FORCE": "1"}, False, True),
        ({"FORCE_COLOR": "0"}, False, False),
    ],
)
def test_colours_are_where_people_want_them(
    environment: dict[str, str], terminal: bool, colours: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    stream = Screen() if terminal else io.StringIO()
    assert has_colours(stream) is colours
    assert ("\033" in paint("FAILED", "red", stream)) is colours


def test_the_width_is_that_of_columns_on_a_terminal_and_nothing_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "66")
    assert columns_of(Screen()) == 66
    assert columns_of(io.StringIO()) is None
    monkeypatch.setenv("COLUMNS", "many")
    assert columns_of(Screen()) == 80
