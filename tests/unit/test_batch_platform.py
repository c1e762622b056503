"""A batch system behind SSH is one value, three pieces of shell and a platform; all else is shared."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from sublet.booking.model.job import Job, JobState, Program, State
from sublet.booking.model.marks import NONE, PAUSED
from sublet.booking.model.offer import Node, Offer, Reason
from sublet.booking.model.request import Compute, Range, Request, Window
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.session import CONTINUED, STOPPED, EndKind
from sublet.booking.model.shape import Amounts, Shape
from sublet.kernel.errors import PlatformRefused, PlatformUnreachable
from sublet.platforms.batch import fitting
from sublet.platforms.batch.fitting import InQueue
from sublet.platforms.batch.job import header_script
from sublet.platforms.batch.reservations import LONG_AGO
from sublet.platforms.batch.site import SiteNode, SiteQueue
from tests.toybatch.platform import Toy

pytestmark = pytest.mark.anyio


@pytest.fixture
async def toy(tmp_path: Path) -> AsyncIterator[Toy]:
    (home := tmp_path / "home" / "platforms" / "toy").mkdir(parents=True)
    now = timedelta(0)
    platform = Toy(name="toy", directory=str(tmp_path / "far"), poll=now, look=now, patience=now, calls=1000)
    platform.reserves_within = timedelta(minutes=1)  # a busy machine reserves later
    await platform.open(home)
    yield platform
    await platform.close()


def job(*argv: str, queue: str = "") -> Job:
    until = datetime.now(UTC) + timedelta(minutes=5)
    scheduler = SchedulerOptions(queue=queue)
    return Job(Program(argv), Amounts(Shape(1, 1 << 27)), (), until, timedelta(0), scheduler=scheduler)


async def wait(toy: Toy, key: str, until: Callable[[JobState], bool]) -> JobState:
    async with asyncio.timeout(30):
        while True:
            state = (await toy.ask([key]))[key]
            if until(state):
                return state
            await asyncio.sleep(0.05)


async def test_another_batch_system_submits_watches_and_ends_a_session_by_what_is_shared(toy: Toy) -> None:
    key = str(uuid4())
    place = await toy.place(key)
    assert place
    (place / "work/in").write_text("brought\n")
    assert await toy.submit(job("sh", "-c", "cat in; echo made >out; exit 3"), key) == key
    assert await toy.find(key) == key
    assert toy.find_own_id(key).endswith(".toy")
    end = (await wait(toy, key, lambda state: state.state is State.ENDED)).end
    assert end
    assert (end.kind, end.code) == (EndKind.EXITED, 3)
    assert await toy.output(key, "stdout", 0, 100) == b"brought\n"
    assert [file.path for file in (await toy.results(key)).files] == ["out"]
    assert list(await toy.list_left()) == [key]
    await toy.clean(key)
    assert not list(await toy.list_left())


async def test_what_was_submitted_once_is_not_submitted_again(toy: Toy) -> None:
    key = str(uuid4())
    for _ in range(2):
        await toy.submit(job("sh", "-c", "echo ran >>runs"), key)
    await wait(toy, key, lambda state: state.state is State.ENDED)
    assert b"".join([piece async for piece in toy.read(key, "runs")]) == b"ran\n"


async def test_a_cancel_is_told_as_one_and_a_number_that_is_anothers_by_now_is_left_alone(toy: Toy) -> None:
    one, other = str(uuid4()), str(uuid4())
    for key in (one, other):
        await toy.submit(job("sleep", "60"), key)
        await wait(toy, key, lambda state: state.started is not None)
    directory = Path(await toy.session_directory(one))
    own = (directory / "id").read_text()
    (directory / "id").write_text(f"{toy.find_own_id(other)}\n")
    await toy.cancel([one], by="ann")
    assert (await toy.ask([other]))[other].state is State.RUNNING
    (directory / "id").write_text(own)
    await toy.cancel([one, other], by="bob")
    ends = [(await wait(toy, key, lambda state: state.state is State.ENDED)).end for key in (one, other)]
    assert [(end.kind, end.by) for end in ends if end] == [(EndKind.CANCELLED, "ann"), (EndKind.CANCELLED, "bob")]


async def test_what_is_paused_stands_still_and_goes_on_when_it_is_resumed(toy: Toy) -> None:
    key = str(uuid4())
    await toy.submit(job("sh", "-c", "until [ -e go ]; do sleep 0.05; done"), key)
    await wait(toy, key, lambda state: state.started is not None)
    assert await toy.pause(key) == STOPPED
    assert (await toy.ask([key]))[key].marks == PAUSED
    assert await toy.resume(key) == CONTINUED
    assert (await toy.ask([key]))[key].marks == NONE
    await asyncio.to_thread(Path(await toy.session_directory(key), "work/go").touch)
    await wait(toy, key, lambda state: state.state is State.ENDED)
    with pytest.raises(PlatformRefused, match="the job is over"):
        await toy.pause(key)


async def test_a_refusal_leaves_nothing_and_a_doubtful_answer_is_never_tried_again(toy: Toy) -> None:
    key = str(uuid4())
    with pytest.raises(PlatformRefused, match="no queue nowhere"):
        await toy.submit(job("true", queue="nowhere"), key)
    assert await toy.find(key) is None
    with pytest.raises(PlatformUnreachable, match="may or may not have taken the job"):
        await toy.submit(job("true", queue="busy"), key)
    assert await toy.find(key) == key


def wait_until_gone(pid: str) -> None:
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def an_offer() -> Offer:
    now = datetime.now(UTC)
    return Offer("toy", "sh", now, now, timedelta(minutes=5), (), Shape(1, 1 << 27))


async def test_an_offer_is_reserved_and_its_session_runs_in_the_reservation(toy: Toy) -> None:
    offer = await toy.reserve(an_offer(), ["0.1"])
    assert isinstance(offer, Offer)
    assert offer.reservation
    assert not offer.is_in_calendar
    key = offer.reservation
    assert [*await toy.list_reservations()] == [key]
    number = await asyncio.to_thread(Path(await toy.root(), "reservations", key, "id").read_text)
    await toy.submit(replace(job("sh", "-c", "exit 4"), reservation=key), key)
    assert toy.find_own_id(key) == number.strip()
    end = (await wait(toy, key, lambda state: state.state is State.ENDED)).end
    assert end
    assert (end.kind, end.code) == (EndKind.EXITED, 4)
    await toy.clean(key)
    root = Path(await toy.root())
    assert await asyncio.to_thread((root / "reservations" / key / "id").exists)  # it is still to be given up there
    await toy.give_up([key])
    assert not await asyncio.to_thread(root.exists)


async def test_reservations_are_given_up_found_again_and_no_more_than_are_allowed(toy: Toy, tmp_path: Path) -> None:
    refused = await toy.reserve(an_offer(), ["--full"])
    assert isinstance(refused, Reason)
    assert refused.message == "Toy reserves nothing for it: nothing is free then"
    for _ in range(toy.reservations):
        assert isinstance(await toy.reserve(an_offer(), ["60"]), Offer)
    assert await toy.reserve(an_offer(), ["60"]) is None
    again = Toy(name="toy", directory=toy.directory)
    await again.open(tmp_path / "home" / "platforms" / "toy")
    other = Toy(name="toy", directory=toy.directory)
    (elsewhere := tmp_path / "other" / "platforms" / "toy").mkdir(parents=True)
    await other.open(elsewhere)
    assert not await other.list_reservations()
    keys = [*await again.list_reservations()]
    assert len(keys) == toy.reservations
    root = await toy.root()
    numbers = [await asyncio.to_thread(Path(root, "reservations", key, "id").read_text) for key in keys]
    await again.give_up(keys)
    for number in numbers:
        await asyncio.to_thread(wait_until_gone, number.strip().removesuffix(".toy"))
    assert not await again.list_reservations()


async def test_a_reservation_that_comes_too_late_is_given_up_as_soon_as_it_is_there(toy: Toy, tmp_path: Path) -> None:
    toy.reserves_within = timedelta(seconds=0.2)
    assert await toy.reserve(an_offer(), ["--when", str(tmp_path / "gate"), "60"]) is None
    [key] = await toy.list_reservations()
    await asyncio.to_thread((tmp_path / "gate").touch)
    async with asyncio.timeout(20):
        while await toy.list_reservations():  # noqa: ASYNC110 (it happens elsewhere)
            await asyncio.sleep(0.05)
    assert not await asyncio.to_thread(Path(await toy.root(), "reservations", key).exists)


async def test_what_was_reserved_for_an_answer_that_nobody_waits_for_is_forsaken(toy: Toy, tmp_path: Path) -> None:
    now = datetime.now(UTC)
    words = iter([["60"], ["--when", str(tmp_path / "never"), "60"]])
    windows = [Window(now, now + timedelta(hours=1))] * 2
    answering = asyncio.create_task(toy.reserve_windows(windows, lambda _: toy.reserve(an_offer(), next(words))))
    async with asyncio.timeout(20):
        while len(await toy.list_reservations()) < 2:  # noqa: ASYNC110 (it happens elsewhere)
            await asyncio.sleep(0.05)
    answering.cancel()
    await asyncio.wait([answering])
    first, second = (await toy.list_reservations()).values()
    assert first == LONG_AGO < second
    await asyncio.to_thread((tmp_path / "never").touch)
    await toy.give_up([*await toy.list_reservations()])


def test_a_value_in_a_header_line_stays_on_its_line() -> None:
    assert header_script("#TOY", ["-q a b"], "/a b").decode().splitlines() == [
        "#!/bin/sh",
        "#TOY -q a b",
        "exec sh '/a b/job.sh' '/a b'",
    ]
    with pytest.raises(ValueError, match="more than one line"):
        header_script("#TOY", ["-q a\n#TOY -A theirs"], "/d")


def test_what_fits_in_a_queue_and_is_planned_in_time_is_an_offer_by_whichever_scheduler() -> None:
    now, hour = datetime(2026, 11, 17, tzinfo=UTC), timedelta(hours=1)
    nodes, queue = [SiteNode(Node("n1", 8, 1 << 34), ("all",))], SiteQueue("all", max_time=2 * hour)
    small = Request(None, Compute(cores=Range(2, 2)), duration=hour, windows=(Window(now, now + hour),))
    assert fitting.find_excess(small, queue, nodes, "toy") is None
    offer = fitting.offer_for("Toy", small, InQueue("all", small.least), now, "sh", "toy", now)
    assert isinstance(offer, Offer)
    assert (offer.amounts, offer.queue, offer.why) == (small.least, "all", "earliest in all")
    late = fitting.offer_for("Toy", small, InQueue("all", small.least), now + 2 * hour, "sh", "toy", now)
    assert isinstance(late, Reason)
    assert late.message.startswith("Toy would start it in all at 2026-11-17 02:00 UTC")
    long = fitting.find_excess(replace(small, duration=3 * hour), queue, nodes, "toy")
    assert long
    assert long.field == "schedule.duration"
