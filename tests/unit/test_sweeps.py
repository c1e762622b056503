"""A sweep is one command with different values: what it becomes, and what is wrong with it before anything is asked."""

import json
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.bag import count, problems
from sublet.client.sweeps import first_tasks, make_bag, read_lines, read_table, read_values, sweep_document
from sublet.client.tables import columns_of, join_table
from sublet.kernel.errors import BadRequest


def argvs(bag: dict[str, Any]) -> list[str]:
    return [" ".join(task.argv) for task in first_tasks(bag, 100)]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=0.1,0.50", ["0.1", "0.50"]),
        ("b=1:10:3", ["1", "4", "7", "10"]),
        ("b=1:3", ["1", "2", "3"]),
        ("b=0:1:0.25", ["0.00", "0.25", "0.50", "0.75", "1.00"]),
        ("b=3:1:-1", ["3", "2", "1"]),
        ("t=10:30:00:00", ["10:30:00:00"]),
        ("c=x:y", ["x:y"]),
        ('c=["10:30", 2]', ["10:30", 2]),
        ("d=a=b", ["a=b"]),
    ],
)
def test_values_are_a_list_a_range_or_json(text: str, values: list[Any]) -> None:
    assert read_values(text)[1] == values


@pytest.mark.parametrize("text", ["a", "=1", "a=", "a=[1", "a=1:10:0", "a=1:10:-1", "a=0:1:1e-9"])
def test_values_that_make_no_sense_are_named(text: str) -> None:
    with pytest.raises(BadRequest):
        read_values(text)


def test_all_combinations_are_run_and_the_last_changes_fastest() -> None:
    bag = make_bag(["sim", "{a}", "--b={b}"], {"a": ["x", "y"], "b": [1, True]})
    assert argvs(bag) == ["sim x --b=1", "sim x --b=true", "sim y --b=1", "sim y --b=true"]
    assert first_tasks(bag, 1)[0].parameters == {"a": "x", "b": 1}
    lines = make_bag(["sim", "{line}", "{a}"], {"a": [1, 2]}, lines=["one line", "two"])
    assert argvs(lines) == ["sim one line 1", "sim one line 2", "sim two 1", "sim two 2"]


def test_values_can_go_together_and_a_table_has_rows() -> None:
    assert argvs(make_bag(["f", "{a}", "{b}"], {"a": [1, 2], "b": [3, 4]}, zipped=True)) == ["f 1 3", "f 2 4"]
    table = [{"a": 1, "unused": "x"}, {"a": 2, "unused": "y"}]
    bag = make_bag(["f", "{a}", "{b}"], {"b": [3, 4]}, table=table)
    assert argvs(bag) == ["f 1 3", "f 1 4", "f 2 3", "f 2 4"]
    assert first_tasks(bag, 1)[0].parameters == {"a": 1, "unused": "x", "b": 3}
    assert argvs(make_bag(["f", "{a}{b}"], {"b": [3, 4]}, table=table, zipped=True)) == ["f 13", "f 24"]
    for rows in (table, None):
        with pytest.raises(BadRequest, match="as many"):
            make_bag(["f", "{b}", "{c}"], {"b": [3, 4], "c": [1, 2, 3]}, table=rows, zipped=True)


def test_braces_that_are_no_parameter_are_named_and_doubled_ones_are_braces() -> None:
    assert argvs(make_bag(["f", "{{a}}{a}}}", "{{"], {"a": [1, "{b}"]})) == ["f {a}1} {", "f {a}{b}} {"]
    for word, told in (("{c}", r"\{c\} is no parameter"), ("{", "a brace stands alone"), ("x}", "stands alone")):
        with pytest.raises(BadRequest, match=told):
            make_bag(["f", "{a}", word], {"a": [1]})


def test_what_is_wrong_with_a_sweep_is_said_at_once() -> None:
    for words, values, told in (
        ([], {"a": [1]}, "no command"),
        (["f"], {}, "nothing varies"),
        (["f"], {"a": [1]}, r"never uses \{a\}"),
        (["f", "{b}"], {"a": [1]}, r"\{b\} is no parameter"),
        (["f", "{a}"], {"a": []}, "not empty"),
        (["f", "{a b}"], {"a b": [1]}, "can't be the name"),
    ):
        with pytest.raises(BadRequest, match=told):
            make_bag(words, values)
    with pytest.raises(BadRequest, match="is what a line of the file is called"):
        make_bag(["f", "{line}"], {"line": [1]}, lines=["x"])
    with pytest.raises(BadRequest, match="the table has a too"):
        make_bag(["f", "{a}"], {"a": [1]}, table=[{"a": 1}])
    assert [found.field for found in problems({"template": ["f"], "table": [{"a": 1}, {"b": 1}]})] == ["table[1]"]
    assert problems({"template": ["f"], "tasks": [["f"]], "table": [{"a": 1}]})


