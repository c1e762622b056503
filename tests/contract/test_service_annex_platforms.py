"""An annex is a platform while it has leases, for its owner; what its sessions left can be read after that."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sublet.annexes import platforms as annex_platforms
from sublet.annexes.platforms import read_kept, to_make_one
from sublet.booking.model.offer import Offer, Predicted
from sublet.booking.model.shape import Shape
from sublet.service import Service
from tests.contract.leases import KnownPoint, leasing, made
from tests.contract.services import ME, OTHER, ask

pytestmark = pytest.mark.anyio
NAME = "annex-example"


async def look(service: Service, point: Any = KnownPoint) -> set[str]:
    """The platforms that are annexes, looked at anew."""
    service.annexes.access_points.point = point
    service.annexes.platforms._annexes_seen = None
    await service.changes.refresh()
    return {name for name in service.platforms.by_name if name.startswith("annex-")}


async def test_an_annex_is_a_platform_as_long_as_it_has_leases(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        assert await look(service) == set()
        lease = await made(service)
        assert await look(service) == {NAME}
        platform: Any = service.platforms.by_name[NAME]
        assert (platform.annex, platform.title, platform.supplier) == (lease.annex, "example", "me@ap")
        await look(service)
        assert service.platforms.by_name[NAME] is platform, "what is as before is left alone"
        await service.annexes.leases.end_lease(lease, "it was enough")
        assert await look(service) == set()


async def test_what_is_still_to_come_is_told(tmp_path: Path) -> None:
    slow = {"cluster": {"kind": "memory", "terms": "predicted", "nodes": 8, "waits": ["1h", "2h", "3h"]}}
    async with leasing(tmp_path, platforms=slow) as service:
        await made(service)
        await look(service)
        platform: Any = service.platforms.by_name[NAME]
        assert platform.coming.startswith("example#1 is in the queue of cluster")


async def test_it_is_its_owners_alone(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        await made(service)
        await look(service)
        mine = await ask(service, ME, platform=NAME)
        theirs = await ask(service, OTHER, platform=NAME)
        assert [reason.platform for reason in mine.reasons] == [NAME]
        assert theirs.reasons[0].message.startswith(f"There is no platform {NAME} here")


async def test_without_leases_it_keeps_what_sessions_left_and_is_asked_only_by_name(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        lease = await made(service)
        await look(service)
        await service.platforms.by_name[NAME].place("key")
        await service.annexes.leases.end_lease(lease, "it was enough")
        assert await look(service) == {NAME}
        assert service.platforms.by_name[NAME].asleep
        assert NAME not in {reason.platform for reason in (await ask(service)).reasons}
        assert {reason.platform for reason in (await ask(service, platform=NAME)).reasons} == {NAME}
        await service.platforms.by_name[NAME].clean("key")
        assert await look(service) == set()


async def test_a_service_that_starts_again_knows_it_before_the_access_point_answers(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        lease = await made(service)
        await look(service)
    async with leasing(tmp_path) as service:
        assert await look(service, point=None) == {NAME}
        assert read_kept(tmp_path / "platforms" / NAME)["annex"] == lease.annex


async def test_a_platform_that_has_the_name_already_keeps_it(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        await made(service)
        service.platforms.by_name[NAME] = service.platforms.by_name["cluster"]
        await look(service)
        assert service.platforms.by_name[NAME] is service.platforms.by_name["cluster"]
        assert service.platforms.broken[f"annex {NAME}"] == f"Another platform is called {NAME}."
        del service.platforms.by_name[NAME]


async def test_who_has_a_system_and_no_annex_is_told_when_one_would_start(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        (note,) = service.annexes.platforms.could_lease(await ask(service, time="2h"))
        assert note.startswith("An annex of 1 node on cluster would start about ")
        assert note.endswith(
            " (no track record yet): sublet annex create NAME --system cluster --queue played --lifetime 2h"
        )
    now = datetime(2026, 11, 16, 12, tzinfo=UTC)
    start = now + timedelta(minutes=125)
    sure = Predicted(start - timedelta(minutes=15), start, start + timedelta(minutes=25), samples=20)
    hour = timedelta(hours=1)
    offer = Offer("expanse", "sh", start, start, hour, (), Shape(1, 1), terms=sure, queue="compute", count=2)
    assert to_make_one(offer) == (
        "An annex of 2 nodes on expanse would start about 2026-11-16 14:05 UTC ± 20 min:"
        " sublet annex create NAME --system expanse --queue compute --nodes 2 --lifetime 1h"
    )


def test_a_broken_file_of_settings_is_no_platform(tmp_path: Path) -> None:
    (tmp_path / annex_platforms.KEPT).write_text("{")
    assert read_kept(tmp_path) == {}
