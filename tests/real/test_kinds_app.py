"""Apps are really run in containers: their stages, their folders, and nothing of anybody else's."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sublet.apps.manifests.reader import read_manifest
from sublet.apps.model import manifest as m
from sublet.apps.model.tree import TreeFile
from sublet.booking.model.job import Mount
from sublet.booking.model.request import Executable
from sublet.kinds.app import APP, BROUGHT
from sublet.movers.app import unpack
from tests.real import images
from tests.real.container_tools import TOOLS, find_tools
from tests.real.notebooks import notebook
from tests.real.programs import Place

CODE = [TreeFile("main.sh", b"cat job.json; cat $data_folder/rain.txt\n"), TreeFile("entry.sh", b"cat params.json\n")]
SCRIPT = """\
echo "$param_label $param_years $PWD $SUBLET_TASK"
sh main.sh > $result_folder/out.$SUBLET_TASK
cat "$HOME/made-by-pre"
ls / /job /sublet
"""


@pytest.fixture(params=list(TOOLS))
def tools(request: pytest.FixtureRequest) -> dict[str, str]:
    return find_tools(request.param)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> m.AppImage:
    path = tmp_path_factory.mktemp("images") / "docker.tar"
    digest = images.docker_archive(path)
    return m.AppImage("busybox", f"docker-archive:{path}", digest)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    directory = tmp_path / f"app-{os.getpid()}-{time.monotonic_ns()}"
    directory.mkdir()
    made = Place(directory)
    for folder in (f"data/{BROUGHT}", "data/rain"):
        (directory / folder).mkdir(parents=True)
    unpack(CODE, directory / "data" / BROUGHT)
    (directory / "data" / "rain" / "rain.txt").write_text("much\n")
    return made


def app(image: m.AppImage, *stages: m.AppStage, **changes: Any) -> Executable:
    fields = changes.pop("fields", {})
    label = m.Parameter("label", {"type": "string", "default": ""})
    years = m.Parameter("years", {"type": "integer", "default": 0})
    manifest = m.Manifest("flood", "manifest.json", stages, image=image, parameters=(label, years), writable=True)
    manifest = replace(manifest, resources={"tasks": m.ResourceBounds(1, 4, 1)}, **changes)
    return Executable("app", fields={"pinned": {"tree": "0" * 64, "manifest": m.to_json(manifest)}, **fields})


def run(place: Place, tools: dict[str, str], executable: Executable, **environment: str) -> tuple[int, str, str]:
    mounts = (Mount("data/rain", "/job/data/rain"),)
    told = {"session": "s1", "person": "ada@x", "platform": "here", "mounts": mounts}
    return place.run(place.program(APP, executable, tools, **told), **environment)


def test_stages_run_in_order_with_values_as_data_and_see_only_their_own(
    place: Place, tools: dict[str, str], image: m.AppImage
) -> None:
    another = place.directory.parent / "another-persons-session"
    another.mkdir()
    (another / "secret").write_text("hidden")
    pre = m.AppStage("pre", script='echo "$job_id by $user_id" > "$HOME/made-by-pre"')
    look = f"{SCRIPT}cat {another}/secret {place.directory}/work/.sublet/app.json\nenv\n"
    post = m.AppStage("post", ("sh", "-c", "echo last"))
    label = {"parameters": {"label": "a; $(id) 'b'"}}
    stages = (pre, m.AppStage("execution", script=look), post)
    code, out, err = run(place, tools, app(image, *stages, fields=label), OUTSIDE_SECRET="1")
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0] == "a; $(id) 'b' 0 /job/executable "
    assert "s1 by ada@x" in lines
    assert lines[-1] == "last"
    assert "hidden" not in out
    assert "OUTSIDE_SECRET" not in out
    told, rain = parts(place)
    assert told["param"] == {"label": "a; $(id) 'b'", "years": 0}
    assert rain == "much"
    kept = {path.name for path in place.directory.iterdir()}
    assert kept <= {"work", "data"}


def parts(place: Place) -> tuple[dict[str, Any], str]:
    told, _, rain = (place.work / "result" / "out.").read_text().rpartition("}")
    return json.loads(told + "}"), rain.strip()


def test_a_stage_that_fails_ends_it_and_is_named(place: Place, tools: dict[str, str], image: m.AppImage) -> None:
    stages = (m.AppStage("pre", script="exit 3"), m.AppStage("execution", script="echo never"))
    code, out, err = run(place, tools, app(image, *stages))
    assert (code, out) == (3, "")
    assert "the stage pre failed with exit code 3" in err
    assert json.loads((place.directory / "detail").read_text()) == "the stage pre failed"


def test_several_tasks_run_the_execution_stage_side_by_side_and_the_others_once(
    place: Place, tools: dict[str, str], image: m.AppImage
) -> None:
    stages = (
        m.AppStage("pre", script="echo once > $result_folder/pre"),
        m.AppStage("execution", script='echo "$SUBLET_TASK of $SUBLET_TASKS" > $result_folder/$SUBLET_TASK', each=True),
        m.AppStage("post", script="cat $result_folder/*"),
    )
    code, out, err = run(place, tools, app(image, *stages, fields={"tasks": 2}))
    assert (code, out) == (0, "0 of 2\n1 of 2\nonce\n"), err
    bad = m.AppStage("execution", script='[ "$SUBLET_TASK" = 1 ] && exit 3\nexec sleep 600', each=True)
    code, out, err = run(place, tools, app(image, bad, fields={"tasks": 2}))
    assert code == 3, err


def test_the_simple_convention_keeps_what_is_written_where_it_starts(
    place: Place, tools: dict[str, str], image: m.AppImage
) -> None:
    stage = m.AppStage("execution", script="pwd; sh entry.sh; echo kept > new.txt; cat data/rain.txt")
    simple = app(image, stage, source="entry.sh", folder=m.JOB, fields={"parameters": {"years": 4}})
    code, out, err = run(place, tools, simple)
    assert (code, out) == (0, '/job\n{"label": "", "years": 4}much\n'), err
    assert (place.work / "job" / "new.txt").read_text() == "kept\n"


def test_without_an_image_it_runs_on_the_machine_itself(place: Place) -> None:
    stage = m.AppStage("execution", script='echo "$param_years" > "$result_folder/x"; cat "$data_folder/rain.txt"')
    code, out, err = run(place, {}, app(m.AppImage(), stage, fields={"parameters": {"years": 7}}))
    assert (code, out) == (0, "much\n"), err
    assert (place.work / "result" / "x").read_text() == "7\n"


def generic(place: Place, kind: str, files: dict[str, bytes], **parameters: Any) -> Executable:
    """Code without a manifest, unpacked, as a maintainer of this kind takes it."""
    shutil.rmtree(place.work / "job", ignore_errors=True)
    shutil.rmtree(place.directory / "data" / BROUGHT)
    (place.directory / "data" / BROUGHT).mkdir()
    unpack([TreeFile(path, content) for path, content in files.items()], place.directory / "data" / BROUGHT)
    reading = read_manifest(files, kinds=[kind])
    assert reading.manifest, reading.errors
    pinned = {"tree": "0" * 64, "manifest": m.to_json(reading.manifest)}
    return Executable("app", fields={"pinned": pinned, "parameters": parameters})


def test_one_program_without_a_manifest_is_run_by_python(place: Place) -> None:
    text = b"import json, os\nprint(json.load(open('params.json')), os.environ['param_years'])\nopen('new', 'w')\n"
    code, out, err = run(place, {}, generic(place, "python", {"main.py": text}, years=3))
    assert (code, out) == (0, "{'years': 3} 3\n"), err
    assert (place.work / "job" / "new").exists()


def test_a_notebook_runs_by_nbconvert_where_there_is_no_papermill_and_is_refused_where_that_would_be_wrong(
    place: Place, tmp_path: Path
) -> None:
    nbconvert = Path(sys.executable).parent / "jupyter-nbconvert"
    if not nbconvert.exists():
        pytest.skip("nbconvert is not installed")
    beside = tmp_path / "bin"
    beside.mkdir()
    path = f"{beside}:/usr/bin:/bin"
    plain = notebook("import json", "print(json.load(open('params.json'))['years'] * 6)")
    plain["cells"][0]["metadata"] = {}
    code, _, err = run(
        place, {}, generic(place, "jupyter", {"a.ipynb": json.dumps(plain).encode()}, years=7), PATH=path
    )
    assert code == 127, err
    assert "neither papermill nor jupyter-nbconvert" in err
    (beside / "jupyter-nbconvert").symlink_to(nbconvert)
    tagged = generic(place, "jupyter", {"a.ipynb": json.dumps(notebook("years = 1")).encode()}, years=7)
    code, _, err = run(place, {}, tagged, PATH=path)
    assert (code, "has no papermill" in err) == (78, True), err
    again = generic(place, "jupyter", {"a.ipynb": json.dumps(plain).encode()}, years=7)
    code, _, err = run(place, {}, again, PATH=path)
    assert code == 0, err
    executed = json.loads((place.work / "result" / "executed.ipynb").read_text())
    assert executed["cells"][1]["outputs"][0]["text"] == ["42\n"]
