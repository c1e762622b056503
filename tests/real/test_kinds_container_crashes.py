"""What a crash left of a container goes with the next one; what somebody still looks after stays."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sublet.kinds.container import DOCKER
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


@contextmanager
def frozen(pids: list[int]) -> Iterator[None]:
    """Processes that stand still while the block runs."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


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


def test_a_container_that_has_just_ended_is_left_to_who_started_it(
    place: Place, podman: dict[str, str], archive: str
) -> None:
    """Until its monitor has told Podman, it looks like what a crash left."""
    with place.start(place.program(DOCKER, sh(archive, "touch begun; sleep 1000"), podman)) as process:
        wait_for(lambda: (place.work / "begun").exists())
        with frozen(children(process.pid)):
            for pid in find_processes(place):
                os.kill(pid, signal.SIGKILL)
            run_another(place, podman, archive)
            is_left, is_image_left = is_known(place.directory.name), place.directory.name in images_kept()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert (is_left, is_image_left) == (True, True)
    assert not is_known(place.directory.name)
