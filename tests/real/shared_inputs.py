"""What jobs of an annex share, beside images and files: directories, programs, and what they name by an address."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.access_points import Person
from tests.passages import passage
from tests.real import images
from tests.real.workers import SMALL, Worker
from tests.registries import registry
from tests.web_source import serve_source

TOOLS = f"""executable = solver
transfer_input_files = env, in/
output = tools.$(Cluster).$(Process).out
{SMALL.replace("transfer_executable = false", "").replace("1M", "99M")}
queue 2
"""
ADDRESS = f"""executable = /bin/sh
arguments = "-c 'sha256sum <cube.dat | cut -c 1-64; sed -n ""s/^Disk = //p"" $_CONDOR_MACHINE_AD'"
transfer_input_files = {{address}}
output = address.$(Cluster).$(Process).out
{SMALL.replace("request_disk = 1M", "request_disk = 200M")}
queue 3
"""
PULLED = f"""universe = container
container_image = docker://{{image}}
executable = /bin/sh
arguments = "-c 'echo $WORD'"
output = pulled.$(Cluster).$(Process).out
{SMALL.replace("16M", "64M")}
queue 2
"""
SOLVER = "#!/bin/sh\necho ${0##*/}\nenv/bin/tool\ncat part\nexit 0\n"


@contextmanager
def serving_files(person: Person, folder: str) -> Iterator[str]:
    """A directory of theirs, over HTTP at `ap`; what is asked of it is written to `web.log`."""
    serve = f"cd {folder} && exec python3 -u -m http.server -b 127.0.0.1 8765 2>$HOME/web.log"
    with subprocess.Popen(person.words("sh", "-c", serve), stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        yield "http://127.0.0.1:8765"
        process.terminate()


def share_directories_and_programs(worker: Worker) -> None:
    """A directory, what is in another one, and a program: each crosses once, and is never stale."""
    site = worker.person.site
    worker.runs("mkdir", "-p", "env/bin", "in")
    (worker.place / worker.has("env/bin/tool", "#!/bin/sh\necho first\n")).chmod(0o755)
    for name in ("env/blob", "in/blob"):
        (worker.place / name).write_bytes(name.encode() * (3 << 20))
    worker.has("in/part", "part\n")
    (worker.place / "solver").write_bytes(SOLVER.encode() + b"#" * (17 << 20))
    (worker.place / "solver").chmod(0o755)
    for word in ("first", "second"):
        (worker.place / "env/bin/tool").write_text(f"#!/bin/sh\necho {word}\n")
        cluster = worker.submits(worker.has("tools.sub", TOOLS), "pictures")
        sent = ("condor_history", cluster, "-af", "TransferInputStats.CedarSizeBytesTotal", "ExitCode")
        site.wait(lambda: len(worker.condor(*sent).splitlines()) == 2, 90)  # noqa: B023
        assert {int(line.split()[0]) < 1000 for line in worker.condor(*sent).splitlines()} == {True}
        said = [(worker.place / f"tools.{cluster}.{n}.out").read_text() for n in (0, 1)]
        assert said == [f"solver\n{word}\npart\n"] * 2


def share_addresses(worker: Worker) -> None:
    """What jobs name by an address is fetched by their system once; and a node's disk is given as it was asked for."""
    site = worker.person.site
    content = os.urandom(3 << 20)
    with serve_source(".".join([*site.host.split(".")[:3], "1"])) as source:
        address = source.put("/cube.dat", content)
        cluster = worker.submits(worker.has("address.sub", ADDRESS.format(address=address)), "pictures")
        ended = ("condor_history", cluster, "-af", "ExitCode")
        site.wait(lambda: worker.condor(*ended).split() == ["0"] * 3, 90)
        assert len(source.gets("/cube.dat")) == 1
    for n in range(3):
        digest, disk = (worker.place / f"address.{cluster}.{n}.out").read_text().split()
        assert digest == hashlib.sha256(content).hexdigest()
        assert int(disk) >= 200 << 10  # KiB


def share_registry_images(worker: Worker) -> None:
    """Jobs that name an image of a registry: their system pulls it once, and anew when its tag was moved."""
    site = worker.person.site
    site.on("researcher@login", "sh", "-c", "echo export APPTAINER_NOHTTPS=true >>~/.bashrc")  # no certificate here
    with registry() as shop, passage(site, "ap", shop.server_port), passage(site, "login", shop.server_port):
        image = f"{shop.address}/tools/job:1"
        for word in ("first", "second"):
            images.oci_archive(worker.place / f"{word}.tar", Entrypoint=[], Env=["PATH=/bin", f"WORD={word}"])
            shop.push("tools/job", "1", worker.place / f"{word}.tar")
            fetched = shop.fetched()
            cluster = worker.submits(worker.has("pulled.sub", PULLED.format(image=image)), "pictures")
            ended = ("condor_history", cluster, "-af", "ExitCode")
            site.wait(lambda: len(worker.condor(*ended).split()) == 2, 90)  # noqa: B023
            said = [(worker.place / f"pulled.{cluster}.{n}.out").read_text() for n in (0, 1)]
            assert said == [f"{word}\n"] * 2, worker.condor(*ended)
            assert shop.fetched() - fetched == 2, "its configuration and its layer, once for both jobs"
        shop.push_file("tools/file", "1", worker.place / "tool.sif")
        file = PULLED.format(image=f"{shop.address}/tools/file:1").replace("docker:", "oras:")
        cluster = worker.submits(worker.has("file.sub", file.replace("echo $WORD", "cat /app/doc")), "pictures")
        site.wait(lambda: len(worker.condor("condor_history", cluster, "-af", "ExitCode").split()) == 2, 90)
        assert (worker.place / f"pulled.{cluster}.0.out").read_text() == "made for tests\n"
    away = PULLED.format(image="127.0.0.1:9/none:1").replace("queue 2", "requirements = TARGET.Colour =?= 5\nqueue")
    cluster = worker.submits(worker.has("away.sub", away), "pictures")
    site.wait(lambda: "Its image is pulled by its node" in worker.explained(cluster), 60)
    worker.types("job", "remove", cluster)
