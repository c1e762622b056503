"""A small MPI program for either library, and a container image with Python, the program and one of the libraries.

The program calls the library itself, by its C interface, so that it needs neither a compiler nor a Python package. The
image is made of what is installed here; no registry is asked.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sublet.client import Client
from sublet.client.calls import trials
from sublet.core.tree import TreeFile, archive_of
from tests.real import images
from tests.real.jupyter_image import libraries_of
from tests.sites import Site

LIBRARIES = {"mpich": "libmpich.so.12", "openmpi": "libmpi.so.40"}
FOLDER = Path("/usr/lib/x86_64-linux-gnu")
PLUGINS = {"mpich": ("ucx/*.so*",), "openmpi": ("openmpi/lib/openmpi3/*.so", "pmix2/lib/pmix/*.so", "ucx/*.so*")}
TEXTS = {"mpich": (), "openmpi": ("/usr/share/openmpi", "/usr/share/pmix", "/etc/openmpi")}
INTEGERS = 1 << 20  # enough to be sent in pieces

MANIFEST = """\
name: mpi-{kind}
image: {kind}
resources: {{nodes: 1-2, tasks: 1-4, memory: 300MiB-400MiB, time: 1m-5m}}
stages:
  execution: {{script: 'python3 /opt/program.py {kind}', each: task}}
"""

PROGRAM = f"""
import ctypes, os, socket, sys

LIBRARIES = {LIBRARIES!r}
kind = sys.argv[1]
os.environ["UCX_TLS"] = "tcp,self"  # nodes of the testbed have one kernel: UCX takes them for one machine
mpi = ctypes.CDLL(LIBRARIES[kind], mode=ctypes.RTLD_GLOBAL)
if kind == "mpich":  # handles are numbers
    world, integer, total = (ctypes.c_int(number) for number in (0x44000000, 0x4C000405, 0x58000003))
else:  # handles are addresses
    names = ("ompi_mpi_comm_world", "ompi_mpi_int", "ompi_mpi_op_sum")
    world, integer, total = (ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(mpi, name))) for name in names)
assert mpi.MPI_Init(None, None) == 0
rank, size = ctypes.c_int(), ctypes.c_int()
mpi.MPI_Comm_rank(world, ctypes.byref(rank))
mpi.MPI_Comm_size(world, ctypes.byref(size))
numbers, sums = ((ctypes.c_int * {INTEGERS})(*[rank.value + 1] * {INTEGERS}) for _ in range(2))
assert mpi.MPI_Allreduce(numbers, sums, {INTEGERS}, integer, total, world) == 0
assert len(set(sums)) == 1
print(f"rank {{rank.value}} of {{size.value}} on node {{os.environ['SLURM_NODEID']}}: {{sums[0]}}", flush=True)
mpi.MPI_Finalize()
"""


def expected(tasks: int, nodes: int) -> list[str]:
    """What the program prints in so many tasks, in order of rank."""
    total = tasks * (tasks + 1) // 2
    return [f"rank {rank} of {tasks} on node {rank * nodes // tasks}: {total}" for rank in range(tasks)]


def find_missing(kind: str) -> str:
    """The library that would be needed and is not installed here; empty if all is there."""
    return "" if (FOLDER / LIBRARIES[kind]).exists() else LIBRARIES[kind]


def mpi_archive(path: Path, kind: str) -> str:
    """An image with the program as /opt/program.py, as `docker save` writes it; returns the image's id."""
    environment = ["PATH=/usr/local/bin:/bin", "LANG=C.UTF-8"]
    return images.docker_archive(path, images.layer(more=dict(_files(kind))), Entrypoint=[], Env=environment)


def _files(kind: str) -> Iterator[tuple[str, Path | bytes]]:
    """Path in the image → a file here, or what it says."""
    python = Path(sys.executable).resolve()
    modules = _modules(python)
    library = FOLDER / LIBRARIES[kind]
    plugins = [file for pattern in PLUGINS[kind] for file in FOLDER.glob(pattern)]
    programs = [python, library, *plugins, *(file for file in modules if ".so" in file.name)]
    for file in (*programs, *modules, *libraries_of(programs)):
        yield str(file), file
    for folder in TEXTS[kind]:
        yield from ((str(file), file) for file in Path(folder).rglob("*") if file.is_file())
    yield "/usr/local/bin/python3", b"#!/bin/sh\nexec " + str(python).encode() + b' "$@"\n'
    yield "/opt/program.py", PROGRAM.encode()


def _modules(python: Path) -> list[Path]:
    """The modules of the standard library that the program imports, asked of Python itself."""
    ask = "import ctypes, encodings.utf_8, encodings.ascii, encodings.latin_1, os, socket, sys\n"
    ask += "print(*(getattr(m, '__file__', None) or '' for m in list(sys.modules.values())), sep='\\n')"
    said = subprocess.run([python, "-I", "-S", "-c", ask], capture_output=True, text=True, check=True).stdout
    return sorted({Path(line) for line in said.splitlines() if line.startswith("/")})


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
