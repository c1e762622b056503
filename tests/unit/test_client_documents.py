"""A file that is named relative to here is found where the document is; what is named otherwise stays as it is."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from sublet.client.documents import document_of, prepare
from sublet.kernel.document_fields import refuse_unknown_fields
from sublet.kernel.errors import BadRequest


def test_files_that_are_there_are_named_by_their_whole_path(tmp_path: Path) -> None:
    for name in ("book.ipynb", "my tool.sif", "cube.fits"):
        (tmp_path / name).write_text("")
    (tmp_path / "job.yaml").write_text("{notebook: book.ipynb, data: [cube.fits], image: my tool.sif}")
    found = document_of(tmp_path / "job.yaml", {}, local=True)
    assert found["notebook"] == str(tmp_path / "book.ipynb")
    assert found["data"] == [{"location": str(tmp_path / "cube.fits"), "path": "cube.fits", "writable": True}]
    assert found["image"] == f"file://{tmp_path}/my%20tool.sif"


def test_an_image_by_a_whole_path_is_where_it_runs_and_a_reference_is_a_reference(tmp_path: Path) -> None:
    (tmp_path / "here.sif").write_text("")
    for place in (f"{tmp_path}/here.sif", "alpine:3", "docker://ghcr.io/a/b", "docker-archive:/x.tar"):
        assert document_of({"image": place}, {}, local=True)["image"] == place
    several = {"image": {"locations": ["alpine"], "digest": "sha256:…"}}
    assert document_of(several, {}, local=True) == several


@pytest.mark.parametrize(
    ("name", "instead"),
    [
        ("fit.ipynb", "sublet run --notebook fit.ipynb"),
        ("my sim.py", "sublet run -- python3 'my sim.py'"),
        ("RUN.SH", "sublet run -- sh RUN.SH"),
        ("model.R", "sublet run -- Rscript model.R"),
    ],
)
def test_a_program_or_notebook_in_place_of_a_request_is_told_how_to_run(
    name: str, instead: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("{}")
    with pytest.raises(BadRequest) as refused:
        prepare(name, {}, local=True)
    assert (name in str(refused.value), refused.value.advice) == (True, f"Run it with: {instead}")


def test_a_request_file_that_is_missing_is_told_with_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadRequest, match=r"job\.yaml can't be read: No such file") as refused:
        prepare("job.yaml", {}, local=True)
    assert str(tmp_path) in refused.value.advice


@pytest.mark.parametrize(
    ("word", "meant"), [("command", "run"), ("walltime", "time"), ("Partition", "queue"), ("corse", "cores")]
)
def test_another_systems_word_for_a_field_is_told_sublets_own(word: str, meant: str) -> None:
    with pytest.raises(BadRequest) as refused:
        refuse_unknown_fields({word: 1}, ["run", "time", "queue", "cores"], "")
    assert refused.value.advice == f"Did you mean {meant}?"


def test_a_synonym_is_not_offered_where_the_field_does_not_exist() -> None:
    with pytest.raises(BadRequest) as refused:
        refuse_unknown_fields({"command": 1}, ["name"], "")
    assert refused.value.advice == "There are: name."


@pytest.mark.parametrize("place", ["nothere.sif", "./nothere.sif", "../x/tool.tar.gz", "~/nothere-at-all.img"])
def test_an_image_file_that_is_not_here_is_refused_and_never_taken_for_one_of_a_registry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for image in (place, {"locations": [place]}):
        with pytest.raises(BadRequest, match=f"There is no image file {re.escape(place)} here"):
            document_of({"image": image}, {}, local=True)
        with pytest.raises(BadRequest, match="takes no image files from this one"):
            document_of({"image": image}, {}, local=False)


def test_a_misspelt_image_file_is_answered_with_the_one_that_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tool.sif").touch()
    with pytest.raises(BadRequest) as caught:
        document_of({"image": "tol.sif"}, {}, local=True)
    assert caught.value.advice == "Did you mean tool.sif?"


NOT_HERE = [
    ["python3", "nofile.py"],
    ["python3.12", "-u", "-W", "ignore", "src/nofile.py", "out.csv"],
    ["./nofile.sh", "1"],
    "bash -x nofile.sh",
]
NOT_MEANT = [
    ["python3", "-c", "print(1)"],
    ["python3", "-m", "http.server"],
    ["sh", "-c", "echo nofile.sh"],
    ["/usr/bin/python3", "-"],
    ["python3", "/opt/there.py"],
    ["cat", "out.csv"],
    ["node"],
    "echo 'unbalanced",
]


@pytest.mark.parametrize("line", NOT_HERE)
def test_a_program_that_is_not_here_is_refused_where_it_can_be_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    for document in ({"run": line}, {"bag": {"template": line, "grid": {"n": [1]}}}, {"bag": {"tasks": [line]}}):
        with pytest.raises(BadRequest, match=r"There is no file \S*nofile\.\w+ here"):
            prepare(document, {}, local=True)
    assert prepare({"run": line, "stay": True}, {}, local=True).missing == ""
    assert "nofile" in prepare({"run": line, "image": "python:3"}, {}, local=True).missing
    assert "nofile" in prepare({"run": line, "workdir": "."}, {}, local=True).missing


@pytest.mark.parametrize("line", NOT_MEANT)
def test_what_need_not_be_a_file_here_is_not_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert prepare({"run": line}, {}, local=True).missing == ""


def test_a_notebook_that_is_not_there_is_named_with_the_nearest_one(tmp_path: Path) -> None:
    write_notebook(tmp_path / "fits.ipynb", [], [])
    (tmp_path / "job.yaml").write_text("notebook: fit.ipynb")
    with pytest.raises(BadRequest, match=f"There is no notebook fit.ipynb in {tmp_path}.") as raised:
        prepare(tmp_path / "job.yaml", {}, local=True)
    assert raised.value.advice == "Did you mean fits.ipynb?"
    for elsewhere in ("https://x.org/fit.ipynb", "upload:fit.ipynb"):
        assert prepare({"notebook": elsewhere}, {}, local=True).document["notebook"] == elsewhere


def write_notebook(path: Path, source: list[str], tags: list[str], language: str = "") -> None:
    cell = {"cell_type": "code", "metadata": {"tags": tags}, "source": source, "outputs": []}
    about = {"kernelspec": {"name": "any", "language": language}} if language else {}
    path.write_text(json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": about, "cells": [cell]}))


def test_a_mistyped_parameter_of_a_notebook_is_told_before_anything_is_booked(tmp_path: Path) -> None:
    book = tmp_path / "fit.ipynb"
    write_notebook(book, ["alpha = 0.5\n", "years: int = 3\n"], ["parameters"])
    with pytest.raises(BadRequest) as raised:
        prepare({"notebook": str(book), "parameters": {"alhpa": 1}}, {}, local=True)
    assert raised.value.message == "The notebook fit.ipynb has no parameter alhpa."
    assert raised.value.advice == "Did you mean alpha? It has alpha, years."
    assert prepare({"notebook": str(book), "parameters": {"alpha": 1, "years": 2}}, {}, local=True)


def test_parameters_for_a_language_that_nothing_writes_are_refused_when_they_are_asked(tmp_path: Path) -> None:
    book = tmp_path / "survey.ipynb"
    write_notebook(book, ["alpha = 1"], ["parameters"], "IDL")
    with pytest.raises(BadRequest, match=r"survey\.ipynb is in idl, and parameters can't be given to it"):
        prepare({"notebook": str(book), "parameters": {"alpha": 2}}, {}, local=True)
    assert prepare({"notebook": str(book), "parameters": {}}, {}, local=True)
    assert prepare({"notebook": str(book)}, {}, local=True)


def test_a_cell_of_parameters_in_another_language_is_not_read_as_python(tmp_path: Path) -> None:
    book = tmp_path / "fit.ipynb"
    write_notebook(book, ["alpha <- 0.5\n"], ["parameters"], "R")  # in Python, a comparison
    assert prepare({"notebook": str(book), "parameters": {"alpha": 1}}, {}, local=True)


@pytest.mark.parametrize(("source", "tags"), [(["alpha = 1"], []), (["not python {"], ["parameters"]), ([], [])])
def test_a_notebook_whose_parameters_are_not_known_takes_any(
    tmp_path: Path, source: list[str], tags: list[str]
) -> None:
    book = tmp_path / "free.ipynb"
    write_notebook(book, source, tags)
    assert prepare({"notebook": str(book), "parameters": {"beta": 1}}, {}, local=True)
