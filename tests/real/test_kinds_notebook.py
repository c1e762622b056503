"""Notebooks are really executed: parameters in, the executed notebook and its page out, also when a cell raises."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from sublet.booking.model.request import Executable
from sublet.kinds.notebook import NOTEBOOK
from tests.real.programs import Place

BESIDE = str(Path(sys.executable).parent)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    if not shutil.which("papermill", path=BESIDE):
        pytest.skip("papermill is not installed")
    return Place(tmp_path)


def notebook(*cells: str, kernel: str = "python3", language: str = "python") -> dict[str, Any]:
    code = [
        {
            "cell_type": "code",
            "id": f"c{number}",
            "source": text,
            "metadata": {"tags": ["parameters"] if number == 0 else []},
            "outputs": [],
            "execution_count": None,
        }
        for number, text in enumerate(cells)
    ]
    about = {"kernelspec": {"name": kernel, "display_name": kernel, "language": language}}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": about, "cells": code}


def run(
    place: Place, document: dict[str, Any] | str, environment: dict[str, str] | None = None, **fields: Any
) -> tuple[int, str, str]:
    folder = place.directory / "data" / "sublet.notebook"
    folder.mkdir(parents=True)
    (folder / "a.ipynb").write_text(document if isinstance(document, str) else json.dumps(document))
    executable = Executable("jupyter-notebook", fields={"location": "https://example.org/a.ipynb", **fields})
    program = place.program(NOTEBOOK, executable, {"papermill": f"{BESIDE}/papermill"})
    return place.run(program, **(environment or {}))


def test_parameters_go_in_and_the_executed_notebook_and_its_page_come_out(place: Place) -> None:
    cells = ("x = 1\nwords = ''", "print('product', x * 2, words)", "open('made.txt', 'w').write('made')")
    parameters = {"x": 21, "words": '"; import os #'}
    code, out, err = run(place, notebook(*cells, kernel="of-its-author"), parameters=parameters)
    assert code == 0, err
    assert 'product 42 "; import os #' in out
    executed = json.loads((place.work / "executed.ipynb").read_text())
    assert any("42" in str(cell.get("outputs")) for cell in executed["cells"])
    assert "product 42" in (place.work / "executed.html").read_text()
    assert (place.work / "made.txt").read_text() == "made"
    assert "not a writable location" not in err


CHANNELS = "from ipykernel.kernelapp import IPKernelApp\napp = IPKernelApp.instance()\nprint(app.transport, app.ip)"


def test_nobody_else_on_the_machine_can_listen_to_a_kernel(place: Place) -> None:
    with TemporaryDirectory(prefix="sublet-") as short:  # as a session's own is
        code, out, err = run(place, notebook(CHANNELS), environment={"TMPDIR": short})
    assert code == 0, err
    assert out.split()[0] == "ipc"
    assert out.split()[1].startswith(f"{short}/jupyter-")
    assert {one.name for one in place.work.iterdir()} == {".sublet", "executed.ipynb", "executed.html"}
    assert "WARNING" not in err, "nor is anybody told of a danger that there is not"


def test_where_the_paths_of_sockets_would_be_too_long_a_notebook_runs_all_the_same(place: Place) -> None:
    (long := place.directory / ("t" * 80)).mkdir(mode=0o700)
    code, out, err = run(place, notebook(CHANNELS), environment={"TMPDIR": str(long)})
    assert (code, out.split()) == (0, ["tcp", "127.0.0.1"]), err


def test_a_notebook_that_raises_ends_with_its_last_words_and_is_kept(place: Place) -> None:
    code, out, err = run(place, notebook("print('before')", "1 / 0", "print('after')"))
    assert code == 1
    assert "before" in out
    assert "after" not in out
    assert err.strip().splitlines()[-1] == "ZeroDivisionError: division by zero"
    assert "ZeroDivisionError" in (place.work / "executed.ipynb").read_text()
    assert "before" in (place.work / "executed.html").read_text()


def test_a_file_that_is_no_notebook_is_told(place: Place) -> None:
    code, _, err = run(place, "<html>not found</html>")
    assert code == 1
    assert "could not be executed" in err


def test_requirements_are_installed_for_the_session_alone(place: Place) -> None:
    script = "import toolz, sys; print(toolz.__file__)"
    code, out, err = run(place, notebook(script), requirements=[{"toolz": "1.0.0"}])
    assert code == 0, err
    assert str(place.directory / "venv") in out


def test_a_requirement_that_does_not_exist_is_told(place: Place) -> None:
    code, _, err = run(place, notebook("1"), requirements=["./not-here"])
    assert code == 1
    assert "requirements could not be installed" in err
    assert not (place.work / "executed.ipynb").exists()
