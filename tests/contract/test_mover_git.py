"""Data comes from git repositories on a real server, at one commit, and can do no harm."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from sublet.booking.model.request import Data
from sublet.kernel.errors import DataNotThere
from sublet.movers.git import GitMover, GitSource, split_address
from sublet.movers.port import UNLIMITED, Policy
from tests.git_server import GitServer, link, program, submodule

pytestmark = pytest.mark.anyio
FILES = {"README": "hello\n", "data/a.csv": "1,2\n", "data/deep/b.bin": b"\0\1", "run.sh": program("#!/bin/sh\n")}


def data(location: str) -> Data:
    return Data("code", "simple-data-resource", f"git+{location}")


def seen(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def quiet(done: int, total: int | None) -> None:
    """Tell nobody."""


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data" / "code"


async def test_a_branch_a_tag_a_commit_and_a_folder_are_brought(git: GitServer, target: Path) -> None:
    repository = git.repository(f"owner/{uuid4()}")
    first = repository.commit(FILES)
    repository.git("tag", "v1", first)
    repository.commit({"README": "newer\n", "data/c.csv": "3\n"})
    mover = GitMover(UNLIMITED)
    await mover.bring(data(repository.url), target / "head", quiet)
    assert seen(target / "head") == {"README": b"newer\n", "data/c.csv": b"3\n"}
    for number, ref in enumerate(("v1", first)):
        place = target / str(number)
        await mover.bring(data(f"{repository.url}@{ref}"), place, quiet)
        assert seen(place) == {
            "README": b"hello\n",
            "data/a.csv": b"1,2\n",
            "data/deep/b.bin": b"\0\1",
            "run.sh": b"#!/bin/sh\n",
        }
        assert (place / "run.sh").stat().st_mode & 0o111
    await mover.bring(data(f"{repository.url}@v1#data"), target / "folder", quiet)
    assert seen(target / "folder") == {"a.csv": b"1,2\n", "deep/b.bin": b"\0\1"}
    assert {name.partition("/")[0] for name in seen(target)} == {"0", "1", "folder", "head"}


@pytest.mark.parametrize(
    ("files", "more", "why"),
    [
        ({"out": link("/etc/passwd")}, "", "out"),
        ({"a": "1"}, "@nothing", "no branch or tag nothing"),
        ({"a": "1"}, "#elsewhere", "no folder elsewhere"),
        ({"a": "1"}, f"@{'1' * 40}", "."),
    ],
)
async def test_what_could_do_harm_or_is_not_there_is_refused_and_nothing_is_left(
    git: GitServer, target: Path, files: dict[str, object], more: str, why: str
) -> None:
    repository = git.repository(f"owner/{uuid4()}")
    repository.commit(files)  # type: ignore[arg-type]
    with pytest.raises(DataNotThere, match=why):
        await GitMover(UNLIMITED).bring(data(f"{repository.url}{more}"), target, quiet)
    assert seen(target.parent) == {}


async def test_submodules_are_brought_at_their_commits_wherever_they_are_named(git: GitServer, target: Path) -> None:
    deepest, inner, outer = (git.repository(f"owner/{uuid4()}") for _ in range(3))
    old = deepest.commit({"deep.txt": "old\n"})
    deepest.commit({"deep.txt": "new\n"})
    modules = f'[submodule "a b"]\n\tpath = deep\n\turl = {deepest.url}\n'
    middle = inner.commit({".gitmodules": modules, "deep": submodule(old), "inner.txt": "inner\n"})
    modules = f'[submodule "lib"]\n\tpath = lib/inner\n\turl = ../{inner.url.rpartition("/")[2]}\n'
    outer.commit({".gitmodules": modules, "lib/inner": submodule(middle), "top.txt": "top\n"})
    await GitMover(UNLIMITED).bring(data(outer.url), target / "all", quiet)
    brought = {path: text for path, text in seen(target / "all").items() if ".gitmodules" not in path}
    assert brought == {"top.txt": b"top\n", "lib/inner/inner.txt": b"inner\n", "lib/inner/deep/deep.txt": b"old\n"}
    await GitMover(UNLIMITED).bring(data(f"{outer.url}#lib/inner"), target / "one", quiet)
    assert (target / "one/deep/deep.txt").read_text() == "old\n"
    with pytest.raises(DataNotThere, match="more than 170 bytes"):
        await GitMover(replace(UNLIMITED, largest=170)).bring(data(outer.url), target / "limited", quiet)


@pytest.mark.parametrize("address", ["git@example.org:o/r.git", "ssh://git@example.org/o/r", "ext::sh -c date", ""])
async def test_a_submodule_that_can_not_be_had_is_told_and_can_be_left_out(
    git: GitServer, target: Path, address: str
) -> None:
    repository = git.repository(f"owner/{uuid4()}")
    modules = f'[submodule "lib"]\n\tpath = lib\n\turl = {address}\n' if address else ""
    repository.commit({".gitmodules": modules, "lib": submodule(), "top.txt": "top\n"})
    with pytest.raises(DataNotThere, match=r"its submodule lib is .*ignore: \[lib\]"):
        await GitMover(UNLIMITED).bring(data(repository.url), target, quiet)
    assert seen(target) == {}
    item = replace(data(repository.url), fields={"ignore": ["lib"]})
    await GitMover(UNLIMITED).bring(item, target, quiet)
    assert set(seen(target)) == {".gitmodules", "top.txt"}


async def test_it_keeps_to_its_policy(git: GitServer, target: Path) -> None:
    repository = git.repository(f"owner/{uuid4()}")
    repository.commit({"large": "x" * 5000})
    with pytest.raises(DataNotThere, match="not a public address"):
        await GitMover(Policy()).bring(data(repository.url), target, quiet)
    with pytest.raises(DataNotThere, match="more than 1000 bytes"):
        await GitMover(replace(UNLIMITED, largest=1000)).bring(data(repository.url), target, quiet)


@pytest.mark.parametrize(
    ("location", "source"),
    [
        ("git+https://h.org/o/r", GitSource("https://h.org/o/r", "", "")),
        ("git+https://h.org/o/r.git@v1#a/b/", GitSource("https://h.org/o/r.git", "v1", "a/b")),
        ("git+https://h.org/o/r@feature/x", GitSource("https://h.org/o/r", "feature/x", "")),
    ],
)
def test_an_address_is_a_repository_a_ref_and_a_folder(location: str, source: GitSource) -> None:
    assert split_address(location) == source


@pytest.mark.parametrize(
    "location", ["https:///r", "https://h.org", "https://h.org/r@-x", "https://h.org/r#../x", "https://h:x/r"]
)
def test_what_is_no_such_address_is_refused(location: str) -> None:
    assert GitMover(UNLIMITED).check(data(location))
