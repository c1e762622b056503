"""Data comes from a person's own storage before a session starts, and results go there when it has ended."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.calls import results
from sublet.booking.calls.platforms import calendar
from sublet.client import Client
from sublet.data.calls import credentials
from sublet.data.model.credentials import Credential
from sublet.data.views.credentials import CredentialAsk
from sublet.kernel.errors import BadRequest, DataNotSent, NoOffers, NotFound
from sublet.kernel.faults import SENDING_POINTS
from sublet.movers.file import FileMover
from sublet.movers.port import Content, Policy
from sublet.movers.registry import survey_movers
from sublet.movers.webdav import WebDavMover
from tests.serving import Serving, eventually, serve
from tests.storage_servers import StorageServer, serve_s3, serve_webdav

SETTINGS = '[platforms.here]\nkind = "local"\ncores = 8\nmemory = "8GiB"\n'
WORK = "mkdir -p out/deep && tr a-z A-Z <in.txt >out/big.txt && echo x >out/deep/er.csv && echo no >scratch.txt"


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serve(tmp_path_factory.mktemp("inout") / "home", SETTINGS) as serving:
        yield serving


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


def test_what_can_not_be_sent_does_not_keep_the_rest_from_being_sent(client: Client, tmp_path: Path) -> None:
    outputs = {
        "missing": f"file://{tmp_path}/x",
        "nothing/*": f"file://{tmp_path}/y/",
        "**/*.txt": f"file://{tmp_path}/",
    }
    work = "mkdir -p deep/er; for n in $(seq 200); do echo $n >deep/er/$n.txt; done; echo top >top.txt"
    session = ran(client, run=["sh", "-c", work], outputs=outputs)
    assert session.condition.count("left no such file") == 2
    sent = seen(tmp_path)
    assert len(sent) == 201
    assert (sent["top.txt"], sent["deep/er/200.txt"]) == ("top\n", "200\n")


def test_a_folder_that_nothing_is_fetched_into_is_made_all_the_same(serving: Serving, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "sublet", "run", "-t", "1m", "--out", str(tmp_path / "empty"), "--", "true"]
    typed = subprocess.run(words, env={**os.environ, "SUBLET_HOME": str(serving.home)}, capture_output=True, text=True)
    assert "fetched 0 files" in typed.stderr, typed.stderr
    assert (tmp_path / "empty").is_dir()


def test_what_a_session_changed_of_its_data_goes_back_and_nothing_else_does(
    client: Client, bucket: StorageServer, share: StorageServer, tmp_path: Path
) -> None:
    keep(client, bucket.credential, place="s3://bucket", endpoint=f"http://{bucket.address}")
    keep(client, share.credential)
    folder, table = bucket.directory / "bucket" / "set", tmp_path / "table.csv"
    (folder / "deep").mkdir(parents=True)
    (share.directory / "back").mkdir()
    notes = share.directory / "back" / "notes.txt"
    for file in (folder / "same.txt", folder / "deep" / "old.txt", table, notes):
        file.write_text("1\n")
    before = table.stat().st_mtime_ns
    session = ran(
        client,
        run=["sh", "-c", "echo 2 >>set/deep/old.txt; echo n >set/new.txt; echo 2 >>notes.txt; echo x >other.txt"],
        data=[
            {"location": "s3://bucket/set/", "path": "set", "write_back": True},
            {"location": f"dav://{share.address}/back/notes.txt", "path": "notes.txt", "write_back": True},
            {"location": f"file://{table}", "path": "table.csv", "write_back": True},
        ],
    )
    assert (session.phase, session.condition) == ("COMPLETED", ""), session.end
    assert seen(folder) == {"deep/old.txt": "1\n2\n", "new.txt": "n\n", "same.txt": "1\n"}
    assert seen(notes.parent) == {"notes.txt": "1\n2\n"}
    assert table.stat().st_mtime_ns == before, "what was not changed is not sent"
    told = [event.detail for event in client.events(session=session.id) if event.kind == "session.sent"]
    assert sorted(words.split(" back")[0] for words in told) == ["1 changed file", "2 changed files"]


def test_what_was_changed_meanwhile_is_not_overwritten_and_the_results_are_kept(
    serving: Serving, client: Client, bucket: StorageServer, tmp_path: Path
) -> None:
    keep(client, bucket.credential, place="s3://bucket", endpoint=f"http://{bucket.address}")
    theirs, table = bucket.directory / "bucket" / "theirs.txt", tmp_path / "table.csv"
    theirs.write_text("1\n")
    table.write_text("1\n")
    data = [
        {"location": "s3://bucket/theirs.txt", "path": "theirs.txt", "write_back": True},
        {"location": f"file://{table}", "path": "table.csv", "write_back": True},
    ]
    work = "while [ ! -e go ]; do sleep 0.05; done; echo mine >theirs.txt; echo mine >table.csv"
    session = client.ask(run=["sh", "-c", work], time="2m", memory="256MiB", data=data)[0].accept()
    eventually(lambda: client.session(session.id).phase == "RUNNING", "it runs", 60)
    for file in (theirs, table):
        file.write_text("another's\n")
    (serving.home / "platforms" / "here" / "sessions" / session.id / "work" / "go").touch()
    session = client.session(session.id).wait(timeout=60)
    assert session.phase == "COMPLETED"
    assert session.condition.count("it has changed there since it was fetched, and is not overwritten") == 2
    assert (theirs.read_text(), table.read_text()) == ("another's\n", "another's\n")
    assert session.result("theirs.txt").text() == "mine\n"


def test_what_a_session_that_failed_has_changed_goes_back_only_if_that_was_asked(
    client: Client, tmp_path: Path
) -> None:
    files = {when: tmp_path / f"{when}.txt" for when in ("always", "completed")}
    for file in files.values():
        file.write_text("1\n")
    data = [{"location": f"file://{file}", "path": file.name, "write_back": when} for when, file in files.items()]
    session = ran(client, run=["sh", "-c", "echo 2 >>always.txt; echo 2 >>completed.txt; exit 3"], data=data)
    assert (session.exit_code, session.condition) == (3, "")
    assert {when: file.read_text() for when, file in files.items()} == {"always": "1\n2\n", "completed": "1\n"}


@pytest.mark.parametrize(
    ("item", "why"),
    [
        ({"location": "git+https://example.org/x", "path": "x", "write_back": True}, "only read here"),
        (
            {"location": "s3://bucket/x", "path": "x", "writable": False, "write_back": True},
            "only what can be written below",
        ),
        (
            {"location": "s3://bucket/x", "path": "x", "unpack": True, "write_back": True},
            "what is unpacked can't be written",
        ),
    ],
)
def test_what_can_not_go_back_is_a_no(client: Client, item: dict[str, Any], why: str) -> None:
    with pytest.raises(NoOffers, match=why):
        client.run(run=["true"], data=[item])


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
        ({"a": "s3://results/../others/x"}, "a part of its key is . or \\.\\."),
        ({"a": "https://example.org/x/"}, "a web server has no folders"),
        ({"a": "git+https://example.org/x"}, "git\\+https: addresses are only read here; push the results yourself"),
        ({"a": "session:x/y"}, "session: addresses are only read"),
        ({"a": "file:relative"}, "to file:relative: a file is named by its whole path"),
    ],
)
def test_an_address_that_nothing_can_be_sent_to_is_a_no(client: Client, outputs: dict[str, str], why: str) -> None:
    with pytest.raises(NoOffers, match=why):
        client.run(run=["true"], outputs=outputs)


@pytest.mark.parametrize("point", SENDING_POINTS)
def test_a_service_that_dies_as_it_sends_results_sends_them_all_and_frees_the_machine_before(
    tmp_path: Path, share: StorageServer, point: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "sublet.toml").write_text(SETTINGS)
    serving = Serving(home)
    try:
        client = serving.start(SUBLET_CRASH_AT=point)
        keep(client, share.credential)
        to = f"dav://{share.address}/{point}/"
        asked = client.ask(run=["sh", "-c", "echo a >a.txt; echo b >b.txt"], time="2m", outputs={"*.txt": to})
        session = asked[0].accept()
        assert serving.died() == -9, serving.log()
        client = serving.start()
        now = datetime.now(UTC)
        assert not any(lane.busy for lane in client.do(calendar("here", now, now + timedelta(days=1))).lanes)
        session = client.session(session.id).wait(timeout=60)
        assert (session.phase, session.condition) == ("COMPLETED", "")
        assert seen(share.directory / point) == {"a.txt": "a\n", "b.txt": "b\n"}
    finally:
        serving.stop()


def test_a_gateway_sends_nothing_to_private_addresses_or_to_its_own_files(tmp_path: Path, share: StorageServer) -> None:
    policy = Policy(credentials=[share.credential])
    [moved] = [mover for mover in survey_movers(policy).found if isinstance(mover, WebDavMover)]
    nothing = Content("a.txt", 0, lambda start: empty())
    with pytest.raises(DataNotSent, match=r"127\.0\.0\.1 is not a public address"):
        asyncio.run(moved.push(nothing, f"dav://{share.address}/x/", lambda done, total: None))
    [files] = [mover for mover in survey_movers(policy).found if isinstance(mover, FileMover)]
    assert files.check_push(f"file://{tmp_path}/") == "no files may be written on this machine"


async def empty() -> AsyncIterator[bytes]:
    for piece in ():
        yield piece


def test_results_of_one_session_are_data_of_another_which_waits_for_it(client: Client, serving: Serving) -> None:
    work = "sleep 1; mkdir -p out/deep; echo a >out/a.txt; echo b >out/deep/b.txt; echo c >c.txt"
    first = client.ask(run=["sh", "-c", work], time="2m", name="first")[0].accept()
    second = ran(
        client,
        run=["sh", "-c", "cat out/a.txt out/deep/b.txt; ls"],
        data=[{"location": f"session:{first.id[:8]}/out/", "path": "out", "writable": True}],
    )
    assert second.phase == "COMPLETED", second.end
    assert "".join(second.logs()) == "a\nb\nout\n"
    words = [sys.executable, "-m", "sublet", "run", "-t", "1m", "--data-from", "first:c.txt", "--", "cat", "c.txt"]
    typed = subprocess.run(words, env={**os.environ, "SUBLET_HOME": str(serving.home)}, capture_output=True, text=True)
    assert typed.stdout == "c\n", typed.stderr


@pytest.mark.parametrize(
    ("location", "why"),
    [("session:/out", "names no session"), ("session:nosuchone/out", "There is no session nosuchone")],
)
def test_results_of_what_is_no_session_are_a_no(client: Client, location: str, why: str) -> None:
    with pytest.raises(NoOffers, match=why):
        client.run(run=["true"], data=[{"location": location}])


def test_a_file_that_a_session_did_not_leave_fails_the_one_that_needs_it(client: Client) -> None:
    first = ran(client, run=["true"])
    second = ran(client, run=["true"], data=[f"session:{first.id}/nothing.txt"])
    assert second.end.kind == "staging-failed"
    assert "left no such file" in second.end.detail


def test_results_are_kept_longer_and_sent_to_ones_own_storage_after_the_end(
    client: Client, bucket: StorageServer
) -> None:
    keep(client, bucket.credential)
    session = ran(client, run=["sh", "-c", "mkdir out; echo a >out/a.txt; echo b >out/b.txt; echo c >c.txt"])
    left = client.do(results.results(session.id))
    assert left.kept_until is not None
    kept = client.do(results.keep(session.id, timedelta(days=90)))
    assert kept.kept_until - left.kept_until > timedelta(days=59)
    assert client.do(results.results(session.id)).kept_until == kept.kept_until
    with pytest.raises(BadRequest, match="at most"):
        client.do(results.keep(session.id, timedelta(days=900)))
    place = f"{bucket.credential.place}/bucket/later/"
    sent = b"".join(client.link.stream(results.send(session.id, place, "out/*"))).splitlines()
    assert [json.loads(line)["path"] for line in sent] == ["out/a.txt", "out/b.txt"]
    assert seen(bucket.directory / "bucket" / "later") == {"a.txt": "a\n", "b.txt": "b\n"}
    with pytest.raises(NotFound, match="There is no result"):
        list(client.link.stream(results.send(session.id, place, "nowhere/*")))
    with pytest.raises(BadRequest, match="Nothing here can send"):
        list(client.link.stream(results.send(session.id, "gopher://x/")))
