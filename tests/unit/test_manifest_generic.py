"""Code without a manifest is what its maintainer's kind makes of it: one notebook, or one program; else it is a NO."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from sublet.apps.manifests.generic import kinds_of
from sublet.apps.manifests.page import ManifestReading
from sublet.apps.manifests.reader import read_manifest
from sublet.apps.model.manifest import JOB, AppImage, Manifest, from_json, to_json
from sublet.apps.model.parameters import check
from sublet.booking.model.request import Executable
from sublet.kernel.errors import BadRequest
from sublet.kinds.app import APP
from tests.real.notebooks import notebook
from tests.real.programs import TOOLS, Place

IMAGES = {"generic": AppImage("", "registry.example/jupyter:1", "sha256:" + "a" * 64)}
CELL = 'years = 2\nlabel: str = ""\nfast = False\npairs = [1, 2]\nstart = years + 1\nnames = {}\n'


def nb(*cells: str, **about: Any) -> bytes:
    made = notebook(*cells)
    made["metadata"] |= about
    return json.dumps(made).encode()


def read(files: dict[str, bytes], *kinds: str, image: str = "generic") -> ManifestReading:
    return read_manifest(files, IMAGES, name="project-a", image=image, kinds=kinds)


def manifest_of(files: dict[str, bytes], *kinds: str) -> Manifest:
    reading = read(files, *kinds)
    assert reading.manifest, reading.errors
    return reading.manifest


def refusal(files: dict[str, bytes], *kinds: str) -> str:
    reading = read(files, *kinds)
    assert reading.manifest is None
    return " ".join(map(str, reading.errors))


def test_one_notebook_is_executed_in_job_in_the_maintainers_image_with_the_parameters_of_its_cell() -> None:
    files = {"flood map.ipynb": nb(CELL, "print(years)"), "deeper/other.ipynb": b"", "main.py": b"print()"}
    manifest = manifest_of(files, "jupyter")
    assert (manifest.name, manifest.source, manifest.notebook) == ("project-a", "flood map.ipynb", "flood map.ipynb")
    assert (manifest.folder, manifest.results) == (JOB, ("executed.ipynb",))
    assert manifest.image.digest == "sha256:" + "a" * 64
    assert "'flood map.ipynb' python3 parameters" in manifest.stages[0].script
    told = {
        parameter.name: (parameter.schema["type"], parameter.schema["default"]) for parameter in manifest.parameters
    }
    assert told == {
        "years": ("number", 2),
        "label": ("string", ""),
        "fast": ("boolean", False),
        "pairs": ("array", [1, 2]),
    }
    assert manifest.any_parameters  # what the cell computes can be set too
    assert from_json(to_json(manifest)) == manifest


def test_params_json_says_more_of_a_notebooks_parameters_than_its_cell() -> None:
    manifest = manifest_of({"a.ipynb": nb(CELL), "params.json": b'{"years": 5}'}, "jupyter")
    assert [(one.name, one.schema["default"]) for one in manifest.parameters] == [("years", 5)]
    assert not manifest.any_parameters
    assert "can't be a variable" in refusal({"a.ipynb": nb(CELL), "params.json": b'{"a b": 5}'}, "jupyter")


def test_one_program_is_run_by_python_in_job() -> None:
    for entry in ("main.py", "entry.py"):
        manifest = manifest_of({entry: b"print(1)\n", "a.ipynb": nb("1"), "params.json": b'{"a": 0}'}, "python")
        assert (manifest.source, manifest.stages[0].argv, manifest.folder) == (entry, ("python3", entry), JOB)
        assert (manifest.parameters[0].schema["default"], manifest.any_parameters) == (0, False)
        assert manifest.one_folder
        assert "notebook" not in to_json(manifest)


def test_what_is_ambiguous_or_not_there_is_refused_and_says_what_to_do() -> None:
    two = {"b.ipynb": nb("1"), "a.ipynb": nb("1"), "main.py": b"1"}
    assert "a.ipynb, b.ipynb: keep one" in refusal(two, "jupyter")
    assert "`notebook: a.ipynb`" in refusal(two, "jupyter")
    assert "`run: python3 entry.py`" in refusal({"main.py": b"1", "entry.py": b"1"}, "python")
    assert "the only *.ipynb at the top" in refusal({"deeper/a.ipynb": nb("1"), "main.py": b"1"}, "jupyter")
    assert "main.py or entry.py at the top" in refusal({"run.py": b"1"}, "python")
    assert "a maintainer of the kind jupyter would run a.ipynb" in refusal({"a.ipynb": nb("1")})
    assert "--kind" in refusal({"a.ipynb": nb("1"), "main.py": b"1"}, *kinds_of(""))
    assert "sublet app init" in refusal({"README": b"1"}, *kinds_of(""))
    with pytest.raises(BadRequest, match="julia"):
        kinds_of("julia")


def test_what_is_no_notebook_is_refused() -> None:
    for content in (b"", b"[]", b"{}", b'{"nbformat": 3, "worksheets": []}', b"[" * 100_000):
        assert "not a notebook of format 4" in refusal({"a.ipynb": content}, "jupyter")
    assert "clear its outputs" in refusal({"a.ipynb": b" " * (9 << 20)}, "jupyter")


def test_a_manifest_counts_before_any_notebook_and_a_web_pages_is_none() -> None:
    files = {"a.ipynb": nb("1"), "main.py": b"1"}
    assert manifest_of({**files, "entry.sh": b"echo\n"}, "jupyter").source == "entry.sh"
    assert manifest_of({**files, "manifest.json": b'{"short_name": "x"}'}, "jupyter").source == "a.ipynb"
    assert "execution_stage" in refusal({**files, "manifest.json": b'{"container": "generic"}'}, "jupyter")


def test_of_several_notebooks_a_manifest_names_one_and_says_the_rest() -> None:
    text = b"name: flood\nimage: generic\nnotebook: maps/b.ipynb\nstages: {pre: {script: 'ls'}}\n"
    files = {"a.ipynb": nb("1"), "maps/b.ipynb": nb(CELL), "sublet.yaml": text}
    manifest = manifest_of(files)
    assert (manifest.notebook, [stage.name for stage in manifest.stages]) == ("maps/b.ipynb", ["pre", "execution"])
    assert (manifest.folder, len(manifest.parameters)) == ("/job/executable", 4)
    own = text + b"parameters: {depth: {type: number, default: 1}}\n"
    assert [one.name for one in manifest_of({**files, "sublet.yaml": own}).parameters] == ["depth"]
    assert "can't be a variable" in refusal({**files, "sublet.yaml": own.replace(b"depth", b"class")})
    for nothing in (b"", b"''"):
        assert "path of one" in refusal({**files, "sublet.yaml": text.replace(b"maps/b.ipynb", nothing)})
    assert "say once" in refusal({**files, "sublet.yaml": text + b"run: ls\n"})
    assert "sublet.yaml:3: error: the notebook c.ipynb is not" in refusal(
        {**files, "sublet.yaml": text.replace(b"maps/b", b"c")}
    )


def test_what_a_reviewer_or_an_author_should_know_is_a_warning() -> None:
    made = json.loads(nb(CELL))
    made["cells"][0]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": "x"}]
    files = {"a.ipynb": json.dumps(made).encode(), "requirements.txt": b"numpy\n"}
    told = " ".join(map(str, read(files, "jupyter", image="").findings))
    for words in ("outputs of an earlier run", "requirements.txt is not installed", "kind jupyter executes this"):
        assert words in told
    spoken = {"name": "ir", "language": "R"}
    reading = read({"a.ipynb": nb(CELL, kernelspec=spoken)}, "jupyter")
    assert "read its parameters in params.json" in str(reading.findings[0])
    assert reading.manifest
    assert reading.manifest.stages[0].script.endswith("a.ipynb '' ''\n")
    assert reading.manifest.any_parameters


def test_a_name_that_would_be_code_is_no_parameter_of_a_notebook() -> None:
    manifest = manifest_of({"a.ipynb": nb("# nothing")}, "jupyter")
    assert manifest.any_parameters
    assert not check(manifest, {"years": 1})
    for name in ("x = 1; import os #", "class", "1", "", "a\nb", "a.b"):
        assert [reason.field for reason in check(manifest, {name: 1})] == ["parameters"], name


def test_values_reach_papermill_as_they_are(tmp_path: Path) -> None:
    """The file is read by the same YAML as papermill's, where JSON would not always mean the same."""
    values = {"a": 0, "b": "", "c": False, "d": 1e22, "e": "2026-01-01", "f": "😀\n'\"", "g": ["on", 1.5], "h": "1e3"}
    manifest = to_json(manifest_of({"a.ipynb": nb("1")}, "jupyter"))
    pinned = {"tree": "0" * 64, "manifest": {**manifest, "image": {}}}
    program = Place(tmp_path).program(APP, Executable("app", fields={"pinned": pinned, "parameters": values}), TOOLS)
    assert yaml.safe_load(program.files[".sublet/stages/parameters.yaml"]) == values
    assert json.loads(json.loads(program.files[".sublet/app.json"])["files"]["params.json"]) == values
    for name in ("run", "notebook", "execution"):
        assert subprocess.run(["sh", "-n", tmp_path / "work/.sublet/stages" / name]).returncode == 0
