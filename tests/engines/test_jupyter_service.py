"""A whole service with a Jupyter Server: the token is sealed, and a service that is killed finds its notebook again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sublet.client import Client
from sublet.data.calls import credentials
from sublet.data.views.credentials import CredentialAsk
from tests.engines.jupyter_servers import Jupyter, serve_jupyter
from tests.real.notebooks import write_notebook
from tests.serving import Serving

pytestmark = pytest.mark.engines
PATIENCE = 300.0  # seconds: a server that shares a busy machine takes a minute to start a kernel


@pytest.fixture(scope="module")
def jupyter(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    with serve_jupyter(tmp_path_factory.mktemp("jupyter") / "server") as server:
        yield server


@pytest.fixture
def serving(jupyter: Jupyter, tmp_path: Path) -> Iterator[Serving]:
    home = tmp_path / "home"
    home.mkdir()
    (home / "sublet.toml").write_text(f'[platforms.lab]\nkind = "jupyter"\nurl = "{jupyter.url}"\nmemory = "2GiB"\n')
    service = Serving(home)
    yield service
    service.stop()


def until(what: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def keep(client: Client, jupyter: Jupyter) -> None:
    client.do(credentials.add(CredentialAsk(place=jupyter.url, kind="token", user="", secret=jupyter.token)))


def test_a_notebook_survives_the_service_and_nothing_else_is_offered(
    serving: Serving, jupyter: Jupyter, tmp_path: Path
) -> None:
    client = serving.start()
    path = write_notebook(
        tmp_path / "slow.ipynb",
        "count = 1",
        "import time\nfor n in range(count):\n    print(n, flush=True)\n    time.sleep(0.5)",
        "open('count.txt', 'a').write(str(count));",
    )
    refused = client.ask(notebook=str(path), time="5m")
    assert "lab needs a token for" in refused.reasons[0].message
    keep(client, jupyter)
    nothing = client.ask(run=["true"], time="5m")
    assert "it starts no programs or containers" in nothing.reasons[0].message
    large = client.ask(notebook=str(path), time="5m", memory="8GiB")
    assert "gives at most 2GiB memory" in large.reasons[0].message
    offers = client.ask(notebook=str(path), parameters={"count": 12}, time="5m")
    assert [offer.platform for offer in offers] == ["lab"], offers.reasons
    session = offers[0].accept()
    until(lambda: "2\n" in "".join(session.logs()))
    serving.kill()
    session = serving.start().session(session.id).wait(PATIENCE)
    assert session.phase == "COMPLETED", session
    assert "".join(session.logs()) == "".join(f"{n}\n" for n in range(12))
    files = {file.path for file in session.results()}
    assert files == {"count.txt", "executed.ipynb", "executed.html"}
    until(lambda: not any((jupyter.home / "files").iterdir()) and not jupyter.ask("GET", "/api/kernels").json())
    kept = [file for file in serving.home.rglob("*") if file.is_file() and jupyter.token.encode() in file.read_bytes()]
    assert kept == []
    assert jupyter.token not in serving.log()
    assert json.loads(path.read_text())["cells"][1]["outputs"] == []
