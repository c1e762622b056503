"""Notebooks as kernels are given them, and what becomes of their cells."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sublet.platforms.jupyter.channel import read_message
from sublet.platforms.jupyter.execution import SETUP, Execution, Raised
from sublet.platforms.jupyter.files import is_left
from sublet.platforms.jupyter.hub import read_failure, read_time
from sublet.platforms.jupyter.notebooks import (
    NotANotebook,
    find_language,
    inject,
    list_cells,
    read_notebook,
    write_parameters,
    write_preparation,
)
from sublet.platforms.jupyter.server import KernelSpecs, ServerFile


def make_notebook(*cells: tuple[str, str, list[str]]) -> dict[str, Any]:
    made = [
        {"cell_type": kind, "source": source.splitlines(keepends=True), "metadata": {"tags": tags}, "outputs": [1]}
        for kind, source, tags in cells
    ]
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": made}


def test_parameters_come_after_the_cell_of_their_defaults_and_replace_earlier_ones() -> None:
    notebook = make_notebook(
        ("markdown", "# Title", []),
        ("code", "a = 1", ["parameters"]),
        ("code", "a = 5", ["injected-parameters"]),
        ("code", "a", []),
    )
    injected = inject(notebook, {"a": 2, "names": ["x", None, True]}, "python")
    assert [cell["source"] for cell in injected["cells"]][1:3] == [
        ["a = 1"],
        "# Parameters\na = 2\nnames = ['x', None, True]",
    ]
    assert len(injected["cells"]) == 4
    assert all(cell["outputs"] == [] for cell in injected["cells"] if cell["cell_type"] == "code")
    first = inject(make_notebook(("code", "a", [])), {"a": 1}, "python")["cells"][0]
    assert (first["id"], first["metadata"]["tags"]) == ("injected-parameters", ["injected-parameters"])


def test_parameters_are_written_in_the_notebooks_own_language() -> None:
    values = {"a": True, "b": None, "c": [1, 2.5], "d": {"e": 'say "x" $y'}}
    assert write_parameters(values, "r").splitlines()[1:] == [
        "a <- TRUE",
        "b <- NULL",
        "c <- list(1, 2.5)",
        'd <- list("e" = "say \\"x\\" $y")',
    ]
    assert write_parameters(values, "julia").splitlines()[1:] == [
        "a = true",
        "b = nothing",
        "c = [1, 2.5]",
        'd = Dict("e" => "say \\"x\\" \\$y")',
    ]
    assert write_parameters(values, "bash").splitlines()[1:] == [
        "a=true",
        "b=''",
        "c=(1 2.5)",
        """d='{"e": "say \\"x\\" $y"}'""",
    ]
    with pytest.raises(NotANotebook, match="in idl, only to one in bash, julia, python, r"):
        write_parameters(values, "idl")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"{", "it is no JSON"),
        (b"[]", "no nbformat"),
        (b'{"nbformat": 3}', "its nbformat is 3"),
        (b'{"nbformat": 4, "cells": [1]}', "not all of its cells"),
    ],
)
def test_what_is_no_notebook_is_told(text: bytes, words: str) -> None:
    with pytest.raises(NotANotebook, match=words):
        read_notebook(text)


def test_empty_cells_and_text_are_not_sent_and_a_cell_may_be_meant_to_raise() -> None:
    notebook = make_notebook(("markdown", "x", []), ("code", " \n", []), ("code", "1/0", ["raises-exception"]))
    (cell,) = list_cells(notebook)
    assert (cell.index, cell.source, cell.may_raise) == (2, "1/0", True)
    assert find_language(notebook, {}) == ("", "python")
    named = {"metadata": {"kernelspec": {"name": "ir"}, "language_info": {"name": "R"}}}
    assert find_language(named, {}) == ("ir", "r")


def test_a_notebook_that_names_a_kernel_and_no_language_has_the_language_of_that_kernel() -> None:
    named = {"metadata": {"kernelspec": {"name": "ir", "display_name": "R"}}}
    assert find_language(named, {"python3": "python", "ir": "r"}) == ("ir", "r")
    assert find_language(named, {"python3": "python"}) == ("ir", "python")


@pytest.mark.parametrize("language", ["ipython", "python3", "julia"])
def test_a_kernel_that_is_there_is_used_whatever_language_a_notebook_says_it_has(language: str) -> None:
    about = {"kernelspec": {"name": "python3", "language": language}, "language_info": {"name": language}}
    kernels = {"python3": "python", "julia-1.10": "julia"}
    name, spoken = find_language({"metadata": about}, kernels)
    assert KernelSpecs("python3", kernels).find(name, spoken) == "python3"


def test_what_is_no_object_in_a_notebook_is_taken_for_an_empty_one() -> None:
    cells = [
        {"cell_type": "code", "metadata": None, "source": None},
        {"cell_type": "code", "metadata": [], "source": ["1", 2]},
    ]
    for about in (None, "", [], {"kernelspec": "python3", "language_info": ["python"]}, {"kernelspec": None}):
        written = {"nbformat": 4, "nbformat_minor": "5", "metadata": about, "cells": cells}
        notebook = inject(read_notebook(json.dumps(written).encode()), {"radius": 7}, "python")
        assert find_language(notebook, {"python3": "python"}) == ("", "python")
        assert [cell.source for cell in list_cells(notebook)] == ["# Parameters\nradius = 7", "12"]


def test_numbers_that_are_none_and_any_character_are_parameters_too() -> None:
    values = {"a": [float("nan"), float("inf"), -float("inf")], "b": "é😀", "c": {"d😀": 1}}
    python = {name: eval(text) for name, text in split_assignments(write_parameters(values, "python"), " = ")}
    assert str(python) == str(values)
    assert write_parameters(values, "r").splitlines()[1:] == [
        "a <- list(NaN, Inf, -Inf)",
        'b <- "é😀"',
        'c <- list("d😀" = 1)',
    ]
    assert write_parameters(values, "julia").splitlines()[1:] == [
        "a = [NaN, Inf, -Inf]",
        'b = "é😀"',
        'c = Dict("d😀" => 1)',
    ]


def split_assignments(code: str, sign: str) -> list[list[str]]:
    return [line.split(sign, 1) for line in code.splitlines()[1:]]


def test_a_kernel_is_chosen_by_its_name_else_by_its_language() -> None:
    specs = KernelSpecs("python3", {"python3": "python", "astro": "python", "ir": "r"})
    assert specs.find("astro", "python") == "astro"
    assert specs.find("conda-of-its-author", "python") == "python3"
    assert specs.find("", "r") == "ir"
    assert specs.find("idl", "idl") == ""


def test_what_is_told_to_a_kernel_first_is_code_in_its_language() -> None:
    told = write_preparation("python", {"SUBLET_CORES": "2", "QUOTE": "'\"{}"}, ["numpy>=2"], [["in", "data/cube"]])
    compile(told, "first", "exec")
    assert write_preparation("r", {"A": "1"}, []) == 'Sys.setenv(A = "1")'
    assert write_preparation("bash", {"A": "1 $x"}, []) == "export A='1 $x'"
    assert write_preparation("idl", {"A": "1"}, []) == ""
    with pytest.raises(NotANotebook, match="requirements can only be installed for a notebook in Python"):
        write_preparation("r", {}, ["dplyr"])


def sent(cell: int, id: str) -> dict[str, Any]:
    return {"kind": "sent", "cell": cell, "id": id}


def heard(parent: str, kind: str, **content: Any) -> dict[str, Any]:
    return {"kind": "message", "parent": parent, "type": kind, "content": content}


def test_what_cells_show_is_put_into_the_notebook_as_jupyter_does() -> None:
    execution = Execution()
    printed = [
        execution.apply(entry)
        for entry in (
            sent(SETUP, "s"),
            heard("s", "execute_reply", status="ok", execution_count=0),
            heard("s", "status", execution_state="idle"),
            sent(0, "a"),
            heard("a", "status", execution_state="busy"),
            heard("a", "stream", name="stdout", text="one "),
            heard("other", "stream", name="stdout", text="of somebody else"),
            heard("a", "stream", name="stdout", text="two\n"),
            heard("a", "stream", name="stderr", text="wrong\n"),
            heard("a", "display_data", data={"text/plain": "x"}, metadata={}, transient={"display_id": "d"}),
            heard("a", "execute_reply", status="ok", execution_count=1),
            heard("a", "status", execution_state="idle"),
            sent(2, "b"),
            heard("b", "update_display_data", data={"text/plain": "y"}, metadata={}, transient={"display_id": "d"}),
            heard("b", "stream", name="stdout", text="gone"),
            heard("b", "clear_output", wait=True),
            heard("b", "execute_result", data={"text/plain": "3"}, metadata={}, execution_count=2),
        )
    ]
    assert "".join(text for stream, text in printed if stream == "stdout") == "one two\nx\ngone3\n"
    assert execution.is_pending
    assert execution.sent == 2
    filled = execution.fill(make_notebook(("code", "a", []), ("markdown", "m", []), ("code", "b", [])))
    outputs = filled["cells"][0]["outputs"]
    assert [output.get("text") or output.get("data") for output in outputs] == [
        "one two\n",
        "wrong\n",
        {"text/plain": "y"},
    ]
    assert not any("display" in output for output in outputs)
    assert filled["cells"][0]["execution_count"] == 1
    assert [output["data"] for output in filled["cells"][2]["outputs"]] == [{"text/plain": "3"}]


@pytest.mark.parametrize(("keeps", "code"), [(False, 0), (True, 0), (3, 3), (None, 0)])
def test_a_cell_that_calls_exit_ends_the_notebook_with_its_code(keeps: object, code: int) -> None:
    execution = Execution()
    execution.apply({"kind": "sent", "cell": 0, "id": "m"})
    content = {"status": "ok", "payload": [{"source": "ask_exit", "keepkernel": keeps}]}
    execution.apply({"kind": "message", "type": "execute_reply", "parent": "m", "content": content})
    assert execution.raised
    assert execution.raised.exit_code == code


def test_output_that_a_server_withheld_is_noticed() -> None:
    execution = Execution()
    execution.apply({"kind": "sent", "cell": 0, "id": "m"})
    words = (
        "IOPub {} rate exceeded.\nThe Jupyter server will temporarily stop sending output\n(rate_limit_window=3.0)\n"
    )
    for what in ("data", "message"):
        content = {"name": "stderr", "text": f"\n{words.format(what)}"}
        execution.apply({"kind": "message", "type": "stream", "parent": "m", "content": content})
    assert execution.limited == [0]
    execution.apply({"kind": "sent", "cell": 1, "id": "n"})
    content = {"name": "stdout", "text": words}
    execution.apply({"kind": "message", "type": "stream", "parent": "n", "content": content})
    assert execution.limited == [0]


def test_adding_to_a_long_output_takes_no_longer_than_adding_to_a_short_one() -> None:
    execution = Execution()
    execution.apply(sent(0, "a"))
    pieces = [str(number) * 100 for number in range(500)]
    for piece in pieces:
        execution.apply(heard("a", "stream", name="stdout", text=piece))
    assert execution.outputs[0] == [{"output_type": "stream", "name": "stdout", "text": pieces}]
    (cell,) = execution.fill(make_notebook(("code", "a", [])))["cells"]
    assert cell["outputs"] == [{"output_type": "stream", "name": "stdout", "text": "".join(pieces)}]


def test_a_cell_that_is_sent_again_counts_once_and_shows_what_it_showed_last() -> None:
    execution = Execution()
    for entry in (sent(0, "a"), heard("a", "stream", name="stdout", text="x"), sent(0, "b")):
        execution.apply(entry)
    assert (execution.sent, execution.outputs[0], execution.request) == (1, [], "b")
    execution.apply({"kind": "lost", "cell": 0, "raised": ["ValueError", "no"]})
    assert not execution.is_pending
    assert execution.raised == Raised("ValueError", "no")


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (Raised("ValueError", "3"), 1),
        (Raised("SystemExit", ""), 0),
        (Raised("SystemExit", "None"), 0),
        (Raised("SystemExit", "3"), 3),
        (Raised("SystemExit", "-1"), 255),
        (Raised("SystemExit", "out of luck"), 1),
    ],
)
def test_a_notebook_ends_as_a_program_would(raised: Raised, code: int) -> None:
    assert raised.exit_code == code


def test_messages_are_read_with_and_without_buffers() -> None:
    whole = {"header": {"msg_type": "stream"}, "parent_header": {"msg_id": "a"}, "content": {"text": "x"}}
    text = json.dumps(whole)
    assert read_message(text) == read_message(
        b"\0\0\0\2\0\0\0\x0c" + (12 + len(text)).to_bytes(4, "big") + text.encode() + b"buffer"
    )
    assert read_message(text).parent == "a"


def test_a_hubs_events_say_why_a_server_did_not_start() -> None:
    events = 'data: {"progress": 0, "message": "Server requested"}\n\n'
    events += 'data: {"failed": true, "message": "Spawn failed: no"}\n\n'
    assert read_failure(events) == "Spawn failed: no"
    assert read_failure('data: {"progress": 100, "ready": true}\n') == ""
    assert str(read_time("2026-11-17T10:00:00.5Z")) == "2026-11-17 10:00:00.500000+00:00"
    assert read_time(None) is None


def test_what_was_only_sent_there_or_mounted_is_no_result() -> None:
    known = {"work/given.txt": "2026-11-17T10:00:00Z"}
    cases = [
        (ServerFile("given.txt", "2026-11-17T10:00:00Z", 1), False),
        (ServerFile("given.txt", "2026-11-17T10:00:09Z", 1), True),
        (ServerFile("in/a.bin", "", 1), False),
        (ServerFile("in", "", 0, is_folder=True), False),
        (ServerFile("inner/a.bin", "", 1), True),
    ]
    assert [is_left(file, known, ["in"]) for file, _ in cases] == [left for _, left in cases]
