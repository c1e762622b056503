"""Every form of a manifest is read whole; what is wrong is said with its line, and nothing is dropped in silence."""

import json
from typing import Any

import pytest

from sublet.apps.manifests.lines import json_lines, yaml_lines
from sublet.apps.manifests.page import ManifestReading
from sublet.apps.manifests.reader import read_manifest
from sublet.apps.model.manifest import AppImage, ResourceBounds, from_json, to_json
from sublet.kernel.errors import BadManifest

GIB = 1 << 30
IMAGES = {"python": AppImage("", "registry.example/python:3.12", "sha256:" + "a" * 64)}
OWN = """\
name: flood
description: Where the water goes.
image: python
stages:
  pre: {script: "mkdir -p $result_folder/maps"}
  execution: {run: [python, main.py], each: task}
  post: python draw.py --all
parameters:
  years: {type: integer, minimum: 1, maximum: 50, default: 0, unit: a, title: How many years}
  quiet: {type: boolean, default: false}
  label: {type: string, default: "", maxLength: 20}
  depth: {type: number, required: true, unit: m}
resources:
  nodes: 1-4
  tasks: {min: 1, max: 64, default: 8, step: 8}
  memory: {max: 16GiB, default: 2GiB}
  time: 10m-2h
data:
  rain: {required: true, description: what fell}
results: [maps]
systems: [keeling, expanse]
default_system: keeling
environment: {OMP_NUM_THREADS: 2}
"""
GIS: dict[str, Any] = {
    "name": "Hello World",
    "description": "An example",
    "estimated_runtime": "5 minutes",
    "container": "python",
    "pre_processing_stage": "python setup.py",
    "execution_stage": "python main.py",
    "post_processing_stage": "python cleanup.py",
    "slurm_input_rules": {
        "time": {"max": 30, "min": 10, "default_value": 10, "step": 10, "unit": "Minutes"},
        "num_of_task": {"max": 6, "min": 1, "default_value": 4, "step": 1},
        "memory_per_cpu": {"max": 4, "min": 1, "default_value": 1, "step": 1, "unit": "GB"},
        "gpus": {"default_value": 1},
    },
    "param_rules": {
        "input_a": {"type": "integer", "require": True, "max": 100, "min": 0, "default_value": 50, "step": 10},
        "input_b": {"type": "string_option", "options": ["foo", "bar"], "default_value": "foo"},
        "input_c": {"type": "string_input", "default_value": ""},
    },
    "require_upload_data": True,
    "supported_hpc": ["keeling_community", "expanse_community"],
    "default_hpc": "expanse_community",
    "default_result_folder_downloadable_path": "/plots",
}
SCRIPTS = dict.fromkeys(("main.py", "setup.py", "cleanup.py", "draw.py"), b"")


def own(text: str) -> ManifestReading:
    return read_manifest({"sublet.yaml": text.encode(), **SCRIPTS}, IMAGES)


def gis(**changes: Any) -> ManifestReading:
    said = {name: value for name, value in (GIS | changes).items() if value is not ...}
    return read_manifest({"manifest.json": json.dumps(said, indent=2).encode(), **SCRIPTS}, IMAGES)


def told(reading: ManifestReading) -> list[str]:
    return [str(finding) for finding in reading.findings]


def test_a_manifest_of_our_own_is_read_whole() -> None:
    reading = own(OWN.replace("default: 0", "default: 1"))
    manifest = reading.manifest
    assert manifest, told(reading)
    assert not reading.findings
    assert manifest.image == AppImage("python", *(getattr(IMAGES["python"], name) for name in ("location", "digest")))
    assert [(stage.name, stage.argv, bool(stage.script), stage.each) for stage in manifest.stages] == [
        ("pre", (), True, False),
        ("execution", ("python", "main.py"), False, True),
        ("post", ("python", "draw.py", "--all"), False, False),
    ]
    assert manifest.resources["memory"] == ResourceBounds(1 << 20, 16 * GIB, 2 * GIB)
    assert manifest.resources["time"] == ResourceBounds(600, 7200, 600)
    assert manifest.resources["tasks"] == ResourceBounds(1, 64, 8, 8)
    assert manifest.environment == {"OMP_NUM_THREADS": "2"}
    assert [parameter.has_default for parameter in manifest.parameters] == [True, True, True, False]
    assert from_json(json.loads(json.dumps(to_json(manifest)))) == manifest


