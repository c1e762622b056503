"""Results with odd names are listed, fetched and sent under names that stand for them, or it is told which are not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sublet.booking.calls import results
from sublet.client import Client
from sublet.client.fetching import fetch
from sublet.kernel.errors import DataNotSent
from tests.real.test_data_in_and_out import SETTINGS, bucket, keep, ran, share  # noqa: F401 - fixtures
from tests.serving import serve
from tests.storage_servers import StorageServer

NO_TEXT = "mkdir out; echo a >out/a.txt; printf bad >\"$(printf 'out/bad\\377.bin')\""
SHOWN = "out/bad\\xff.bin"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with serve(tmp_path_factory.mktemp("odd") / "home", SETTINGS) as serving:
        yield serving.start()


def test_a_name_that_is_no_text_is_shown_fetched_and_sent(
    client: Client,
    bucket: StorageServer,  # noqa: F811
    tmp_path: Path,
) -> None:
    keep(client, bucket.credential)
    place = f"{bucket.credential.place}/bucket/odd/"
    session = ran(client, run=["sh", "-c", NO_TEXT], outputs=[{"path": "out", "to": place}])
    assert session.phase == "COMPLETED"
    kinds = [event.kind for event in client.events(session=session.id)]
    assert "session.sent" in kinds
    assert "session.unsent" not in kinds
    left = client.do(results.results(session.id))
    assert [file.path for file in left.items] == ["out/a.txt", SHOWN]
    assert client.do(results.result(session.id, SHOWN)) == b"bad"
    sent = bucket.directory / "bucket" / "odd"
    assert {path.name: path.read_bytes() for path in sent.iterdir()} == {"a.txt": b"a\n", "bad\\xff.bin": b"bad"}


def test_a_name_that_is_no_text_is_the_same_for_the_next_session(client: Client) -> None:
    first = ran(client, run=["sh", "-c", NO_TEXT])
    data = [{"location": f"session:{first.id}/out/", "path": "in"}]
    second = ran(client, run=["sh", "-c", "printf bad | cmp - \"$(printf 'in/bad\\377.bin')\""], data=data)
    assert second.phase == "COMPLETED", second.end


def test_a_folder_of_this_machine_with_such_a_name_is_brought(client: Client, tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"bad\xff.bin")).write_bytes(b"bad")
    session = ran(client, run=["sh", "-c", "cat in/*"], data=[{"location": str(tmp_path), "path": "in"}])
    assert session.phase == "COMPLETED", session.end


def test_a_file_that_a_webdav_server_calls_otherwise_is_told_as_not_sent(
    client: Client,
    share: StorageServer,  # noqa: F811
) -> None:
    keep(client, share.credential)
    address = f"dav://{share.address}/odd/"
    session = ran(client, run=["sh", "-c", "mkdir out; echo a >'out/a b ü%.txt'"])
    list(client.link.stream(results.send(session.id, address, "out/*")))
    assert (share.directory / "odd" / "a b ü%.txt").read_text() == "a\n"
    session = ran(client, run=["sh", "-c", "mkdir out; echo q >'out/q?x.txt'"])
    with pytest.raises(DataNotSent, match="another name"):  # this one reads `?` in the name that a file is to have
        list(client.link.stream(results.send(session.id, address, "out/*")))


def test_empty_folders_and_names_like_patterns_are_data_of_the_next_session(client: Client) -> None:
    made = "mkdir -p out/empty/deep 'out/[b]' && echo x >'out/[b]/x.txt' && : >out/none.txt"
    first = ran(client, run=["sh", "-c", made])

    def list_of(path: str) -> list[str]:
        data = [{"from": f"{first.id}/{path}", "path": "in"}]
        session = ran(client, run=["sh", "-c", "cd in && find . ! -name . | sort"], data=data)
        assert session.phase == "COMPLETED", session.end
        return "".join(session.logs(stream="stdout")).split()

    every = ["./[b]", "./[b]/x.txt", "./empty", "./empty/deep", "./none.txt"]
    assert list_of("out/") == every
    assert list_of("out/[b]/") == ["./x.txt"]
    assert list_of("out/empty/") == ["./deep"]
    assert list_of("out/empty/deep/") == []


def test_the_longest_names_are_brought_sent_and_fetched_and_parts_replace_nothing(
    client: Client,
    share: StorageServer,  # noqa: F811
    tmp_path: Path,
) -> None:
    keep(client, share.credential)
    name, text = "n" * 255, "long\n"
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / name).write_text(text)
    to = {"file": tmp_path / "to", "dav": share.directory / "longest"}
    for there in to.values():
        there.mkdir()
        (there / "a.part").write_text("another's")
    outputs = [{"path": "out", "to": f"file://{to['file']}/"}, {"path": "out", "to": f"dav://{share.address}/longest/"}]
    data = [{"location": str(tmp_path / "in"), "path": "in"}]
    work = "mkdir out; cp in/* out/; echo a >out/a"
    session = ran(client, run=["sh", "-c", work], data=data, outputs=outputs)
    assert session.phase == "COMPLETED", session.end
    for there in to.values():
        assert {path.name: path.read_text() for path in there.iterdir()} == {
            name: text,
            "a": "a\n",
            "a.part": "another's",
        }
    fetch(client.stream, session.id, client.do(results.results(session.id)), str(tmp_path / "got"))
    assert (tmp_path / "got" / "out" / name).read_text() == text


def test_an_address_that_no_file_can_have_ends_the_session_with_the_reason(client: Client, tmp_path: Path) -> None:
    session = ran(client, run=["sh", "-c", "echo a >a"], outputs={"a": f"file://{tmp_path}/{'n' * 300}"})
    assert session.phase == "COMPLETED"
    [unsent] = [event for event in client.events(session=session.id) if event.kind == "session.unsent"]
    assert "File name too long" in unsent.detail
