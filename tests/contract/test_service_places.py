"""Places of a service: who declares and uses them, scratch of each person's own, and how long that stays."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.phases import Phase
from sublet.booking.model.session import Session
from sublet.data.model.places import USUAL_KEEP, DeclaredPlace, PlaceKind, scratch_name
from sublet.kernel.errors import BadRequest, NotFound, OperatorsOnly, PlatformRefused, ScratchInUse
from sublet.people.model.person import Person
from sublet.platforms.batch.scripts import script
from sublet.platforms.local import places as local
from sublet.service import Service
from tests.contract.services import ME, OPERATOR, allow, ask, over, reach, serving

pytestmark = pytest.mark.anyio
HERE = {"here": {"kind": "local", "cores": 4, "memory": "4GiB"}}
NOW = datetime(2026, 11, 17, tzinfo=UTC)
ANNA, BOB = Person("anna@example.org"), Person("bob@example.org")


def place(name: str, path: str = "", kind: PlaceKind = PlaceKind.REFERENCE, **changes: Any) -> DeclaredPlace:
    writable = kind is not PlaceKind.REFERENCE
    made = DeclaredPlace(name, "here", kind, path, f"/{name}", writable, USUAL_KEEP, (), "", NOW, "")
    return replace(made, **changes)


async def run(service: Service, script: str, *places: Any) -> Session:
    offers = await ask(service, run=["sh", "-c", script], time="1m", memory="64MiB", places=list(places))
    assert offers.offers, offers.reasons
    return await service.sessions.accept(offers.offers[0].id, ME)


async def test_reference_data_is_read_and_scratch_is_shared_by_ones_sessions(tmp_path: Path) -> None:
    (tmp_path / "ref").mkdir()
    (tmp_path / "ref" / "dem.txt").write_text("heights\n")
    async with serving(tmp_path / "home", platforms=HERE) as service:
        await service.places.add(ME, place("ref", str(tmp_path / "ref")))
        await service.places.add(ME, place("tmp", kind=PlaceKind.SCRATCH))
        first = await run(service, "cat ref/dem.txt >tmp/copy; touch ref/new; cp tmp/copy out.txt", "ref", "tmp")
        assert (await over(service, first.id)).phase is Phase.COMPLETED
        second = await run(service, "cat $SUBLET_PLACE_TMP/copy >out.txt", "tmp")
        assert (await over(service, second.id)).phase is Phase.COMPLETED
        left = await service.output.results(second.id, ME)
        assert [file.path for file in left.files] == ["out.txt"], "what is in a place is no result"
    assert [file.name for file in (tmp_path / "ref").iterdir()] == ["dem.txt"]
    work = tmp_path / "home" / "platforms" / "here" / "sessions" / second.id / "work"
    assert (work / "out.txt").read_text() == "heights\n"


async def test_a_place_that_is_not_there_is_a_no_that_says_how_to_declare_it(tmp_path: Path) -> None:
    platforms: dict[str, Any] = {**HERE, "trial": {"kind": "memory"}}
    async with serving(tmp_path / "home", platforms=platforms) as service:
        answer = await ask(service, places=["compute_shared"])
        by_platform = {reason.platform: reason for reason in answer.reasons}
        assert by_platform["here"].message == "here has no place compute_shared."
        assert by_platform["here"].nearest == "sublet place add compute_shared --on here --path DIRECTORY"
        assert "share no directory" in by_platform["trial"].message
        with pytest.raises(PlatformRefused, match="share no directory"):
            await service.places.add(ME, place("x", "/tmp", platform="trial"))
        await service.places.add(ME, place("compute_shared", str(tmp_path / "nothing")))
        session = await run(service, "true", "compute_shared")
        ended = await over(service, session.id)
        assert ended.end is not None
        assert "is not a directory there" in ended.end.detail


async def test_on_a_gateway_operators_declare_places_and_rules_say_who_uses_them(tmp_path: Path) -> None:
    image: dict[str, Any] = {"run": None, "image": "docker://busybox", "places": ["ref"]}
    async with serving(tmp_path / "home", mode="gateway", platforms=HERE, loop=False) as service:
        with pytest.raises(OperatorsOnly):
            await service.places.add(ANNA, place("ref", "/tmp"))
        await service.places.add(OPERATOR, place("ref", "/tmp"))
        await allow(service)
        answer = await ask(service, ANNA, **image)
        [reason] = answer.reasons
        assert (reason.kind, reason.nearest) == ("urn:not-allowed", "sublet access ask --place ref --reason TEXT")
        assert await service.places.list(ANNA) == []
        await allow(service, ANNA.name, noun="place", name="ref")
        assert not any(reason.field == "places" for reason in (await ask(service, ANNA, **image)).reasons)
        assert [found.name for found in await service.places.list(ANNA)] == ["ref"]
        assert any(reason.field == "places" for reason in (await ask(service, BOB, **image)).reasons)
        await service.places.add(OPERATOR, place("ref", "/tmp", apps=("flood",)))
        [only] = (await ask(service, ANNA, **image)).reasons
        assert "is for these apps alone: flood" in only.message


async def test_scratch_goes_after_its_keep_time_and_not_before_nor_while_it_is_used(tmp_path: Path) -> None:
    async with serving(tmp_path / "home", platforms=HERE) as service:
        await service.places.add(ME, place("tmp", kind=PlaceKind.SCRATCH, keep=timedelta(days=2)))
        session = await run(service, "echo 1 >tmp/x; while [ ! -e go ]; do sleep 0.05; done", "tmp")
        await reach(service, session.id, lambda found: found.phase is Phase.RUNNING)
        directory = tmp_path / "home" / "platforms" / "here" / "places" / scratch_name("tmp", ME.name)
        with pytest.raises(ScratchInUse, match=session.id[:8]):
            await service.scratch.clear(ME, "here", "tmp")
        await service.scratch.sweep(service.now() + timedelta(days=3))
        assert directory.is_dir(), "a session uses it"
        (tmp_path / "home" / "platforms" / "here" / "sessions" / session.id / "work" / "go").touch()
        await over(service, session.id)
        kept = await service.scratch.keep(ME, "here", "tmp", timedelta(days=30))
        await service.scratch.sweep(kept.until - timedelta(minutes=1))
        assert (directory / "x").read_text() == "1\n"
        with pytest.raises(NotFound):
            await service.scratch.keep(ANNA, "here", "tmp", timedelta(days=1))
        with pytest.raises(BadRequest):
            await service.scratch.keep(ME, "here", "tmp", timedelta(days=4000))
        await service.scratch.sweep(kept.until)
        assert not directory.exists()
        assert await service.scratch.list(ME) == []


async def test_scratch_of_a_place_that_is_gone_is_removed(tmp_path: Path) -> None:
    async with serving(tmp_path / "home", platforms=HERE) as service:
        await service.places.add(ME, place("tmp", kind=PlaceKind.SCRATCH))
        session = await run(service, "echo 1 >tmp/x", "tmp")
        await over(service, session.id)
        await service.places.remove(ME, "here", "tmp")
        with pytest.raises(NotFound):
            await service.places.remove(ME, "here", "tmp")
        await service.scratch.sweep(service.now())
        assert list((tmp_path / "home" / "platforms" / "here" / "places").iterdir()) == []


def far(name: str, root: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    argv = script(name, str(root), *words)
    return subprocess.run(argv, capture_output=True, text=True, env={**os.environ, "HOME": str(root), **environment})


async def test_scratch_on_a_system_is_made_in_a_directory_of_ones_own_and_never_through_a_link(tmp_path: Path) -> None:
    root, base, bait = tmp_path / "root", tmp_path / "base dir", tmp_path / "bait"
    for directory in (root, base, bait):
        directory.mkdir(mode=0o700)
    made = far("scratch", root, "", "tmp-1").stdout.rstrip("\n")
    assert made == str(root / "places" / "tmp-1")
    assert (root / "places").stat().st_mode & 0o777 == 0o700
    there = far("scratch", root, "$BASE", "tmp-1", BASE=str(base))
    assert there.stdout == f"{base}/sublet-{os.getuid()}/tmp-1\n", there.stderr
    (base / f"sublet-{os.getuid()}" / "tmp-2").symlink_to(bait)
    assert far("scratch", root, str(base), "tmp-2").returncode == 77
    base.chmod(0o777)
    assert "no sticky bit" in far("scratch", root, str(base), "tmp-1").stderr
    base.chmod(0o700)
    (bait / "kept").touch()
    assert far("unscratch", root, str(base), "tmp-2").returncode == 0
    assert (bait / "kept").exists(), "a link is removed, and not what it leads to"
    (base / f"sublet-{os.getuid()}" / "tmp-1" / "deep").mkdir(mode=0o500)
    assert far("unscratch", root, str(base), "tmp-1").returncode == 0
    assert list((base / f"sublet-{os.getuid()}").iterdir()) == []
    assert far("unscratch", root, "", "never-made").returncode == 0


@pytest.mark.parametrize(("path", "why"), [("/nowhere", "is not a directory"), ("$NOT_SET_X/y", "is not set there")])
async def test_a_directory_that_a_system_lacks_is_told(tmp_path: Path, path: str, why: str) -> None:
    assert why in far("place", tmp_path, path, "").stderr
    with pytest.raises(PlatformRefused, match=why):
        local.find_directory("here", path)


async def test_scratch_on_this_machine_is_never_made_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "bait").mkdir()
    (tmp_path / "places").symlink_to(tmp_path / "bait")
    with pytest.raises(PlatformRefused, match="not a directory of this account"):
        local.make_scratch("here", tmp_path, "", "tmp-1")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(PlatformRefused, match="no sticky bit"):
        local.make_scratch("here", tmp_path, str(tmp_path / "open"), "tmp-1")


async def test_scratch_over_its_quota_starts_nothing_more_until_it_is_emptied(tmp_path: Path) -> None:
    async with serving(tmp_path / "home", platforms=HERE) as service:
        with pytest.raises(BadRequest, match="a quota is for scratch"):
            await service.places.add(ME, place("ref", "/tmp", quota=1))
        await service.places.add(ME, place("tmp", kind=PlaceKind.SCRATCH, quota=1 << 20))
        first = await run(service, "head -c 2000000 /dev/urandom >tmp/large", "tmp")
        assert (await over(service, first.id)).phase is Phase.COMPLETED
        ended = await over(service, (await run(service, "touch tmp/ran", "tmp")).id)
        assert ended.phase is Phase.FAILED
        assert ended.end is not None
        assert ended.end.detail == "Your scratch in tmp on here has 1.9 MiB, and 1.0 MiB are allowed."
        await service.scratch.clear(ME, "here", "tmp")
        assert (await over(service, (await run(service, "touch tmp/ran", "tmp")).id)).phase is Phase.COMPLETED
        assert [declared.quota for declared in await service.places.list(ME)] == [1 << 20]
