"""mpi4py on a real cluster over two nodes: as plain commands, in containers and in apps, by PMI2 and by PMIx."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sublet.client import Client
from tests.real import images, mpi
from tests.real.researchers import at
from tests.serving import eventually
from tests.sites import Site


@pytest.fixture(scope="module")
def client(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with at(site, tmp_path_factory.mktemp("own") / "home") as person:
        client = person.serving.start()
        assert person.signs_in() == 0, person.said
        eventually(lambda: client.ask(run=["true"], platform=site.name).result == "YES", "an offer", 90)
        yield client


@pytest.fixture
def shared(site: Site) -> Iterator[Path]:
    """A folder that all machines of the site see."""
    folder = Path(site.facts["scratch"]) / "mpi"
    folder.mkdir(mode=0o755)
    yield folder
    shutil.rmtree(folder)


def needs(kind: str) -> None:
    if not images.made_busybox():
        pytest.skip("busybox-static is not installed")
    if missing := mpi.find_missing(kind):
        pytest.skip(f"{missing} is not installed")
    if mpi.version_of("/usr/bin/python3") != mpi.version_of(sys.executable):
        pytest.skip("mpi4py was installed for another Python than the system's")


@pytest.mark.engines
@pytest.mark.parametrize(("kind", "manager"), [("mpich", "pmi2"), ("openmpi", "pmix")])
def test_an_mpi_program_runs_over_two_nodes_as_a_command_a_container_and_an_app(
    client: Client, site: Site, tmp_path: Path, shared: Path, kind: str, manager: str
) -> None:
    needs(kind)
    offered = site.does("researcher@login", "srun", "--mpi=list")
    if manager not in offered.stdout + offered.stderr:
        pytest.skip(f"this Slurm has no {manager}")
    mpi.mpi_archive(tmp_path / "mpi.tar", kind)
    image = f"file://{tmp_path}/mpi.tar"
    plain = ["srun", f"--mpi={manager}", "/usr/bin/python3", "-c", mpi.PROGRAM, kind]
    wishes: list[dict[str, Any]] = [
        {"run": plain, "env": mpi.lay_out(shared, kind)},
        {"image": image, "run": ["python3", "/opt/program.py", kind], "tasks": 4},
        mpi.propose(client, kind, image) | {"tasks": 4},
    ]
    sessions = [mpi.start(client, site, **wish) for wish in wishes]
    for session in sessions:
        assert mpi.lines_of(session) == mpi.expected(4, 2)
