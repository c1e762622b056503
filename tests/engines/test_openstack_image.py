"""A distribution's image in machines of a real OpenStack: Compose files and JupyterLab, through a real service."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio
import httpx2
import pytest
from websockets.sync.client import connect

from sublet.client import Client
from tests.engines.openstack_cloud import Project
from tests.real.images import oci_archive
from tests.registries import Registry, registry
from tests.serving import eventually, serve

pytestmark = pytest.mark.soak
PATIENCE = 3600.0  # seconds: a whole system starts, emulated, on a machine that may be busy
TOOLS = ["python3", "podman", "jupyter-lab"]
SERVE = "while true; do echo from the server | nc -l -p 7000; done"
FETCH = "until nc server 7000 >/out/got 2>/dev/null && [ -s /out/got ]; do sleep 0.2; done; cat /out/got"


@contextmanager
def start(home: Path, project: Project, **more: Any) -> Iterator[Client]:
    """A service with the cloud as its one platform, for someone whose image has what kinds need."""
    settings = {"image": "debian", "flavors": ["roomy"], "tools": TOOLS, "patience": "1h", **more}
    table = {"kind": "openstack", **project.settings(**settings)}
    rows = "".join(f"{name} = {json.dumps(value)}\n" for name, value in table.items())
    with serve(home, f'poll = "1s"\nanswer_within = "30s"\n[platforms.sky]\n{rows}') as serving:
        yield serving.start()


@pytest.fixture
def shop(project: Project) -> Iterator[Registry]:
    """A registry on the network that the machines are on."""
    with registry(f"{project.cloud.address.rpartition('.')[0]}.1") as server:
        yield server


def take(client: Client, **wishes: Any) -> Any:
    """Ask, and accept the first offer."""
    offers = client.ask(**{"platform": "sky", "time": "30m", "memory": "1GiB", "cores": 2, **wishes})
    assert offers, offers.reasons
    return offers[0].accept()


def wait_for_connector(session: Any) -> str:
    """Where people connect to it."""

    def is_available() -> bool:
        view = session.refresh()
        assert view.phase not in ("FAILED", "ERROR", "COMPLETED", "CANCELLED", "ABORTED"), view.view
        return bool(view.phase == "AVAILABLE")

    eventually(is_available, "a connector", PATIENCE, 0.5)
    [connector] = session.view.connectors
    return str(connector.location)


def wait_for_no_machine(project: Project) -> None:
    """Nothing of Sublet's is left in the project."""
    eventually(lambda: anyio.run(project.list_names) == [], "the end of its machine", PATIENCE, 0.5)


def test_both_services_of_a_compose_file_run_in_one_machine_and_the_result_comes_back(
    project: Project, debian: str, shop: Registry, tmp_path: Path
) -> None:
    oci_archive(tmp_path / "box.tar", Entrypoint=[], Env=["PATH=/bin"])
    shop.push("tools/box", "1", tmp_path / "box.tar")
    image = f"{shop.address}/tools/box:1"
    client_service = {
        "image": image,
        "command": ["sh", "-c", FETCH],
        "depends_on": ["server"],
        "volumes": ["./out:/out"],
    }
    services = {"server": {"image": image, "command": ["sh", "-c", SERVE]}, "client": client_service}
    with start(tmp_path / "home", project, network="wire", address="fixed") as client:
        session = take(client, compose={"services": services}).wait(timeout=PATIENCE)
        printed = {stream: "".join(session.logs(stream=stream)) for stream in ("stdout", "stderr")}
        assert (session.phase, session.view.end.code) == ("COMPLETED", 0), (session.view.end, printed)
        assert printed["stdout"] == "client | from the server\n", printed
        assert [result.path for result in session.results()] == ["out/got"]
        assert session.result("out/got") == b"from the server\n"
        wait_for_no_machine(project)
    assert shop.fetched() > 0


def run_cell(location: str, code: str) -> str:
    """What a kernel of a JupyterLab prints, asked for by HTTP and told by a WebSocket."""
    base, _, query = location.partition("?")
    token = {"Authorization": f"token {dict(pair.split('=', 1) for pair in query.split('&'))['token']}"}
    base = base.removesuffix("lab").rstrip("/") + "/"
    made = httpx2.post(f"{base}api/kernels", headers=token, json={"name": "python3"}, timeout=PATIENCE)
    assert made.status_code == 201, made.text
    content = {"code": code, "silent": False, "store_history": False, "user_expressions": {}, "allow_stdin": False}
    header = {
        "msg_id": uuid4().hex,
        "msg_type": "execute_request",
        "session": uuid4().hex,
        "username": "",
        "version": "5.3",
    }
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
    place = f"ws{base.removeprefix('http')}api/kernels/{made.json()['id']}/channels"
    with connect(place, additional_headers=token, proxy=None, open_timeout=PATIENCE, ping_timeout=None) as web:
        web.send(json.dumps(message))
        while True:
            answer = json.loads(web.recv(timeout=PATIENCE))
            if answer["parent_header"].get("msg_id") == header["msg_id"] and answer["msg_type"] == "stream":
                return str(answer["content"]["text"])


def test_jupyterlab_in_a_machine_is_opened_by_http_and_websocket_and_is_gone_when_it_is_ended(
    project: Project, debian: str, tmp_path: Path
) -> None:
    with start(tmp_path / "home", project, network="wire", address="fixed") as client:
        session = take(client, interactive="lab")
        location = wait_for_connector(session)
        with httpx2.Client(follow_redirects=True, timeout=PATIENCE) as visitor:
            page = visitor.get(location)
            assert page.status_code == 200
            assert "JupyterLab" in page.text
        stranger = httpx2.get(location.partition("?")[0] + "api/contents", timeout=PATIENCE)
        assert stranger.status_code in {401, 403}
        code = "import os; open('note', 'w').write('kept'); print(os.environ['SUBLET_SESSION'], os.uname().nodename)"
        assert run_cell(location, code).startswith(f"{session.id} sublet-")
        session.cancel()
        eventually(lambda: session.refresh().view.end, "its end", PATIENCE, 0.5)
        assert session.phase == "CANCELLED"
        assert httpx2.get(location, timeout=30).status_code in {404, 409, 502}
        assert session.result("note") == b"kept"
        wait_for_no_machine(project)