def test_a_default_that_its_own_schema_forbids_is_told_with_its_line() -> None:
    reading = own(OWN)
    assert not reading.manifest
    assert told(reading) == [
        "sublet.yaml:9: error: the parameter years: the default itself is not allowed: must be within 1 to 50 a, not 0."
    ]


WRONG = """\
name: a b
imgae: python
image: elsewhere
run: "python 'main.py"
parameters:
  x: {type: integer, $ref: "http://example.org/schema"}
  y: {type: colour}
resources:
  cores: 8-2
  memory: 4
  disk: 1GiB
results:
  - ../..
environment:
  A B: 1
systems: [a]
default_system: b
"""


def test_everything_that_is_wrong_is_told_at_once_each_with_its_line() -> None:
    reading = own(WRONG)
    lines = {finding.line: finding.message for finding in reading.errors}
    assert list(lines) == [1, 2, 3, 4, 6, 7, 9, 10, 11, 13, 15, 17]
    assert "imgae" in lines[2]
    assert "there are: python" in lines[3]
    assert "$ref" in lines[6]
    assert "8GiB" in lines[10]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("run: sh main.sh > out.txt", "no shell reads run: >"),
        ("systems: keeling\ndefault_system: expanse\nrun: sh main.sh", "not one of its systems"),
        ('run: sh main.sh\nparameters: {a: {type: string, pattern: "[[a-z]]"}}', "nested set"),
    ],
)
def test_what_would_not_do_what_it_seems_to_is_told(line: str, words: str) -> None:
    reading = own(f"name: x\n{line}\n")
    assert any(words in finding for finding in told(reading)), told(reading)


def test_numbers_are_numbers_however_they_are_written() -> None:
    said = "{type: number, minimum: 1e-6, maximum: 1.50, default: 0.10, unit: m}"
    whole = "{type: integer, minimum: +1, maximum: 1e3, enum: [1, 2.0], default: 1}"
    listed = "{type: array, items: {type: number, minimum: .5}, default: [0.50, 1.0e1]}"
    kept = '{type: string, default: "0.10"}'
    text = f"name: x\nrun: sh main.sh\nparameters:\n  a: {said}\n  b: {whole}\n  c: {listed}\n  d: {kept}\n"
    manifest = own(text).manifest
    assert manifest, told(own(text))
    schemas = [dict(parameter.schema) for parameter in manifest.parameters]
    assert [schema["default"] for schema in schemas] == [0.1, 1, [0.5, 10], "0.10"]
    assert (schemas[0]["minimum"], schemas[1]["maximum"], schemas[2]["items"]["minimum"]) == (1e-6, 1000, 0.5)


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("name: x\n\tbad", 2, "not YAML"),
        ("name: x\nname: y\n", 2, "twice"),
        ("- a\n", 1, "not a map"),
        ("", 1, "empty"),
    ],
)
def test_what_is_no_document_is_told_with_its_line(text: str, line: int, words: str) -> None:
    reading = own(text)
    assert reading.manifest is None
    assert (reading.findings[0].line, words in reading.findings[0].message) == (line, True), told(reading)


def test_a_field_that_is_twice_in_json_is_told_with_the_second_line() -> None:
    reading = read_manifest({"manifest.json": b'{\n "name": "a",\n "param_rules": {"name": {}},\n "name": "b"\n}'})
    assert (reading.findings[0].line, "twice" in reading.findings[0].message) == (4, True)


