"""Images are really run, by Podman and by Charliecloud: what is seen, what is kept out, and what is left behind."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.job import Mount
from sublet.booking.model.request import Executable
from sublet.kinds.container import DOCKER, SINGULARITY
from sublet.kinds.inside.container_images import alone
from tests.ports import free_port
from tests.real import images
from tests.real.container_tools import TOOLS, docker, find_tools, images_kept, is_known, sh
from tests.real.programs import Place
from tests.real.visits import answers, get, wait_for

NO_NETWORK = "sublet: the container has no network:"  # said where others than root can't open /dev/net/tun
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(params=list(TOOLS))
def tools(request: pytest.FixtureRequest) -> dict[str, str]:
    return find_tools(request.param)


@pytest.fixture
def podman() -> dict[str, str]:
    return find_tools("podman")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the images are."""
    return tmp_path_factory.mktemp("images")


@pytest.fixture(scope="module")
def archive(made: Path) -> tuple[str, str]:
    """The location and id of an image that `docker save` could have written."""
    path = made / "docker.tar"
    return f"docker-archive:{path}", images.docker_archive(path)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    directory = tmp_path / f"kinds-{os.getpid()}-{time.monotonic_ns()}"  # containers are named after it
    directory.mkdir()
    return Place(directory)


def run(place: Place, tools: dict[str, str], executable: Executable, **changes: Any) -> tuple[int, str, str]:
    kind = DOCKER if executable.kind == DOCKER.name else SINGULARITY
    code, out, err = place.run(place.program(kind, executable, tools, **changes))
    return code, out, "".join(line for line in err.splitlines(keepends=True) if not line.startswith(NO_NETWORK))


def nothing_is_left(place: Place) -> bool:
    """Beside the session's own directories there is nothing, and Podman knows no container of it."""
    only_its_own = {path.name for path in place.directory.iterdir()} <= {"work", "data", "unstarted"}
    return only_its_own and not is_known(place.directory.name) and place.directory.name not in images_kept()


def test_an_image_runs_its_own_command_unless_another_is_given(
    place: Place, tools: dict[str, str], archive: tuple[str, str]
) -> None:
    location, digest = archive
    assert run(place, tools, docker(location, digest=digest)) == (0, "entry by default\n", "")
    assert run(place, tools, docker(location, command=["$(id)", "; b"])) == (0, "entry $(id) ; b\n", "")
    assert nothing_is_left(place)


def test_the_exit_code_is_the_containers_own(place: Place, tools: dict[str, str], archive: tuple[str, str]) -> None:
    assert run(place, tools, sh(archive[0], "echo out; echo err >&2; exit 7")) == (7, "out\n", "err\n")


@pytest.mark.parametrize("code", [125, 126, 127])
def test_an_exit_code_that_container_tools_use_too_is_still_the_programs(
    place: Place, tools: dict[str, str], archive: tuple[str, str], code: int
) -> None:
    script = f"echo 'Error: network trouble of my own' >&2; exit {code}"
    assert run(place, tools, sh(archive[0], script)) == (code, "", "Error: network trouble of my own\n")
    assert not (place.directory / "unstarted").exists()


@pytest.mark.parametrize(("program", "reason"), [("/nope", "No such file"), ("/app/doc", "Permission denied")])
def test_a_container_that_could_not_be_started_is_told_in_the_tools_words(
    place: Place, tools: dict[str, str], archive: tuple[str, str], program: str, reason: str
) -> None:
    code, out, err = run(place, tools, docker(archive[0], entrypoint=program))
    assert (code, out) == (125, ""), err
    kind, words = (place.directory / "unstarted").read_text().splitlines()
    assert kind == "not-started", "it is no exit of the program's"
    assert words.startswith('"the container could not be started: ')
    assert reason.lower() in words.lower()
    assert reason.lower() in err.lower()
    assert nothing_is_left(place)


