"""Offers are held for one asker, expire, and give back what they held."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from sublet.app import build_context
from sublet.booking.loop.moving_up import move_up
from sublet.booking.loop.steps import running
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import OfferSet
from sublet.booking.store.offersets import OfferSets
from sublet.kernel.errors import NoRoom, NotAllowedNow, NotYours, OfferExpired, OverCostLimit
from sublet.service import Service
from sublet.store import Tx
from tests.contract.services import KEEP, ME, OTHER, ask, in_phase, over, reach, serving

pytestmark = pytest.mark.anyio
LONG = {"trial": {"kind": "memory", "takes": "10h"}}


async def free_cores(service: Service) -> int:
    """The cores that nobody holds in the next minute."""
    now = service.now()
    calendar = await service.store.write(lambda tx: tx.books.calendar("trial").free(now, now + timedelta(minutes=1)))
    return sum(shape.cores for shape in calendar.values())


@pytest.mark.parametrize("time", ["3h", "8d"])
async def test_an_idle_platform_says_yes_to_long_sessions(tmp_path: Path, time: str) -> None:
    async with serving(tmp_path) as service:
        assert (await ask(service, time=time)).result == "YES"


async def test_an_ask_on_one_platform_needs_no_task_beside_the_one_that_asks(tmp_path: Path) -> None:
    async with serving(tmp_path, loop=False) as service:
        await ask(service)  # the platform is looked at, and what people did before
        tasks: list[str] = []

        def note(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], **more: Any) -> asyncio.Task[Any]:
            tasks.append(work.__qualname__)
            return asyncio.Task(work, loop=loop, **more)

        asyncio.get_running_loop().set_task_factory(note)
        assert (await ask(service)).result == "YES"
        asyncio.get_running_loop().set_task_factory(None)
        assert tasks == []


async def test_what_is_offered_to_one_is_offered_to_nobody_else(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        mine = await ask(service, cores=16, time="1h", start="within 5m")
        theirs = await ask(service, OTHER, cores=16, time="1h", start="within 5m")
        assert (mine.result, theirs.result) == ("YES", "NO")
        await service.sessions.reject(mine.offers[0].id, ME)
        for offer in (await service.asking.offerset(mine.id, ME)).offers:
            if offer.phase is Phase.OFFERED:
                await service.sessions.reject(offer.id, ME)
        assert (await ask(service, OTHER, cores=16, time="1h", start="within 5m")).result == "YES"


async def test_one_free_node_is_offered_at_nine_ten_and_eleven_to_one_asker(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        day = (service.now() + timedelta(days=3)).date().isoformat()
        window = f"{day}T09:00:00Z/{day}T12:00:00Z"
        mine = await ask(service, cores=16, time="4h", start=window)
        starts = [session.offer.start.hour for session in mine.offers]
        assert starts[:3] == [9, 10, 11]
        assert (await ask(service, OTHER, cores=16, time="4h", start=window)).result == "NO"
        await service.sessions.accept(mine.offers[1].id, ME)
        phases = {
            session.offer.start.hour: session.phase for session in (await service.asking.offerset(mine.id, ME)).offers
        }
        assert phases[9] == phases[11] == Phase.REJECTED
        early = f"{day}T05:30:00Z/{day}T06:00:01Z"
        assert (await ask(service, OTHER, cores=16, time="4h", start=early)).result == "YES"


async def test_a_busy_machine_says_no_and_names_the_next_free_time(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=LONG) as service:
        held = await ask(service, cores=16, time="10m")
        accepted = await service.sessions.accept(held.offers[0].id, ME)
        refused = await ask(service, OTHER, cores=1, time="1h", start="within 5m")
        assert refused.result == "NO"
        [reason] = refused.reasons
        assert reason.field
        assert accepted.until is not None
        assert accepted.until.strftime("%Y-%m-%dT%H:%M") in reason.nearest
        again = await ask(service, OTHER, cores=1, time="1h", start=f"{accepted.until:%Y-%m-%dT%H:%M:%SZ}/PT10M")
        assert again.result == "YES"


async def test_an_offer_that_has_expired_cannot_be_accepted_and_holds_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path, hold=timedelta(seconds=1)) as service:
        mine = await ask(service, cores=16, time="1h")
        id = mine.offers[0].id
        assert await free_cores(service) == 0
        expired = await over(service, id)
        assert expired.phase is Phase.EXPIRED
        with pytest.raises(OfferExpired):
            await service.sessions.accept(id, ME)
        assert await free_cores(service) == 16


async def test_accepting_twice_is_accepting_once(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=LONG) as service:
        mine = await ask(service, cores=4)
        first = await service.sessions.accept(mine.offers[0].id, ME)
        second = await service.sessions.accept(mine.offers[0].id, ME)
        assert (first.id, first.start) == (second.id, second.start)
        assert await free_cores(service) == 12


async def test_only_the_asker_sees_and_changes_a_session(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        mine = await ask(service)
        for act in (service.sessions.get, service.sessions.accept, service.sessions.reject, service.sessions.cancel):
            with pytest.raises(NotYours):
                await act(mine.offers[0].id, OTHER)


async def test_an_end_gives_back_what_was_booked(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms={"trial": {"kind": "memory", "takes": "1s"}}) as service:
        mine = await ask(service, cores=16, time="1h")
        await service.sessions.accept(mine.offers[0].id, ME)
        ended = await over(service, mine.offers[0].id)
        assert ended.phase is Phase.COMPLETED
        assert await free_cores(service) == 16


async def test_a_session_is_extended_while_there_is_room(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=LONG) as service:
        mine = await ask(service, cores=16, time="1h")
        session = await service.sessions.accept(mine.offers[0].id, ME)
        await reach(service, session.id, in_phase(Phase.RUNNING))
        longer = await service.sessions.extend(session.id, ME, by="1h")
        assert longer.until is not None
        assert session.until is not None
        assert longer.until - session.until == timedelta(hours=1)
        later = f"{longer.until:%Y-%m-%dT%H:%M:%SZ}/PT0S"
        theirs = await ask(service, OTHER, cores=16, time="1h", start=later)
        await service.sessions.accept(theirs.offers[0].id, OTHER)
        with pytest.raises(NoRoom):
            await service.sessions.extend(session.id, ME, by="1h")
        assert (await service.sessions.get(session.id, ME)).until == longer.until
        await service.sessions.cancel(session.id, ME)
        with pytest.raises(NotAllowedNow):
            await service.sessions.extend(session.id, ME, by="1h")


async def test_a_longer_session_costs_more_and_keeps_to_the_limit_of_its_request(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=LONG, prices={"core_hour": 0.01}) as service:
        mine = await ask(service, time="1h", max_cost=0.02)
        session = await service.sessions.accept(mine.offers[0].id, ME)
        assert session.offer.costs[0].max == 0.01
        with pytest.raises(OverCostLimit, match=r"asks at least 0\.11 for this \(in EUR\); the limit is 0\.02"):
            await service.sessions.extend(session.id, ME, by="10h")
        same = await service.sessions.get(session.id, ME)
        assert (same.until, same.offer.costs[0].max) == (session.until, 0.01)
        longer = await service.sessions.extend(session.id, ME, by="1h")
        assert (longer.offer.costs[0].max, longer.offer.compute_costs[0].max) == (0.02, 0.02)
        with pytest.raises(OverCostLimit):
            await service.sessions.extend(session.id, ME, by="1h")


async def test_offers_of_a_set_expire_each_at_its_own_time(tmp_path: Path) -> None:
    async with serving(tmp_path, loop=False) as service:
        now, later = service.now(), service.now() + timedelta(days=1)
        windows = [f"{now:%Y-%m-%dT%H:%M:%SZ}/PT2M", f"{later:%Y-%m-%dT%H:%M:%SZ}/PT1S"]
        mine = await ask(service, cores=16, time="1h", start=windows)
        soon, tomorrow = mine.offers
        assert soon.expires <= now + timedelta(minutes=2)
        assert tomorrow.expires == mine.expires >= now + service.settings.hold
        at = soon.expires + timedelta(seconds=1)
        assert [one.id for one in await service.store.write(lambda tx: tx.sessions.expire(at))] == [soon.id]
        assert await free_cores(service) == 16  # what the first one held is free again
        assert (
            await ask(service, OTHER, cores=16, time="1h", start=windows[1])
        ).result == "NO"  # the other is held still
        assert (await service.sessions.accept(tomorrow.id, ME)).phase is Phase.ACCEPTED


async def test_a_look_at_a_session_does_not_undo_that_it_is_extended_meanwhile(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=LONG) as service:
        mine = await ask(service, time="1h")
        session = await service.sessions.accept(mine.offers[0].id, ME)
        before = await reach(service, session.id, in_phase(Phase.RUNNING))
        looked = await running(build_context(service), before)
        assert "until" not in looked.changes


async def test_storage_is_booked(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        first = await ask(service, storage={"name": "scratch", "size": "600GiB"}, time="1h", start="within 5m")
        second = await ask(service, OTHER, storage={"name": "scratch", "size": "600GiB"}, time="1h", start="within 5m")
        assert (first.result, second.result) == ("YES", "NO")
        assert second.reasons[0].nearest
        small = await ask(service, OTHER, storage={"name": "scratch", "size": "400GiB"}, time="1h", start="within 5m")
        assert small.result == "YES"


async def test_storage_is_booked_in_every_pool(tmp_path: Path) -> None:
    platforms = {"trial": {"kind": "memory", "storage": "10GiB", "pools": {"fast": "20GiB"}}}
    async with serving(tmp_path, platforms=platforms) as service:
        many = {"time": "1h", "start": "within 5m", "precedence": KEEP}
        first = await ask(service, storage={"name": "s", "size": "8GiB-99GiB"}, **many)
        assert [(offer.offer.storage["s"] >> 30, offer.offer.pools["s"]) for offer in first.offers] == [
            (8, "storage"),
            (20, "fast"),
        ]
        await service.sessions.accept(first.offers[0].id, ME)
        second = await ask(service, storage={"name": "s", "size": "8GiB"}, **many)
        assert second.offers[0].offer.pools == {"s": "fast"}
        named = await ask(service, storage={"name": "s", "size": "8GiB", "pool": "storage"}, **many)
        assert named.result == "NO"
        assert (await ask(service, storage={"size": "8GiB", "pool": "tape"})).reasons[0].nearest == "storage, fast"


async def test_disk_of_a_node_is_booked(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms={"trial": {"kind": "memory", "disk": "100GiB"}}) as service:
        many = {"time": "1h", "start": "within 5m", "precedence": KEEP}
        first = await ask(service, disk="60GiB", **many)
        await service.sessions.accept(first.offers[0].id, ME)
        assert (await ask(service, disk="60GiB", **many)).result == "NO"
        assert (await ask(service, disk="40GiB", **many)).offers[0].offer.shape.disk == 40 << 30
        assert (await ask(service, disk="101GiB", **many)).reasons[0].nearest == "100GiB"


async def test_storage_in_a_pool_of_this_machine_is_a_folder_of_its_disk_until_the_session_is_cleaned(
    tmp_path: Path,
) -> None:
    (disk := tmp_path / "nvme").mkdir()
    platforms = {"here": {"kind": "local", "pools": {"fast": {"path": str(disk), "size": "1GiB"}}}}
    async with serving(tmp_path / "home", platforms=platforms) as service:
        room = {"name": "big", "size": "10MiB", "pool": "fast"}
        offers = (await ask(service, run=["sh", "-c", "echo hello > big/file"], storage=room, time="1m")).offers
        session = await service.sessions.accept(offers[0].id, ME)
        assert (await over(service, session.id)).phase is Phase.COMPLETED
        assert [file.read_text() for file in disk.rglob("file")] == ["hello\n"]
        await service.platforms.get("here").clean(session.id)
        assert not list(disk.rglob("*file*"))


async def test_the_same_key_is_the_same_offer_set(tmp_path: Path) -> None:
    async with serving(tmp_path) as service:
        asked = await service.asking.read(b'{"run": ["true"]}', "application/json", ME)
        first = await service.asking.ask(ME, asked, key="again")
        second = await service.asking.ask(ME, asked, key="again")
        other = await service.asking.ask(OTHER, asked, key="again")
        assert first.id == second.id
        assert [offer.id for offer in first.offers] == [offer.id for offer in second.offers]
        assert other.id != first.id


async def test_what_waits_moves_up_when_room_comes_free_unless_it_named_its_time(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=LONG) as service:
        first, soon = [await ask(service, precedence=KEEP, cores=16, time="2h") for _ in range(2)]
        later = f"{service.now() + timedelta(hours=5):%Y-%m-%dT%H:%M:%SZ}/PT0S"
        named = await ask(service, cores=16, time="1h", start=later)
        for one in (first, soon, named):
            await service.sessions.accept(one.offers[0].id, ME)
        await reach(service, first.offers[0].id, in_phase(Phase.RUNNING))
        waits = await reach(service, soon.offers[0].id, in_phase(Phase.WAITING))
        assert waits.start
        assert waits.start - service.now() > timedelta(hours=1)
        await service.sessions.cancel(first.offers[0].id, ME)
        runs = await reach(service, soon.offers[0].id, in_phase(Phase.RUNNING))
        assert runs.start
        assert runs.until == runs.start + timedelta(hours=2)
        assert runs.start < waits.start
        assert "session.moved-up" in {event.kind for event in await service.events.events(ME, session=runs.id)}
        stays = await service.sessions.get(named.offers[0].id, ME)
        assert (stays.phase, stays.start) == (Phase.WAITING, named.offers[0].offer.start)
        assert await free_cores(service) == 0


async def test_what_waits_for_the_time_that_it_named_is_not_looked_at_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, platforms=LONG) as service:
        later = f"{service.now() + timedelta(hours=5):%Y-%m-%dT%H:%M:%SZ}/PT0S"
        named = await ask(service, cores=1, time="1h", start=later)
        soon = [await ask(service, precedence=KEEP, cores=16, time="2h") for _ in range(2)]
        for one in (named, *soon):
            await service.sessions.accept(one.offers[0].id, ME)
        await reach(service, named.offers[0].id, in_phase(Phase.WAITING))
        await reach(service, soon[0].offers[0].id, in_phase(Phase.RUNNING))
        await reach(service, soon[1].offers[0].id, in_phase(Phase.WAITING))
        requests, get = [], OfferSets.get

        def counted(self: OfferSets, id: str) -> OfferSet | None:
            requests.append(id)
            return get(self, id)

        monkeypatch.setattr(OfferSets, "get", counted)
        known: set[str] = set()

        def look(tx: Tx) -> tuple[int, int]:
            requests.clear()
            return move_up(tx, "trial", service.now(), known), len(requests)

        assert [await service.store.write(look) for _ in range(3)] == [(0, 2), (0, 1), (0, 1)]
        assert known == {named.offers[0].id}
        await service.sessions.cancel(named.offers[0].id, ME)
        assert await service.store.write(look) == (0, 1)
        assert known == set()


async def test_to_look_for_an_earlier_start_in_vain_writes_nothing(tmp_path: Path) -> None:
    def version(tx: Tx) -> int:
        return tx.books._hold_calendar("trial").version

    async with serving(tmp_path, platforms=LONG) as service:
        both = [await ask(service, precedence=KEEP, cores=16, time="2h") for _ in range(2)]
        for one in both:
            await service.sessions.accept(one.offers[0].id, ME)
        await reach(service, both[0].offers[0].id, in_phase(Phase.RUNNING))
        await reach(service, both[1].offers[0].id, in_phase(Phase.WAITING))
        before = await service.store.write(version)
        assert await service.store.write(lambda tx: move_up(tx, "trial", service.now(), set())) == 0
        assert await service.store.write(version) == before


async def test_what_waits_behind_offers_that_nobody_took_moves_up_when_they_expire(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=LONG, hold="2s") as service:
        await ask(service, OTHER, cores=16, time="2h")
        mine = await ask(service, cores=16, time="1h")
        await service.sessions.accept(mine.offers[0].id, ME)
        await reach(service, mine.offers[0].id, in_phase(Phase.RUNNING))
