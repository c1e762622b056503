"""Every kind, the whole path: asked, accepted and run by a real service on this machine, with its data."""

from __future__ import annotations

import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from sublet.client import Client
from tests.real.container_tools import find_tools
from tests.real.images import docker_archive
from tests.serving import Serving, eventually


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    home = tmp_path_factory.mktemp("whole") / "home"
    home.mkdir()
    serving = Serving(home)
    (home / "sublet.toml").write_text('[platforms.here]\nkind = "local"\ncores = 64\nmemory = "64GiB"\n')
    yield serving.start()
    serving.stop()


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A real HTTP server, and the directory that it serves."""
    root = tmp_path_factory.mktemp("web")

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *words: Any) -> None:
            super().__init__(*words, directory=str(root))

        def log_message(self, *words: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", root
    server.shutdown()
    server.server_close()


def ran(client: Client, **wishes: Any) -> Any:
    """Ask, accept the first offer, and wait until it is over."""
    offers = client.ask(**{"time": "5m", "memory": "512MiB", **wishes})
    assert offers, offers.reasons
    return offers[0].accept().wait(timeout=120)


def printed(session: Any, stream: str = "stdout") -> str:
    return "".join(session.logs(stream=stream))


def test_data_is_there_before_a_command_starts_and_read_only_data_cannot_be_changed(
    client: Client, web: tuple[str, Path]
) -> None:
    url, root = web
    (root / "cube.txt").write_text("a cube\n")
    digest = hashlib.sha256(b"a cube\n").hexdigest()
    data = [
        {"name": "cube", "location": f"{url}/cube.txt", "checksum": f"sha256:{digest}"},
        {"name": "own", "location": f"{url}/cube.txt", "path": "own", "writable": True},
    ]
    change = "echo x >> data/cube/cube.txt || echo refused; echo more >> own/cube.txt && tail -1 own/cube.txt"
    script = f"cat data/cube/cube.txt; {change}"
    session = ran(client, script=script, data=data)
    assert session.exit_code == 0
    assert printed(session) == "a cube\nrefused\nmore\n"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"location": "/gone.txt"}, "404"),
        ({"location": "/cube.txt", "checksum": "sha256:" + "0" * 64}, "checksum"),
    ],
)
def test_data_that_cannot_be_had_fails_the_session_and_says_why(
    client: Client, web: tuple[str, Path], change: dict[str, str], said: str
) -> None:
    url, root = web
    (root / "cube.txt").write_text("a cube\n")
    data = [{"name": "cube", **change, "location": url + change["location"]}]
    session = ran(client, run=["true"], data=data)
    assert (session.phase, session.end.kind) == ("FAILED", "staging-failed")
    assert said in session.end.detail


def test_a_bag_records_every_task(client: Client) -> None:
    session = ran(client, bag={"template": ["sh", "-c", "exit {code}"], "grid": {"code": [0, 0, 3]}}, cores=2)
    assert (session.phase, session.exit_code) == ("FAILED", 1)
    tasks = [json.loads(line) for line in session.result("tasks.jsonl").text().splitlines()]
    assert sorted(task["code"] for task in tasks if "code" in task) == [0, 0, 3]


def test_a_notebook_runs_with_parameters_and_leaves_itself_and_a_page(client: Client, web: tuple[str, Path]) -> None:
    url, root = web
    empty = {"cell_type": "code", "outputs": [], "execution_count": None}
    cells = [
        {**empty, "metadata": {"tags": ["parameters"]}, "source": "n = 1"},
        {**empty, "metadata": {}, "source": "print(n * 6)"},
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    book = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (root / "book.ipynb").write_text(json.dumps(book))
    session = ran(client, notebook=f"{url}/book.ipynb", parameters={"n": 7}, memory="2GiB")
    assert session.exit_code == 0, printed(session, "stderr")
    assert "42" in session.result("executed.ipynb").text()
    assert "42" in session.result("executed.html").text()


def test_a_container_runs_with_its_data_and_cannot_write_what_is_read_only(
    client: Client, web: tuple[str, Path], tmp_path: Path
) -> None:
    find_tools("podman")
    url, root = web
    (root / "cube.txt").write_text("a cube\n")
    (root / "notes.txt").write_text("notes\n")
    docker_archive(tmp_path / "box.tar", Entrypoint=[], WorkingDir="/tmp")
    command = [
        "sh",
        "-c",
        "cat /input/cube.txt; echo x > /input/new || echo refused; cat notes.txt; echo left > out.txt",
    ]
    data = [{"name": "cube", "location": f"{url}/cube.txt", "path": "/input"}, f"{url}/notes.txt"]
    session = ran(client, image=f"docker-archive:{tmp_path}/box.tar", run=command, data=data, memory="1GiB")
    assert session.exit_code == 0, printed(session, "stderr")
    assert printed(session) == "a cube\nrefused\nnotes\n"
    assert [(file.path, session.result(file.path).text()) for file in session.results()] == [("out.txt", "left\n")]


def test_an_image_that_is_not_there_is_not_an_exit_of_the_program(client: Client) -> None:
    find_tools("podman")
    session = ran(client, image="localhost/not/here:1", run=["true"])
    assert (session.phase, session.end.kind) == ("FAILED", "staging-failed")
    assert "localhost/not/here:1" in session.end.detail


def test_jupyterlab_is_available_behind_its_connector_and_is_extended(client: Client) -> None:
    offers = client.ask(interactive="lab", time="10m", memory="2GiB")
    session = offers[0].accept()
    eventually(lambda: session.refresh().phase == "AVAILABLE", "JupyterLab", 120)
    [connector] = session.view.connectors
    with httpx2.Client(follow_redirects=True, timeout=30) as visitor:
        page = visitor.get(connector.location)
        assert page.status_code == 200
        assert "JupyterLab" in page.text
        stranger = httpx2.get(connector.location.partition("?")[0] + "api/contents", timeout=30)
        assert stranger.status_code in {401, 403}
    before = session.view.until
    assert session.extend("10m").view.until > before
    assert session.cancel().phase == "CANCELLED"
    gone = httpx2.get(connector.location, timeout=30)
    assert gone.status_code in {404, 409, 502}