def test_environment_gets_in_as_it_is_and_the_accounts_own_stays_out(
    place: Place, tools: dict[str, str], archive: tuple[str, str]
) -> None:
    given = {"PLAIN": "a b", "ODD": '"$(id)" # x', "LINES": "1\n2", "FROM_IMAGE": "no"}
    program = place.program(DOCKER, sh(archive[0], "env", environment=given), tools)
    code, out, _ = place.run(program, OUTSIDE_SECRET="hidden")
    assert code == 0
    assert {"PLAIN=a b", 'ODD="$(id)" # x', "LINES=1", "2", "FROM_IMAGE=no"} <= set(out.splitlines())
    assert "OUTSIDE_SECRET" not in out
    if "podman" in tools:
        left = subprocess.run([tools["podman"], "secret", "ls"], capture_output=True, text=True, check=True).stdout
        assert f"sublet-{place.directory.name}" not in left


def test_what_is_written_in_the_working_directory_is_a_result(
    place: Place, tools: dict[str, str], archive: tuple[str, str]
) -> None:
    assert run(place, tools, sh(archive[0], "pwd; echo done > $SUBLET_WORK/out.txt"))[:2] == (0, "/work\n")
    assert (place.work / "out.txt").read_text() == "done\n"


def test_volumes_are_mounted_and_read_only_ones_can_not_be_written(
    place: Place, tools: dict[str, str], archive: tuple[str, str]
) -> None:
    for name in ("cube", "scratch"):
        (place.directory / "data" / name).mkdir(parents=True)
    (place.directory / "data" / "cube" / "a").write_text("data\n")
    mounts = (
        Mount("data/cube", "/input"),
        Mount("data/cube/a", "/one/alone"),
        Mount("data/cube/a", "/one/beside"),
        Mount("data/scratch", "/home", read_only=False),
    )
    script = "cat /input/a /one/alone /one/beside; touch /input/b || echo refused; echo kept > /home/c"
    code, out, _ = run(place, tools, sh(archive[0], script), mounts=mounts)
    assert (code, out) == (0, "data\ndata\ndata\nrefused\n")
    assert not (place.directory / "data" / "cube" / "b").exists()
    assert (place.directory / "data" / "scratch" / "c").read_text() == "kept\n"


def test_the_machines_files_are_not_seen(place: Place, tools: dict[str, str], archive: tuple[str, str]) -> None:
    (place.directory / "job.json").write_text("secret")
    _, out, _ = run(place, tools, sh(archive[0], f"cat {place.directory}/job.json {__file__}; ls /home /tmp"))
    assert out.strip() in ("/home:\n\n/tmp:", "/home:\n\n/tmp:\n")
    (place.directory / "job.json").unlink()


def test_an_image_by_its_manifest_is_the_very_one(place: Place, tools: dict[str, str], made: Path) -> None:
    digest = images.oci_archive(made / "oci.tar", WorkingDir="/app")
    location = f"oci-archive:{made}/oci.tar"
    assert run(place, tools, sh(location, "pwd; cat doc", digest=digest)) == (0, "/app\nmade for tests\n", "")
    code, _, err = run(place, tools, sh(location, "true", digest="sha256:" + "0" * 64))
    assert code == 125
    assert "its digest is not sha256:000" in err


def test_an_archive_whose_layer_was_changed_is_refused(place: Place, tools: dict[str, str], made: Path) -> None:
    path = made / "changed.tar"
    digest = images.docker_archive(path, Labels={"of": "this test"})  # no other has put it into a store
    data = path.read_bytes()
    path.write_bytes(data.replace(b"made for tests\n", b"evil for tests\n"))
    code, _, err = run(place, tools, docker(f"docker-archive:{path}", digest=digest))
    assert code == 125
    assert "not those that its configuration names" in err


def test_the_first_location_that_works_is_used_and_the_others_are_told(
    place: Place, tools: dict[str, str], archive: tuple[str, str], made: Path
) -> None:
    (made / "no.tar").write_bytes(b"not a tar")
    executable = docker("docker-archive:/not/there.tar", f"docker-archive:{made}/no.tar", archive[0])
    code, out, err = run(place, tools, executable)
    assert (code, out) == (0, "entry by default\n")
    assert err.count("could not pull the image") == 2
    code, _, err = run(place, tools, docker("docker-archive:/not/there.tar"))
    assert code == 125
    assert "No such file" in err


