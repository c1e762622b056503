"""A system brings data by programs of its own, rsync and git, and this machine keeps nothing of it."""

from __future__ import annotations

import os
import shutil
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from sublet.booking.model.request import Data, Request
from sublet.data.executables import Movers
from sublet.data.model.credentials import Credential, CredentialKind
from sublet.data.model.links import can_be_known, name_entry
from sublet.data.model.roads import Road
from sublet.data.roads import Arrival
from sublet.data.whereabouts import EntryFinder
from sublet.kernel.errors import DataNotThere
from sublet.movers.git import GitMover
from sublet.movers.port import SIMPLE, UNLIMITED, Mover, Policy
from sublet.movers.rsync import RsyncMover
from sublet.platforms.caching import EntryPhase, NoWay
from sublet.platforms.slurm.platform import Slurm
from tests.contract.far_system import begin, content_of, make_old, make_tree, make_young, open_platform, take, until
from tests.git_server import Entry, GitServer, link, program, submodule
from tests.lfs_server import LfsClient, lfs_server
from tests.rsync_server import SECRET, RsyncServer, serve_rsync

pytestmark = pytest.mark.anyio
LARGE = os.urandom(2_000_000)


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RsyncServer]:
    with serve_rsync(tmp_path_factory.mktemp("rsyncd")) as server:
        make_tree(server.folder / "tree", "deep dir/a 'b'.txt")
        (server.folder / "cube.bin").write_bytes(LARGE)
        make_old(server.folder)
        (server.folder / "tree" / "link").symlink_to("run.sh")
        yield server


async def bring(slurm: Slurm, mover: Mover, item: Data, session: str = "s1") -> Arrival:
    journey = await begin(slurm, session)
    arrival = await take(journey, mover, item)
    assert arrival, journey.no_ways
    return arrival


async def refuse(slurm: Slurm, mover: Mover, item: Data) -> str:
    """Why it can't be brought there."""
    journey = await begin(slurm, "s1")
    assert await take(journey, mover, item) is None
    return journey.no_ways.get(item.name, "")


def seen(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}


async def test_what_an_rsync_server_has_is_brought_by_the_systems_own_rsync_once(
    slurm: Slurm, daemon: RsyncServer, tmp_path: Path
) -> None:
    mover, tree = RsyncMover(UNLIMITED), Data("tree", SIMPLE, f"{daemon.begin}/open/tree/")
    for road in (Road.THERE, Road.CACHED):
        arrival = await bring(slurm, mover, tree, road.value)
        assert (arrival.taken.road, arrival.taken.source) == (road, f"{daemon.host}:{daemon.port}")
        where = await EntryFinder().find(Movers([mover]), mover, Request(None, data=(tree,)), tree, "me")
        assert (where.entry, where.size) == (arrival.entry, 22), "offers know it, too"
    place = content_of(tmp_path, arrival)
    assert seen(place) == {"deep dir/a 'b'.txt": "a\n", "run.sh": "#!/bin/sh\n", "link": "#!/bin/sh\n"}
    assert (place / "run.sh").stat().st_mode & 0o777 == 0o500
    cube = Data("cube", SIMPLE, f"{daemon.begin}/open/cube.bin")
    arrival = await bring(slurm, mover, cube)
    assert (arrival.files.links[0].path, content_of(tmp_path, arrival).read_bytes()) == ("cube.bin", LARGE)
    with pytest.raises(DataNotThere, match="its checksum is"):
        await bring(slurm, mover, replace(cube, checksum="sha256:" + "0" * 64))
    with pytest.raises(DataNotThere, match="more than 1000 bytes"):
        await bring(slurm, RsyncMover(Policy(public_only=False, largest=1000)), cube)
    with pytest.raises(DataNotThere, match="not a public address"):
        await bring(slurm, RsyncMover(Policy()), cube)


async def test_what_changed_on_an_rsync_server_is_brought_anew_and_what_is_young_is_not_known_again(
    slurm: Slurm, daemon: RsyncServer, tmp_path: Path
) -> None:
    mover, item = RsyncMover(UNLIMITED), Data("new", SIMPLE, f"{daemon.begin}/open/new.txt")
    source = daemon.folder / "new.txt"
    for number, text in enumerate(("one", "two")):
        source.write_text(text)
        make_young(source)
        assert not can_be_known((await mover.plan(item)).named), "it may change again within the same second"
        os.utime(source, (1000 + number,) * 2)
        arrival = await bring(slurm, mover, item)
        assert (arrival.taken.road, content_of(tmp_path, arrival).read_text()) == (Road.THERE, text)


async def test_a_password_opens_an_rsync_server_there_and_what_it_opened_is_its_owners_alone(
    slurm: Slurm, daemon: RsyncServer, tmp_path: Path
) -> None:
    mover = RsyncMover(Policy(public_only=False, credentials=[daemon.credential]))
    item = Data("cube", SIMPLE, f"{daemon.begin}/closed/cube.bin")
    plan = await mover.plan(item)
    assert SECRET not in repr(plan)
    assert name_entry(plan.named, "me", "s1") != name_entry(plan.named, "you", "s1")
    arrival = await bring(slurm, mover, item)
    assert content_of(tmp_path, arrival).read_bytes() == LARGE
    files = [file for file in (tmp_path / "far").rglob("*") if file.is_file()]
    assert not [file for file in files if SECRET.encode() in file.read_bytes()], "it is written down nowhere there"
    with pytest.raises(DataNotThere, match="auth failed on module closed"):
        await bring(slurm, RsyncMover(UNLIMITED), item)


