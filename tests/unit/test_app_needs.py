"""What an app needs beside its image is told from its manifest and from the code that its stages run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sublet.core.app_needs import describe_need, find_needs
from sublet.wire.manifests.reader import read_manifest

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
    ],
)
def test_a_line_of_the_code_that_is_run_says_what_it_needs(line: str, need: tuple[str, str]) -> None:
    files = {"main.sh": "python src/model.py", "src/model.py": f"first\n{line}\n", "compile.sh": ""}
    assert needs_of(files) == [(*need, "src/model.py:2")]
    files = {"main.sh": "", "compile.sh": "", "images/Dockerfile": line, "README.md": line}
    assert needs_of(files) == [], "nothing runs these"


@pytest.mark.parametrize(
    "line",
    ["# see /compute_shared", "cd $HOME/scratch", "x=${BASE}/scratch/a", "./projects/run", "https://a.org/project"],
)
def test_what_only_looks_alike_is_no_need(line: str) -> None:
    assert needs_of({"main.sh": line, "compile.sh": ""}) == []


def test_data_and_gpus_are_told_by_the_manifest() -> None:
    gpus = {"gpus_per_node": {"min": 1, "max": 2, "default_value": 1, "step": 1}}
    needs = needs_of({"main.sh": "", "compile.sh": ""}, require_upload_data=True, slurm_input_rules=gpus)
    assert [kind for kind, _, _ in needs] == ["upload", "gpu"]
