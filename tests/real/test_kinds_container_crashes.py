"""What a crash left of a container goes with the next one; what somebody still looks after stays."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

from sublet.kinds.container import DOCKER
from sublet.kinds.inside.container_runner import choose_runtime
from tests.real import images
from tests.real.container_tools import find_tools, images_kept, is_known, sh
from tests.real.programs import Place
from tests.real.visits import wait_for


@pytest.fixture
def podman() -> dict[str, str]:
    return find_tools("podman")


@pytest.fixture
def archive(tmp_path: Path) -> str:
    """Where an image is that `docker save` could have written."""
    images.docker_archive(tmp_path / "docker.tar")
    return f"docker-archive:{tmp_path / 'docker.tar'}"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    directory = tmp_path / f"kinds-{os.getpid()}-{time.monotonic_ns()}"  # containers are named after it
    directory.mkdir()
    return Place(directory)


def find_processes(place: Place) -> list[int]:
    """The monitor of a session's container, and its first process."""
    about = ["podman", "inspect", "-f", "{{.State.ConmonPid}} {{.State.Pid}}", f"sublet-{place.directory.name}"]
    return [int(pid) for pid in subprocess.check_output(about, text=True).split()]


def children(pid: int) -> list[int]:
    """The processes that one has started itself."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def run_another(place: Place, podman: dict[str, str], archive: str) -> None:
    """A container of another session, which tidies up at its end."""
    (place.directory / "next").mkdir()
    another = Place(place.directory / "next")
    code, _, err = another.run(another.program(DOCKER, sh(archive, "true"), podman))
    assert code == 0, err


def test_what_a_crash_left_is_removed_by_the_next_container(place: Place, podman: dict[str, str], archive: str) -> None:
    with place.start(place.program(DOCKER, sh(archive, "touch begun; sleep 1000"), podman)) as process:
        wait_for(lambda: (place.work / "begun").exists())
        for pid in (process.pid, *children(process.pid), *find_processes(place)):
            os.kill(pid, signal.SIGKILL)
        process.communicate(timeout=30)
    assert is_known(place.directory.name)
    run_another(place, podman, archive)
    assert not is_known(place.directory.name)
    assert place.directory.name not in images_kept()


@pytest.mark.parametrize("is_looked_after", [True, False])
def test_a_container_that_has_just_ended_is_left_to_who_started_it(
    place: Place, podman: dict[str, str], archive: str, is_looked_after: bool
) -> None:
    """Until its monitor has told Podman, it looks like what a crash left; here the monitor never does."""
    with tarfile.open(fileobj=io.BytesIO(images.layer())) as layer:
        layer.extractall(place.directory / "root", filter="tar")
    starter = os.getpid() if is_looked_after else find_dead_process()
    name = f"sublet-{place.directory.name}"
    words = (
        "--network=none",
        "--log-driver=none",
        "--ulimit=nofile=1024:1024",
        "--ulimit=nproc=1024:1024",
        f"--label=sublet={starter}",
        f"--name={name}",
        "--rootfs",
    )
    runtime = ("--runtime", choose_runtime()[0]) if choose_runtime()[0] else ()
    command = ("podman", *runtime, "run", "--detach", *words, str(place.directory / "root"), "sleep", "1000")
    subprocess.run(command, check=True, capture_output=True)
    try:
        for pid in find_processes(place):
            os.kill(pid, signal.SIGKILL)
        run_another(place, podman, archive)
        assert is_known(place.directory.name) is is_looked_after
    finally:
        subprocess.run(["podman", "rm", "--force", "--time=0", name], capture_output=True)


def find_dead_process() -> int:
    """The number of a process that was."""
    with subprocess.Popen(["true"]) as process:
        process.wait()
    return process.pid
