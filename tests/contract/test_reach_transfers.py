"""Files and directories go there and back whole, by every reach, and go on where they were stopped."""

import hashlib
import os
from pathlib import Path

import pytest

from sublet.kernel.errors import PlatformRefused, PlatformUnreachable
from sublet.reach.port import Reach
from tests.contract.reaching import Far, Steps, tree

pytestmark = pytest.mark.anyio


NAMES = [
    "plain",
    "with space",
    "-dash",
    "new\nline",
    "quote'\"",
    ";$(touch hurt)",
    "ünïcode",
    "deep/er/file",
    "n" * 255,
]


@pytest.mark.parametrize("size", [0, 10, 700_000])
async def test_a_file_goes_there_and_back_whole(reach: Reach, far: Far, tmp_path: Path, size: int) -> None:
    source, steps = tmp_path / "source", Steps()
    source.write_bytes(os.urandom(size))
    source.chmod(0o750)
    await reach.send(source, f"to/{size}/-there", steps)
    sent = far.home / f"to/{size}/-there"
    assert sent.read_bytes() == source.read_bytes()
    assert sent.stat().st_mode & 0o777 == 0o750
    await reach.fetch(f"to/{size}/-there", tmp_path / "back" / "again", steps)
    assert (tmp_path / "back" / "again").read_bytes() == source.read_bytes()
    assert steps.told[-1] == (size, size)
    assert [path.name for path in sent.parent.iterdir()] == ["-there"]


async def test_a_directory_goes_there_and_back_with_any_name(reach: Reach, far: Far, tmp_path: Path) -> None:
    source = tmp_path / "source"
    for name in NAMES:
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode() * 3)
    (source / "large").write_bytes(os.urandom(900_000))
    (source / "empty directory").mkdir()
    (source / "link").symlink_to("plain")
    (source / "nowhere").symlink_to("missing")
    (source / "loop").symlink_to(".")
    (source / "run").write_text("#!/bin/sh\n")
    (source / "run").chmod(0o755)
    await reach.send(source, "-tree of/it", Steps())
    assert tree(far.home / "-tree of/it") == tree(source)
    assert (far.home / "-tree of/it/empty directory").is_dir()
    (far.home / "-tree of/it/loop").symlink_to(".")
    (far.home / "-tree of/it/nowhere").symlink_to("missing")
    await reach.fetch("-tree of/it", tmp_path / "back", Steps())
    assert tree(tmp_path / "back") == tree(source)
    assert (tmp_path / "back/empty directory").is_dir()
    assert not (tmp_path / "back/loop").exists()


async def test_what_is_there_already_is_not_sent_again_and_what_changed_is(
    reach: Reach, far: Far, tmp_path: Path
) -> None:
    source = tmp_path / "twice"
    source.mkdir()
    (source / "same").write_text("same")
    (source / "changed").write_text("before")
    await reach.send(source, "twice-there", Steps())
    before = (far.home / "twice-there/same").stat().st_ino
    (source / "changed").write_text("behind")
    await reach.send(source, "twice-there", Steps())
    assert (far.home / "twice-there/same").stat().st_ino == before
    assert (far.home / "twice-there/changed").read_text() == "behind"


async def test_a_transfer_that_was_stopped_goes_on_where_it_stopped(reach: Reach, far: Far, tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    def stop(done: int, total: int | None) -> None:
        if done > 1_000_000:
            raise Enough

    source, steps, back = tmp_path / "source", Steps(), Steps()
    source.write_bytes(os.urandom(3_000_000))
    with pytest.raises(Enough):
        await reach.send(source, "resumed/file", stop)
    assert not (far.home / "resumed/file").exists()
    await reach.send(source, "resumed/file", steps)
    assert steps.told[0][0] > 1_000_000
    with pytest.raises(Enough):
        await reach.fetch("resumed/file", tmp_path / "back", stop)
    assert not (tmp_path / "back").exists()
    await reach.fetch("resumed/file", tmp_path / "back", back)
    assert back.told[0][0] > 1_000_000
    digest = hashlib.sha256(source.read_bytes()).digest()
    assert digest == hashlib.sha256((tmp_path / "back").read_bytes()).digest()
    (far.home / "resumed/file").unlink()
    assert list((far.home / "resumed").iterdir()) == []


async def test_a_part_that_is_damaged_is_never_made_the_file(reach: Reach, far: Far, tmp_path: Path) -> None:
    class Enough(Exception):
        pass

    def stop(done: int, total: int | None) -> None:
        if done:
            raise Enough

    source = tmp_path / "source"
    source.write_bytes(os.urandom(600_000))
    with pytest.raises(Enough):
        await reach.send(source, "damaged/file", stop)
    (part,) = (far.home / "damaged").iterdir()
    part.write_bytes(bytes(300_000))
    with pytest.raises(PlatformUnreachable, match="not what was sent"):
        await reach.send(source, "damaged/file", Steps())
    assert not (far.home / "damaged/file").exists()
    await reach.send(source, "damaged/file", Steps())
    assert (far.home / "damaged/file").read_bytes() == source.read_bytes()


async def test_a_file_that_grows_is_fetched_as_it_was(reach: Reach, far: Far, tmp_path: Path) -> None:
    log = far.home / "growing"
    log.write_bytes(b"a" * 600_000)

    def grow(done: int, total: int | None) -> None:
        with log.open("ab") as file:
            file.write(b"more")

    await reach.fetch("growing", tmp_path / "log", grow)
    assert (tmp_path / "log").read_bytes() == b"a" * 600_000


async def test_fetching_what_is_not_there_is_refused(reach: Reach, tmp_path: Path) -> None:
    with pytest.raises(PlatformRefused, match="nothing-here"):
        await reach.fetch("nothing-here", tmp_path / "x", Steps())
    assert not (tmp_path / "x").exists()


async def test_sending_what_is_not_here_is_refused(reach: Reach, tmp_path: Path) -> None:
    with pytest.raises(PlatformRefused, match="nothing-here"):
        await reach.send(tmp_path / "nothing-here", "x", Steps())


async def test_sending_to_where_nothing_can_be_written_is_refused_in_the_systems_words(
    reach: Reach, far: Far, tmp_path: Path
) -> None:
    (tmp_path / "source").write_text("x")
    (far.home / "a-file").write_text("x")
    with pytest.raises(PlatformRefused, match=r"Not a directory|File exists"):
        await reach.send(tmp_path / "source", "a-file/below", Steps())
