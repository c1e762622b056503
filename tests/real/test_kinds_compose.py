"""Services of a Compose file are really run, by Podman: together, in their order, and with nothing left behind."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.job import Mount
from sublet.booking.model.request import Executable
from sublet.kinds.compose import COMPOSE
from tests.ports import free_port
from tests.real import images
from tests.real.container_tools import find_tools
from tests.real.programs import Place
from tests.real.visits import answers, get, wait_for

SERVE = "while true; do echo served | nc -l -p 7000; done"
FETCH = "until nc server 7000 >/out/got 2>/dev/null && [ -s /out/got ]; do sleep 0.2; done; cat /out/got; exit $CODE"


@pytest.fixture
def podman() -> dict[str, str]:
    return find_tools("podman")


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("images") / "box.tar"
    images.docker_archive(path, Entrypoint=[])
    return f"docker-archive:{path}"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    directory = tmp_path / f"compose-{os.getpid()}-{time.monotonic_ns()}"  # containers are named after it
    directory.mkdir()
    return Place(directory)


def sh(image: str, script: str, **more: Any) -> dict[str, Any]:
    return {"image": image, "command": ["sh", "-c", script.replace("$", "$$")], **more}


def run(place: Place, tools: dict[str, str], services: dict[str, Any], **changes: Any) -> tuple[int, str, str]:
    executable = Executable("docker-compose", fields={"compose": {"services": services, **changes.pop("file", {})}})
    return place.run(place.program(COMPOSE, executable, tools, **changes))


def list_containers(place: Place) -> str:
    argv = ["podman", "ps", "--all", "--filter", f"name={place.directory.name}", "--format", "{{.Names}}"]
    return subprocess.run(argv, capture_output=True, text=True).stdout


def test_services_find_one_another_by_name_and_the_rest_ends_with_the_last(
    place: Place, podman: dict[str, str], image: str
) -> None:
    fetch = sh(image, FETCH, depends_on=["server"], volumes=["./out:/out"], environment={"CODE": 3})
    code, out, err = run(place, podman, {"server": sh(image, SERVE), "client": fetch})
    assert (code, out) == (3, "client | served\n"), err
    assert (place.work / "out" / "got").read_text() == "served\n"
    assert list_containers(place) == ""
    assert {path.name for path in place.directory.iterdir()} <= {"work", "data", "unstarted"}


def test_one_waits_until_another_has_completed_and_is_not_started_if_that_failed(
    place: Place, podman: dict[str, str], image: str
) -> None:
    after = {"depends_on": {"first": {"condition": "service_completed_successfully"}}, "volumes": ["kept:/kept"]}
    named = {"volumes": {"kept": None}}
    second = sh(image, "cat /kept/x; ls /sublet/work", **after)
    first = sh(image, "sleep 1; echo made >/kept/x", volumes=["kept:/kept"])
    code, out, err = run(place, podman, {"first": first, "second": second}, file=named)
    assert (code, out) == (0, "second | made\n"), err
    failing = sh(image, "exit 5", volumes=["kept:/kept"])
    code, out, err = run(place, podman, {"first": failing, "second": second}, file=named)
    assert (code, out) == (5, ""), err
    assert "second was not started, as first failed with 5" in err


def test_no_volume_leads_out_of_the_session_and_what_was_brought_is_read_only(
    place: Place, podman: dict[str, str], image: str
) -> None:
    (place.work / "away").symlink_to("/etc")
    code, out, err = run(place, podman, {"one": sh(image, "cat /x/passwd", volumes=["./away:/x"])})
    assert (code, out) == (125, ""), err
    assert "no file of this session" in (place.directory / "unstarted").read_text()
    brought = place.directory / "data" / "cube"
    brought.mkdir(parents=True)
    (place.work / "cube").symlink_to(brought)
    mounts = {"mounts": (Mount("data/cube", "cube"),)}
    code, out, err = run(place, podman, {"one": sh(image, "touch /x/new", volumes=["./cube:/x"])}, **mounts)
    assert code != 0
    assert "Read-only" in err
    two = {"one": sh(image, "true", volumes=["./a:/x"]), "two": sh(image, "true", volumes=["./a/b:/x"])}
    code, out, err = run(place, podman, two)
    assert code == 125
    assert "none may lie in the other" in err


def test_a_port_is_reached_with_the_secret_and_a_stop_ends_all_services(
    place: Place, podman: dict[str, str], image: str
) -> None:
    (place.work / "www").mkdir()
    (place.work / "www" / "index.html").write_text("hello")
    web = {**sh(image, "exec httpd -f -p 80 -h /www"), "ports": ["8000:80"], "volumes": ["./www:/www"]}
    services = {"web": web, "beside": sh(image, "sleep 600")}
    executable = Executable("docker-compose", fields={"compose": {"services": services}})
    program = place.program(COMPOSE, executable, podman, secret="s3cret", base_url="/connect/1/")
    port = free_port()
    with place.start(program, SUBLET_PORT=str(port)) as process:
        try:
            wait_for(lambda: answers(port), 90)
            assert get(port, "/connect/1/")[0] == 403
            assert get(port, "/connect/1/", {"Authorization": "token s3cret"})[2] == b"hello"
        finally:
            process.terminate()
        _, err = process.communicate(timeout=90)
    assert process.returncode == 143, err
    assert list_containers(place) == ""


def test_an_image_and_a_program_that_are_not_there_are_told(place: Place, podman: dict[str, str], image: str) -> None:
    code, _, err = run(place, podman, {"one": {"image": "localhost/no-such-image:1"}})
    assert (code, (place.directory / "unstarted").read_text().splitlines()[0]) == (125, "staging-failed"), err
    code, _, err = run(place, podman, {"one": {"image": image, "command": ["/nope"]}})
    assert (code, (place.directory / "unstarted").read_text().splitlines()[0]) == (125, "not-started"), err
    assert "the service one" in (place.directory / "unstarted").read_text()
