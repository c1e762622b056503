"""`kill -9` of a service at a call to a real JupyterHub, or to Skaha: one server, one launch, and nothing left."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from sublet.booking.calls.platforms import sweep
from sublet.client import Client, Offer
from sublet.kernel.errors import SubletError
from tests.engines.jupyter_servers import Jupyter, serve_hub
from tests.engines.plug import Plug, plug_in
from tests.real.notebooks import write_notebook
from tests.serving import Serving, eventually, serve
from tests.skaha_server import TOKEN, SkahaServer, serve_skaha

pytestmark = pytest.mark.engines
PATIENCE = 300.0  # seconds: a hub may take long to start a server
PERSON = "marie"
TERMINAL = "images.canfar.net/skaha/terminal:1.1.2"
SERVER = "POST /hub/api/users/[^/ ]+/servers/"
KERNEL = "POST /user/[^ ]+/api/sessions "
STOP = "DELETE /hub/api/users/"
LAUNCH = "POST /skaha/v1/session"
REMOVE = "DELETE /skaha/v1/session/"


def list_moments(*calls: str, every_time: str) -> list[ParameterSet]:
    """Before and after each call: one of the two in every run, both in long ones."""
    return [
        pytest.param(call, when, marks=[] if when == every_time else [pytest.mark.soak])
        for call in calls
        for when in ("before", "after")
    ]


def start_plugged(serving: Serving, plug: Plug, call: str, when: str) -> Client:
    """A service whose plug is pulled at this call."""
    client = serving.start()
    assert serving.process is not None
    plug.kill = partial(os.kill, serving.process.pid, signal.SIGKILL)
    plug.call, plug.when = call, when
    return client


def accept_and_die(offer: Offer, serving: Serving) -> Client:
    """Accept it, see the service die on the way, and start it again."""
    with contextlib.suppress(SubletError):
        offer.accept()
    assert serving.process is not None
    assert serving.process.wait(PATIENCE) == -9, serving.log()
    return serving.start()


def write_settings(kind: str, url: str, place: Path, token: str, **more: str) -> str:
    """A service with one platform, whose token is in a file."""
    (file := place / "token").write_text(token)
    file.chmod(0o600)
    lines = {"kind": kind, "url": url, "token_file": str(file), **more}
    return "\n".join(["[platforms.far]", *(f'{name} = "{value}"' for name, value in lines.items()), ""])


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jupyter]:
    with serve_hub(tmp_path_factory.mktemp("crashes") / "hub") as jupyter:
        jupyter.ask("POST", f"/hub/api/users/{PERSON}")
        yield jupyter


@pytest.fixture
def at_hub(hub: Jupyter, tmp_path: Path) -> Iterator[tuple[Serving, Plug]]:
    with plug_in(hub.url) as (plug, address):
        settings = write_settings("jupyterhub", address, tmp_path, hub.token, user=PERSON)
        with serve(tmp_path / "home", settings) as serving:
            yield serving, plug


def list_servers(hub: Jupyter) -> list[str]:
    """The servers that someone has at a hub, started and being started."""
    return [*hub.ask("GET", f"/hub/api/users/{PERSON}").json()["servers"]]


def count_runs(hub: Jupyter) -> int:
    """How often the notebook has run, by what it writes beside its session's own directory."""
    file = hub.home / "homes" / PERSON / "runs"
    return len(file.read_text()) if file.exists() else 0


def ask_for_notebook(client: Client, folder: Path, seconds: float = 0) -> Offer:
    """An offer for a notebook that writes down that it ran."""
    write = (
        f"import os, time\nwith open(os.path.expanduser('~/runs'), 'a') as file: file.write('x')\ntime.sleep({seconds})"
    )
    path = write_notebook(folder / "once.ipynb", "count = 1", write)
    return client.ask(notebook=str(path), time="5m", platform="far")[0]


