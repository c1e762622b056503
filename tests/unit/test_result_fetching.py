"""Results that are fetched into one directory by two commands at once, or that come shorter than they are."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sublet.booking.views.results import ResultFileView
from sublet.client.call import Call
from sublet.client.fetching import fetch_file, save
from sublet.kernel.errors import SubletError
from sublet.kernel.part_names import name_part

CONTENT = bytes(range(256)) * 40
CUBE = ResultFileView(path="out/cube", size=len(CONTENT), modified=datetime(2026, 1, 1, tzinfo=UTC), etag='"1"')


def stream(call: Call[bytes]) -> Iterator[bytes]:
    first = int((call.more or {}).get("Range", "bytes=0-").removeprefix("bytes=").rstrip("-"))
    yield from (CONTENT[at : at + 1000] for at in range(first, len(CONTENT), 1000))


def test_a_second_command_that_fetches_a_file_at_the_same_time_is_refused_and_the_file_is_right(tmp_path: Path) -> None:
    told = []

    def disturbed(call: Call[bytes]) -> Iterator[bytes]:
        for number, piece in enumerate(stream(call)):
            if number == 5:
                with pytest.raises(SubletError) as second:
                    fetch_file(stream, "s1", CUBE, str(tmp_path))
                told.append(second.value.message)
            yield piece

    made = Path(fetch_file(disturbed, "s1", CUBE, str(tmp_path)))
    assert told == [f"Another command is fetching {made} just now."]
    assert made.read_bytes() == CONTENT
    assert [file.name for file in made.parent.iterdir()] == ["cube"]


def test_a_second_command_that_writes_an_archive_at_the_same_time_is_refused_and_the_archive_is_right(
    tmp_path: Path,
) -> None:
    to = str(tmp_path / "result.tar.gz")

    def disturbed() -> Iterator[bytes]:
        yield CONTENT
        with pytest.raises(SubletError, match="Another command is fetching"):
            save([b"other"], to)
        yield CONTENT

    Path(name_part(to)).write_bytes(b"of a command that was killed")
    assert Path(save(disturbed(), to)).read_bytes() == CONTENT + CONTENT
    assert Path(save([b"short"], to)).read_bytes() == b"short"


def test_what_broke_off_is_resumed_and_what_came_short_is_not_taken_for_the_whole(tmp_path: Path) -> None:
    def broken(call: Call[bytes]) -> Iterator[bytes]:
        yield from list(stream(call))[:5]
        raise ConnectionError

    def short(call: Call[bytes]) -> Iterator[bytes]:
        yield from list(stream(call))[:-1]

    with pytest.raises(ConnectionError):
        fetch_file(broken, "s1", CUBE, str(tmp_path))
    with pytest.raises(SubletError, match="instead of 10240"):
        fetch_file(short, "s1", CUBE, str(tmp_path))
    assert not list((tmp_path / "out").iterdir())
    with pytest.raises(ConnectionError):
        fetch_file(broken, "s1", CUBE, str(tmp_path))
    calls: list[Call[bytes]] = []

    def noted(call: Call[bytes]) -> Iterator[bytes]:
        calls.append(call)
        return stream(call)

    assert Path(fetch_file(noted, "s1", CUBE, str(tmp_path))).read_bytes() == CONTENT
    assert [call.more["Range"] for call in calls if call.more] == ["bytes=5000-"]