def test_a_directory_is_a_file_system_to_run_in(place: Place, tools: dict[str, str], tmp_path: Path) -> None:
    root = images.directory(tmp_path / "root")
    before = sorted(path.name for path in root.iterdir())
    assert run(place, tools, docker(f"dir:{root}", command=["/bin/cat", "/app/doc"])) == (0, "made for tests\n", "")
    code, _, err = run(place, tools, docker(f"dir:{root}", digest="sha256:" + "0" * 64, command=["/bin/id"]))
    assert code == 125
    assert "no digest that could be checked" in err
    assert sorted(path.name for path in root.iterdir()) == before


def test_a_singularity_image_runs_without_singularity(place: Place, tools: dict[str, str], made: Path) -> None:
    if not shutil.which("mksquashfs") or "unsquashfs" not in tools:
        pytest.skip("squashfs-tools is not installed")
    path = made / f"{os.path.basename(place.directory)}.sif"
    images.sif(path, runscript='echo "run: $1 $GREETING"; exit 4\n')
    fields = {"location": str(path), "command": ["a b"], "environment": {"GREETING": "hello"}}
    assert run(place, tools, Executable("singularity-container", fields=fields)) == (4, "run: a b hello\n", "")
    path.write_bytes(b"no file system here")
    code, _, err = run(place, tools, Executable("singularity-container", fields=fields))
    assert code == 125
    assert "no SquashFS" in err
    assert (place.directory / "unstarted").read_text().startswith("staging-failed\n"), "it is no exit of the program's"
    assert nothing_is_left(place)


def test_a_container_is_stopped_with_the_job(place: Place, tools: dict[str, str], archive: tuple[str, str]) -> None:
    script = "trap 'echo stopping; exit 3' TERM; touch begun; while true; do sleep 0.1; done"
    program = place.program(DOCKER, sh(archive[0], script), tools)
    with place.start(program) as process:
        wait_for(lambda: (place.work / "begun").exists())
        process.send_signal(signal.SIGTERM)
        out, _ = process.communicate(timeout=30)
    assert out == b"stopping\n"
    assert process.returncode == 3
    assert nothing_is_left(place)


def test_a_container_that_ignores_the_signal_is_killed(
    place: Place, podman: dict[str, str], archive: tuple[str, str]
) -> None:
    script = "trap '' TERM; touch begun; while true; do sleep 0.1; done"
    with place.start(place.program(DOCKER, sh(archive[0], script), podman)) as process:
        wait_for(lambda: (place.work / "begun").exists())
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGKILL
    assert nothing_is_left(place)


def test_sessions_with_the_same_archive_do_not_take_it_from_each_other(
    tmp_path: Path, podman: dict[str, str], archive: tuple[str, str]
) -> None:
    programs = []
    for number in range(4):
        directory = tmp_path / f"home-{number}" / f"kinds-{os.getpid()}-{time.monotonic_ns()}"  # of several services
        directory.mkdir(parents=True)
        place = Place(directory)
        programs.append((place, place.program(DOCKER, docker(archive[0], command=[str(number)]), podman)))
    started = [place.start(program) for place, program in programs]
    said = [process.communicate(timeout=60) for process in started]
    assert [out for out, _ in said] == [f"entry {number}\n".encode() for number in range(4)], said
    assert all(nothing_is_left(place) for place, _ in programs)


def test_only_one_session_of_a_user_changes_the_names_of_a_store_at_a_time() -> None:
    another = "from sublet.kinds.inside.container_images import alone\nwith alone(): print('entered')"
    with alone():
        process = subprocess.Popen([sys.executable, "-c", another], stdout=subprocess.PIPE)
        with pytest.raises(subprocess.TimeoutExpired):
            process.communicate(timeout=1)
    assert process.communicate(timeout=30)[0] == b"entered\n"


