"""This machine's cache keeps what movers bring as a whole: repositories, files by rsync, archives, and named data."""

from __future__ import annotations

import asyncio
import io
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from sublet.booking.model.phases import Phase
from sublet.booking.model.request import Data, Request
from sublet.data.executables import Movers
from sublet.data.journeys import Journey
from sublet.data.model.credentials import Credential, CredentialKind
from sublet.data.model.roads import Road
from sublet.data.placing import travel
from sublet.data.roads import Arrival
from sublet.data.whereabouts import EntryFinder
from sublet.kernel.errors import DataNotThere
from sublet.movers.git import GitMover
from sublet.movers.http import HttpMover
from sublet.movers.port import SIMPLE, UNLIMITED, AnyMover
from sublet.movers.rsync import RsyncMover
from sublet.movers.skao import SkaoMover
from sublet.platforms.caching import CachePlacement
from sublet.platforms.local.cache import LocalCache
from tests.contract.far_system import ignore, make_old, make_tree, make_young
from tests.contract.services import ME, ask, over, serving
from tests.contract.test_local_cache import make_cache
from tests.git_server import GitServer, link, program, submodule
from tests.rsync_server import RsyncServer, serve_rsync
from tests.web_source import WebSource, serve_source

pytestmark = pytest.mark.anyio
LARGE = os.urandom(2_000_000)


@pytest.fixture(scope="module")
def source() -> Iterator[WebSource]:
    with serve_source("127.0.0.1") as server:
        yield server


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RsyncServer]:
    with serve_rsync(tmp_path_factory.mktemp("rsyncd")) as server:
        make_tree(server.folder / "tree", "deep dir/a 'b'.txt")
        (server.folder / "tree" / "empty").mkdir()
        (server.folder / "cube.bin").write_bytes(LARGE)
        make_old(server.folder)
        yield server


@pytest.fixture
def cache(tmp_path: Path) -> LocalCache:
    return make_cache(tmp_path / "home", 0)


async def bring(
    cache: LocalCache, mover: AnyMover, item: Data, session: str = "s1", person: str = "me", *others: AnyMover
) -> Arrival | None:
    (cache.home / "sessions" / session).mkdir(parents=True, exist_ok=True)
    journey = Journey(cache, "here", session, person, ignore)
    return await travel(journey, Request(None, data=(item,)), item, mover, Movers([mover, *others]))


async def keep(cache: LocalCache, mover: AnyMover, item: Data, session: str = "s1", person: str = "me") -> Arrival:
    arrival = await bring(cache, mover, item, session, person)
    assert arrival
    return arrival


def content_of(cache: LocalCache, arrival: Arrival) -> Path:
    return cache.home / "kept" / arrival.entry / "content"


async def lay(cache: LocalCache, arrival: Arrival, *, is_writable: bool = False) -> Path:
    """Where the session sees it."""
    await cache.place("s1", [CachePlacement(arrival.entry, "data/in", is_writable)])
    return cache.home / "sessions" / "s1" / "data" / "in"


def seen(folder: Path) -> dict[str, str]:
    return {str(file.relative_to(folder)): file.read_text() for file in folder.rglob("*") if file.is_file()}


def count_fetches(git: GitServer) -> int:
    return sum(path.endswith("/git-upload-pack") for path in git.asked)


async def test_a_commit_is_brought_once_with_its_links_and_what_may_be_executed(
    cache: LocalCache, git: GitServer
) -> None:
    repository, mover = git.repository(f"owner/{uuid4()}"), GitMover(UNLIMITED)
    files = {"data/a.csv": "1,2\n", "same": link("data"), "one": link("data/a.csv"), "run.sh": program("#!/bin/sh\n")}
    commit = repository.commit(files)
    arrival = await keep(cache, mover, Data("code", SIMPLE, f"git+{repository.url}"))
    assert arrival.taken.road is Road.HERE
    before = len(git.asked)
    again = await keep(cache, mover, Data("code", SIMPLE, f"git+{repository.url}@{commit}"), "s2")
    assert (again.taken.road, again.entry, len(git.asked)) == (Road.CACHED, arrival.entry, before)
    head = Data("code", SIMPLE, f"git+{repository.url}")
    assert (await keep(cache, mover, head, "s3")).taken.road is Road.CACHED, "a branch is at the same commit"
    where = await EntryFinder().find(Movers([mover]), mover, Request(None, data=(head,)), head, "me")
    assert where.entry == arrival.entry, "offers know it, too"
    for is_writable in (False, True):
        place = await lay(cache, arrival, is_writable=is_writable)
        assert seen(place) == {"data/a.csv": "1,2\n", "one": "1,2\n", "run.sh": "#!/bin/sh\n"}
        assert [os.readlink(place / name) for name in ("same", "one")] == ["data", "data/a.csv"]
        assert os.access(place / "run.sh", os.X_OK)
        assert not (place / "data/a.csv").stat().st_mode & 0o111
    part = await keep(cache, mover, replace(head, fields={"ignore": ["data", "one", "same"]}))
    assert seen(content_of(cache, part)) == {"run.sh": "#!/bin/sh\n"}


