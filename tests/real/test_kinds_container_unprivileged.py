"""Containers that somebody without privileges runs."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sublet.booking.model.job import Mount, Program
from sublet.kinds.container import DOCKER
from tests.ports import free_port
from tests.real import images
from tests.real.container_tools import TOOLS, find_tools, sh
from tests.real.programs import Place
from tests.real.visits import answers, get, wait_for


@pytest.fixture
def other_user(tmp_path: Path) -> Iterator[tuple[int, dict[str, str]]]:
    """Somebody without privileges, with a home and a run-time directory of their own."""
    if os.getuid():
        pytest.skip("only root can become somebody else")
    home = Path("/var/tmp") / f"sublet-{os.getpid()}"
    for folder in (home, home / "run"):
        folder.mkdir(mode=0o700)
        os.chown(folder, 65534, 65534)
    yield 65534, {"HOME": str(home), "XDG_RUNTIME_DIR": str(home / "run"), "USER": "nobody"}
    pause = home / "run" / "libpod" / "tmp" / "pause.pid"
    if pause.exists():  # Podman keeps a process for each person without privileges
        os.kill(int(pause.read_text()), signal.SIGTERM)
    shutil.rmtree(home)


def start_as(user: tuple[int, dict[str, str]], program: Program, place: Place, **more: str) -> subprocess.Popen[bytes]:
    """Start a program as somebody without privileges, to whom all that it needs belongs."""
    uid, environment = user
    for path in (place.directory, *place.directory.rglob("*"), *Path(environment["HOME"]).glob("*.tar")):
        os.chown(path, uid, uid)
    if not os.path.exists("/usr/bin/python3"):
        pytest.skip("there is no Python for everybody")
    argv = ("setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "/usr/bin/python3", *program.argv[1:])
    env = {"PATH": os.environ["PATH"], **environment, **program.environment, **more}
    return subprocess.Popen(argv, cwd=place.work, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.fixture
def their_place(other_user: tuple[int, dict[str, str]]) -> Place:
    """A session's directory in the home of somebody without privileges."""
    session = Path(other_user[1]["HOME"]) / "session"
    session.mkdir()
    return Place(session)


@pytest.mark.parametrize("name", list(TOOLS))
def test_somebody_without_privileges_can_run_it_too(
    name: str, other_user: tuple[int, dict[str, str]], their_place: Place
) -> None:
    tools, home = find_tools(name), other_user[1]["HOME"]
    images.docker_archive(Path(home) / "image.tar")
    (their_place.directory / "data" / "cube").mkdir(parents=True)
    script = "touch /input/b || echo refused; id -u; echo mine > out.txt"
    mounts = (Mount("data/cube", "/input"),)
    program = their_place.program(DOCKER, sh(f"docker-archive:{home}/image.tar", script), tools, mounts=mounts)
    with start_as(other_user, program, their_place) as process:
        out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert out.startswith(b"refused\n")
    assert (their_place.work / "out.txt").stat().st_uid == other_user[0]


def test_somebody_without_privileges_reaches_a_port_whatever_network_there_is(
    other_user: tuple[int, dict[str, str]], their_place: Place
) -> None:
    podman, home, port = find_tools("podman"), other_user[1]["HOME"], free_port()
    images.docker_archive(Path(home) / "image.tar")
    serve = "echo hello > index.html; exec /bin/httpd -f -p 8888 -h /work"
    network = {"ports": [{"access": True, "internal": {"port": 8888}}]}
    executable = sh(f"docker-archive:{home}/image.tar", serve, network=network)
    program = their_place.program(DOCKER, executable, podman, secret="s3cret", base_url="/connect/x/")
    with start_as(other_user, program, their_place, SUBLET_PORT=str(port)) as process:
        try:
            wait_for(lambda: answers(port))
            bearer = {"Authorization": "Bearer s3cret"}
            assert get(port, "/connect/x/index.html", bearer)[::2] == (200, b"hello\n")
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
