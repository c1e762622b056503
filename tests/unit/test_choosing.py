"""Which files are fetched, and on from where."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sublet.booking.views.results import ResultFileView, ResultList
from sublet.client.call import Call
from sublet.client.fetching import choose_results, fetch, fetch_file, find_files_there
from sublet.kernel.errors import Changed, InTheWay, NotFound, SubletError

NOW = datetime(2026, 11, 16, tzinfo=UTC)


def left(path: str, size: int = 3, etag: str = '"1"') -> ResultFileView:
    return ResultFileView(path=path, size=size, modified=NOW, etag=etag)


FILES = [left("a.csv"), left("plots/one.png"), left("plots/old/two.png"), left("plots.txt")]
LEFT = ResultList(items=tuple(FILES), size=12, folders=("plots/new", "tables"))


@pytest.mark.parametrize(
    ("wanted", "paths"),
    [
        ([], ["a.csv", "plots/one.png", "plots/old/two.png", "plots.txt"]),
        (["plots"], ["plots/one.png", "plots/old/two.png"]),
        (["plots/"], ["plots/one.png", "plots/old/two.png"]),
        (["*.png", "a.csv"], ["a.csv", "plots/one.png", "plots/old/two.png"]),
        (["./a.csv"], ["a.csv"]),
        (["."], ["a.csv", "plots/one.png", "plots/old/two.png", "plots.txt"]),
    ],
)
def test_a_file_a_directory_or_a_pattern_chooses(wanted: list[str], paths: list[str]) -> None:
    assert [file.path for file in choose_results(LEFT, wanted).items] == paths


def test_what_is_not_there_is_told() -> None:
    with pytest.raises(NotFound, match=r"b\.csv"):
        choose_results(LEFT, ["a.csv", "b.csv"])


def test_folders_with_nothing_in_them_are_chosen_and_made_like_files(tmp_path: Path) -> None:
    assert choose_results(LEFT, []) == LEFT
    assert choose_results(LEFT, ["plots"]).folders == ("plots/new",)
    some = choose_results(LEFT, ["tables", "a.csv"])
    assert (some.size, some.folders) == (3, ("tables",))
    made = fetch(Server(b"abc").stream, "s", some, str(tmp_path))
    assert made == [f"{tmp_path}/a.csv", f"{tmp_path}/tables/"]
    assert (tmp_path / "tables").is_dir()
    assert fetch(Server(b"").stream, "s", choose_results(LEFT, ["tables"]), str(tmp_path)) == made[1:], (
        "again is the same"
    )
    with pytest.raises(SubletError, match="outside"):
        fetch(Server(b"").stream, "s", ResultList(items=(), folders=("../x",)), str(tmp_path))


class Server:
    """Sends a file from where it is asked on, and may break off, or have another version."""

    def __init__(self, content: bytes) -> None:
        self.content, self.breaks, self.etag = content, -1, '"1"'
        self.firsts: list[int] = []

    def stream(self, call: Call[bytes]) -> Iterator[bytes]:
        first = int(call.more.get("Range", "bytes=0-").removeprefix("bytes=").removesuffix("-"))
        self.firsts.append(first)
        if call.more.get("If-Match", self.etag) != self.etag:
            raise Changed(path="x")
        for at in range(first, len(self.content)):
            if at == self.breaks:
                raise ConnectionError("lost")
            yield self.content[at : at + 1]


def test_what_was_broken_off_goes_on_where_it_was(tmp_path: Path) -> None:
    server, file = Server(b"abcdef"), left("d/f", 6)
    server.breaks = 4
    with pytest.raises(ConnectionError):
        fetch_file(server.stream, "s", file, str(tmp_path))
    assert not (tmp_path / "d" / "f").exists()
    server.breaks = -1
    fetch_file(server.stream, "s", file, str(tmp_path))
    assert (tmp_path / "d" / "f").read_bytes() == b"abcdef"
    assert server.firsts == [0, 4]
    assert [path.name for path in (tmp_path / "d").iterdir()] == ["f"]


def test_another_version_is_fetched_from_its_beginning(tmp_path: Path) -> None:
    server = Server(b"abcdef")
    server.breaks = 4
    with pytest.raises(ConnectionError):
        fetch_file(server.stream, "s", left("f", 6), str(tmp_path))
    server.breaks, server.etag = -1, '"2"'
    with pytest.raises(Changed):  # it changed after it was listed
        fetch_file(server.stream, "s", left("f", 6), str(tmp_path))
    fetch_file(server.stream, "s", left("f", 6, '"2"'), str(tmp_path))
    assert (tmp_path / "f").read_bytes() == b"abcdef"
    assert server.firsts == [0, 4, 0]


def test_an_empty_file_is_a_file(tmp_path: Path) -> None:
    fetch_file(Server(b"").stream, "s", left("f", 0), str(tmp_path))
    assert (tmp_path / "f").read_bytes() == b""


def test_what_an_earlier_fetch_put_there_is_known_again_without_being_read(tmp_path: Path) -> None:
    server, listed = Server(b"abc"), ResultList(items=(left("d/f"), left("g")))
    fetch(server.stream, "s", listed, str(tmp_path))
    (tmp_path / "g").unlink()
    assert find_files_there(server.stream, "s", listed, str(tmp_path)) == {"d/f"}
    made = fetch(server.stream, "s", listed, str(tmp_path), {"d/f"})
    assert made == [f"{tmp_path}/d/f", f"{tmp_path}/g"]
    assert server.firsts == [0, 0, 0], "once for each, and once more for the one that was gone"


def test_a_file_of_ones_own_is_kept_unless_it_is_the_same(tmp_path: Path) -> None:
    server, listed = Server(b"abc"), ResultList(items=(left("d/f"), left("g")), folders=("e",))
    (tmp_path / "g").write_bytes(b"abc")
    assert find_files_there(server.stream, "s", listed, str(tmp_path)) == {"g"}
    for mine in (b"own", b"longer"):
        (tmp_path / "g").write_bytes(mine)
        with pytest.raises(InTheWay, match="g is there already"):
            find_files_there(server.stream, "s", listed, str(tmp_path))
        assert find_files_there(server.stream, "s", listed, str(tmp_path), overwrite=True) == frozenset()
        assert (tmp_path / "g").read_bytes() == mine


def test_a_file_in_place_of_a_folder_and_a_folder_in_place_of_a_file_are_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "d").touch()
    (tmp_path / "g").mkdir()
    (tmp_path / "e").touch()
    listed = ResultList(items=(left("d/f"), left("g")), folders=("e",))
    with pytest.raises(InTheWay) as raised:
        find_files_there(Server(b"abc").stream, "s", listed, str(tmp_path))
    assert all(f"{tmp_path}/{name}" in raised.value.message for name in "dge")
