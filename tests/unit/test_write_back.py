"""What goes back to where it came from: what was changed, once, and not over others' changes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from sublet.booking.documents.request import read_request
from sublet.booking.model.request import SentResults
from sublet.data.write_back import BroughtVersions, DataSource, list_changed, list_write_backs
from sublet.kernel.errors import SubletError
from sublet.platforms.port import ResultFile, Results

NOW = datetime(2026, 11, 17, tzinfo=UTC)


def left(*paths: str) -> Results:
    return Results(tuple(ResultFile(path, 1, NOW) for path in paths))


def test_of_a_folder_all_that_is_new_or_another_goes_back_and_of_a_file_that_file_alone(tmp_path: Path) -> None:
    brought = BroughtVersions(tmp_path / "x.json", {"set": {"a.txt": "1 1"}, "one": {"one.txt": "1 1"}})
    folder = SentResults("set", "s3://b/set/", source="set")
    one = SentResults("one.txt", "s3://b/one.txt", source="one")
    results = left("set/a.txt", "set/deep/new.txt", "one.txt", "other.txt")
    there = DataSource(is_folder=True, versions={})
    assert [path for _, path in list_changed(folder, there, brought, results)] == ["a.txt", "deep/new.txt"]
    alone = DataSource(is_folder=False, versions={})
    assert [path for _, path in list_changed(one, alone, brought, results)] == ["one.txt"]
    inside = SentResults("in", "s3://b/one.txt", source="one")
    found = list_changed(inside, alone, brought, left("in/one.txt", "in/beside.txt"))
    assert [(file.path, path) for file, path in found] == [("in/one.txt", "one.txt")]


def test_what_went_back_before_a_crash_does_not_go_again(tmp_path: Path) -> None:
    first = BroughtVersions(BroughtVersions.find_file(tmp_path, "s"), {"set": {"a.txt": "1 1"}})
    first.note_sent("set", "a.txt")
    again = BroughtVersions.of(tmp_path, "s")
    folder = SentResults("set", "s3://b/set/", source="set")
    there = DataSource(is_folder=True, versions={"a.txt": "2 1"})
    assert [path for _, path in list_changed(folder, there, again, left("set/a.txt", "set/b.txt"))] == ["b.txt"]
    assert BroughtVersions.of(tmp_path, "another").versions == {}


@pytest.mark.parametrize(
    ("known", "now", "changed"),
    [
        ({"a": "1 1"}, {"a": "1 1"}, False),
        ({"a": "1 1"}, {"a": "2 1"}, True),
        ({"a": "1 1"}, {}, True),
        ({}, {"a": "1 1"}, True),
        ({}, {}, False),
        (None, {"a": "1 1"}, False),
        ({"a": "1 1"}, None, False),
    ],
)
def test_a_file_that_is_another_or_gone_or_came_meanwhile_is_others_work(
    tmp_path: Path, known: dict[str, str] | None, now: dict[str, str] | None, changed: bool
) -> None:
    brought = BroughtVersions(tmp_path / "x.json", {} if known is None else {"set": known})
    assert brought.has_changed("set", "a", DataSource(is_folder=True, versions=now)) is changed


def test_a_request_says_whether_data_goes_back_also_when_the_session_failed() -> None:
    for given, always in ((True, False), ("completed", False), ("always", True)):
        request = read_request({"run": ["true"], "data": [{"location": "s3://b/in.txt", "write_back": given}]}, NOW)
        assert [output.always for output in list_write_backs(request)] == [always]
    for wrong in ("never", 1, ["always"]):
        with pytest.raises(SubletError, match="is not true or false"):
            read_request({"run": ["true"], "data": [{"location": "s3://b/in.txt", "write_back": wrong}]}, NOW)


def test_a_request_says_what_goes_back() -> None:
    data = [{"location": "s3://b/in.txt", "write_back": True}, "s3://b/other.txt"]
    request = read_request({"run": ["true"], "data": data}, NOW)
    assert list_write_backs(request) == [SentResults("in.txt", "s3://b/in.txt", source="in")]
