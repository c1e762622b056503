"""Rules of notebooks and interactive sessions: what is refused, and where secrets are not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.request import Compute, Executable, Request, Volume
from sublet.kinds.command import COMMAND
from sublet.kinds.container import DOCKER
from sublet.kinds.inside.notebook_runner import code_of, kernel_for
from sublet.kinds.interactive import INTERACTIVE
from sublet.kinds.notebook import NOTEBOOK, requirement
from tests.unit.test_kinds import refusals, setting


def notebook(**fields: Any) -> Executable:
    return Executable("jupyter-notebook", fields={"location": "https://example.org/a.ipynb", **fields})


def test_a_notebook_is_brought_from_its_location() -> None:
    (data,) = NOTEBOOK.brings(notebook())
    assert data.location == "https://example.org/a.ipynb"


@pytest.mark.parametrize(
    ("about", "kernel"),
    [
        ({"kernelspec": {"name": "conda-env-x-py", "language": "python"}}, "python3"),
        ({"kernelspec": {"name": "python3", "language": "ipython"}}, "python3"),
        ({"kernelspec": None, "language_info": None}, "python3"),
        ({"kernelspec": "python3"}, "python3"),
        (None, "python3"),
        ({"kernelspec": {"name": "ir"}, "language_info": {"name": "R"}}, None),
    ],
)
def test_a_notebook_in_python_gets_our_kernel_however_it_says_so(
    tmp_path: Path, about: Any, kernel: str | None
) -> None:
    (path := tmp_path / "a.ipynb").write_text(json.dumps({"metadata": about}))
    assert kernel_for(str(path)) == kernel


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [("ValueError", "3", 1), ("SystemExit", "3", 3), ("SystemExit", "bad input", 1), ("SystemExit", "-1", 255)],
)
def test_a_notebook_ends_with_the_code_of_sys_exit_by_papermill_too(name: str, value: str, code: int) -> None:
    assert code_of(name, value) == code


def names(executable: Executable, *tools: str) -> list[tuple[str, bool]]:
    kind = NOTEBOOK if executable.kind == NOTEBOOK.name else INTERACTIVE
    return [(way.name, way.contained) for way in kind.ways(executable, dict.fromkeys(tools, ""))]


IMAGE = {"locations": ["ghcr.io/owner/jupyter:1"]}


def test_a_notebook_runs_by_papermill_by_a_kernel_or_in_an_image() -> None:
    assert names(notebook(), "python3", "podman") == []
    assert names(notebook(), "python3", "papermill") == [("papermill", False)]
    assert names(notebook(), "jupyter-kernel") == [("kernel", False)]
    assert names(notebook(), "jupyter-kernel", "contained-servers") == [("kernel", True)]
    tools = ("python3", "papermill", "podman", "apptainer", "ch-run")
    inside = [("podman", True), ("apptainer", True), ("charliecloud", False)]
    assert names(notebook(standard_image=IMAGE), *tools) == [("papermill", False), *inside]
    assert names(notebook(image=IMAGE), *tools) == inside, "who names an image wants that one"
    assert names(notebook(image="docker-archive:/home/ann/a.tar"), "python3", "podman") == [("podman", False)]
    assert refusals(notebook(image="no such/ image")) == ["executable.image.locations[0]"]


def test_a_notebook_in_an_image_is_not_said_to_run_without_a_container() -> None:
    request = Request(notebook(image=IMAGE), compute=Compute(volumes=(Volume("in", "/input/cube", "cube"),)))
    (reason,) = NOTEBOOK.check(request.executable, request)
    assert reason.message == "a notebook sees the volume in below its working directory, not at /input/cube."


def test_jupyterlab_runs_in_an_image_by_tools_whose_ports_can_be_reached() -> None:
    tools = ("python3", "jupyter-lab", "podman", "apptainer")
    lab = Executable("interactive", fields={"standard_image": IMAGE})
    assert names(lab, *tools) == [("jupyter-lab", False), ("podman", True)]
    assert names(Executable("interactive", fields={"image": IMAGE}), *tools) == [("podman", True)]
    assert names(Executable("interactive"), "jupyterhub") == [("jupyterhub", False)]
    assert names(Executable("interactive", fields={"environment": {"A": "1"}}), "jupyterhub") == []
    shell = Executable("interactive", fields={"interface": "shell", "image": IMAGE})
    assert refusals(shell) == ["executable.image"]


def test_on_kubernetes_both_are_a_pod_of_their_image_or_of_the_platforms_own() -> None:
    lab = Executable("interactive", fields={"image": IMAGE})
    assert names(notebook(image=IMAGE), "kubernetes", "sh") == [("kubernetes", True)]
    assert names(lab, "kubernetes", "sh") == [("kubernetes", True)]
    own = ("kubernetes", "python3", "papermill", "jupyter-lab")
    assert names(notebook(), *own) == [("papermill", True)], "its image is the platform's, which a gateway may use"
    assert names(Executable("interactive"), *own) == [("jupyter-lab", True)]
    assert names(notebook(image="docker-archive:/home/ann/a.tar"), "kubernetes") == []
    pinned = {**IMAGE, "digest": f"sha256:{'a' * 64}"}
    (way,) = NOTEBOOK.ways(notebook(image=pinned), {"kubernetes": ""})
    program = way.program(setting())
    assert (program.image, program.argv[0]) == (f"ghcr.io/owner/jupyter@sha256:{'a' * 64}", "python3")
    assert program.tools == (), "no module of a system has it"
    assert not program.keeps_entrypoint
    (way,) = INTERACTIVE.ways(lab, {"kubernetes": ""})
    program = way.program(setting())
    assert (program.image, program.connects, way.interactive) == (IMAGE["locations"][0], "uri:jupyter-lab", True)


def test_the_operators_image_is_fetched_only_for_ways_that_use_it() -> None:
    for kind, executable in (
        (NOTEBOOK, notebook(standard_image=IMAGE)),
        (INTERACTIVE, Executable("interactive", fields={"standard_image": IMAGE})),
    ):
        assert [data.location for data in kind.fetches_for(executable, "podman")] == [
            "docker://ghcr.io/owner/jupyter:1"
        ]
        for way in ("papermill", "jupyter-lab", "kernel", "jupyterhub", "kubernetes"):
            assert not kind.fetches_for(executable, way), way


def test_every_way_is_among_those_that_are_explained() -> None:
    tools = ("python3", "papermill", "jupyter-lab", "jupyterhub", "jupyter-kernel", "kubernetes", "skaha")
    tools += ("podman", "apptainer", "docker")
    for executable, kind in (
        (notebook(standard_image=IMAGE), NOTEBOOK),
        (Executable("interactive", fields={"standard_image": IMAGE}), INTERACTIVE),
        (Executable("docker-container", fields={"image": IMAGE}), DOCKER),
        (Executable("command", fields={"argv": ["true"]}), COMMAND),
    ):
        explained = {need.name: need for need in kind.list_needs(executable)}
        ways = {way.name for way in kind.ways(executable, dict.fromkeys((*tools, "ch-run"), ""))}
        assert ways == set(explained)
        assert not any(need.lacks for need in explained.values() if need.name != "kubernetes")
        for need in explained.values():  # what it needs is enough, and without any part of it there is no such way
            assert need.name in {way.name for way in kind.ways(executable, dict.fromkeys(need.tools, ""))}
            for missing in need.tools:
                less = dict.fromkeys(set(need.tools) - {missing}, "")
                assert need.name not in {way.name for way in kind.ways(executable, less)}


def test_the_secret_of_a_lab_in_an_image_never_gets_into_the_container() -> None:
    (way,) = INTERACTIVE.ways(Executable("interactive", fields={"image": IMAGE}), {"python3": "", "podman": ""})
    made = way.program(setting(secret="the-secret"))
    assert made.environment == {"SUBLET_SECRET": "the-secret"}
    assert not any(b"the-secret" in content for content in made.files.values())
    plan = json.loads(made.files[".sublet/container.json"])
    assert plan["shows"] == ["Authorization", f"token {plan['environment']['SUBLET_SECRET']}"]
    assert (plan["keeps_path"], plan["port"]) == (True, 8888)


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
