"""`sublet app`: what is wrong with an app is said with its file and line, without any service."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Type
from tests.real.notebooks import notebook

MANIFEST = """\
name: flood
image: python
run: python main.py
parameters:
  years: {type: integer, maximum: 5, default: 9}
colour: red
"""


def test_errors_are_told_line_by_line_and_the_exit_code_says_so(type_in: Type) -> None:
    Path("sublet.yaml").write_text(MANIFEST)
    typed = type_in("app", "check", ".")
    assert typed.code == 1
    lines = typed.out.splitlines()
    assert [line.split(" ")[0] for line in lines[:3]] == ["sublet.yaml:1:", "sublet.yaml:5:", "sublet.yaml:6:"]
    assert lines[-1] == "2 errors, 1 warning"
    told = json.loads(type_in("app", "check", "--json").out)
    assert (told["ok"], told["manifest"], [found["line"] for found in told["findings"]]) == (False, None, [1, 5, 6])


def test_a_manifest_that_is_begun_is_one_that_can_be_checked(type_in: Type) -> None:
    Path("my app").mkdir()
    Path("my app/run.sh").write_text("echo hi\n")
    assert type_in("app", "init", "my app").code == 0
    assert "run: sh run.sh" in Path("my app/sublet.yaml").read_text()
    typed = type_in("app", "check", "my app")
    assert (typed.code, typed.out) == (0, "my-app can be run: execution; 1 parameter\n")
    again = type_in("app", "init", "my app")
    assert again.code == 1
    assert "--force" in again.err
    assert type_in("app", "init", "my app", "--force", "--image", "ghcr.io/ada/x:1", "-q").code == 0
    assert "no digest" in type_in("app", "check", "my app").out


def test_what_an_app_needs_beside_its_image_is_told_before_it_is_said_to_run(type_in: Type) -> None:
    Path("mpi").mkdir()
    said = {"name": "MPI Hello", "container": "mpich", "execution_stage": "python main.py"}
    Path("mpi/manifest.json").write_text(json.dumps(said | {"require_upload_data": True}))
    Path("mpi/main.py").write_text("from mpi4py import MPI\n")
    first, second, last = type_in("app", "check", "mpi").out.splitlines()
    assert first.startswith("needs data: whoever runs it brings some (manifest.json)")
    assert second.startswith("needs MPI: it uses mpi4py (main.py:1)")
    assert last.startswith("mpi-hello can be run where there is data, MPI: execution")
    Path("mpi/main.py").write_text("from mpi4py import MPI\nopen('/compute_shared/x')\n")
    typed = type_in("app", "check", "mpi")
    assert typed.code == 0
    assert "needs a mount: it uses /compute_shared (main.py:2)" in typed.out
    assert "can't be run as it is, since it needs a mount" in typed.out
    needs = json.loads(type_in("app", "check", "mpi", "--json").out)["needs"]
    assert [need["kind"] for need in needs] == ["mount", "upload", "mpi"]


def test_code_without_a_manifest_is_told_what_it_would_be_taken_for(type_in: Type) -> None:
    Path("flood").mkdir()
    Path("flood/flood.ipynb").write_text(json.dumps(notebook("years = 1\nlabel = ''")))
    typed = type_in("app", "check", "flood")
    assert typed.code == 0
    first, last = typed.out.splitlines()
    assert first.startswith("flood.ipynb:1: warning: there is no manifest: a maintainer of the kind jupyter executes")
    assert last == "flood can be run: flood.ipynb, as a maintainer of the kind jupyter does; 2 parameters; 1 warning"
    Path("flood/main.py").write_text("print(1)\n")
    typed = type_in("app", "check", "flood")
    assert (typed.code, "--kind" in typed.out) == (1, True)
    assert (
        "main.py, as a maintainer of the kind python does" in type_in("app", "check", "flood", "--kind", "python").out
    )
    assert type_in("app", "check", "flood", "--kind", "julia").code == 2
    Path("flood/main.py").unlink()
    assert type_in("app", "init", "flood").code == 0
    assert 'notebook: "flood.ipynb"' in Path("flood/sublet.yaml").read_text()
    assert type_in("app", "check", "flood").out == "flood can be run: execution; 1 parameter\n"


def test_what_can_not_be_an_app_is_an_error_with_a_hint(type_in: Type) -> None:
    assert "no manifest" in type_in("app", "check", ".").out
    assert type_in("app", "check", "nowhere").code == 2
    Path("leads-out").symlink_to("/etc/passwd")
    typed = type_in("app", "check", ".")
    assert typed.code == 2
    assert "leads out of it" in typed.err