async def test_a_second_session_with_the_same_commit_moves_nothing_and_changes_nothing_for_others(
    tmp_path: Path, git: GitServer
) -> None:
    repository = git.repository(f"owner/{uuid4()}")
    files = {"README": "hello\n", "same": link("README"), "run.sh": program("#!/bin/sh\ncat same\n")}
    commit = repository.commit(files)
    work = "cd ../data/code && ./run.sh && test -L same || exit 1; echo worse >README; rm -f same; true"
    data = {"name": "code", "location": f"git+{repository.url}@{commit}"}
    fetched: list[int] = []
    async with serving(tmp_path / "service", platforms={"here": {"kind": "local"}}) as service:
        for _ in range(2):
            before = count_fetches(git)
            offer = (await ask(service, run=["sh", "-c", work], data=data, time="1m")).offers[0]
            session = await over(service, (await service.sessions.accept(offer.id, ME)).id)
            assert session.phase is Phase.COMPLETED, session.end
            assert await service.platforms.get("here").output(session.id, "stdout", 0, 100) == b"hello\n"
            fetched.append(count_fetches(git) - before)
        _, sentences = await service.explanations.explain(session.id, ME)
    assert (fetched[0] > 0, fetched[1]) == (True, 0)
    assert any("was in the cache of here" in sentence for sentence in sentences), sentences