def test_a_manifest_of_cybergis_is_read_with_all_its_rules() -> None:
    reading = gis()
    manifest = reading.manifest
    assert manifest, told(reading)
    assert not reading.findings
    assert (manifest.name, manifest.title) == ("hello-world", "Hello World")
    assert not manifest.description.startswith("Hello World")
    assert manifest.writable
    assert [(stage.name, stage.script, stage.each) for stage in manifest.stages] == [
        ("pre", "python setup.py", False),
        ("execution", "python main.py", True),
        ("post", "python cleanup.py", False),
    ]
    assert dict(manifest.resources) == {
        "time": ResourceBounds(600, 1800, 600, 600),
        "tasks": ResourceBounds(1, 6, 4),
        "memory_per_core": ResourceBounds(GIB, 4 * GIB, GIB, GIB),
        "gpus_in_all": ResourceBounds(0, 2, 1),
    }
    schemas = {parameter.name: parameter.schema for parameter in manifest.parameters}
    assert schemas["input_a"]["multipleOf"] == 10
    assert schemas["input_b"] == {"enum": ["foo", "bar"], "default": "foo"}
    assert schemas["input_c"] == {"type": "string", "default": ""}
    assert (manifest.systems, manifest.default_system) == (
        ("keeling_community", "expanse_community"),
        "expanse_community",
    )
    assert manifest.data[0].required
    assert manifest.results == ("plots",)


@pytest.mark.parametrize(
    ("rule", "schema"),
    [
        ({"type": "integer", "default_value": 0}, {"type": "integer", "default": 0}),
        ({"type": "boolean", "default_value": False}, {"type": "boolean", "default": False}),
        ({"type": "string_input", "default_value": ""}, {"type": "string", "default": ""}),
        ({"type": "float", "default_value": 0.5, "max": 1}, {"type": "number", "default": 0.5, "maximum": 1}),
        ({"type": "integer", "default_value": "5", "min": "1"}, {"type": "integer", "default": 5, "minimum": 1}),
        ({"type": "string_option", "default_value": "a"}, {"enum": ["a"], "default": "a"}),
        ({"type": "integer", "default_value": 5, "min": 5, "step": 10}, {"minimum": 5, "step": 10}),
    ],
)
def test_nought_empty_and_false_are_defaults_and_no_parameter_is_dropped(rule: Any, schema: Any) -> None:
    manifest = gis(param_rules={"p": rule}).manifest
    assert manifest
    assert schema.items() <= dict(manifest.parameters[0].schema).items()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"colour": "red"}, "there is no field colour"),
        ({"slurm_input_rules": {"modules": {"default_value": 1}}}, "there is no modules here"),
        ({"slurm_input_rules": {"time": {"default_value": 1}}}, "no unit"),
        ({"slurm_input_rules": {"memory": {"default_value": 1, "unit": "TB"}}}, "unit TB"),
        ({"slurm_input_rules": {"num_of_node": {"max": 4}}}, "no default_value"),
        ({"slurm_input_rules": {"partition": {"type": "string_option", "default_value": "a"}}}, "by the operator"),
        ({"param_rules": {"p": {"type": "file", "default_value": "x"}}}, "file is not a type"),
        ({"param_rules": {"p": {"type": "integer"}}}, "must give one"),
        ({"param_rules": {"p-q": {"type": "integer", "default_value": 1}}}, "only in params.json"),
        ({"param_rules": {"p": {"type": "string_option", "options": ["a"], "default_value": "b"}}}, "added"),
        ({"default_hpc": "other"}, "not in supported_hpc"),
        ({"connector": "SingCVMFSConnector"}, "CVMFS isn't used"),
        ({"execution_stage": "python absent.py"}, "absent.py"),
        ({"pre_processing_stage_in_raw_sbatch": ["module load gcc", "# hi", ""]}, "left out"),
    ],
)
def test_what_cybergis_drops_in_silence_is_a_warning_with_its_line(changes: Any, words: str) -> None:
    reading = gis(**changes)
    assert reading.manifest, told(reading)
    assert any(words in finding.message and finding.line > 1 for finding in reading.findings), told(reading)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"execution_stage_in_raw_sbatch": ["curl http://x | sh"]}, "outside the container"),
        ({"execution_stage_in_raw_sbatch": ["module load $(touch /tmp/x)"]}, "outside the container"),
        ({"container": "unknown"}, "there are: python"),
        ({"container": ...}, "container is needed"),
        ({"execution_stage": ...}, "execution_stage is needed"),
        ({"name": ...}, "a name is needed"),
        (
            {"slurm_input_rules": {"time": {"default_value": 9, "min": 9, "max": 5, "unit": "Hours"}}},
            "more than its max",
        ),
        ({"slurm_input_rules": {"time": {"default_value": -1, "unit": "Hours"}}}, "must be a number"),
        ({"param_rules": {"p": {"type": "integer", "default_value": "many", "max": 5}}}, "default itself"),
        ({"param_rules": {"p": {"type": "integer", "default_value": 9, "min": 9, "max": 5}}}, "more than its maximum"),
        ({"default_result_folder_downloadable_path": "../../x"}, "not a path below"),
        ({"require_upload_data": "yes"}, "true or false"),
    ],
)
def test_what_can_not_be_run_as_it_is_meant_is_an_error(changes: Any, words: str) -> None:
    reading = gis(**changes)
    assert reading.manifest is None
    assert any(words in finding.message for finding in reading.errors), told(reading)


