"""The room of a system's cache: what sessions that are over needed makes room, though their results are kept there."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from sublet.data.roads import Arrival
from sublet.platforms.caching import CachePlacement
from sublet.platforms.slurm.platform import Slurm
from tests.contract.far_system import content_of, open_platform
from tests.contract.test_data_cache import MIB, bring
from tests.web_source import WebSource, serve_source

pytestmark = pytest.mark.anyio
NOW = timedelta(0)


@pytest.fixture(scope="module")
def source() -> Iterator[WebSource]:
    with serve_source("127.0.0.1") as server:
        yield server


@pytest.fixture
async def slurm(tmp_path: Path) -> AsyncIterator[Slurm]:
    platform = await open_platform(tmp_path, tmp_path / "far", cache="3MiB")
    yield platform
    await platform.close()


async def submit(slurm: Slurm, tmp_path: Path, arrival: Arrival, session: str) -> Path:
    """Lay out what came, and leave the directory as submitting does; data is read there, and results are below work."""
    cache = await slurm.open_cache()
    placements = [CachePlacement(arrival.entry, "data/cube/cube"), CachePlacement(arrival.entry, "data/own/cube", True)]
    await cache.place(session, placements)
    place = tmp_path / "far" / "sessions" / session
    place.parent.mkdir(exist_ok=True)
    (tmp_path / "far" / "incoming" / session).rename(place)
    (place / "work").mkdir()
    os.link(place / "data/cube/cube", place / "work/result")
    (place / "data/cube").chmod(0o500)
    return place


@pytest.mark.parametrize("parts", [False, True])
async def test_what_only_sessions_that_are_over_needed_makes_room_and_their_results_stay(
    slurm: Slurm, source: WebSource, tmp_path: Path, *, parts: bool
) -> None:
    first = await bring(slurm, source.put(f"/r1/{parts}", b"1" * 2 * MIB), "s1")
    place = await submit(slurm, tmp_path, first, "s1")
    if parts:
        (place / "parts").write_text("2\n")
        (place / "part/0").mkdir(parents=True)
        (place / "part/0/end.json").write_text("{}")
    await bring(slurm, source.put(f"/r2/{parts}", b"2" * 2 * MIB), "s2")
    assert content_of(tmp_path, first).exists()  # it runs
    assert [kept.users for kept in await slurm.list_kept() if kept.size == 2 * MIB].count(("s1",)) == 1
    (place / ("joined" if parts else "end.json")).write_text("{}")
    assert [kept.users for kept in await slurm.list_kept()].count(()) == 1
    await bring(slurm, source.put(f"/r3/{parts}", b"3" * MIB), "s3")
    assert not content_of(tmp_path, first).exists()
    assert not (place / "data/cube/cube").exists()  # else its space would not be free
    assert (place / "data/own/cube").stat().st_size == (place / "work/result").stat().st_size == 2 * MIB


async def test_what_a_session_that_is_over_needed_can_be_removed_and_stays_while_another_needs_it(
    slurm: Slurm, source: WebSource, tmp_path: Path
) -> None:
    address = source.put("/r4", b"4" * MIB)
    for session in ("s1", "s2"):
        arrival = await bring(slurm, address, session)
        place = await submit(slurm, tmp_path, arrival, session)
        (tmp_path / "far/sessions/s1/end.json").write_text("{}")
    assert not await slurm.let_go(idle=NOW)
    assert (place / "data/cube/cube").exists()
    (place / "end.json").write_text("{}")
    assert len(await slurm.let_go(idle=NOW)) == 1
    assert not (tmp_path / "far/kept").exists()
