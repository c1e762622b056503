"""Files that jobs share are read again whenever they may have changed."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from sublet.platforms.kept import digest_of
from sublet.service.input_files import InputFiles, read_fingerprint

pytestmark = pytest.mark.anyio


async def settle(files: InputFiles, path: Path) -> str:
    """The digest of a file, once it has been read."""
    for _ in range(500):
        fingerprint = read_fingerprint(str(path))
        assert fingerprint
        if found := files.digest(str(path), fingerprint):
            return found
        await asyncio.sleep(0.01)
    raise AssertionError("it was never read")


async def test_a_file_that_is_rebuilt_in_any_way_is_read_again(tmp_path: Path) -> None:
    files, path = InputFiles(still=0.01), tmp_path / "big.dat"
    path.write_bytes(b"first")
    assert await settle(files, path) == digest_of(path)
    first = path.stat()
    path.write_bytes(b"other")  # as large, and as old
    os.utime(path, ns=(first.st_atime_ns, first.st_mtime_ns))
    assert await settle(files, path) == digest_of(path)
    (tmp_path / "new").write_bytes(b"third")
    os.utime(tmp_path / "new", ns=(first.st_atime_ns, first.st_mtime_ns))
    (tmp_path / "new").rename(path)
    assert await settle(files, path) == digest_of(path)


async def test_a_file_that_is_being_written_is_not_read(tmp_path: Path) -> None:
    files, path = InputFiles(still=60), tmp_path / "big.dat"
    path.write_bytes(b"half of it")
    fingerprint = read_fingerprint(str(path))
    assert fingerprint
    assert files.digest(str(path), fingerprint) is None
    await asyncio.sleep(0.02)
    assert files.digest(str(path), fingerprint) is None


async def test_what_changed_while_it_was_read_does_not_count(tmp_path: Path) -> None:
    files, path = InputFiles(still=0), tmp_path / "big.dat"
    path.write_bytes(b"first")
    fingerprint = read_fingerprint(str(path))
    assert fingerprint
    assert files.digest(str(path), fingerprint) is None, "it is being read"
    path.write_bytes(b"second")
    assert await settle(files, path) == digest_of(path)


def test_directories_and_what_is_not_there_have_no_fingerprint(tmp_path: Path) -> None:
    assert read_fingerprint(str(tmp_path)) is None
    assert read_fingerprint(str(tmp_path / "nothing")) is None
    assert read_fingerprint("a\0b") is None
