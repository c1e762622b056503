"""The code of an app arrives as it was pinned, or not at all."""

import stat
from pathlib import Path

import pytest

from sublet.apps.model.tree import KIND, TreeFile, archive_of, hash_of, location_of
from sublet.booking.model.request import Data
from sublet.kernel.errors import DataNotThere
from sublet.movers.app import AppMover, keep
from sublet.movers.port import Policy

pytestmark = pytest.mark.anyio
FILES = [
    TreeFile("run.sh", b"#!/bin/sh\n", executable=True),
    TreeFile("lib/a.py", b"1"),
    TreeFile("b", link="lib/a.py"),
]


def nothing(done: int, total: int | None) -> None:
    return


def code(tree: str) -> Data:
    return Data("sublet.app", KIND, location_of(tree))


async def test_files_and_modes_arrive_with_links_as_what_they_lead_to_and_bringing_it_again_is_the_same(
    tmp_path: Path,
) -> None:
    tree, target = keep(tmp_path / "apps", archive_of(FILES)), tmp_path / "there"
    target.mkdir()
    mover = AppMover(Policy(app_archives=tmp_path / "apps"))
    assert not mover.check(code(tree))
    for _ in range(2):
        await mover.bring(code(tree), target, nothing)
    assert (target / "b").read_bytes() == b"1"
    assert not (target / "b").is_symlink()
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in target.rglob("*") if path.is_file()}
    assert modes == {"run.sh": 0o755, "a.py": 0o644, "b": 0o644}


async def test_an_archive_that_changed_after_it_was_pinned_brings_nothing(tmp_path: Path) -> None:
    tree = keep(tmp_path / "apps", archive_of(FILES))
    (tmp_path / "apps" / f"{tree}.tar").write_bytes(archive_of([TreeFile("run.sh", b"rm -rf /", executable=True)]))
    (tmp_path / "there").mkdir()
    with pytest.raises(DataNotThere, match="not what was pinned"):
        await AppMover(Policy(app_archives=tmp_path / "apps")).bring(code(tree), tmp_path / "there", nothing)
    assert not list((tmp_path / "there").iterdir())


async def test_a_hash_that_is_not_here_or_is_a_path_is_refused_before_anything_runs(tmp_path: Path) -> None:
    (tmp_path / "secret.tar").write_bytes(b"")
    mover = AppMover(Policy(app_archives=tmp_path / "apps"))
    assert mover.check(code(hash_of(b"")))
    assert mover.check(code("../secret"))
    assert AppMover(Policy()).check(code(hash_of(b"")))
