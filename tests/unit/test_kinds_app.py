"""Rules of the kind `app`: parameters are checked and stay data, and nothing but its own folders is seen."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from typing import Any

import pytest

from sublet.apps.model import manifest as m
from sublet.booking.model.job import Mount
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Compute, Data, Executable, Request, Volume
from sublet.kinds.app import APP
from sublet.kinds.inside import container_tools as tools
from sublet.kinds.inside.container_tools import Machine, ToolImage
from tests.unit.test_kinds import setting

DIGEST = "sha256:" + "6e" * 32
TREE = "ab" * 32
EVERYTHING = dict.fromkeys(
    ("sh", "python3", "podman", "apptainer", "singularity", "docker", "ch-run", "unsquashfs"), "/usr/bin/tool"
)
MANIFEST = m.Manifest(
    "flood",
    "manifest.json",
    (m.AppStage("pre", script="echo pre"), m.AppStage("execution", ("python", "a b.py"), each=True)),
    image=m.AppImage("python", "ghcr.io/ada/python:3", DIGEST),
    writable=True,
    parameters=(
        m.Parameter("years", {"type": "integer", "minimum": 1, "maximum": 50, "default": 2}),
        m.Parameter("label", {"type": "string", "default": ""}),
        m.Parameter("odd-name", {"type": "boolean", "default": False}),
    ),
    resources={"tasks": m.ResourceBounds(1, 8, 1)},
    environment={"THREADS": "2"},
)
SIMPLE = replace(MANIFEST, source="entry.sh", folder=m.JOB)


def app(manifest: m.Manifest = MANIFEST, **fields: Any) -> Executable:
    pinned = {"tree": TREE, "manifest": m.to_json(manifest), "image": "", "digest": ""}
    return Executable("app", fields={"app": "flood", "pinned": pinned} | fields)


def refusals(executable: Executable, *data: str) -> list[Reason]:
    items = tuple(Data(name, "simple-data-resource", "https://x/y") for name in data)
    return list(APP.check(executable, Request(executable, data=items)))


def plan(executable: Executable, tool: str = "podman", **changes: Any) -> dict[str, Any]:
    (way,) = [way for way in APP.ways(executable, EVERYTHING) if way.name == tool]
    program = way.program(setting(tools=EVERYTHING, session="s1", person="ada@x", platform="keeling", **changes))
    told: dict[str, Any] = json.loads(program.files[".sublet/app.json"])
    return told


def variables(executable: Executable, **changes: Any) -> dict[str, str]:
    """What the shell of the stages makes of the variables."""
    way = APP.ways(executable, EVERYTHING)[0]
    about = {"session": "s1", "person": "ada@x", "platform": "keeling"} | changes
    program = way.program(setting(tools=EVERYTHING, **about))
    lines = program.files[".sublet/stages/environment"] + b"env -0\n"
    said = subprocess.run(["sh"], input=lines, capture_output=True, env={"PATH": os.environ["PATH"]}, check=True).stdout
    return dict(line.split("=", 1) for line in said.decode().split("\0") if line)


def test_an_app_without_a_pinned_version_is_refused_by_its_name() -> None:
    (reason,) = refusals(Executable("app", fields={"app": "summa"}))
    assert "no approved version of the app summa" in reason.message


def test_parameters_are_checked_against_the_pinned_manifest() -> None:
    assert refusals(app()) == []
    assert refusals(app(parameters={"years": 3, "label": "$(id)", "odd-name": True})) == []
    (far,) = refusals(app(parameters={"years": 99}))
    assert (far.field, far.nearest) == ("executable.parameters.years", "50")
    (unknown,) = refusals(app(parameters={"yeers": 1}))
    assert "years, label, odd-name" in unknown.message
    assert refusals(app(parameters=[1]))
    assert refusals(app(colour="red"))


def test_tasks_stay_within_the_manifest() -> None:
    assert refusals(app(tasks=8)) == []
    (reason,) = refusals(app(tasks=9))
    assert reason.nearest == "8"
    assert refusals(app(tasks=True))


def test_data_that_is_needed_must_be_there_and_none_may_take_the_codes_place() -> None:
    needs = replace(MANIFEST, data=(m.Input("data", required=True),))
    assert "needs the data" in refusals(app(needs))[0].message
    assert refusals(app(needs), "rain") == []
    named = replace(needs, source="sublet.yaml")
    assert refusals(app(named), "rain")
    for name in ("sublet.app", ".sublet.app", "..sublet.image"):  # each as the directory that it would be kept in
        assert "can't be the name" in refusals(app(), name)[0].message


@pytest.mark.parametrize(
    "path",
    [
        "/job/executable",
        "/job/executable/hello.sh",
        "executable/hello.sh",
        "/job",
        "/job/entry.sh",
        "entry.sh",
        "/job/result",
        "/bin",
        "/usr/bin/python3",
        "/etc/ld.so.preload",
        "/sublet/stages/run",
        "/job/data/../executable",
        "data/../executable/hello.sh",
        "../job/executable",
        "/job//executable",
        "/job/./executable",
        "/job/data/x:/job/executable",
        "/job/database",
        "/",
    ],
)
def test_nothing_that_someone_brings_lies_over_the_code_or_the_image(path: str) -> None:
    rain = (Data("rain", "simple-data-resource", "https://x/y"),)
    for manifest in (MANIFEST, SIMPLE, replace(MANIFEST, source="sublet.yaml")):
        for good in ("/job/data", "/job/data/rain", "data/rain", "data/a/b"):
            compute = Compute(volumes=(Volume("", good, "rain"),))
            assert APP.check(app(manifest), Request(app(manifest), compute=compute, data=rain)) == []
        compute = Compute(volumes=(Volume("", path, "rain"),))
        (reason,) = APP.check(app(manifest), Request(app(manifest), compute=compute, data=rain))
        assert (reason.field, reason.wanted) == ("compute.volumes", path)


def test_only_contained_ways_with_a_pinned_image_are_for_a_gateway() -> None:
    ways = {way.name: way.contained for way in APP.ways(app(), EVERYTHING)}
    assert ways == {"podman": True, "apptainer": True, "docker": True, "charliecloud": False}
    unpinned = replace(MANIFEST, image=m.AppImage("python", "ghcr.io/ada/python:3"))
    assert not any(way.contained for way in APP.ways(app(unpinned), EVERYTHING))
    path = replace(MANIFEST, image=m.AppImage("", "dir:/", DIGEST))  # the whole machine as an image
    assert not any(way.contained for way in APP.ways(app(path), EVERYTHING))
    operators = replace(MANIFEST, image=m.AppImage("python", "/apps/python.sif", DIGEST))
    assert [way.name for way in APP.ways(app(operators), EVERYTHING) if way.contained] == ["apptainer", "podman"]


def test_without_an_image_it_runs_only_uncontained() -> None:
    (way,) = APP.ways(app(replace(MANIFEST, image=m.AppImage())), EVERYTHING)
    assert (way.name, way.contained) == ("exec", False)
    assert APP.ways(app(replace(MANIFEST, image=m.AppImage())), {}) == []


def test_the_code_is_brought_by_its_hash_and_the_image_by_its_digest() -> None:
    assert [data.location for data in APP.brings(app())] == [f"app:{TREE}"]
    assert [data.location for data in APP.fetches(app())] == [f"docker://ghcr.io/ada/python@{DIGEST}"]


def test_nothing_is_seen_but_what_is_its_own() -> None:
    told = plan(app(), mounts=(Mount("data/rain", "data/rain"),))
    inside = tools.inner_mounts(told)
    assert inside == [
        ("/s/k1/work/result", "/job/result", False),
        ("/s/k1/data/sublet.app", "/job/executable", False),
        ("/s/k1/data/rain", "/job/data", True),
        ("/s/k1/work/.sublet/stages", "/sublet/stages", True),
        ("/s/k1/home", "/sublet/home", False),
    ]
    assert all(
        source.startswith("/s/k1/") and source not in ("/s", "/s/k1/work", "/s/k1/work/.sublet")
        for source, _, _ in inside
    )
    words = tools.apptainer(plan(app(), "apptainer"), ToolImage("i.sif"), Machine())
    assert {"--containall", "--no-home", "--cleanenv"} <= set(words)
    assert words[words.index("--pwd") + 1] == "/job/executable"
    binds = [word for word in words if word.startswith("/s/k1/")]
    assert len(binds) == 4


def test_code_is_read_only_unless_the_manifest_says_otherwise() -> None:
    own = replace(MANIFEST, source="sublet.yaml", writable=False)
    several = (Mount("data/rain", "data/rain"), Mount("data/dem", "/job/data/dem"))
    mounts = [mount[1:] for mount in plan(app(own), mounts=several)["mounts"]]
    assert mounts[:3] == [["/job/executable", True], ["/job/data/rain", True], ["/job/data/dem", True]]


def test_the_simple_convention_runs_in_job_itself() -> None:
    told = plan(app(SIMPLE))
    assert told["mounts"][0] == ["/s/k1/work/job", "/job", False]
    assert (told["copied"], told["start"]) == ("/s/k1/work/job", "/job")
    assert variables(app(SIMPLE))["executable_folder"] == "/job"


def test_what_an_app_finds_in_its_environment_and_files_is_as_cybergis_has_it() -> None:
    given = {"label": "a b; $(id) 'x'\n$HOME", "odd-name": True}
    told, environment = plan(app(parameters=given)), variables(app(parameters=given))
    assert {name: environment[name] for name in ("job_id", "user_id", "hpc", "maintainer")} == {
        "job_id": "s1",
        "user_id": "ada@x",
        "hpc": "keeling",
        "maintainer": "flood",
    }
    assert environment["param_years"] == "2"
    assert environment["param_label"] == given["label"]
    assert environment["THREADS"] == environment["env_THREADS"] == "2"
    assert not any("odd" in name for name in environment)
    job = json.loads(told["files"]["job.json"])
    assert job["param"] == json.loads(told["files"]["params.json"]) == {"years": 2, **given}
    assert job["result_folder"] == "/job/result"


def test_names_of_people_and_systems_are_data_too() -> None:
    odd = "a'; touch x; '$(id)\n"
    found = variables(app(), person=odd, platform=odd)
    assert found["user_id"] == found["hpc"] == odd


def test_values_are_in_no_script() -> None:
    executable = app(parameters={"label": "$(reboot)"})
    way = APP.ways(executable, EVERYTHING)[0]
    program = way.program(setting(tools=EVERYTHING))
    stages = (".sublet/stages/run", ".sublet/stages/pre", ".sublet/stages/execution")
    scripts = {name: text for name, text in program.files.items() if name in stages}
    assert scripts[".sublet/stages/execution"] == b"exec python 'a b.py'\n"
    assert not any(b"reboot" in text for text in scripts.values())


@pytest.mark.parametrize("tasks", [1, 4])
def test_a_session_may_ask_for_so_many_tasks(tasks: int) -> None:
    told = plan(app(tasks=tasks))
    assert (told["tasks"], told["stages"], told["each"]) == (tasks, ["pre", "execution"], ["execution"])
