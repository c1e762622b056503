"""Rules of notebooks and interactive sessions: what is refused, and where secrets are not."""

from __future__ import annotations

from typing import Any

import pytest

from sublet.booking.model.request import Executable
from sublet.kinds.interactive import INTERACTIVE
from sublet.kinds.notebook import NOTEBOOK, requirement
from tests.unit.test_kinds import refusals, setting


def notebook(**fields: Any) -> Executable:
    return Executable("jupyter-notebook", fields={"location": "https://example.org/a.ipynb", **fields})


def test_a_notebook_is_brought_from_its_location() -> None:
    (data,) = NOTEBOOK.brings(notebook())
    assert data.location == "https://example.org/a.ipynb"


def test_a_notebook_needs_papermill() -> None:
    assert NOTEBOOK.ways(notebook(), {"python3": ""}) == []
    (way,) = NOTEBOOK.ways(notebook(), {"python3": "", "papermill": ""})
    assert (way.name, way.contained) == ("papermill", False)


@pytest.mark.parametrize(
    ("item", "line"),
    [
        ("numpy>=2", "numpy>=2"),
        ({"numpy": ">=2"}, "numpy>=2"),
        ({"numpy": "2.1"}, "numpy==2.1"),
        ({"numpy": "*"}, "numpy"),
        ({"numpy": None}, "numpy"),
    ],
)
def test_a_requirement_may_be_written_in_two_ways(item: Any, line: str) -> None:
    assert requirement(item) == line


def test_a_notebook_that_can_not_be_run_is_refused_by_the_field() -> None:
    assert refusals(notebook(parameters={"x": [1, 2]}, requirements=["numpy"])) == []
    assert refusals(notebook(location="")) == ["executable.location"]
    assert refusals(notebook(parameters=[1])) == ["executable.parameters"]
    assert refusals(notebook(parameters={"not a name": 1})) == ["executable.parameters.not a name"]
    assert refusals(notebook(requirements="numpy")) == ["executable.requirements"]
    for item in ("--index-url=http://evil.example", "a\nb", "", {"a": "1", "b": "2"}, 3):
        assert refusals(notebook(requirements=["numpy", item])) == ["executable.requirements[1]"]


def test_an_interface_that_there_is_not_is_refused() -> None:
    assert refusals(Executable("interactive", fields={"interface": "vr"})) == ["executable.interface"]
    assert refusals(Executable("interactive")) == []


@pytest.mark.parametrize(("interface", "connects"), [("lab", "uri:jupyter-lab"), ("shell", "uri:shell")])
def test_the_secret_is_in_the_environment_alone(interface: str, connects: str) -> None:
    executable = Executable("interactive", fields={"interface": interface})
    (way,) = INTERACTIVE.ways(executable, {"python3": "", "jupyter-lab": ""})
    program = way.program(setting(secret="s3cret", base_url="/connect/x/"))
    assert way.interactive
    assert program.connects == connects
    assert program.environment["SUBLET_SECRET"] == "s3cret"
    assert not any("s3cret" in word for word in program.argv)
    assert not any(b"s3cret" in content for content in program.files.values())


def test_an_interface_whose_tool_is_not_there_has_no_way() -> None:
    assert INTERACTIVE.ways(Executable("interactive", fields={"interface": "lab"}), {"python3": ""}) == []
    assert "jupyter-lab" in INTERACTIVE.needs(Executable("interactive"))
