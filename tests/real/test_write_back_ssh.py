"""What a session changed of data on a host with SSH goes back there, and never over what others changed meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from sublet.client import Client
from sublet.data.model.credentials import Credential, CredentialKind
from tests.real.test_data_in_and_out import SETTINGS, keep
from tests.serving import Serving, eventually, serve
from tests.sshd import Sshd, needs_sshd, sshd

pytestmark = needs_sshd


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with sshd(tmp_path_factory.mktemp("sshd")) as running:
        yield running


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serve(tmp_path_factory.mktemp("back") / "home", SETTINGS) as serving:
        yield serving


@pytest.fixture(scope="module")
def client(serving: Serving, server: Sshd) -> Client:
    client = serving.start()
    place, key = f"sftp://127.0.0.1:{server.port}", (server.directory / "key").read_text()
    known = " ".join((server.directory / "host_key.pub").read_text().split()[:2])
    keep(client, Credential(place, CredentialKind.KEY, server.user, key, known), endpoint=known)
    return client


@pytest.mark.parametrize("scheme", ["sftp", "rsync+ssh"])
def test_it_goes_back_unless_it_was_changed_there(serving: Serving, client: Client, server: Sshd, scheme: str) -> None:
    folder = server.home / scheme
    folder.mkdir()
    for name in ("mine.txt", "theirs.txt"):
        (folder / name).write_text("1\n")
    begin = f"{scheme}://127.0.0.1:{server.port}{folder}"
    known = {"size": 2, "write_back": True}  # what rsync brings is not measured before, and may take its time
    data = [{"location": f"{begin}/{name}", "path": name, **known} for name in ("mine.txt", "theirs.txt")]
    work = "while [ ! -e go ]; do sleep 0.05; done; echo 2 >>mine.txt; echo 2 >>theirs.txt"
    session = client.ask(run=["sh", "-c", work], time="2m", memory="256MiB", data=data)[0].accept()
    eventually(lambda: client.session(session.id).phase in ("RUNNING", "FAILED"), "it runs", 60)
    assert client.session(session.id).phase == "RUNNING", client.session(session.id).end
    (folder / "theirs.txt").write_text("another's\n")
    (Path(serving.home) / "platforms" / "here" / "sessions" / session.id / "work" / "go").touch()
    session = client.session(session.id).wait(timeout=60)
    assert session.condition.count("it has changed there since it was fetched, and is not overwritten") == 1
    assert {file.name: file.read_text() for file in folder.iterdir()} == {
        "mine.txt": "1\n2\n",
        "theirs.txt": "another's\n",
    }
