"""`sublet result put`: results go to storage of one's own after the end, and on from where that was broken off."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from sublet.booking.calls import results
from sublet.client import Client
from sublet.client.sent_lines import SentLines
from sublet.kernel.part_names import name_part
from tests.real.test_data_in_and_out import SETTINGS, keep, ran, seen
from tests.serving import Serving, serve
from tests.storage_servers import StorageServer, serve_webdav

LARGE = 96 << 20


@pytest.fixture(scope="module")
def share(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StorageServer]:
    directory = tmp_path_factory.mktemp("dav") / "data"
    directory.mkdir()
    with serve_webdav(directory) as server:
        yield server


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serve(tmp_path_factory.mktemp("put") / "home", SETTINGS) as serving:
        yield serving


@pytest.fixture(scope="module")
def client(serving: Serving, share: StorageServer) -> Client:
    client = serving.start()
    keep(client, share.credential)
    return client


def type_in(serving: Serving, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SUBLET_HOME": str(serving.home)}
    return subprocess.run(
        [sys.executable, "-m", "sublet", *words], env=environment, capture_output=True, text=True, check=False
    )


def test_what_was_broken_off_goes_on_with_what_is_missing_or_has_changed(
    serving: Serving, client: Client, share: StorageServer
) -> None:
    work = "mkdir out; for name in a b c; do echo $name >out/$name.txt; done; echo log >log.txt; echo no >scratch.txt"
    session = ran(client, run=["sh", "-c", work])
    to, there = f"dav://{share.address}/run/", share.directory / "run"
    in_the_way = there / name_part("b.txt")  # what is sent has this name until it is whole
    in_the_way.mkdir(parents=True)
    (in_the_way / "another's").touch()
    words = ("result", "put", session.id, to, "out/*", "log.txt")
    dry = type_in(serving, *words, "--dry-run")
    assert "out/c.txt" in dry.stdout, dry.stderr
    assert "4 files" in dry.stderr
    assert f"would be sent to {to}" in dry.stderr
    broken = type_in(serving, *words)
    assert broken.returncode == 1
    assert "405" in broken.stderr, broken.stderr
    assert (there / "a.txt").read_text() == "a\n"
    (in_the_way / "another's").unlink()
    in_the_way.rmdir()
    sent_before = (there / "a.txt").stat().st_mtime_ns
    on = json.loads(type_in(serving, "--json", *words).stdout)["sent"]
    assert {file["path"]: file["was_there"] for file in on} == {
        "out/a.txt": True,
        "out/b.txt": False,
        "out/c.txt": False,
        "log.txt": False,
    }
    assert (there / "a.txt").stat().st_mtime_ns == sent_before
    assert seen(there) == {"a.txt": "a\n", "b.txt": "b\n", "c.txt": "c\n", "log.txt": "log\n"}
    (there / "c.txt").unlink()
    (there / "a.txt").write_text("other")
    again = type_in(serving, *words)
    assert again.stdout == f"Sent 2 files (4 B) to {to}; 2 files there already.\n", again.stderr
    assert seen(there)["a.txt"] == "a\n"


def test_how_far_a_large_file_is_is_told_while_it_is_sent_and_only_to_those_who_ask(
    client: Client, share: StorageServer
) -> None:
    session = ran(client, run=["sh", "-c", f"head -c {LARGE} /dev/zero >large.bin"])
    lines, doing = SentLines(), []
    for piece in client.stream(results.send(session.id, f"dav://{share.address}/large/", progress=True)):
        if (told := lines.saw(piece).doing) and told not in doing:
            doing.append(told)
    assert [(file.path, file.size) for file in lines.files] == [("large.bin", LARGE)]
    assert doing[0].doing.startswith("sending large.bin (1 of 1) to ")
    assert doing[0].total == LARGE
    sent = client.session(session.id).send(f"dav://{share.address}/large/", "large.bin")
    assert [file.was_there for file in sent] == [True]
    plain = b"".join(client.stream(results.send(session.id, f"dav://{share.address}/other/")))
    assert [json.loads(line)["path"] for line in plain.splitlines()] == ["large.bin"]
    assert (share.directory / "other" / "large.bin").stat().st_size == LARGE