def test_an_image_with_a_user_of_its_own_can_write_its_results(
    place: Place, podman: dict[str, str], made: Path
) -> None:
    images.docker_archive(made / "user.tar", User="ann")
    location = f"docker-archive:{made}/user.tar"
    assert run(place, podman, sh(location, "id -u; echo mine > out.txt"))[:2] == (0, "1000\n")
    assert (place.work / "out.txt").read_text() == "mine\n"


@pytest.fixture
def listener() -> Iterator[int]:
    """The port of something that listens on the machine's loopback and greets everyone."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=greet, args=(server,), daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def greet(server: socket.socket) -> None:
    """Greet until the server is closed."""
    with suppress(OSError):
        while True:
            visitor, _ = server.accept()
            visitor.sendall(b"a service that trusts the machine\n")
            visitor.close()


def test_a_strangers_container_does_not_reach_the_machines_loopback(
    place: Place, tools: dict[str, str], archive: tuple[str, str], listener: int
) -> None:
    executable = sh(archive[0], f"/bin/nc -w 2 127.0.0.1 {listener} </dev/null; true")
    if "podman" not in tools:
        assert run(place, tools, executable)[1] == "a service that trusts the machine\n", "it shares the network"
    assert run(place, tools, executable, network="own")[:2] == (0, "")


def test_a_port_is_reached_in_a_container_without_any_network(
    place: Place, podman: dict[str, str], archive: tuple[str, str]
) -> None:
    serve = "echo hello > index.html; exec /bin/httpd -f -p 127.0.0.1:8888 -h /work"
    network = {"ports": [{"access": True, "internal": {"port": 8888}}]}
    port, executable = free_port(), sh(archive[0], serve, network=network)
    program = place.program(DOCKER, executable, podman, secret="s3cret", base_url="/connect/x/", network="none")
    with place.start(program, SUBLET_PORT=str(port)) as process:
        try:
            wait_for(lambda: answers(port))
            bearer = {"Authorization": "Bearer s3cret"}
            assert get(port, "/connect/x/index.html")[0] == 403
            assert [get(port, "/connect/x/index.html", bearer)[2] for _ in range(3)] == [b"hello\n"] * 3
        finally:
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=60)
    assert err == b"sublet: the container has no network, as the setting container_network says\n"
    assert nothing_is_left(place)


def test_a_port_is_reached_with_the_secret_only(place: Place, podman: dict[str, str], archive: tuple[str, str]) -> None:
    serve = "echo hello > index.html; exec /bin/httpd -f -p 8888 -h /work"
    network = {"ports": [{"access": True, "protocol": "HTTP", "internal": {"port": 8888}, "path": "/index.html"}]}
    port = free_port()
    program = place.program(
        DOCKER, sh(archive[0], serve, network=network), podman, secret="s3cret", base_url="/connect/x/"
    )
    assert program.connects == "uri:http"
    with place.start(program, SUBLET_PORT=str(port)) as process:
        try:
            wait_for(lambda: answers(port))
            assert get(port, "/connect/x/index.html")[0] == 403
            assert get(port, "/connect/x/index.html?token=wrong")[0] == 403
            bearer = {"Authorization": "Bearer s3cret"}
            assert get(port, "/connect/x/index.html", bearer)[::2] == (200, b"hello\n")
            status, headers, _ = get(port, "/connect/x/?token=s3cret")
            assert (status, headers["Location"]) == (303, "/connect/x/index.html")
            cookie = {"Cookie": headers["Set-Cookie"].split(";")[0]}
            assert "Path=/connect/x/" in headers["Set-Cookie"]
            assert get(port, "/connect/x/index.html", cookie)[::2] == (200, b"hello\n")
            assert get(port, "/connect/x/index.html", {**cookie, "Origin": "http://evil.example"})[0] == 403
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=30)
    assert nothing_is_left(place)
