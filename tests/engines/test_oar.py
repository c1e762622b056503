"""A real OAR: its platform keeps the contract of every platform, and what it offers as booked is reserved there."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from sublet.booking.model.job import Job, Program, State
from sublet.booking.model.marks import Mark
from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Window
from sublet.booking.model.scheduler import NOTHING_ASKED, SchedulerOptions
from sublet.booking.model.session import EndKind
from sublet.booking.model.shape import Amounts, Shape
from sublet.kernel.errors import PlatformRefused
from sublet.platforms.conformance import check_platform
from sublet.platforms.oar.options import OarWish, words_to_reserve
from sublet.platforms.oar.platform import Oar
from tests.engines.asking import (
    PATIENCE,
    check_each_node,
    find_booked,
    list_sleepers,
    request_for,
    wait_for_end,
    wait_until,
)
from tests.engines.batch_sites import opening
from tests.engines.machines import EngineMachine
from tests.engines.oar_server import serve_oar

pytestmark = [pytest.mark.anyio, pytest.mark.engines]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineMachine]:
    with serve_oar(tmp_path_factory.mktemp("oar") / "machine") as machine:
        yield machine


@pytest.fixture
async def oar(site: EngineMachine, tmp_path: Path) -> AsyncIterator[Oar]:
    async with opening(Oar, "oar", site, tmp_path / "home") as platform:
        yield platform


async def test_oar_keeps_the_contract_of_every_platform(oar: Oar) -> None:
    findings = await check_platform(oar, PATIENCE)
    assert [finding for finding in findings if not finding.ok] == []


async def test_oar_tells_its_queue_and_its_sort_of_node_when_it_is_probed(oar: Oar) -> None:
    [queue] = (await oar.probe({})).queues
    assert (queue.name, [(kind.cores, kind.count) for kind in queue.nodes]) == ("default", [(2, 2)])


async def test_what_is_offered_as_booked_is_reserved_and_given_up_again(oar: Oar, site: EngineMachine) -> None:
    now = datetime.now(UTC)
    answer = await oar.offers(request_for("oar"), ["exec"], now)
    predicted, booked = answer.offers
    assert (predicted.terms.kind, predicted.queue) == ("predicted", "default")
    assert booked.terms.kind == "booked"
    key = booked.reservation
    assert now + oar.lead <= booked.start <= now + oar.lead + timedelta(seconds=30)
    shown = json.loads(site.run_as_person("oarstat -f -J -u"))
    [job] = shown.values()
    assert (job["name"], job["reservation"], job["startTime"]) == (key, "Scheduled", round(booked.start.timestamp()))
    await oar.give_up([*await oar.list_reservations()])
    site.run_as_person(
        "for i in $(seq 100); do oarstat -f -J -u | grep -q Scheduled || exit 0; sleep 0.3; done; exit 1"
    )
    assert not await oar.list_reservations()
    assert site.run_as_person("ls -A .sublet/reservations 2>/dev/null || echo none").strip() == "none"


async def test_windows_are_answered_by_reservations_and_what_is_full_by_oars_own_words(oar: Oar) -> None:
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).replace(minute=0, second=0, microsecond=0)
    window = Window(tomorrow, tomorrow + timedelta(hours=1))
    both = request_for("oar", 90, window, cores=2, nodes=2)
    [whole] = (await oar.offers(both, ["exec"], datetime.now(UTC))).offers
    assert (whole.start, whole.terms.kind, whole.count) == (tomorrow, "booked", 2)
    answer = await oar.offers(both, ["exec"], datetime.now(UTC))
    assert not answer.offers
    assert "only a reservation starts later" in answer.reasons[0].message
    refused = await oar.reserve(
        whole, words_to_reserve(OarWish("", both.least), NOTHING_ASKED, tomorrow), is_named=True
    )
    assert isinstance(refused, Reason)
    assert "This reservation could run at" in refused.message
    await oar.give_up([*await oar.list_reservations()])


async def test_a_session_runs_in_its_reservation_though_nobody_asks_any_more(oar: Oar, site: EngineMachine) -> None:
    oar.lead = timedelta(seconds=20)
    booked = await find_booked(oar, request_for("oar"))
    key, until = booked.reservation, datetime.now(UTC) + booked.duration
    program = Program(("sh", "-c", "date +%s; exit 5"))
    job = Job(program, booked.amounts, (), until, timedelta(0), reservation=key)
    assert await oar.submit(job, key) == key
    assert await oar.submit(job, key) == key
    planned = f"planned to start at {booked.start:%Y-%m-%d %H:%M}"
    seen = await wait_until(oar, key, lambda state: state.state is not State.QUEUED or planned in state.condition)
    assert seen.state is not State.UNKNOWN
    end = await wait_for_end(oar, key)
    assert (end.kind, end.code) == (EndKind.EXITED, 5)
    assert int(await oar.output(key, "stdout", 0, 20)) >= booked.start.timestamp() - 1
    await oar.give_up([key])
    await oar.clean(key)
    assert not site.run_as_person("find .sublet -name '*' 2>/dev/null", check=False)


async def test_parts_run_as_an_array_and_what_oar_refuses_is_told_in_its_words(oar: Oar) -> None:
    key, until = str(uuid4()), datetime.now(UTC) + timedelta(minutes=5)
    program = Program(("sh", "-c", "echo part $SUBLET_PART of $SUBLET_PARTS"))
    amounts = Amounts(Shape(1, 128 << 20), parts=3)
    await oar.submit(Job(program, amounts, (), until, timedelta(0)), key)
    assert (await wait_for_end(oar, key)).code == 0
    assert await oar.output(key, "stdout", 0, 100) == b"part 0 of 3\npart 1 of 3\npart 2 of 3\n"
    await oar.clean(key)
    nowhere = Job(program, Amounts(Shape(1, 1)), (), until, timedelta(0), scheduler=SchedulerOptions(queue="nowhere"))
    with pytest.raises(PlatformRefused, match="The queue nowhere does not exist"):
        await oar.submit(nowhere, other := str(uuid4()))
    assert await oar.find(other) is None


async def test_a_program_for_each_node_runs_on_each_and_the_first_that_fails_ends_all(
    oar: Oar, site: EngineMachine
) -> None:
    await check_each_node(oar)
    assert not list_sleepers(site), "nothing is left of them on any node"


async def test_a_job_that_an_administrator_holds_is_told_as_such_and_its_owner_may_release_it(
    oar: Oar, site: EngineMachine
) -> None:
    until = datetime.now(UTC) + timedelta(minutes=5)
    fill, key = str(uuid4()), str(uuid4())
    whole = Amounts(Shape(2, 1), 2)
    await oar.submit(Job(Program(("sleep", "300")), whole, (), until, timedelta(0)), fill)
    await wait_until(oar, fill, lambda state: state.state is State.RUNNING)
    await oar.submit(Job(Program(("true",)), whole, (), until, timedelta(0)), key)
    await wait_until(oar, key, lambda state: "waits" in state.condition)
    site.run("sh", "-c", f"cd / && oarhold --sql \"job_name = '{key}'\"")
    held = await wait_until(oar, key, lambda state: "is held" in state.condition)
    assert held.condition.endswith("(by root there; `sublet resume` releases it)")
    assert Mark.PAUSED not in held.marks
    await oar.resume(key)
    await wait_until(oar, key, lambda state: "is held" not in state.condition)
    assert await oar.pause(key) == "held in the queue"
    await wait_until(oar, key, lambda state: Mark.PAUSED in state.marks)
    assert await oar.pause(key) == "held in the queue", "it is, and nothing is to be done"
    for each in (key, fill):
        await oar.cancel([each], "ann")
        await wait_for_end(oar, each)
        await oar.clean(each)


async def test_ends_are_told_by_oar_where_the_job_could_not(oar: Oar, site: EngineMachine) -> None:
    keys = [str(uuid4()) for _ in range(2)]
    until = datetime.now(UTC) + timedelta(minutes=5)
    for key in keys:
        await oar.submit(Job(Program(("sleep", "300")), Amounts(Shape(1, 1)), (), until, timedelta(0)), key)
    await wait_until(oar, keys[0], lambda state: state.state is State.RUNNING)
    site.run_as_person(f"oardel --sql \"job_name = '{keys[0]}'\"")
    deleted = await wait_for_end(oar, keys[0])
    assert (deleted.kind, deleted.by) == (EndKind.CANCELLED, "someone on the system itself, not through Sublet")
    await oar.cancel([keys[1]], "ann")
    assert (await wait_for_end(oar, keys[1])).by == "ann"
    for key in keys:
        await oar.clean(key)
