"""The machine's clock is set: recorded times of what runs here follow it, and times that were asked for stay."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pydantic import PrivateAttr

from sublet.app import build_context, build_loop
from sublet.booking.loop.clock_watch import describe_step, doubts_clock, follow_clock
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import Session
from sublet.data.model.uploads import UploadWish
from sublet.notices.model.hooks import Hook
from sublet.people.model.person import Person
from sublet.platforms.local.platform import Local
from sublet.platforms.local.shim import clocks
from sublet.service import Service
from sublet.store.tx import Tx
from tests.contract.services import ME, ask, in_phase, over, reach, serving
from tests.contract.test_service_uploads import pieces

pytestmark = pytest.mark.anyio
HOUR = timedelta(hours=1)
HERE = {"here": {"kind": "local", "cores": 1}}


async def begin(service: Service, **short: object) -> Session:
    offers = (await ask(service, **{"run": ["sleep", "300"], "cores": 1, **short})).offers
    return await service.sessions.accept(offers[0].id, ME)


async def read(service: Service, session: Session) -> Session:
    found = await service.store.read(lambda tx: tx.sessions.get(session.id))
    assert found
    return found


async def test_a_clock_that_is_far_ahead_for_a_moment_removes_nothing_for_its_age(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks, "find_step", lambda: str(tmp_path / "clock"))
    async with serving(tmp_path, platforms=HERE) as service:
        made = await begin(service, run=["sh", "-c", "echo kept > out.txt"])
        await over(service, made.id)
        assert not await doubts_clock(build_context(service))
        (tmp_path / "clock").write_text(f"{(2 * service.settings.keep).total_seconds()}")
        assert await doubts_clock(build_context(service)), "also before the loop has looked"
        async with asyncio.timeout(20):
            while service.loop_state.clock_step is None:  # noqa: ASYNC110 (the loop looks meanwhile)
                await asyncio.sleep(0.02)
        assert await doubts_clock(build_context(service))
        end = await service.results.find_end(made.id, ME)
        assert end
        assert service.settings.keep - HOUR < end - service.now() <= service.settings.keep
        (tmp_path / "clock").write_text("0")
        async with asyncio.timeout(20):
            while await doubts_clock(build_context(service)):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        back = await service.results.find_end(made.id, ME)
        assert back
        assert service.settings.keep - HOUR < back - service.now() <= service.settings.keep
        assert [file.path for file in (await service.output.results(made.id, ME)).files] == ["out.txt"]


async def test_what_people_keep_here_outlasts_a_clock_that_is_far_ahead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks, "find_step", lambda: str(tmp_path / "clock"))
    ann = Person("ann@example.org")
    async with serving(tmp_path, mode="gateway", loop=False) as service:
        await service.store.write(lambda tx: follow_clock(tx, [], clocks.offset(), service.now()))
        uploads = service.uploads
        upload = await uploads.transfers.begin(ann, UploadWish("rain", "a.txt", 5), "")
        await uploads.transfers.append(ann, upload.id, 0, pieces(b"hello"))
        await uploads.transfers.begin(ann, UploadWish("snow", "b.txt", 5), "")
        draft = await service.drafts.new_draft(ann, {})
        token, _ = await service.people.tokens.make_token(ann, expires_in=HOUR)
        in_an_hour = service.now() + HOUR
        hook = Hook("h", ann.name, "", "https://example.org/", "", (), service.now(), in_an_hour)
        await service.store.write(lambda tx: tx.hooks.add(hook))

        (tmp_path / "clock").write_text(f"{timedelta(days=900).total_seconds()}")
        await uploads.care.expire(service.now())
        other = await service.drafts.new_draft(Person("ben@example.org"), {})
        await service.people.signing_in.visiting(ann)
        await service.notices.telling.look_after(service.now())
        await (service.notices.telling._telling or pytest.fail("there are events"))

        (tmp_path / "clock").write_text("0")
        assert {kept.name for kept in await uploads.kept.list(ann)} == {"rain", "snow"}
        assert uploads.kept.area.path(upload.id).read_bytes() == b"hello"
        assert [each.id for each, _ in await service.drafts.drafts(ann)] == [draft.id] != [other.id]
        left = await service.store.read(lambda tx: ([one.id for one in tx.tokens.list(ann.name)], tx.hooks.get("h")))
        assert token.id in left[0]
        assert left[1]


@pytest.mark.parametrize("step", [HOUR, -HOUR])
async def test_times_follow_the_clock_unless_they_were_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: timedelta
) -> None:
    monkeypatch.setattr(clocks, "find_step", lambda: str(tmp_path / "clock"))
    async with serving(tmp_path, platforms=HERE) as service:
        runs = await reach(service, (await begin(service, time="20m")).id, in_phase(Phase.RUNNING))
        tomorrow = f"{service.now() + timedelta(days=1):%Y-%m-%dT%H:%M:%SZ}/PT0S"
        named = await begin(service, time="20m", start=tomorrow)
        waits = await reach(service, (await begin(service, time="20m")).id, in_phase(Phase.WAITING))
        before = {one.id: await read(service, one) for one in (runs, named, waits)}
        takes = await service.store.read(lambda tx: tx.books.calendar("here").takes(runs.id))

        def set_clock() -> None:  # as the loop does, in one write
            service.store.write_sync(lambda tx: follow_clock(tx, ["here"], clocks.offset(), service.now()))

        (tmp_path / "clock").write_text(f"{step.total_seconds()}")
        set_clock()
        moved = {id: await service.store.read(lambda tx, id=id: tx.sessions.get(id)) for id in before}
        assert all(moved.values())
        for one in (runs, waits):
            old, new = before[one.id], moved[one.id]
            assert abs(new.until - old.until - step) < timedelta(seconds=1)
            events = await service.events.events(ME, session=one.id)
            [told] = [event.detail for event in events if event.kind == "session.clock-stepped"]
            assert describe_step(step) in told
        assert moved[named.id].start == before[named.id].start
        after = await service.store.read(lambda tx: tx.books.calendar("here").takes(runs.id))
        assert takes
        assert all(abs(new.end - old.end - step) < timedelta(seconds=1) for new, old in zip(after, takes, strict=True))
        set_clock()
        again = await service.store.read(lambda tx: tx.sessions.get(runs.id))
        assert again.until == moved[runs.id].until  # a step is followed once, whoever notices it
        await service.sessions.cancel(runs.id, ME)


class SlowToPlace(Local):
    """This machine, where it takes until someone says so to make a session's directory."""

    _begun: asyncio.Event = PrivateAttr(default_factory=asyncio.Event)
    _go: asyncio.Event = PrivateAttr(default_factory=asyncio.Event)

    async def place(self, key: str) -> Path | None:
        self._begun.set()
        await self._go.wait()
        return await super().place(key)