async def test_a_branch_that_goes_on_meanwhile_is_brought_at_the_commit_that_its_entry_is_named_by(
    cache: LocalCache, git: GitServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository, mover = git.repository(f"owner/{uuid4()}"), GitMover(UNLIMITED)
    repository.commit({"README": "old\n"})
    item = Data("code", SIMPLE, f"git+{repository.url}")
    content = await mover.find_content(item)
    repository.commit({"README": "new\n"})

    async def find(_: GitMover, data: Data) -> object:
        return content

    with monkeypatch.context() as patched:
        patched.setattr(GitMover, "find_content", find)
        old = await keep(cache, mover, item)
    assert seen(content_of(cache, old)) == {"README": "old\n"}
    assert seen(content_of(cache, await keep(cache, mover, item))) == {"README": "new\n"}


async def test_what_a_credential_could_have_opened_is_its_owners_alone(cache: LocalCache, git: GitServer) -> None:
    inner, outer = (git.repository(f"owner/{uuid4()}") for _ in range(2))
    commit = inner.commit({"secret": "s\n"})
    modules = f'[submodule "lib"]\n\tpath = lib\n\turl = {inner.url}\n'
    outer.commit({".gitmodules": modules, "lib": submodule(commit), "top.txt": "top\n"})
    item = Data("code", SIMPLE, f"git+{outer.url}")
    login = Credential(outer.url, CredentialKind.LOGIN, "marie", "radium")
    known = GitMover(replace(UNLIMITED, credentials=[login]))
    mine, yours = await keep(cache, known, item), await keep(cache, known, item, "s2", "you")
    assert (mine.taken.road, yours.taken.road, mine.entry != yours.entry) == (Road.HERE, Road.HERE, True)
    other = GitMover(replace(UNLIMITED, credentials=[replace(login, place=inner.url)]))
    arrival = await keep(cache, other, item)  # it opens the submodule, which may be had without it
    assert arrival.entry == (await keep(cache, GitMover(UNLIMITED), item, "s2", "you")).entry
    git.redirects[f"/owner/{inner.url.rpartition('/')[2]}"] = "/closed"  # now the submodule can't be had by everybody
    outer.commit({".gitmodules": modules, "lib": submodule(commit), "top.txt": "newer\n"})
    assert await bring(cache, other, item) is None, "it is brought for the session alone, with the credential"
    with pytest.raises(DataNotThere):
        await bring(cache, GitMover(UNLIMITED), item)
    assert not list(cache.home.glob("kept/*/arriving-*"))


async def test_what_an_rsync_server_has_is_brought_once(cache: LocalCache, daemon: RsyncServer) -> None:
    mover, tree = RsyncMover(UNLIMITED), Data("tree", SIMPLE, f"{daemon.begin}/open/tree/")
    arrival = await keep(cache, mover, tree)
    assert arrival.taken.road is Road.HERE
    assert (await keep(cache, mover, tree, "s2")).taken.road is Road.CACHED
    place = await lay(cache, arrival)
    assert seen(place) == {"deep dir/a 'b'.txt": "a\n", "run.sh": "#!/bin/sh\n"}
    assert (place / "empty").is_dir()
    assert os.access(place / "run.sh", os.X_OK)
    (daemon.folder / "tree/deep dir/a 'b'.txt").chmod(0o755)
    changed = await keep(cache, mover, tree)
    assert os.access(content_of(cache, changed) / "deep dir/a 'b'.txt", os.X_OK), "it may be executed now"
    cube = Data("cube", SIMPLE, f"{daemon.begin}/open/cube.bin")
    for road in (Road.HERE, Road.CACHED):
        one = await keep(cache, mover, cube, road.value)
        assert (one.taken.road, content_of(cache, one).read_bytes()) == (road, LARGE)
    served = re.findall(r"sent (\d+) bytes", (daemon.folder.parent / "log").read_text())
    assert sum(int(size) for size in served) < 1.5 * len(LARGE), "the second time, the server sent its list alone"
    with pytest.raises(DataNotThere, match="its checksum is"):
        await keep(cache, mover, replace(cube, checksum="sha256:" + "0" * 64))
    assert not list(cache.home.glob("kept/*/arriving-*"))
    assert not list(cache.home.glob("kept/*/part*"))


async def test_what_a_password_of_an_rsync_server_opened_is_its_owners_alone(
    cache: LocalCache, daemon: RsyncServer
) -> None:
    mover = RsyncMover(replace(UNLIMITED, credentials=[daemon.credential]))
    item = Data("cube", SIMPLE, f"{daemon.begin}/closed/cube.bin")
    roads = [(await keep(cache, mover, item, *who)).taken.road for who in (("s1", "me"), ("s2", "you"), ("s3", "you"))]
    assert roads == [Road.HERE, Road.HERE, Road.CACHED]
    with pytest.raises(DataNotThere, match="auth failed on module closed"):
        await keep(cache, RsyncMover(UNLIMITED), item)


async def test_what_changes_while_rsync_brings_it_is_brought_anew_and_what_is_young_is_not_kept(
    cache: LocalCache, daemon: RsyncServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, item = daemon.folder / "moving.txt", Data("new", SIMPLE, f"{daemon.begin}/open/moving.txt")
    file.write_text("one")
    make_young(file)
    assert await bring(cache, RsyncMover(UNLIMITED), item) is None, "it may change again within the same second"
    os.utime(file, (1000, 1000))
    plain, changes = RsyncMover.bring, ["two", "three"]

    async def change(mover: RsyncMover, *words: object) -> None:
        await plain(mover, *words)  # type: ignore[arg-type]
        if changes:
            file.write_text(changes.pop(0))
            os.utime(file, (2000 + len(changes),) * 2)

    monkeypatch.setattr(RsyncMover, "bring", change)
    arrival = await keep(cache, RsyncMover(UNLIMITED), item)
    assert content_of(cache, arrival).read_text() == "three"
    assert [entry.size for entry in await cache.list_kept()] == [5], "nothing is kept of what was there before"


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from sublet.platforms.local.cache import LocalCache

async def main():
    cache = LocalCache("here", Path(sys.argv[1]), 0, True, lambda key: True)
    await cache.want(sys.argv[2], "s0")
    await cache.claim(sys.argv[2])
    async with cache.receive(sys.argv[2], is_folder=True) as target:
        target.mkdir()
        (target / "README").write_text("half")
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


async def test_what_a_service_that_was_killed_left_is_never_taken_for_whole(cache: LocalCache, git: GitServer) -> None:
    repository, mover = git.repository(f"owner/{uuid4()}"), GitMover(UNLIMITED)
    repository.commit({"README": "whole\n", "more.txt": "more\n"})
    item = Data("code", SIMPLE, f"git+{repository.url}")
    where = await EntryFinder().find(Movers([mover]), mover, Request(None, data=(item,)), item, "me")
    words = [sys.executable, "-c", KILLED, str(cache.home), where.entry]
    assert (await asyncio.to_thread(subprocess.run, words)).returncode == -9
    assert not await cache.list_there([where.entry])
    assert cache.entry(where.entry).size == 4, "what is left counts, so that it makes room when that is needed"
    arrival = await keep(cache, mover, item)
    assert (arrival.taken.road, arrival.entry) == (Road.HERE, where.entry)
    assert seen(content_of(cache, arrival)) == {"README": "whole\n", "more.txt": "more\n"}
    left = {path.name for path in (cache.home / "kept" / arrival.entry).iterdir()}
    assert left == {"content", "label", "record.json", "used", "users"}


async def test_two_sessions_that_want_one_commit_fetch_it_once(cache: LocalCache, git: GitServer) -> None:
    repository, mover = git.repository(f"owner/{uuid4()}"), GitMover(UNLIMITED)
    commit = repository.commit({"README": "r\n"})
    item, before = Data("code", SIMPLE, f"git+{repository.url}@{commit}"), count_fetches(git)
    alone = await keep(cache, mover, item)
    one = count_fetches(git) - before
    await cache.leave("s1")
    await cache.let_go([alone.entry], idle=0 * (await cache.list_kept())[0].used.resolution)
    other = make_cache(cache.home, 0)
    await asyncio.gather(keep(cache, mover, item), keep(other, mover, item, "s2"))
    assert count_fetches(git) - before == 2 * one


def pack(**files: bytes) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), 0o755 if name == "run" else 0o644
            archive.addfile(info, io.BytesIO(content))
    return made.getvalue()


async def test_an_archive_is_unpacked_once_and_one_that_may_not_be_leaves_nothing(
    cache: LocalCache, source: WebSource, daemon: RsyncServer
) -> None:
    item = Data("set", SIMPLE, source.put("/set.tar.gz", pack(a=b"1", run=b"#!")), unpack=True)
    for road in (Road.HERE, Road.CACHED):
        arrival = await keep(cache, HttpMover(UNLIMITED), item, road.value)
        assert arrival.taken.road is road
    assert len(source.gets("/set.tar.gz")) == 1
    place = await lay(cache, arrival)
    assert seen(place) == {"a": "1", "run": "#!"}
    assert [os.access(place / name, os.X_OK) for name in ("a", "run")] == [False, True]
    assert f"set from {source.address}" in {kept.label for kept in await cache.list_kept()}
    (daemon.folder / "set.tar").write_bytes(pack(b=b"2"))
    make_old(daemon.folder)
    by_rsync = Data("set", SIMPLE, f"{daemon.begin}/open/set.tar", unpack=True)
    assert seen(content_of(cache, await keep(cache, RsyncMover(UNLIMITED), by_rsync))) == {"b": "2"}
    bad = Data("bad", SIMPLE, source.put("/bad.tar.gz", pack(**{"../out": b"1"})), unpack=True)
    with pytest.raises(DataNotThere, match="can't be used here"):
        await keep(cache, HttpMover(UNLIMITED), bad)
    assert not list(cache.home.glob("kept/*/arriving-*"))
    assert len(list(cache.home.glob("kept/unpacked-*/content"))) == 2


async def test_what_has_only_a_name_is_kept_by_what_its_address_says(cache: LocalCache, source: WebSource) -> None:
    address = source.put("/named.fits", LARGE)
    skao = {"objecttype": "FILE", "objectname": "x/cube.fits", "replicas": [{"dataurl": address}]}
    item = Data("cube", "skao-data-resource", "skao:x:cube.fits", fields={"skao": skao})
    mover, http = SkaoMover(UNLIMITED), HttpMover(UNLIMITED)
    arrivals = [await bring(cache, mover, item, session, "me", http) for session in ("s1", "s2")]
    assert [arrival and arrival.taken.road for arrival in arrivals] == [Road.HERE, Road.CACHED]
    assert len(source.gets("/named.fits")) == 1