async def test_a_system_without_rsync_or_that_may_not_fetch_says_so_and_it_is_brought_here(
    slurm: Slurm, daemon: RsyncServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mover, item = RsyncMover(UNLIMITED), Data("cube", SIMPLE, f"{daemon.begin}/open/cube.bin")
    cache, plan = await slurm.open_cache(), await mover.plan(item)
    await cache.want("data-1", "s1")
    monkeypatch.setenv("PATH", str(make_programs(tmp_path / "bin", without="rsync")))
    with pytest.raises(NoWay, match="it has no rsync"):
        await cache.fetch_by("data-1", plan, largest=0)
    monkeypatch.undo()
    shut = await open_platform(tmp_path, tmp_path / "shut", downloads=False)
    assert "may not fetch data" in await refuse(shut, mover, item)
    await shut.close()


def make_programs(folder: Path, without: str) -> Path:
    """All programs of this machine but one."""
    folder.mkdir()
    for place in reversed(os.environ["PATH"].split(":")):
        for file in Path(place).iterdir() if Path(place).is_dir() else ():
            if file.name != without:
                (folder / file.name).unlink(missing_ok=True)
                (folder / file.name).symlink_to(file)
    return folder


async def test_a_session_that_is_over_stops_what_rsync_brings_for_it(
    slurm: Slurm, daemon: RsyncServer, tmp_path: Path
) -> None:
    cache, plan = (
        await slurm.open_cache(),
        await RsyncMover(UNLIMITED).plan(Data("cube", SIMPLE, f"{daemon.begin}/open/cube.bin")),
    )
    await cache.want("data-1", "s1")
    await cache.fetch_by("data-1", replace(plan, facts=[*plan.facts, ("option", "--bwlimit=10")]), largest=0)
    entry = tmp_path / "far" / "kept" / "data-1"
    await until(lambda: (entry / "claim").exists())
    await cache.leave("s1")
    await until(lambda: not [*entry.glob("claim"), *entry.glob("fetch.*"), *entry.glob("plan.*")])
    assert not (entry / "came").exists()
    assert (await cache.look("data-1")).phase is EntryPhase.IDLE


async def test_a_commit_is_brought_by_the_systems_own_git_once_and_named_by_the_commit(
    slurm: Slurm, git: GitServer, tmp_path: Path
) -> None:
    repository, mover = git.repository(f"owner/{uuid4()}"), GitMover(UNLIMITED)
    files = {"README": "hello\n", "data/a.csv": "1,2\n", "data/same": link("a.csv"), "run.sh": program("#!/bin/sh\n")}
    first = repository.commit(files)
    for road, ref in ((Road.THERE, ""), (Road.CACHED, f"@{first}")):
        arrival = await bring(slurm, mover, Data("code", SIMPLE, f"git+{repository.url}{ref}"), road.value)
        assert arrival.taken.road is road
    place = content_of(tmp_path, arrival)
    assert seen(place) == {"README": "hello\n", "data/a.csv": "1,2\n", "data/same": "1,2\n", "run.sh": "#!/bin/sh\n"}
    assert (place / "run.sh").stat().st_mode & 0o777 == 0o500
    folder = await bring(slurm, mover, Data("part", SIMPLE, f"git+{repository.url}#data"))
    assert seen(content_of(tmp_path, folder)) == {"a.csv": "1,2\n", "same": "1,2\n"}
    repository.commit({"README": "newer\n"})
    newer = await bring(slurm, mover, Data("code", SIMPLE, f"git+{repository.url}"))
    assert seen(content_of(tmp_path, newer)) == {"README": "newer\n"}
    assert not [file for file in place.parent.iterdir() if file.name in ("work", "part", "claim")]
    repository.commit({"README": "newest\n"})
    with pytest.raises(DataNotThere, match="more than 3 bytes"):
        await bring(slurm, GitMover(replace(UNLIMITED, largest=3)), Data("code", SIMPLE, f"git+{repository.url}"))


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({"out": link("/etc/passwd")}, "links that lead elsewhere"),
        ({"a": "1", "around": link(".")}, "links that lead elsewhere"),
        ({"a": "1", "lib": submodule(), ".gitmodules": ""}, "submodules"),
    ],
)
async def test_what_git_can_not_do_there_with_care_is_left_to_this_machine(
    slurm: Slurm, git: GitServer, files: dict[str, str | bytes | Entry], why: str
) -> None:
    repository = git.repository(f"owner/{uuid4()}")
    repository.commit(files)
    assert why in await refuse(slurm, GitMover(UNLIMITED), Data("code", SIMPLE, f"git+{repository.url}"))


async def test_large_files_of_a_commit_are_brought_by_the_systems_own_git_lfs_with_what_opens_their_server(
    slurm: Slurm, tmp_path: Path
) -> None:
    if shutil.which("git-lfs") is None:
        pytest.skip("there is no git-lfs on this machine")
    with lfs_server(tmp_path / "served") as server:
        repository = server.new_repository("owner/cubes")
        LfsClient(tmp_path / "clone").push(repository.url, {"cube.bin": LARGE, "README": b"hello"})
        server.login = f"marie:{SECRET}"
        known = Credential(server.url, CredentialKind.LOGIN, "marie", SECRET)
        mover = GitMover(replace(UNLIMITED, credentials=[known]))
        arrival = await bring(slurm, mover, Data("code", SIMPLE, f"git+{repository.url}"))
    assert arrival.taken.road is Road.THERE
    assert (content_of(tmp_path, arrival) / "cube.bin").read_bytes() == LARGE
    shown = b64encode(f"marie:{SECRET}".encode())
    files = [file for file in (tmp_path / "far").rglob("*") if file.is_file()]
    assert not [file for file in files if shown in file.read_bytes()], "it is written down nowhere there"