@pytest.mark.parametrize("step", [HOUR, -HOUR])
async def test_a_session_that_is_being_prepared_when_the_clock_is_set_starts_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: timedelta
) -> None:
    file = tmp_path / "clock"
    monkeypatch.setattr(clocks, "find_step", lambda: str(file))
    async with serving(tmp_path, platforms=HERE) as service:
        slow = SlowToPlace(name="here", cores=1)
        await slow.open(tmp_path / "platforms" / "here")
        service.platforms.by_name["here"] = slow
        session = await begin(service, run=["true"], time="1m")
        async with asyncio.timeout(30):
            await slow._begun.wait()
        file.write_text(f"{step.total_seconds()}")
        slow._go.set()
        ended = await over(service, session.id)
        assert ended.phase is Phase.COMPLETED, ended.end


@pytest.mark.parametrize("step", [HOUR, -HOUR])
async def test_a_step_that_another_process_followed_and_that_was_taken_back_ends_nothing(
    tmp_path: Path, step: timedelta
) -> None:
    """This process was away while the clock was set and set back; the other one died between the two."""
    async with serving(tmp_path, platforms=HERE) as service:
        runs = await reach(service, (await begin(service, time="20m")).id, in_phase(Phase.RUNNING))
        until = (await read(service, runs)).until
        offset = clocks.offset() + step.total_seconds()
        await service.store.write(lambda tx: follow_clock(tx, ["here"], offset, service.now()))
        service.signals.nudged.set()

        def is_back(one: Session) -> bool:
            return one.until is not None and until is not None and abs(one.until - until) < timedelta(seconds=2)

        assert (await reach(service, runs.id, is_back)).phase is Phase.RUNNING
        await service.sessions.cancel(runs.id, ME)


@pytest.mark.parametrize("step", [HOUR, -HOUR])
async def test_a_session_that_is_accepted_before_a_step_is_followed_starts_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: timedelta
) -> None:
    file = tmp_path / "clock"
    monkeypatch.setattr(clocks, "find_step", lambda: str(file))
    async with serving(tmp_path, platforms=HERE) as service:
        [offer] = (await ask(service, run=["true"], cores=1, time="1m")).offers[:1]

        def accept(tx: Tx) -> Session:  # the clock is set in the middle of the write: nobody can have followed it yet
            file.write_text(f"{step.total_seconds()}")
            return service.sessions._accept(tx, offer.id, ME)

        accepted = await service.store.write(accept)
        ended = await over(service, accepted.id)
        assert ended.phase is Phase.COMPLETED, ended.end


async def test_a_step_that_is_taken_back_before_anyone_saw_it_delays_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was offered, handed back and cancelled in that moment is not left for the hour that never was."""
    file = tmp_path / "clock"
    monkeypatch.setattr(clocks, "find_step", lambda: str(file))
    async with serving(tmp_path, loop=False, platforms=HERE) as service:
        loop = build_loop(service)
        await loop.clock_watch.look()
        accepted = await begin(service, time="1m")
        [claim] = await service.store.write(lambda tx: loop._claim(tx, service.now())[1])
        file.write_text(f"{HOUR.total_seconds()}")
        offered = (await ask(service, cores=1, time="1m")).offers[0]
        await loop._hand_back(accepted.id, claim.token)
        file.unlink()
        assert offered.expires
        assert offered.expires - service.now() <= service.settings.hold
        assert await next_due(service) <= service.now()
        [claim] = await service.store.write(lambda tx: loop._claim(tx, service.now())[1])
        file.write_text(f"{HOUR.total_seconds()}")
        await service.store.write(lambda tx: service.sessions.endings.cancel(tx, accepted.id, ME))
        file.unlink()
        await service.store.write(lambda tx: tx.sessions.release_claim(accepted.id, claim.token))
        assert await next_due(service) <= service.now()


async def next_due(service: Service) -> datetime:
    due = await service.store.read(lambda tx: tx.sessions.next_due())
    assert due
    return due


def test_a_step_is_told_in_whole_seconds() -> None:
    assert describe_step(timedelta(hours=1, microseconds=7)) == "set forward by 1 h"
    assert describe_step(-timedelta(seconds=90.4)) == "set back by 1 min 30 s"