def test_a_huge_sweep_must_be_meant() -> None:
    grid = {"a": list(range(200)), "b": list(range(200))}
    with pytest.raises(BadRequest, match="has 40000 tasks, and 10000 is the limit") as caught:
        make_bag(["f", "{a}", "{b}"], grid)
    assert "--max-tasks 40000" in caught.value.advice
    assert count(make_bag(["f", "{a}", "{b}"], grid, at_most=40_000)) == 40_000
    with pytest.raises(BadRequest, match="too many to send"):
        make_bag(["f", "{line}"], lines=["x" * 1000] * 1000)


def test_files_of_lines_and_tables_are_read(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("a b\n\n  \nc\n")
    assert read_lines(str(tmp_path / "lines")) == ["a b", "c"]
    (tmp_path / "p.csv").write_text('\ufeffrate, name\r\n0.1,"a,b"\r\n0.2,c\r\n', encoding="utf-8")
    assert read_table(str(tmp_path / "p.csv")) == [{"rate": "0.1", "name": "a,b"}, {"rate": "0.2", "name": "c"}]
    for text, told in (("a,b\n", "no rows"), ("a,a\n1,2\n", "one name"), ("a,b\n1\n", "row 2 of .* has 1 values")):
        (tmp_path / "p.csv").write_text(text)
        with pytest.raises(BadRequest, match=told):
            read_table(str(tmp_path / "p.csv"))
    with pytest.raises(BadRequest, match="There is no file"):
        read_lines(str(tmp_path / "gone"))
    (tmp_path / "lines").write_text("\n \n")
    with pytest.raises(BadRequest, match="has no lines"):
        read_lines(str(tmp_path / "lines"))


def test_only_a_line_break_makes_another_task(tmp_path: Path) -> None:
    lines = ["one\u2028line", "page\x0cfeed", "next\x85line", "last"]
    (tmp_path / "lines").write_bytes("\r\n".join(["", *lines]).encode())
    assert read_lines(str(tmp_path / "lines")) == lines


def test_wishes_are_shared_out_between_the_bag_and_the_session() -> None:
    found = sweep_document(["f", "{a}"], {"a": [1]}, {"cores": 2, "retries": 1})
    assert (found["cores"], found["bag"]["retries"], "retries" in found) == (2, 1, False)


def test_a_table_has_the_last_word_on_each_task_beside_its_parameters() -> None:
    printed = b'log\n{"loss": 0.5, "a": 9}\nplain\nwords \n'
    record = [
        {"task": 1, "code": 0, "seconds": 2.0, "parameters": {"a": "y"}, "stdout": [26, 14]},
        {"task": 0, "code": 1, "seconds": 9.0, "parameters": {"a": "0.10"}},
        {"task": 0, "code": 0, "seconds": 1.5, "parameters": {"a": "0.10"}, "stdout": [0, 26]},
        {"task": 2, "code": None, "signal": 9, "seconds": 0.1, "parameters": {"a": "z"}},
    ]
    lines = [*(json.dumps(line).encode() for line in record), b'{"task": 3, "co']
    rows = join_table(lines, lambda offset, length: printed[offset : offset + length])
    assert rows == [
        {"task": 0, "a": 0.1, "exit_code": 0, "seconds": 1.5, "loss": 0.5, "result.a": 9},
        {"task": 1, "a": "y", "exit_code": 0, "seconds": 2.0, "output": "words"},
        {"task": 2, "a": "z", "exit_code": 137, "seconds": 0.1},
    ]
    assert columns_of(rows) == ["task", "a", "exit_code", "seconds", "loss", "result.a", "output"]


def test_what_a_task_prints_hides_no_exit_code_and_no_time_that_was_measured() -> None:
    printed = b'{"exit_code": 0, "seconds": 99, "task": 7}'
    record = json.dumps({"task": 0, "code": 3, "seconds": 1.5, "stdout": [0, len(printed)]}).encode()
    assert join_table([record], lambda offset, length: printed[offset : offset + length]) == [
        {"task": 0, "exit_code": 3, "seconds": 1.5, "result.exit_code": 0, "result.seconds": 99, "result.task": 7}
    ]


@pytest.mark.parametrize("text", ["a,b\n1,x y\n", "a;b\n1;x y\n", "a\tb\n1\tx y\n", "\ufeffa;b\r\n1;x y\r\n"])
def test_a_table_of_a_spreadsheet_is_read_whatever_separates_its_columns(text: str, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(text, encoding="utf-8")
    assert read_table(str(tmp_path / "p.csv")) == [{"a": "1", "b": "x y"}]


def test_a_quoted_value_of_a_table_keeps_its_line_break_and_commas_decide_before_others(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text('a,b;c;d\n1,"x\ny"\n')
    assert read_table(str(tmp_path / "p.csv")) == [{"a": "1", "b;c;d": "x\ny"}]
