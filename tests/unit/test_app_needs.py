"""What an app needs beside its image is told from its manifest and from the code that its stages run."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from sublet.apps.manifests.reader import read_manifest
from sublet.apps.model.facilities import Facilities, Had, find_had, find_lacking_node
from sublet.apps.model.manifest import Manifest
from sublet.apps.model.needs import Need, NeedKind, describe_need, find_needs

NOTEBOOK = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"language_info": {"name": "python"}}}
STAGES = {"pre_processing_stage": "./compile.sh", "execution_stage": "bash main.sh"}


def needs_of(files: dict[str, str], **manifest: Any) -> list[tuple[str, str, str]]:
    said = {"name": "x", "container": "python", **STAGES, **manifest}
    contents = {"manifest.json": json.dumps(said).encode()} | {name: text.encode() for name, text in files.items()}
    reading = read_manifest(contents)
    assert reading.manifest, reading.errors
    needs = find_needs(reading.manifest, contents)
    assert all(describe_need(need) for need in needs)
    return [(need.kind.value, need.what, need.where) for need in needs]


def test_a_plain_app_needs_nothing() -> None:
    files = {
        "main.sh": "python main.py\n",
        "main.py": "print(open('/job/data/x').read(), '/tmp/scratch')\n",
        "compile.sh": "",
    }
    assert needs_of(files) == []


@pytest.mark.parametrize(
    ("line", "need"),
    [
        ("forcing=/compute_scratch/${param_Forcing}", ("mount", "/compute_scratch")),
        ("ls -al /compute_shared", ("mount", "/compute_shared")),
        ("path = '/compute_shared/%s' % job", ("mount", "/compute_shared")),
        ("source /cvmfs/x.org/setup.sh", ("mount", "/cvmfs")),
        ("from mpi4py import MPI", ("mpi", "mpi4py")),
        ("mpirun -n 4 ./model", ("mpi", "mpirun")),
        ("#include <mpi.h>", ("mpi", "mpi.h")),
        ("git clone https://example.org/model", ("network", "git clone")),
        ("pip install --upgrade networkx", ("network", "pip install")),
        ("answer = requests.get(url, timeout=9)", ("network", "requests.get")),
        ("with urllib.request.urlopen(url) as answer:", ("network", "urllib.request")),
        ("rain = pd.read_csv('https://example.org/rain.csv')", ("network", "read_csv")),
        ("download.file(url, 'rain.csv')", ("network", "download.file")),
        ("doctors = Datasets.load_data('chi_doc')", ("network", "Datasets.load_data")),
        ("boston = libpysal.examples.load_example('Bostonhsg')", ("network", "load_example")),
        ("streets = ox.graph_from_place('Champaign, Illinois')", ("network", "ox.graph_from_place")),
    ],
)
def test_a_line_of_the_code_that_is_run_says_what_it_needs(line: str, need: tuple[str, str]) -> None:
    files = {"main.sh": "python src/model.py", "src/model.py": f"first\n{line}\n", "compile.sh": ""}
    assert needs_of(files) == [(*need, "src/model.py:2")]
    files = {"main.sh": "", "compile.sh": "", "images/Dockerfile": line, "README.md": line}
    assert needs_of(files) == [], "nothing runs these"


@pytest.mark.parametrize(
    "words", ["python3 /job/executable/model.py", "Rscript ${executable_folder}/model.py", "python3 ./model.py"]
)
def test_code_is_followed_however_its_folder_is_called(words: str) -> None:
    files = {"main.sh": words, "model.py": "import urllib.request\n", "compile.sh": ""}
    assert needs_of(files) == [("network", "urllib.request", "model.py:1")]
    stages = {"execution_stage": words, "pre_processing_stage": "true"}
    assert needs_of({"model.py": "git clone x"}, **stages) == [("network", "git clone", "model.py:1")]


def test_a_program_of_the_image_is_told_and_any_code_beside_it_may_be_what_it_runs() -> None:
    runs = "/usr/local/bin/run-stage.sh /job/executable/plan.yml Input\n"
    assert needs_of({"main.sh": runs, "compile.sh": "/usr/local/bin/python3 -V; /opt/conda/bin/python -V"}) == [
        ("unseen", "/usr/local/bin/run-stage.sh", "main.sh:1")
    ]
    files = {"main.sh": runs, "compile.sh": "", "clean.r": "x <- 1\ndownload.file(url, 'x.zip')\n"}
    assert needs_of(files) == [
        ("network", "download.file", "clean.r:2"),
        ("unseen", "/usr/local/bin/run-stage.sh", "main.sh:1"),
    ]
    hidden = Need(NeedKind.UNSEEN, "/opt/run.sh", "main.sh:1")
    assert find_had(hidden, THERE).has is None


def test_a_notebook_or_program_without_a_manifest_is_read_too_but_not_what_it_has_shown() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["wget it"]},
        {"cell_type": "code", "source": ["x = 1\n"], "outputs": [{"text": ["curl https://example.org"]}]},
        {"cell_type": "code", "source": ["y = 2\n", "%pip install rasters\n"]},
    ]
    for contents, need in (
        ({"model.ipynb": json.dumps(NOTEBOOK | {"cells": cells})}, ("pip install", "model.ipynb, code cell 2")),
        ({"main.py": "import numpy\nimport urllib3\n"}, ("urllib3", "main.py:2")),
    ):
        files = {name: text.encode() for name, text in contents.items()}
        reading = read_manifest(files, None, name="x", kinds=("jupyter", "python"))
        assert reading.manifest, reading.errors
        assert [(one.what, one.where) for one in find_needs(reading.manifest, files)] == [need]


@pytest.mark.parametrize(
    "line",
    [
        "# see /compute_shared",
        "cd $HOME/scratch",
        "x=${BASE}/scratch/a",
        "./projects/run",
        "https://a.org/project",
        "my_requests.getter(x)",
        "pd.read_csv('rain.csv')",
    ],
)
def test_what_only_looks_alike_is_no_need(line: str) -> None:
    assert needs_of({"main.sh": line, "compile.sh": ""}) == []


def test_data_and_gpus_are_told_by_the_manifest() -> None:
    gpus = {"gpus_per_node": {"min": 1, "max": 2, "default_value": 1, "step": 1}}
    needs = needs_of({"main.sh": "", "compile.sh": ""}, require_upload_data=True, slurm_input_rules=gpus)
    assert [kind for kind, _, _ in needs] == ["upload", "gpu"]


THERE = Facilities(
    images={"python": "docker://python"},
    mpi=("keeling",),
    gpus={"delta": 4, "keeling": 0},
    nodes={"delta": ((64, 256 << 30),), "keeling": ((4, 4 << 30), (20, 1 << 30))},
    unknown=("keeling",),
    data=("http", "https"),
    places={"/compute_shared": ("keeling",)},
    largest=1 << 30,
)
NO_PLACE = "there is no place cvmfs; an operator declares it: sublet place add cvmfs --on SYSTEM --path DIRECTORY"


@pytest.mark.parametrize(
    ("kind", "what", "has", "words", "bare"),
    [
        (NeedKind.MPI, "mpi4py", True, "on keeling", "no platform has Slurm"),
        (NeedKind.GPU, "gpus", True, "on delta (at most 4 in a node)", "no platform has GPUs"),
        (NeedKind.UPLOAD, "data", True, "from http:, https: addresses, a file of at most 1GiB", "no data is brought"),
        (NeedKind.MOUNT, "/cvmfs", False, NO_PLACE, NO_PLACE),
        (NeedKind.MOUNT, "/compute_shared", True, "as a place of keeling", "there is no place compute_shared"),
        (NeedKind.IMAGE, "python", True, "as docker://python", "it knows none by name"),
        (NeedKind.IMAGE, "mpich", False, "it knows python", "it knows none by name"),
        (NeedKind.NETWORK, "curl", None, "whether the nodes of keeling have a way out is not known", "no platform"),
    ],
)
def test_whether_a_need_is_met_is_told_with_where_or_why_not(
    kind: NeedKind, what: str, has: bool | None, words: str, bare: str
) -> None:
    need = Need(kind, what, "x:1")
    assert find_had(need, THERE) == Had(has, words)
    nothing = find_had(need, Facilities())
    assert (nothing.has, bare in nothing.words) == (False, True)


def large(memory: int, cores: int, **more: int) -> Manifest:
    sizes = {"memory_per_cpu": memory, "cpu_per_task": cores, **more}
    rules = {name: {"min": size, "max": size * 2, "default_value": size * 2, "step": 1} for name, size in sizes.items()}
    rules["memory_per_cpu"] |= {"unit": "GB"}
    said = {"name": "x", "container": "python", "execution_stage": "./main", "slurm_input_rules": rules}
    reading = read_manifest({"manifest.json": json.dumps(said).encode()})
    assert reading.manifest, reading.errors
    return reading.manifest


def test_a_node_is_told_of_where_none_is_large_enough_for_the_least_that_an_app_takes() -> None:
    assert find_lacking_node(large(16, 4), THERE) == [], "it fits on delta"
    here = Facilities(nodes={"keeling": THERE.nodes["keeling"]}, unknown=("keeling",))
    assert find_lacking_node(large(1, 4), here) == []
    [lacking] = find_lacking_node(large(16, 4), here)
    assert describe_need(lacking) == "a larger node: one with 4 cores and 64GiB of memory (manifest.json)"
    assert find_had(lacking, here) == Had(False, "the largest node of keeling has 4 cores and 4GiB of memory")
    assert find_lacking_node(large(1, 8), here), "its nodes with 20 cores have too little memory"
    assert find_lacking_node(large(1, 2, num_of_node=2, num_of_task=4), here) == [], "two nodes have two tasks each"
    far = replace(here, unknown=("keeling", "far"))
    assert find_had(lacking, far) == Had(None, "how large the nodes of far are is not known")
    assert find_lacking_node(large(16, 4), far) == []


def test_a_network_is_had_where_containers_have_one_and_not_where_none_do() -> None:
    need = Need(NeedKind.NETWORK, "curl", "x:1")
    some = find_had(need, Facilities(online=("own",), offline=("off",), unknown=("far",)))
    assert some.has
    assert some.words.startswith("containers on own have a network; containers on off have no network; whether")
    assert find_had(need, Facilities(offline=("off",))) == Had(False, "containers on off have no network")
