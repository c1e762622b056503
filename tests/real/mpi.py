"""A small MPI program with mpi4py for either library, and a container image with Python, the program and one of them.

mpi4py is the package from PyPI, as people install it: it finds out by itself which library is there. The image is made
of what is installed here; no registry is asked.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sublet.apps.calls import trials
from sublet.apps.model.tree import TreeFile, archive_of
from sublet.client import Client
from tests.real import images
from tests.real.jupyter_image import libraries_of
from tests.sites import Site

LIBRARIES = {"mpich": "libmpich.so.12", "openmpi": "libmpi.so.40"}
CALLED = {"mpich": "libmpi.so.12", "openmpi": "libmpi.so.40"}  # what mpi4py looks for; Debian has another name for one
FOLDER = Path("/usr/lib/x86_64-linux-gnu")
PLUGINS = {"mpich": ("ucx/*.so*",), "openmpi": ("openmpi/lib/openmpi3/*.so", "pmix2/lib/pmix/*.so", "ucx/*.so*")}
TEXTS = {"mpich": (), "openmpi": ("/usr/share/openmpi", "/usr/share/pmix", "/etc/openmpi")}
PLACE = "/opt/python"  # in the image: mpi4py
INTEGERS = 1 << 20  # enough to be sent in pieces

MANIFEST = """\
name: mpi-{kind}
image: {kind}
resources: {{nodes: 1-2, tasks: 1-4, memory: 300MiB-400MiB, time: 1m-5m}}
stages:
  execution: {{script: 'python3 /opt/program.py {kind}', each: task}}
"""

PROGRAM = f"""
import os, sys
os.environ["UCX_TLS"] = "tcp,self"  # nodes of the testbed have one kernel: UCX takes them for one machine
from array import array
from mpi4py import MPI

world = MPI.COMM_WORLD
library = MPI.Get_library_version().partition(" v")[0].replace(" ", "").lower()
assert library.startswith(sys.argv[1]), library
numbers, sums = (array("i", [world.rank + 1]) * {INTEGERS} for _ in range(2))
world.Allreduce(numbers, sums)
assert len(set(sums)) == 1
print(f"rank {{world.rank}} of {{world.size}} on node {{os.environ['SLURM_NODEID']}}: {{sums[0]}}", flush=True)
if library.startswith("mpich"):
    world.Allreduce(sums, numbers)  # all have printed; then without MPI_Finalize, in which MPICH 4.0 may wait for ever
    os._exit(0)  # over UCX, with Sublet and without
"""


def expected(tasks: int, nodes: int) -> list[str]:
    """What the program prints in so many tasks, in order of rank."""
    total = tasks * (tasks + 1) // 2
    return [f"rank {rank} of {tasks} on node {rank * nodes // tasks}: {total}" for rank in range(tasks)]


def find_missing(kind: str) -> str:
    """What would be needed and is not installed here; empty if all is there."""
    if not (FOLDER / LIBRARIES[kind]).exists():
        return LIBRARIES[kind]
    return "" if find_spec("mpi4py") else "mpi4py"


def version_of(python: str) -> str:
    """Which Python that is, as far as packages for one fit another."""
    ask = "import sys; print(*sys.version_info[:2])"
    return subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout


def lay_out(folder: Path, kind: str, above: str = "/scratch") -> dict[str, str]:
    """Put mpi4py into a folder, with the library by the name that it looks for; the variables that say where it is."""
    shutil.copytree(_package(), folder / "mpi4py")
    (folder / CALLED[kind]).symlink_to(FOLDER / LIBRARIES[kind])
    return {"PYTHONPATH": f"{above}/{folder.name}", "LD_LIBRARY_PATH": f"{above}/{folder.name}"}


def _package() -> Path:
    spec = find_spec("mpi4py")
    assert spec
    assert spec.origin
    return Path(spec.origin).parent


def mpi_archive(path: Path, kind: str) -> str:
    """An image with the program as /opt/program.py, as `docker save` writes it; returns the image's id."""
    environment = ["PATH=/usr/local/bin:/bin", "LANG=C.UTF-8", f"PYTHONPATH={PLACE}"]
    return images.docker_archive(path, images.layer(more=dict(_files(kind))), Entrypoint=[], Env=environment)


def _files(kind: str) -> Iterator[tuple[str, Path | bytes]]:
    """Path in the image → a file here, or what it says."""
    python = Path(sys.executable).resolve()
    modules = _modules(python, kind)
    library = FOLDER / LIBRARIES[kind]
    plugins = [file for pattern in PLUGINS[kind] for file in FOLDER.glob(pattern)]
    package = [file for file in _package().rglob("*") if file.suffix == ".py" or f".{kind}." in file.name]
    programs = [python, *plugins, *(file for file in modules if ".so" in file.name)]
    for file in (*programs, *modules, *libraries_of([*programs, library, *package])):
        yield str(file), file
    yield str(FOLDER / CALLED[kind]), library
    for file in package:
        yield f"{PLACE}/mpi4py/{file.relative_to(_package())}", file
    for folder in TEXTS[kind]:
        yield from ((str(file), file) for file in Path(folder).rglob("*") if file.is_file())
    yield "/usr/local/bin/python3", b"#!/bin/sh\nexec " + str(python).encode() + b' "$@"\n'
    yield "/opt/program.py", PROGRAM.encode()


def _modules(python: Path, kind: str) -> list[Path]:
    """The modules of the standard library that the program imports, asked of Python itself; MPI is not begun."""
    ask = "import array, encodings.ascii, encodings.latin_1, encodings.utf_8, os, pickle, sys, threading, mpi4py\n"
    ask += "mpi4py.rc.initialize = mpi4py.rc.finalize = False\nimport mpi4py.MPI\n"
    ask += "print(*(getattr(m, '__file__', None) or '' for m in list(sys.modules.values())), sep='\\n')"
    with TemporaryDirectory() as place:
        environment = lay_out(Path(place, "mpi"), kind, place)
        said = subprocess.run([python, "-S", "-c", ask], capture_output=True, text=True, check=True, env=environment)
    found = {Path(line) for line in said.stdout.splitlines() if line.startswith("/")}
    return sorted(file for file in found if not file.is_relative_to(place))


def propose(client: Client, kind: str, image: str) -> dict[str, Any]:
    """The program as an app on trial; what to ask for to run it."""
    manifest = MANIFEST.format(kind=kind)
    trial = client.do(trials.try_app(archive_of([TreeFile("sublet.yaml", manifest.encode())]), image=image))
    return {"app": trial.name}


def start(client: Client, site: Site, **wishes: Any) -> Any:
    """A session on two nodes, accepted."""
    sizes = {"nodes": 2, "cores": 2, "memory": "400MiB", "time": "4m", "platform": site.name}
    offers = client.ask(**(sizes | wishes))
    assert offers, offers.reasons
    return offers[0].accept()


def lines_of(session: Any) -> list[str]:
    """What a session printed, in order of rank, if it ended well."""
    session.wait(timeout=180)
    assert session.exit_code == 0, (session.end, "".join(session.logs(stream="stderr")))
    return sorted("".join(session.logs()).splitlines())