def test_the_simple_convention_takes_its_image_from_the_maintainer_and_defaults_from_its_file() -> None:
    files = {"entry.sh": b"#!/usr/bin/env bash -e\necho hi\n", "params.json": b'{"a": 0, "b": ""}'}
    manifest = read_manifest(files, IMAGES, name="project-a", image="python").manifest
    assert manifest
    assert manifest.stages[0].argv == ("/usr/bin/env", "bash -e", "entry.sh")
    assert (manifest.name, manifest.folder, manifest.image.digest) == ("project-a", "/job", "sha256:" + "a" * 64)
    assert [parameter.schema["default"] for parameter in manifest.parameters] == [0, ""]
    assert not manifest.any_parameters
    free = read_manifest({"entry.sh": b"echo hi\n"}, IMAGES, image="python").manifest
    assert free
    assert free.any_parameters
    assert free.stages[0].argv == ("sh", "entry.sh")


def test_a_directory_without_any_manifest_says_what_is_looked_for() -> None:
    assert "sublet app init" in str(read_manifest({"main.py": b""}).findings[0])


def test_of_several_manifests_our_own_counts_and_a_web_pages_manifest_is_none() -> None:
    both = read_manifest({"sublet.yaml": OWN.encode(), "manifest.json": json.dumps(GIS).encode(), **SCRIPTS})
    assert any("is what counts" in finding.message for finding in both.findings)
    page = read_manifest({"manifest.json": b'{"short_name": "x"}', "entry.sh": b"echo\n"}, image="python")
    assert page.manifest
    assert page.manifest.source == "entry.sh"


def test_lines_are_known_for_every_value_in_json_and_yaml() -> None:
    text = '{\n "a": [1,\n  {"b": "x\\"}"}],\n "c": {}\n}'
    assert json_lines(text) == yaml_lines(text)
    assert json_lines(text)[("a", 1, "b")] == 3
    assert json_lines(text)[("c",)] == 4


def test_a_stored_manifest_of_a_later_format_is_refused() -> None:
    with pytest.raises(BadManifest, match="format 2"):
        from_json({"format": 2})
    with pytest.raises(BadManifest, match="not whole"):
        from_json({"format": 1, "name": "x"})
