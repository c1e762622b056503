"""Names of files that are no UTF-8 can be listed, stored, sent and typed, and stand for one file alone."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sublet.kernel.errors import NotFound
from sublet.kernel.path_texts import restore_path, show_path
from sublet.platforms.batch.looks import read_results

PIECES = some.sampled_from([b"a", b"/", b"\\", b"x", b"5c", b"ff", b"\xff", b"\xc3\xbc", b"\x80", b"\\xff", b"\\x5c"])


@given(some.lists(PIECES).map(b"".join))
def test_every_path_is_text_and_the_text_stands_for_that_path_alone(raw: bytes) -> None:
    path = os.fsdecode(raw)
    text = show_path(path)
    text.encode()
    assert restore_path(text) == path


@pytest.mark.parametrize("path", ["out/a b.txt", "größe-日本.txt", "C:\\new\\x.txt", "a\\xyz", ""])
def test_paths_that_are_text_are_shown_as_they_are(path: str) -> None:
    assert show_path(path) == restore_path(path) == path


def test_no_text_leads_to_another_folder() -> None:
    assert restore_path("\\x2e\\x2e\\x2f\\x00") == "\\x2e\\x2e\\x2f\\x00"


def test_what_a_system_lists_is_text() -> None:
    left = read_results(b"3 1.0 ./out/bad\xff.bin\x00d 1.0 ./\xfe\x00")
    assert [file.path for file in left.files] == ["out/bad\\xff.bin"]
    str(left).encode()


def test_an_error_that_names_such_a_file_can_be_stored() -> None:
    error = NotFound(noun="result", name=os.fsdecode(b"bad\xff.bin"))
    assert "bad\\xff.bin" in error.message
    error.sentences.encode()
    NotFound(noun="result", name="half\ud83d").sentences.encode()
