"""Laws of the bag: what becomes a task, and that values stay data."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sublet.booking.model.bag import TASKS_AT_MOST, count, expand, problems
from sublet.booking.model.request import Compute, Executable, Range, Request
from sublet.kinds.bag import BAG

words = st.text(st.characters(exclude_characters="\0"), max_size=8)


def fields_refused(**fields: Any) -> list[str]:
    return [problem.field for problem in problems(fields)]


def test_of_a_grid_the_last_name_changes_fastest() -> None:
    fields = {"template": ["sim", "--x={x}", "{y}"], "grid": {"x": [1, 2], "y": ["a", True]}}
    assert [task.argv[1:] for task in expand(fields)] == [
        ("--x=1", "a"),
        ("--x=1", "true"),
        ("--x=2", "a"),
        ("--x=2", "true"),
    ]


@given(st.lists(words, min_size=1, max_size=4), st.lists(words, min_size=1, max_size=4))
def test_a_grid_has_every_pair_of_values_once_and_values_stay_as_they_are(xs: list[str], ys: list[str]) -> None:
    fields = {"template": ["sim", "{x}", "{y}", "{print $1}"], "grid": {"x": xs, "y": ys}}
    tasks = list(expand(fields))
    assert len(tasks) == count(fields) == len(xs) * len(ys)
    assert [task.argv for task in tasks] == [("sim", x, y, "{print $1}") for x in xs for y in ys]
    assert [task.number for task in tasks] == list(range(len(tasks)))


def test_a_value_with_braces_is_not_filled_again() -> None:
    fields = {"template": ["{x}{y}"], "grid": {"x": ["{y}"], "y": ["z"]}}
    assert [task.argv for task in expand(fields)] == [("{y}z",)]


def test_a_line_fills_the_template_whole_or_by_its_columns() -> None:
    fields = {"file": "file:///lines", "template": ["sim", "{line}", "{2}", "{9}"]}
    tasks = list(expand(fields, ["a  b\r\n", "\n", "$(c) d\n"]))
    assert [task.argv for task in tasks] == [("sim", "a  b", "b", ""), ("sim", "$(c) d", "d", "")]
    assert count(fields) is None


def test_a_line_without_a_template_is_words_and_never_a_shell_line() -> None:
    fields = {"file": "file:///lines"}
    tasks = expand(fields, ["echo 'a b' ; rm x\n", "an 'open quote\n"])
    assert [task.argv for task in tasks] == [("echo", "a b", ";", "rm", "x"), ("an 'open quote",)]


def test_tasks_of_a_list_may_have_names() -> None:
    tasks = list(expand({"tasks": [["a", "1"], {"argv": ["b"], "name": "second"}]}))
    assert [(task.argv, task.name) for task in tasks] == [(("a", "1"), ""), (("b",), "second")]


def test_a_bag_that_can_not_be_run_is_refused_by_the_field() -> None:
    assert fields_refused(tasks=[["true"]]) == []
    assert fields_refused() == ["tasks"]
    assert fields_refused(tasks=[["a"]], grid={"x": [1]}) == ["grid"]
    assert fields_refused(tasks=[]) == ["tasks"]
    assert fields_refused(tasks="a b") == ["tasks"]
    assert fields_refused(tasks=[["a"], []]) == ["tasks[1]"]
    assert fields_refused(tasks=[["a"], [1]]) == ["tasks[1]"]
    assert fields_refused(tasks=[{"argv": ["a"], "cwd": "/"}]) == ["tasks[0]"]
    assert fields_refused(tasks=[["a"]], template=["a"]) == ["template"]
    assert fields_refused(grid={"x": [1]}) == ["template"]
    assert fields_refused(template=["a"], grid={"x": [1]}) == ["template"]
    assert fields_refused(template=["{x}"], grid={"x": []}) == ["grid.x"]
    assert fields_refused(template=["{x}"], grid={"x": [[1]]}) == ["grid.x"]
    assert fields_refused(template=["{x y}"], grid={"x y": [1]}) == ["grid"]
    assert fields_refused(file="") == ["file"]
    assert fields_refused(tasks=[["a"]], retries=-1) == ["retries"]
    assert fields_refused(tasks=[["a"]], parallel=0) == ["parallel"]
    assert fields_refused(tasks=[["a"]], parallel=True) == ["parallel"]


def test_a_grid_beyond_the_most_is_refused_without_being_made() -> None:
    grid = {name: list(range(1000)) for name in ("x", "y", "z")}
    executable = Executable("bag", fields={"template": ["{x}{y}{z}"], "grid": grid})
    (reason,) = BAG.check(executable, Request(executable))
    assert (reason.kind, reason.wanted, reason.limit) == ("urn:resource-limit", "1000000000", str(TASKS_AT_MOST))


def test_a_bag_is_refused_on_several_nodes() -> None:
    executable = Executable("bag", fields={"tasks": [["true"]]})
    request = Request(executable, compute=Compute(nodes=Range(2, 4)))
    assert [reason.field for reason in BAG.check(executable, request)] == ["compute.nodes.min"]


def test_a_bag_from_a_file_has_it_brought() -> None:
    (data,) = BAG.brings(Executable("bag", fields={"file": "/home/ada/lines"}))
    assert data.location == "file:///home/ada/lines"
    assert not BAG.brings(Executable("bag", fields={"tasks": [["true"]]}))