@pytest.mark.parametrize(("call", "when"), list_moments(SERVER, KERNEL, STOP, every_time="after"))
def test_a_service_that_is_killed_at_a_call_to_a_hub_has_one_server_and_runs_a_notebook_once(
    hub: Jupyter, at_hub: tuple[Serving, Plug], tmp_path: Path, call: str, when: str
) -> None:
    serving, plug = at_hub
    before = count_runs(hub)
    offer = ask_for_notebook(start_plugged(serving, plug, call, when), tmp_path)
    client = accept_and_die(offer, serving)
    assert plug.pulled_at
    assert len(list_servers(hub)) <= 1
    ended = client.session(offer.id).wait(PATIENCE)
    assert (ended.phase, ended.end and ended.end.code) == ("COMPLETED", 0), (ended.end, serving.log())
    eventually(lambda: not list_servers(hub), "its server to be gone", PATIENCE)
    assert count_runs(hub) - before == 1
    assert not list((hub.home / "homes" / PERSON).glob("sublet-*/*"))


def test_nothing_is_left_at_a_hub_after_a_kill_a_cancel_and_a_sweep(
    hub: Jupyter, at_hub: tuple[Serving, Plug], tmp_path: Path
) -> None:
    serving, plug = at_hub
    offer = ask_for_notebook(start_plugged(serving, plug, KERNEL, "after"), tmp_path, seconds=600)
    client = accept_and_die(offer, serving)
    client.session(offer.id).cancel()
    assert client.session(offer.id).wait(PATIENCE).phase == "CANCELLED"
    client.do(sweep("far"))
    eventually(lambda: not list_servers(hub), "its server to be gone", PATIENCE)


@pytest.fixture
def at_skaha(tmp_path: Path) -> Iterator[tuple[Serving, Plug, SkahaServer]]:
    with (
        serve_skaha() as (skaha, url),
        plug_in(url) as (plug, address),
        serve(tmp_path / "home", write_settings("skaha", address, tmp_path, TOKEN)) as serving,
    ):
        yield serving, plug, skaha


def ask_for_container(client: Client, *words: str) -> Offer:
    """An offer for a headless session."""
    sizes: dict[str, Any] = {"cores": 2, "memory": "4GiB", "time": "5m"}
    return client.ask(image=TERMINAL, entrypoint=words[0], run=[*words[1:]], platform="far", **sizes)[0]


def count_launches(skaha: SkahaServer) -> int:
    """How many sessions Skaha was ever asked for."""
    return sum(call.startswith("POST session ") for call in skaha.calls)


@pytest.mark.parametrize(("call", "when"), list_moments(LAUNCH, REMOVE, every_time="after"))
def test_a_service_that_is_killed_at_a_call_to_skaha_launches_once(
    at_skaha: tuple[Serving, Plug, SkahaServer], call: str, when: str
) -> None:
    serving, plug, skaha = at_skaha
    offer = ask_for_container(start_plugged(serving, plug, call, when), "printenv", "PATH")
    client = accept_and_die(offer, serving)
    ended = client.session(offer.id).wait(PATIENCE)
    assert (ended.phase, ended.end and ended.end.code) == ("COMPLETED", 0), (ended.end, serving.log())
    assert "".join(ended.logs()) == "/usr/bin:/bin\n"
    eventually(lambda: not skaha.sessions, "it to be gone", PATIENCE)
    assert count_launches(skaha) == 1


def test_nothing_is_left_at_skaha_after_a_kill_a_cancel_and_a_sweep(
    at_skaha: tuple[Serving, Plug, SkahaServer],
) -> None:
    serving, plug, skaha = at_skaha
    offer = ask_for_container(start_plugged(serving, plug, LAUNCH, "after"), "sleep", "600")
    client = accept_and_die(offer, serving)
    client.session(offer.id).cancel()
    assert client.session(offer.id).wait(PATIENCE).phase == "CANCELLED"
    client.do(sweep("far"))
    eventually(lambda: not skaha.sessions, "it to be gone", PATIENCE)
    assert count_launches(skaha) == 1
