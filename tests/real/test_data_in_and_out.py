"""Data comes from a person's own storage before a session starts, and results go there when it has ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sublet.client import Client
from sublet.data.calls import credentials
from sublet.data.model.credentials import Credential
from sublet.data.views.credentials import CredentialAsk
from sublet.kernel.errors import NoOffers
from tests.serving import Serving
from tests.storage_servers import StorageServer, serve_s3, serve_webdav

SETTINGS = '[platforms.here]\nkind = "local"\ncores = 8\nmemory = "8GiB"\n'
WORK = "mkdir -p out/deep && tr a-z A-Z <in.txt >out/big.txt && echo x >out/deep/er.csv && echo no >scratch.txt"


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    home = tmp_path_factory.mktemp("inout") / "home"
    home.mkdir()
    (home / "sublet.toml").write_text(SETTINGS)
    serving = Serving(home)
    yield serving
    serving.stop()


@pytest.fixture(scope="module")
def client(serving: Serving) -> Client:
    return serving.start()


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StorageServer]:
    directory = tmp_path_factory.mktemp("s3") / "data"
    (directory / "bucket").mkdir(parents=True)
    with serve_s3(directory) as server:
        yield server


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StorageServer]:
    directory = tmp_path_factory.mktemp("dav") / "data"
    directory.mkdir()
    with serve_webdav(directory) as server:
        yield server


def keep(client: Client, credential: Credential, **fields: Any) -> None:
    ask = {"place": credential.place, "user": credential.user, "secret": credential.secret, **fields}
    client.do(credentials.add(CredentialAsk(kind=credential.kind.value, **ask)))


def ran(client: Client, **wishes: Any) -> Any:
    return client.run(**{"time": "2m", "memory": "256MiB", **wishes}, timeout=120)


def seen(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in sorted(folder.rglob("*")) if file.is_file()}


def test_from_ones_bucket_to_ones_share_and_no_secret_is_seen(
    serving: Serving, client: Client, bucket: StorageServer, share: StorageServer
) -> None:
    keep(client, bucket.credential, place="s3://bucket", endpoint=f"http://{bucket.address}")
    keep(client, share.credential)
    (bucket.directory / "bucket" / "in.txt").write_text("hello\n")
    session = ran(
        client,
        run=["sh", "-c", WORK],
        data=[{"location": "s3://bucket/in.txt", "path": "in.txt", "writable": True}],
        outputs=[
            {"path": "out/**", "to": f"dav://{share.address}/runs/1"},
            {"path": "out/big.txt", "to": "s3://bucket/b"},
        ],
    )
    assert session.phase == "COMPLETED", session.end
    assert seen(share.directory) == {"runs/1/big.txt": "HELLO\n", "runs/1/deep/er.csv": "x\n"}
    assert (bucket.directory / "bucket" / "b").read_text() == "HELLO\n"
    kinds = [event.kind for event in client.events(session=session.id)]
    assert kinds.count("session.sent") == 2
    for secret in (bucket.credential.secret, share.credential.secret):
        for file in serving.home.rglob("*"):
            assert not (file.is_file() and secret.encode() in file.read_bytes()), file


def test_results_of_what_failed_are_sent_only_where_that_was_asked(client: Client, share: StorageServer) -> None:
    keep(client, share.credential)
    address = f"dav://{share.address}/failed"
    outputs = [
        {"path": "a.txt", "to": f"{address}/a.txt", "when": "always"},
        {"path": "b.txt", "to": f"{address}/b.txt"},
    ]
    session = ran(client, run=["sh", "-c", "echo a >a.txt; echo b >b.txt; exit 3"], outputs=outputs)
    assert session.exit_code == 3
    assert seen(share.directory / "failed") == {"a.txt": "a\n"}


def test_what_can_not_be_sent_is_told_and_kept(client: Client, share: StorageServer) -> None:
    keep(client, share.credential, secret="another")
    session = ran(client, run=["sh", "-c", "echo a >a.txt"], outputs={"a.txt": f"dav://{share.address}/x/"})
    assert session.phase == "COMPLETED"
    assert "401" in session.condition
    assert f"sublet result {session.id[:8]}" in session.condition
    assert "session.unsent" in [event.kind for event in client.events(session=session.id)]
    assert session.result("a.txt").text() == "a\n"


def test_a_pattern_that_nothing_matches_is_told(client: Client, tmp_path: Path) -> None:
    session = ran(client, run=["true"], outputs={"*.csv": f"file://{tmp_path}/"})
    assert session.phase == "COMPLETED"
    assert "left no such file" in session.condition


def test_results_go_to_a_folder_of_this_machine(client: Client, tmp_path: Path) -> None:
    session = ran(
        client, run=["sh", "-c", WORK.replace("<in.txt", "</dev/null")], outputs={"out": f"file://{tmp_path}/x/"}
    )
    assert session.condition == ""
    assert seen(tmp_path / "x") == {"big.txt": "", "deep/er.csv": "x\n"}


@pytest.mark.parametrize(
    ("outputs", "why"),
    [
        ({"a": "gopher://example.org/x"}, "Nothing here can send results to gopher: addresses"),
        ({"a": "s3:///x"}, "names no bucket"),
        ({"a": "https://example.org/x/"}, "a web server has no folders"),
    ],
)
def test_an_address_that_nothing_can_be_sent_to_is_a_no(client: Client, outputs: dict[str, str], why: str) -> None:
    with pytest.raises(NoOffers, match=why):
        client.run(run=["true"], outputs=outputs)
