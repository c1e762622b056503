"""Files that jobs share are read again whenever they may have changed."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from sublet.annexes.input_files import InputFiles, read_fingerprint
from sublet.annexes.input_trees import digest_tree, pack_tree
from sublet.annexes.pilots.bundle import far
from sublet.platforms.batch.kept import digest_of

pytestmark = pytest.mark.anyio


async def settle(files: InputFiles, path: Path) -> str:
    """The digest of a file, once it has been read."""
    async with asyncio.timeout(60):
        while True:
            fingerprint = read_fingerprint(str(path))
            assert fingerprint
            if digest := files.digest(str(path), fingerprint):
                return digest
            await asyncio.sleep(0.01)


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


def test_what_is_neither_a_file_nor_a_directory_has_no_fingerprint(tmp_path: Path) -> None:
    assert read_fingerprint(str(tmp_path / "nothing")) is None
    assert read_fingerprint("a\0b") is None
    os.mkfifo(tmp_path / "pipe")
    assert read_fingerprint(str(tmp_path / "pipe")) is None
    assert read_fingerprint(str(tmp_path)) is None, "HTCondor has to say what becomes of a FIFO in a directory"
    root = plant(tmp_path / "other")
    assert read_fingerprint(str(root))
    (root / "lib64").symlink_to("lib")
    assert read_fingerprint(str(root)) is None, "and of a link to a directory"


def plant(place: Path) -> Path:
    """A directory as people have them: deep, with a program, links and an empty place."""
    root = place / "tool"
    (root / "lib" / "deep").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "lib" / "deep" / "data").write_bytes(b"12345")
    (root / "run").write_text("#!/bin/sh\n")
    (root / "run").chmod(0o755)
    (root / "also").symlink_to("run")
    return root


CHANGES: dict[str, Callable[[Path], object]] = {
    "a byte": lambda root: (root / "lib/deep/data").write_bytes(b"12346"),
    "a new file": lambda root: (root / "lib/deep/more").write_bytes(b""),
    "one gone": lambda root: (root / "lib/deep/data").unlink(),
    "a name": lambda root: (root / "lib/deep/data").rename(root / "lib/deep/datum"),
    "a mode": lambda root: (root / "run").chmod(0o644),
    "a link": lambda root: [(root / "also").unlink(), (root / "also").symlink_to("lib/deep/data")],
    "an empty directory": lambda root: (root / "empty").rmdir(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_a_directory_in_which_anything_changed_is_another(
    tmp_path: Path, change: Callable[[Path], object]
) -> None:
    root, files = plant(tmp_path), InputFiles(still=0)
    before, digest = read_fingerprint(str(root)), await settle(files, root)
    assert before
    assert (before.size, read_fingerprint(str(root))) == (5 + 2 * len("#!/bin/sh\n"), before)
    change(root)
    assert read_fingerprint(str(root)) != before
    assert await settle(files, root) != digest


def test_an_archive_holds_what_htcondor_would_send_and_is_the_same_each_time(tmp_path: Path) -> None:
    root = plant(tmp_path)
    for path, top in ((str(root), "tool/"), (f"{root}/", "")):
        pack_tree(path, tmp_path / "packed.tar")
        assert digest_of(tmp_path / "packed.tar") == digest_tree(path) == digest_tree(path)
        with tarfile.open(tmp_path / "packed.tar") as archive:
            members = {member.name: member for member in archive}
        inside = {"also", "empty", "lib", "lib/deep", "lib/deep/data", "run"}
        assert set(members) - {"tool"} == {f"{top}{name}" for name in inside}
        assert members[f"{top}also"].isreg(), "a link to a file is that file"
        assert members[f"{top}run"].mode == 0o755


async def test_a_directory_that_jobs_write_into_is_left_to_htcondor(tmp_path: Path) -> None:
    root, files = plant(tmp_path), InputFiles(still=60)
    for number in range(10):
        (root / "job.log").write_text(f"{number}\n")
        fingerprint = read_fingerprint(str(root))
        assert fingerprint
        files.digest(str(root), fingerprint)
    assert files.is_restless(str(root), fingerprint)
    (tmp_path / "big.dat").write_text("x")
    single = read_fingerprint(str(tmp_path / "big.dat"))
    assert single
    assert not files.is_restless(str(tmp_path / "big.dat"), single)


@pytest.mark.parametrize("sh", ["dash", "bash"])
def test_a_node_unpacks_directories_takes_programs_and_says_what_is_missing(tmp_path: Path, sh: str) -> None:
    kept, sandbox = tmp_path / "kept" / "sha256-1", tmp_path / "a sandbox"
    kept.mkdir(parents=True)
    sandbox.mkdir()
    pack_tree(str(plant(tmp_path)), kept / "content")
    urls = [f"subletdir://{kept}/sha256-1", f"subletfile://{kept}/solver", f"subletdir://{tmp_path}/kept/sha256-2/x"]
    asked = [f'[ LocalFileName = "{sandbox}/{url.rpartition("/")[2]}"; Url = "{url}" ]\n' for url in urls]
    (tmp_path / "plug-in").write_bytes(far("fetch_kept"))
    (tmp_path / "asked").write_text("".join(asked))
    words = [sh, str(tmp_path / "plug-in"), "-infile", str(tmp_path / "asked"), "-outfile", str(tmp_path / "said")]
    assert subprocess.run(words, check=False).returncode == 1, "one of them is not there"
    said = (tmp_path / "said").read_text().splitlines()
    assert ["TransferSuccess = true" in line for line in said] == [True, True, False]
    assert "sha256-2/content: Cannot open" in said[2]
    assert (sandbox / "tool/lib/deep/data").read_bytes() == b"12345"
    assert os.access(sandbox / "tool/run", os.X_OK)
    assert (sandbox / "solver").read_bytes() == (kept / "content").read_bytes()
    assert os.access(sandbox / "solver", os.X_OK)
    assert "subletdir,subletfile" in subprocess.run([*words[:2], "-classad"], capture_output=True, text=True).stdout
