"""Leases: recorded before anything is sent, sent once, and never left over."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from sublet.annexes.lease_plans import WantedLease
from sublet.annexes.lease_watch import all_gone
from sublet.annexes.leases import NOTHING_SENT
from sublet.annexes.model.annex import Annex, Details, Lease, Pilot
from sublet.annexes.model.lease_state import Slots
from sublet.annexes.shrinking import GIVEN_BACK
from sublet.annexes.status import Heard, average_time
from sublet.annexes.views.annexes import DetailsView
from sublet.annexes.views.convert import details_of, details_view
from sublet.booking.model.offer import Offer
from sublet.booking.model.phases import Phase
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.session import Session
from sublet.booking.model.shape import Shape
from sublet.kernel.errors import (
    AnnexInUse,
    BadRequest,
    KeyReused,
    LeaseRefused,
    NoLease,
    NotFound,
    NotPending,
    PersonalOnly,
)
from tests.contract.leases import CLUSTER, TWO, ended, later, leasing, made, running
from tests.contract.services import ME, OTHER, in_phase, reach

pytestmark = pytest.mark.anyio
NOW_AND_THEN = {**CLUSTER["cluster"], "waits": ["0s", "1h", "2h"]}
WAITING = {"cluster": NOW_AND_THEN}  # a queue in which everything waits for an hour


async def test_a_lease_is_a_session_of_kind_pilot(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        annex, lease, session = await service.annexes.leases.lease(
            "example", WantedLease(replace(TWO, queue="short")), ME, more=False
        )
        assert (session.kind, session.name, session.offer.queue) == ("pilot", "example#1", "short")
        assert (session.offer.count, session.offer.shape.cores, session.offer.duration) == (2, 4, timedelta(hours=2))
        running = await reach(service, session.id, in_phase(Phase.RUNNING))
        stored = await service.store.read(lambda tx: tx.leases.get(lease.id))
        assert stored is not None
        assert (stored.session, stored.ended, stored.annex) == (running.id, None, annex.id)


async def test_a_lease_asks_the_scheduler_as_any_request_does_and_the_next_one_too(tmp_path: Path) -> None:
    asked = SchedulerOptions(constraint="gpu", nice=5, exclusive=True, options=("switches=1",))
    async with leasing(tmp_path) as service:
        wanted = WantedLease(replace(TWO, queue="short", project="abc", scheduler=asked))
        _, lease, session = await service.annexes.leases.lease("example", wanted, ME, more=False)
        assert session.offer.scheduler == replace(asked, queue="short", project="abc")
        stored = await service.store.read(lambda tx: tx.leases.get(lease.id))
        assert stored is not None
        assert stored.details.scheduler == asked
        assert details_of(details_view(stored.details)) == stored.details
        _, _, more = await service.annexes.leases.lease("example", WantedLease(Details()), ME, more=True)
        assert more.offer.scheduler == session.offer.scheduler


@pytest.mark.parametrize("given", [{"nice": -1}, {"queue": "short"}, {"niece": 1}, {"constraint": "a b"}])
def test_what_a_lease_can_t_ask_of_the_scheduler_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(BadRequest):
        details_of(DetailsView(scheduler=given))


async def test_a_lease_under_a_key_is_made_once(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        asked = [service.annexes.leases.lease("example", WantedLease(TWO), ME, more=True, key="k") for _ in range(2)]
        with pytest.raises(NotFound):  # there is no annex to add to, and nothing was sent
            await asked[0]
        asked[1].close()
        made = [service.annexes.leases.lease("example", WantedLease(TWO), ME, more=False, key="one") for _ in range(3)]
        [(number, session)] = {(lease.number, session.id) for _, lease, session in await asyncio.gather(*made)}
        more = [
            await service.annexes.leases.lease("example", WantedLease(TWO), ME, more=True, key="k") for _ in range(2)
        ]
        assert [lease.number for _, lease, _ in more] == [number + 1] * 2
        with pytest.raises(KeyReused):
            await service.annexes.leases.lease("other", WantedLease(TWO), ME, more=False, key="one")
        await service.sessions.cancel(session, ME)
        _, same, _ = await service.annexes.leases.lease("example", WantedLease(TWO), ME, more=False, key="one")
        assert (same.number, same.session) == (number, session)


async def test_what_is_not_said_comes_from_the_template_else_from_the_last_time(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        await service.annexes.templates.save_template("long", Details(lifetime=timedelta(hours=9)), ME)
        await made(service)
        plan, number = await service.annexes.plans.plan_lease(
            "example", WantedLease(Details(nodes=3), template="long"), ME
        )
        sources = {row.field: (row.value, row.source) for row in plan.rows}
        assert number == 2
        assert sources["nodes"] == ("3", "you")
        assert sources["lifetime"] == ("9 h", "template long")
        assert sources["cores"] == ("4", "last time: example#1")
        assert sources["idle"] == ("5 min", "last time: example#1")
        other, number = await service.annexes.plans.plan_lease("fresh", WantedLease(Details()), ME)
        assert (number, other.details.cores) == (1, 4)


async def test_how_jobs_get_to_one_annex_says_nothing_of_another(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        await made(service, "example", Details(nodes=1, cores=1, carry="direct"))
        again, _ = await service.annexes.plans.plan_lease("example", WantedLease(Details()), ME)
        other, _ = await service.annexes.plans.plan_lease("other", WantedLease(Details()), ME)
        assert (again.details.carry, other.details.carry) == ("direct", "")


async def test_the_same_details_make_another_annex(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        await made(service)
        await made(service, "other", Details(nodes=1, cores=1))
        plan, _ = await service.annexes.plans.plan_lease("clone", WantedLease(Details(), like="example"), ME)
        assert (plan.details.nodes, plan.details.cores) == (2, 4)
        assert {row.source for row in plan.rows if row.field == "nodes"} == {"example#1"}


async def test_a_name_that_has_a_lease_is_added_to_and_not_made_again(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        first = await made(service)
        with pytest.raises(AnnexInUse, match="example#1"):
            await made(service)
        annex, second, _ = await service.annexes.leases.lease("example", WantedLease(Details()), ME, more=True)
        assert (second.number, second.annex, second.details.nodes) == (2, first.annex, 2)
        await service.annexes.leases.shutdown("example", ME)
        third = await made(service)
        assert (third.number, third.annex) == (3, annex.id)


async def test_of_two_who_make_one_name_at_once_one_gets_it(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        results = await asyncio.gather(*(made(service) for _ in range(5)), return_exceptions=True)
        [winner] = [one for one in results if isinstance(one, Lease)]
        assert sum(isinstance(one, AnnexInUse) for one in results) == 4
        assert [lease.id for lease in await service.store.read(lambda tx: tx.leases.live())] == [winner.id]


async def test_adding_to_a_name_that_there_is_not_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        with pytest.raises(NotFound, match="annex example"):
            await service.annexes.leases.lease("example", WantedLease(TWO), ME, more=True)
        assert await service.annexes.registry.annexes(ME) == []


async def test_an_annex_is_its_owners_alone(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        await made(service)
        with pytest.raises(NotFound):
            await service.annexes.leases.shutdown("example", OTHER)
        assert await service.annexes.registry.annexes(OTHER) == []


async def test_a_gateway_makes_none(tmp_path: Path) -> None:
    async with leasing(tmp_path, mode="gateway") as service:
        with pytest.raises(PersonalOnly):
            await made(service)


async def test_what_a_system_refuses_is_recorded_as_never_sent(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        with pytest.raises(LeaseRefused, match="has 8 nodes"):
            await made(service, details=replace(TWO, nodes=99))
        _, [lease] = await service.annexes.registry.leases("example", ME)
        assert lease.ended
        assert lease.why.startswith("it was not sent")
        assert (await made(service)).number == 2


async def test_what_makes_no_sense_is_refused_before_it_is_recorded(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        with pytest.raises(LeaseRefused) as refused:
            await made(service, details=Details(nodes=2))
        assert refused.value.advice == "Possible: --cores N."
        assert await service.annexes.registry.annexes(ME) == []


async def test_the_only_system_need_not_be_named_and_of_several_one_must_be(tmp_path: Path) -> None:
    both = {**CLUSTER, "other": CLUSTER["cluster"]}
    async with leasing(tmp_path, platforms=both) as service:
        with pytest.raises(BadRequest, match="on which system"):
            await made(service)
        assert (await made(service, details=replace(TWO, system="other"))).details.system == "other"
        with pytest.raises(NotFound, match="nowhere"):
            await made(service, "third", details=replace(TWO, system="nowhere"))


async def test_a_system_of_the_catalogue_is_planned_for_but_must_be_made_ones_own(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        wanted = WantedLease(Details("expanse", "compute", "abc", nodes=2))
        plan, _ = await service.annexes.plans.plan_lease("example", wanted, ME)
        rows = {row.field: row for row in plan.rows}
        assert (rows["system"].state, rows["system"].nearest) == ("error", "sublet system add expanse --user NAME")
        assert (rows["nodes"].state, plan.details.cores, plan.cost.coin) == ("ok", 128, "SU")
        with pytest.raises(LeaseRefused, match="not yet yours"):
            await service.annexes.leases.lease("example", wanted, ME, more=False)


async def test_what_waits_can_be_taken_back_and_what_runs_only_ended(tmp_path: Path) -> None:
    async with leasing(tmp_path, platforms={"run": CLUSTER["cluster"], **WAITING}) as service:
        waits = await made(service, details=replace(TWO, system="cluster"))
        _, [cancelled] = await service.annexes.leases.cancel_lease("example#1", ME)
        assert (cancelled.id, cancelled.why) == (waits.id, "It was cancelled by me.")
        with pytest.raises(NoLease):
            await service.annexes.leases.cancel_lease("example", ME)
        _, _, session = await service.annexes.leases.lease(
            "example", WantedLease(replace(TWO, system="run")), ME, more=False
        )
        await reach(service, session.id, in_phase(Phase.RUNNING))
        with pytest.raises(NotPending, match="example#2"):
            await service.annexes.leases.cancel_lease("example", ME)
        _, [over] = await service.annexes.leases.shutdown("example#2", ME)
        assert over.ended
        with pytest.raises(NoLease):
            await service.annexes.leases.shutdown("example", ME)


async def test_a_lease_ends_with_its_session(tmp_path: Path) -> None:
    short = {"cluster": {**CLUSTER["cluster"], "takes": "1s"}}
    async with leasing(tmp_path, platforms=short) as service:
        lease = await made(service)
        pilot = Pilot(lease.id, 0, service.now(), "c1")
        await service.store.write(lambda tx: tx.pilots.claim(pilot))
        over = await ended(service, lease.id)
        assert over.ended == (await service.sessions.get(over.session, ME)).ended
        assert over.why == "It exited with code 0."
        [gone] = await service.store.read(lambda tx: tx.pilots.list(lease.id))
        assert gone.why == "its lease ended"


async def test_a_lease_that_was_never_sent_ends_when_the_service_starts_again(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        now = service.now()
        annex = Annex(str(uuid4()), "me", "left", now)
        lease = Lease(str(uuid4()), annex.id, 1, TWO, now)
        await service.store.write(lambda tx: (tx.annexes.add(annex), tx.leases.add(lease)))
        await asyncio.sleep(0)
    async with leasing(tmp_path) as service:
        assert (await ended(service, lease.id)).why == NOTHING_SENT


async def test_nodes_whose_pilots_are_all_gone_are_given_back(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        lease, session = await running(service, nodes=2)
        now = service.now()
        await service.store.write(lambda tx: tx.pilots.end(lease.id, 0, now, "its lifetime was over"))
        later(service, timedelta(minutes=30))
        await asyncio.sleep(0)
        assert (await service.sessions.get(session, ME)).phase is Phase.RUNNING
        await service.store.write(lambda tx: tx.pilots.end(lease.id, 1, now, "its lifetime was over"))
        over = await ended(service, lease.id)
        assert over.why == "its lifetime was over", "nobody shut it down"


async def test_nodes_on_which_no_pilot_reports_are_given_back(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        lease, _ = await running(service)
        later(service, timedelta(minutes=6))
        assert (await ended(service, lease.id)).why == "no pilot reported"


async def test_nodes_of_which_nothing_is_heard_any_more_are_given_back(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        lease, session = await running(service)
        now = service.now()
        await service.store.write(lambda tx: tx.pilots.claim(Pilot(lease.id, 0, now, "c0")))
        still = Slots(lease.id, 0, "c0", 4, 0, 0, 0, 0, now + timedelta(minutes=9), timedelta(seconds=5))
        service.silent = Heard([still], {})
        later(service, timedelta(minutes=9))
        eager = service.annexes.watch._listen
        await eager(lease, await service.sessions.get(session, ME), [Pilot(lease.id, 0, now, "c0")])
        assert not (await service.sessions.get(session, ME)).cancel_by  # it does not ask, but its slots are heard
        service.silent = Heard([], {})
        over = await ended(service, lease.id)
        assert over.why == "its nodes no longer report"


async def test_without_htcondor_nothing_is_recorded_and_the_remedy_is_told(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        service.stage = "absent"
        with pytest.raises(LeaseRefused) as refused:
            await made(service)
        assert refused.value.advice == "Possible: sublet annex setup --fetch."
        assert await service.annexes.registry.annexes(ME) == []


async def test_how_long_jobs_stay_with_a_lost_node_is_shown(tmp_path: Path) -> None:
    async with leasing(tmp_path, annex={"job_lease": "7m"}) as service:
        plan, _ = await service.annexes.plans.plan_lease("example", WantedLease(TWO), ME)
        assert [(row.field, row.value, row.source) for row in plan.rows[-2:]] == [
            ("access point", "your own", "what is here"),
            ("job lease", "7 min", "settings"),
        ]


async def test_a_lease_shrinks_by_the_nodes_that_are_given_back(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        lease, _ = await running(service, nodes=2)
        now = service.now()
        _, shrunk = await service.annexes.shrinking.give_back("example", [1], ME)
        assert (shrunk.id, shrunk.ended) == (lease.id, None)
        states = await service.annexes.status.annex_state("example", ME)
        assert [(node.state, node.why) for node in states.leases[0].nodes] == [("up", ""), ("ended", GIVEN_BACK)]
        with pytest.raises(NotFound, match="node 1"):
            await service.annexes.shrinking.give_back("example#1", [1], ME)
        with pytest.raises(BadRequest, match="all nodes"):
            await service.annexes.shrinking.give_back("example#1", [0], ME)
        await service.store.write(lambda tx: tx.pilots.claim(Pilot(lease.id, 2, now, "c2")))
        with pytest.raises(BadRequest, match="carries the others"):
            await service.annexes.shrinking.give_back("example#1", [0], ME)
        await service.annexes.leases.lease("example", WantedLease(Details()), ME, more=True)
        with pytest.raises(BadRequest, match="several leases"):
            await service.annexes.shrinking.give_back("example", [0], ME)


def test_a_lease_is_over_when_all_its_pilots_said_so_also_where_its_system_can_not_be_asked() -> None:
    now = datetime(2026, 11, 16, 12, tzinfo=UTC)
    minute = timedelta(minutes=1)
    gone = [Pilot("l", number, now, ended=now) for number in (0, 1)]
    assert all_gone(gone, 2, now + minute)
    assert not all_gone(gone, 2, now)
    assert not all_gone(gone, 3, now + minute)
    assert not all_gone([gone[0], replace(gone[1], ended=None)], 2, now + minute)
    assert not all_gone([], 1, now + minute)


def test_what_was_given_back_is_charged_until_then_only() -> None:
    began = datetime(2026, 11, 16, 12, tzinfo=UTC)
    hour = timedelta(hours=1)
    offer = Offer("cluster", "htcondor", began, began, hour, (), Shape(1, 0))
    session = Session("s", "o", "me", "x#1", "pilot", Phase.RUNNING, offer, began, began, began, started=began)
    back = Pilot("l", 1, began, ended=began + hour, why=GIVEN_BACK)
    assert average_time(session, [], 2, began + 3 * hour) == 3 * hour
    assert average_time(session, [back], 2, began + 3 * hour) == 2 * hour
    assert average_time(session, [replace(back, why="idle")], 2, began + 3 * hour) == 3 * hour
    assert average_time(replace(session, started=None), [], 2, began) == timedelta(0)


async def test_a_forgotten_session_leaves_what_is_known_of_its_lease(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        lease = await made(service)
        await service.annexes.leases.shutdown("example", ME)
        over = await ended(service, lease.id)
        await service.sessions.delete(over.session, ME)
        assert await service.annexes.leases.session_of(over) is None
        assert over.why in ("me shut it down", "It was cancelled by me.")  # its pilot's word, or its session's
