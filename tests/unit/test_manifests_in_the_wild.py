"""Manifests of CyberGIS-Compute as projects have them: what it takes is taken, and what is odd is told by its line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sublet.apps.manifests.page import ManifestReading
from sublet.apps.manifests.reader import read_manifest
from sublet.apps.model.manifest import Manifest, ResourceBounds
from sublet.apps.model.parameters import fill_parameters

GIB, MIB = 1 << 30, 1 << 20
STAGE = {"name": "x", "container": "python", "execution_stage": "bash main.sh"}


def read(said: Any) -> ManifestReading:
    text = said if isinstance(said, str) else json.dumps(said, indent=1)
    return read_manifest({"manifest.json": text.encode(), "main.sh": b"", "main.py": b"", "setup.py": b""})


def taken(said: Any) -> tuple[Manifest, list[str]]:
    reading = read(said)
    assert reading.manifest, [str(finding) for finding in reading.findings]
    return reading.manifest, [str(finding) for finding in reading.findings]


def integer(
    default: Any, low: Any = None, high: Any = None, step: Any = None, unit: str | None = None
) -> dict[str, Any]:
    said = {"default_value": default, "min": low, "max": high, "step": step, "unit": unit}
    return {name: value for name, value in said.items() if value is not None}


def text(default: str, **more: Any) -> dict[str, Any]:
    return {"type": "string_input", "require": True, "default_value": default, **more}


HYDRO = {
    "name": "Hydro Model",
    "description": "A model of rivers.",
    "estimated_runtime": "varies with the size of the domain",
    "container": "hydro-5.x",
    "pre_processing_stage": "./compile.sh",
    "execution_stage": "./main.sh",
    "post_processing_stage": "./post.sh",
    "slurm_input_rules": {
        "time": integer(1, 1, 10, 1, "Hours"),
        "num_of_task": integer(4, 1, 127, 1),
        "memory_per_cpu": integer(1, 1, 4, 1, "GB"),
    },
    "require_upload_data": True,
    "supported_hpc": ["keeling_community", "expanse_community", "anvil_community"],
    "default_hpc": "expanse_community",
    "param_rules": {
        "Model_Version": text("v5.2.0"),
        "LSM": {"type": "string_option", "options": ["Noah", "NoahMP"], "default_value": "NoahMP"},
        "Forcing_Path": text("<UPLOAD>"),
    },
    "default_result_folder_downloadable_path": "/",
}


def test_a_whole_one_is_taken_as_it_is() -> None:
    manifest, told = taken(HYDRO)
    assert all("not among" in line for line in told)
    assert (manifest.name, manifest.default_system, manifest.results) == ("hydro-model", "expanse_community", ())
    assert manifest.resources["time"] == ResourceBounds(3600, 36_000, 3600, 3600)
    assert fill_parameters(manifest, {})["Forcing_Path"] == "<UPLOAD>"


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({**STAGE, "slurm_ceiling": {"walltime": "10:00"}}, "no field slurm_ceiling"),
        ({**STAGE, "container": "group/python3-0.9.0", "connector": "SingCVMFSConnector"}, "CVMFS"),
        ({**STAGE, "supported_hpc": ["nowhere_community"], "default_hpc": "elsewhere1"}, "elsewhere1"),
        (
            {**STAGE, "pre_processing_stage_in_raw_sbatch": ["#SBATCH --exclusive", "module load gcc/9 openmpi"]},
            "modules",
        ),
        ({**STAGE, "require_upload_data": "false"}, "as text"),
        ({**STAGE, "post_run_scripts": ""}, "no field post_run_scripts"),
        ({**STAGE, "slurm_input_rules": {"time": 30}}, "30 is no rule"),
        ({**STAGE, "param_rules": {"a": "b"}}, "b is no rule"),
        ({**STAGE, "param_rules": {"a": {"type": "string_option", "require": True}}}, "without options"),
        ({**STAGE, "slurm_input_rules": {"time": integer(10, 15, 60, 10, "Minutes")}}, "15 min is taken"),
        ({**STAGE, "param_rules": {"a": {"type": "integer", "default_value": 9, "max": 5}}}, "5 is taken"),
        ({**STAGE, "param_rules": {"a": {"type": "integer", "default_value": 2.5, "max": 5}}}, "2 is taken"),
        ({**STAGE, "param_rules": {"a": {"type": "string_option", "default": "2020"}}}, "default counts"),
        ({**STAGE, "slurm_input_rules": {"memory": integer(4, 1, 8, 1)}}, "no unit"),
    ],
)
def test_what_they_take_is_taken_and_what_is_odd_is_told_with_its_line(said: Any, words: str) -> None:
    _, told = taken(said)
    line = next((line for line in told if words in line), "")
    assert line, told
    assert line.startswith("manifest.json:")
    assert ": warning: " in line
    assert not line.startswith("manifest.json:1:")


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({"time": integer("00:30:00")}, {"time": ResourceBounds(1, 3600, 1800)}),
        ({"time": integer("30:00", "10:00", "01:00:00")}, {"time": ResourceBounds(600, 3600, 1800)}),
        ({"time": integer("00:30:00", 10, 60, 5, "Minutes")}, {"time": ResourceBounds(600, 3600, 1800, 300)}),
        ({"time": integer("1-00:00:00", None, None, None, "Hours")}, {"time": ResourceBounds(1, 172_800, 86_400)}),
        ({"time": integer(2, 1, 3, 1, "hrs")}, {"time": ResourceBounds(3600, 10_800, 7200, 3600)}),
        ({"num_of_task": integer("4", "1", "8", "1")}, {"tasks": ResourceBounds(1, 8, 4)}),
        (
            {"memory_per_cpu": integer(400, 200, 1000, 200, "MB")},
            {"memory_per_core": ResourceBounds(*(n * MIB for n in (200, 1000, 400, 200)))},
        ),
        ({"gpus": integer(0, 0, 4)}, {"gpus_in_all": ResourceBounds(0, 4, 0)}),
        ([], {}),
        ({}, {}),
    ],
)
def test_amounts_are_read_however_they_are_written(said: Any, expected: Any) -> None:
    manifest, _ = taken({**STAGE, "slurm_input_rules": said, "param_rules": []})
    assert dict(manifest.resources) == expected


def test_a_default_that_was_put_within_its_bounds_is_what_runs() -> None:
    rules = {
        "a": {"type": "integer", "default_value": 9, "max": 5},
        "b": {"type": "float", "default_value": -1, "min": 0},
    }
    manifest, _ = taken({**STAGE, "param_rules": rules, "estimated_runtime": 5, "description": 1.5})
    assert fill_parameters(manifest, {}) == {"a": 5, "b": 0}
    assert (manifest.estimated_runtime, manifest.description) == ("5", "1.5")


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('{\n "name": "x",\n // what it runs in\n "container": "python"\n}', 3, "comment"),
        ('{\n "name": "x"\n "container": "python"\n}', 3, "comma"),
        ('{\n "name": "x",\n}', 3, "comma"),
        ("{\n 'name': 'x'\n}", 2, "double quotes"),
        ('{\n "name": "x", "time": NaN\n}', 1, "NaN is not a number"),
    ],
)
def test_what_is_no_json_is_told_with_its_line_and_in_words_of_people(text: str, line: int, words: str) -> None:
    reading = read(text)
    assert reading.manifest is None
    assert (reading.findings[0].line, words in reading.findings[0].message) == (line, True), reading.findings


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({**STAGE, "slurm_input_rules": {"time": integer("soon", unit="Hours")}}, "soon"),
        ({**STAGE, "slurm_input_rules": {"num_of_task": integer(4, 8, 2)}}, "more than its max"),
        ({**STAGE, "param_rules": {"a": {"type": "integer", "min": 9, "max": 5}}}, "more than its maximum"),
        ({**STAGE, "execution_stage_in_raw_sbatch": ["srun ./main.sh"]}, "outside the container"),
    ],
)
def test_what_can_not_be_meant_is_an_error(said: Any, words: str) -> None:
    reading = read(said)
    assert any(words in finding.message for finding in reading.errors), reading.findings
