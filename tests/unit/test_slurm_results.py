"""What a job leaves is read as a plain file of its own, whatever it puts in the place of one meanwhile."""

from __future__ import annotations

import os
import subprocess
import threading
from pathlib import Path

import pytest

from sublet.platforms.batch.commands import to_result, to_results
from sublet.platforms.port import Results
from sublet.reach.port import Outcome

SECRET = b"of another person, under the same account"


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """A session's files, beside another's."""
    work = tmp_path / "sessions" / "mine" / "work"
    (work / "deep").mkdir(parents=True)
    (work / "f").write_bytes(b"abcdef")
    (work / "deep" / "od\nd $(id)").write_bytes(b"odd")
    other = tmp_path / "sessions" / "other" / "work"
    other.mkdir(parents=True)
    (other / "secret").write_bytes(SECRET)
    (work / "link").symlink_to(other / "secret")
    (work / "folder").symlink_to(other)
    os.mkfifo(work / "pipe")
    return tmp_path


def read(root: Path, path: str, offset: int = 0, limit: int = 100) -> bytes | None:
    command = to_result(str(root), "mine", path, offset, limit)
    ran = subprocess.run(command.argv, capture_output=True, timeout=30)
    return None if ran.returncode else ran.stdout


def test_plain_files_are_read_from_any_byte_on(session: Path) -> None:
    assert read(session, "f") == b"abcdef"
    assert read(session, "f", 2, 3) == b"cde"
    assert read(session, "f", 6) == b""
    assert read(session, "deep/od\nd $(id)") == b"odd"


@pytest.mark.parametrize(
    "path",
    [
        "link",
        "folder/secret",
        "../../other/work/secret",
        "deep/../../../other/work/secret",
        "/etc/passwd",
        "pipe",
        "deep",
        "nothing",
        "./f",
        "",
    ],
)
def test_nothing_else_is_read(path: str, session: Path) -> None:
    assert read(session, path) is None


def test_a_link_that_takes_a_files_place_while_it_is_read_leads_nowhere(session: Path) -> None:
    work = session / "sessions" / "mine" / "work"
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            (work / "new").symlink_to(session / "sessions" / "other" / "work" / "secret")
            (work / "new").rename(work / "f")
            (work / "new").write_bytes(b"abcdef")
            (work / "new").rename(work / "f")

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        found = {read(session, "f") for _ in range(60)}
    finally:
        over.set()
        swapping.join()
    assert found <= {b"abcdef", None}


def test_files_and_empty_folders_are_listed_but_nothing_that_was_brought(session: Path) -> None:
    mine = session / "sessions" / "mine"
    (mine / "work" / "new" / "od\nd").mkdir(parents=True)
    (mine / "work" / "brought").mkdir()
    (mine / "work" / ".sublet" / "own").mkdir(parents=True)

    def left() -> Results:
        command = to_results(str(session), "mine")
        ran = subprocess.run(command.argv, capture_output=True, check=True, timeout=30)
        return command.reader(Outcome(0, ran.stdout, ran.stderr))

    assert [file.path for file in left().files] == ["deep/od\nd $(id)", "f"]
    assert left().folders == ("brought", "new/od\nd")
    entry = f"6 {int((mine / 'work' / 'f').stat().st_mtime)} ./f"
    (mine / "brought").write_bytes(b"\0".join((entry.encode(), b"d 0 ./brought", b"")))
    assert [file.path for file in left().files] == ["deep/od\nd $(id)"]
    assert left().folders == ("new/od\nd",)
