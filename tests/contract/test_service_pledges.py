"""Pledges: a part of a platform for people whom a rule lets, the rest for whoever may use it; never more than each."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sublet.access.audit import Sought
from sublet.access.pledge_caps import PledgeCaps
from sublet.app import open_service
from sublet.booking.loop.moving_up import move_up
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import OfferSet
from sublet.kernel.clock import utc_now
from sublet.kernel.errors import BadSettings, NoRoom, NotAllowed
from sublet.kernel.settings import Settings
from sublet.people.model.people import Group
from sublet.people.model.person import Person
from sublet.platforms.registry import load_platforms
from sublet.service import Service
from tests.contract.services import FIRM, KEEP, OPERATOR, allow, ask, in_phase, reach, serving
from tests.contract.stored import most_cores

pytestmark = pytest.mark.anyio
LOCAL, GUEST, OTHER = Person("lu@local.org"), Person("sam@srcnet.org"), Person("eve@nowhere.org")
PLEDGES = {"srcnet": {"cores": 500, "title": "The national contribution to SRCNet"}}
SITE = {"site": {"kind": "memory", "nodes": 20, "cores": 50, "memory": "100GiB", "takes": "10h", "pledges": PLEDGES}}
SMALL = {"site": {"kind": "memory", "nodes": 4, "cores": 8, "takes": "10h", "pledges": {"srcnet": {"cores": 16}}}}
NOW = {"start": "within 5m", "time": "1h"}


async def wish(service: Service, person: Person, nodes: int = 1, cores: int = 50, **short: Any) -> OfferSet:
    return await ask(service, person, run=None, image="docker://busybox", nodes=nodes, cores=cores, **short)


def drawn(found: OfferSet) -> list[tuple[str, ...]]:
    return [tuple(session.offer.pledge) for session in found.offers]


async def let_in(service: Service) -> None:
    """Those of the site use what is open and what is pledged; those of SRCNet what is pledged to them."""
    await allow(service, "*@local.org")
    await allow(service, "*@local.org", noun="pledge", name="srcnet")
    await allow(service, "*@srcnet.org", noun="pledge", name="srcnet")


async def test_of_a_thousand_cores_five_hundred_are_pledged(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway", platforms=SITE, loop=False) as service:
        await let_in(service)
        whole = await wish(service, LOCAL, 20, **NOW)
        assert drawn(whole) == [("srcnet", "open")]
        await service.sessions.accept(whole.offers[0].id, LOCAL)
        full = await wish(service, GUEST, 1, **NOW)
        assert full.result == "NO"
        assert "site (srcnet) has nothing free" in full.reasons[0].message
        assert full.reasons[0].nearest, "full until then"
        later = await wish(service, GUEST, 10, time="1h")
        assert drawn(later) == [("srcnet",)]
        tomorrow = (service.now() + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ/PT1M")
        day = {"start": tomorrow, "time": "1h"}
        too_much = await wish(service, GUEST, 11, **day)
        assert [reason.limit for reason in too_much.reasons] == ["500", ""]
        assert "500 cores of site are open. You may not use the system site: no rule allows it" in (
            too_much.reasons[1].message
        )
        for _ in range(2):
            half = await wish(service, LOCAL, 5, **day)
            assert set(drawn(half)) == {("open",)}, "what is open is taken before what is pledged"
            await service.sessions.accept(half.offers[0].id, LOCAL)
        assert (await wish(service, GUEST, 10, **day)).result == "YES", "and leaves that alone"
        assert (await wish(service, LOCAL, 1, **day)).result == "NO", "the rest is held for the guest"
        assert (await wish(service, OTHER, 1, **day)).reasons[0].kind == "urn:not-allowed"


async def test_whoever_draws_on_a_pledge_needs_a_rule_about_it_and_a_deny_wins(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway", platforms=SMALL, loop=False) as service:
        assert not (await allow(service, "*@local.org")).notes
        assert drawn(await wish(service, LOCAL, 2, 8, **NOW)) == [("open",)]
        [small, not_theirs] = (await wish(service, LOCAL, 3, 8, **NOW)).reasons
        assert (small.limit, not_theirs.kind) == ("16", "urn:not-allowed")
        assert not_theirs.nearest == "sublet access ask --pledge srcnet --reason TEXT"
        [chosen] = (await wish(service, LOCAL, 1, 8, pledge="srcnet")).reasons
        assert chosen.nearest == not_theirs.nearest
        [nothing] = (await wish(service, LOCAL, 1, 8, pledge="night")).reasons
        assert nothing.message == "site has no pledge night; it has: srcnet, open."
        asked = await service.access.requests.ask_access(LOCAL, "pledge", "srcnet", "for the survey")
        granted = await service.access.requests.grant_access(asked.request.id, OPERATOR)
        assert drawn(await wish(service, LOCAL, 1, 8, pledge="srcnet")) == [("srcnet",)]
        across = (await wish(service, LOCAL, 3, 8, time="1h")).offers[0]
        running = await service.sessions.accept(
            (await wish(service, LOCAL, 1, 8, pledge="srcnet", time="1h")).offers[0].id, LOCAL
        )
        lost = await service.access.rules.remove_rule(granted.request.rule, OPERATOR)
        assert [session.id for session in lost.running] == [running.id]
        with pytest.raises(NotAllowed, match="may not use the pledge srcnet"):
            await service.sessions.accept(across.id, LOCAL)
        with pytest.raises(NotAllowed):
            await service.sessions.extend(running.id, LOCAL, by="1h")
        refused = await service.access.audit.audit(OPERATOR, Sought(action="accept."))
        assert [(entry.noun, entry.name) for entry in refused] == [("pledge", "srcnet")]
        # Who is let in by a pledge alone sees the platform, and nothing of what is open.
        await allow(service, "*@srcnet.org", noun="pledge", name="src*")
        assert (await service.usable_platforms.platform("site", GUEST)).survey
        assert await service.access.quotas.find_refusal(GUEST, "system", "site") is None
        assert drawn(await wish(service, GUEST, 1, 8)) == [("srcnet",)]
        assert (await wish(service, GUEST, 1, 8, pledge="open")).reasons[0].kind == "urn:not-allowed"
        await allow(service, "sam@srcnet.org", effect="deny", note="left in May")
        assert (await wish(service, GUEST, 1, 8)).reasons[0].message.endswith("denies it (left in May).")
        assert await service.access.quotas.find_refusal(GUEST, "system", "site")


async def test_the_limits_of_a_pledge_hold_and_what_is_across_several_counts_by_their_sizes(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway", platforms=SMALL) as service:
        await allow(service, "*@local.org")
        await service.store.write(lambda tx: tx.groups.add(Group("lab", service.now())))
        await service.store.write(lambda tx: tx.groups.join("lab", LOCAL.name))
        await allow(service, "group:lab", noun="pledge", name="srcnet", cores=12, hours_month=20.0, jobs=2)
        [reason] = (await wish(service, LOCAL, 2, 8, pledge="srcnet", time="1h")).reasons
        assert (reason.limit, reason.field) == ("12 cores", "compute.cores.min")
        assert (
            max(
                session.offer.shape.cores * len(session.offer.nodes)
                for session in (await wish(service, LOCAL, pledge="srcnet", cores="1-8", nodes="1-4", time="1h")).offers
            )
            <= 12
        )
        across = await wish(service, LOCAL, 3, 8, time="1h")
        first = await service.sessions.accept(across.offers[0].id, LOCAL)
        assert tuple(first.offer.pledge) == ("srcnet", "open")
        [held] = [one for one in await service.access.rules.standing(LOCAL) if one.decision.noun == "pledge"]
        assert (held.use.jobs, held.use.hours) == (1, 12.0), "24 core-hours, half of them in each"
        [whole] = [one for one in await service.access.rules.standing(LOCAL) if one.decision.noun == "system"]
        assert whole.use.hours == 24.0
        with pytest.raises(NotAllowed, match="20 core-hours a month"):
            await service.sessions.extend(first.id, LOCAL, by="1h")
        longer = await service.sessions.extend(first.id, LOCAL, by="30m")
        assert longer.until
        await reach(service, first.id, in_phase(Phase.RUNNING, Phase.AVAILABLE), LOCAL)
        await service.sessions.cancel(first.id, LOCAL)
        [left] = [one for one in await service.access.rules.standing(LOCAL) if one.decision.noun == "pledge"]
        assert left.use.jobs == 0
        assert left.use.hours < 1.0


async def test_what_waits_for_its_pledge_moves_up_when_that_has_room_and_not_before(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms=SMALL) as service:
        me = Person("me")
        assert drawn(await ask(service, me, cores=8, nodes=4, **NOW)) == [("srcnet", "open")], "all is its owner's"
        await service.sessions.reject((await service.sessions.page(me, active=None)).items[0].id, me)
        long = await service.sessions.accept(
            (await ask(service, me, cores=8, nodes=2, time="2h", pledge="srcnet")).offers[0].id, me
        )
        await reach(service, long.id, in_phase(Phase.RUNNING))
        next_ = (await ask(service, me, cores=8, time="1h", pledge="srcnet")).offers[0]
        assert next_.offer.start >= (long.until or service.now()), "although half of the nodes are free"
        await service.sessions.accept(next_.id, me)
        waits = await reach(service, next_.id, in_phase(Phase.WAITING))
        await service.sessions.cancel(long.id, me)
        runs = await reach(service, waits.id, in_phase(Phase.RUNNING))
        assert runs.start
        assert waits.start
        assert runs.start < waits.start
        assert tuple(runs.offer.pledge) == ("srcnet",)


async def test_people_who_ask_and_accept_at_once_never_get_more_than_a_pledge_has(
    store_url: str, tmp_path: Path
) -> None:
    settings = [
        Settings.load(tmp_path / name, mode="gateway", platforms=SMALL, database=store_url) for name in ("one", "two")
    ]
    async with open_service(settings[0], loop=False) as one, open_service(settings[1], loop=False) as two:
        await let_in(one)
        await allow(one, "*@open.org")
        people = [Person("a@srcnet.org"), Person("b@open.org"), Person("c@local.org")]

        async def take(number: int) -> str:
            person, service = people[number % 3], (one, two)[number % 2]
            found = await wish(service, person, 1, 4, precedence=FIRM, **NOW)
            if found.offers:
                await (two, one)[number % 2].sessions.accept(found.offers[0].id, person)
            return person.name if found.offers else ""

        took = await asyncio.gather(*map(take, range(30)))
        most = most_cores(store_url, "site")
        assert most["pledge:srcnet"] <= 16
        assert most["pledge:open"] <= 16
        assert len([name for name in took if name]) == 8, "all that there is was taken, and no more"


async def test_what_was_booked_stays_when_a_pledge_becomes_smaller_and_nothing_stands_still(tmp_path: Path) -> None:
    me, other = Person("me"), {"site": {**SMALL["site"], "pledges": {"srcnet": {"cores": 4}, "day": {"cores": 12}}}}
    async with serving(tmp_path, platforms=SMALL) as service:
        found = [await ask(service, me, KEEP, cores=8, nodes=2, time="2h", pledge="srcnet") for _ in range(2)]
        first, second = [await service.sessions.accept(one.offers[0].id, me) for one in found]
        await reach(service, first.id, in_phase(Phase.RUNNING))
        await reach(service, second.id, in_phase(Phase.WAITING))
    async with serving(tmp_path, platforms=other) as service:
        assert (await ask(service, me, cores=4, pledge="srcnet", **NOW)).result == "NO", "more than it has is taken"
        held = await ask(service, me, cores=8, pledge="day", time="30m")
        await service.sessions.reject(held.offers[0].id, me)
        before = await service.sessions.get(second.id, me)
        await service.sessions.cancel(first.id, me)
        assert await service.store.write(lambda tx: move_up(tx, "site", service.now(), set())) == 0
        waits = await service.sessions.get(second.id, me)
        assert (waits.phase, waits.start) == (Phase.WAITING, before.start), "it has no place earlier, and keeps its own"
        assert (await ask(service, me, cores=4, pledge="srcnet", **NOW)).result == "YES"


def refused(**platform: Any) -> str:
    with pytest.raises(BadSettings) as caught:
        load_platforms({"site": {"kind": "memory", **platform}})
    return caught.value.message


def test_pledges_are_for_booked_terms_have_names_and_are_of_something() -> None:
    some = {"srcnet": {"cores": 4}}
    assert "another broker's platforms have no pledges" in refused(terms="remote", pledges=some)
    assert "called open" in refused(pledges={"open": {"cores": 4}})
    assert "pledges" in refused(pledges={"a b": {"cores": 4}})
    assert "pledges.srcnet.cores" in refused(pledges={"srcnet": {"cores": 0}})
    assert "say what is pledged" in refused(pledges={"srcnet": {"title": "nothing"}})
    assert "write days and hours" in refused(pledges={"srcnet": {"cores": 4, "when": "now and then"}})


async def test_on_a_shared_queue_a_pledge_caps_what_runs_under_it_at_once(tmp_path: Path) -> None:
    pledges = {"srcnet": {"cores": 100}}
    site = {"kind": "memory", "terms": "predicted", "nodes": 20, "cores": 50, "takes": "10h", "pledges": pledges}
    async with serving(tmp_path, mode="gateway", platforms={"site": site}, loop=False) as service:
        await allow(service, GUEST.name, noun="pledge", name="srcnet")
        await allow(service, LOCAL.name)
        offers = [(await wish(service, GUEST, cores=40, time="1h")).offers[0] for _ in range(3)]
        assert [tuple(offer.offer.pledge) for offer in offers] == [("srcnet",)] * 3
        done = await asyncio.gather(
            *(service.sessions.accept(offer.id, GUEST) for offer in offers), return_exceptions=True
        )
        [refused_] = [error for error in done if isinstance(error, NotAllowed)]
        assert refused_.message == "The pledge srcnet of site is 100 cores; 80 are in use, and this needs 40."
        found = await wish(service, GUEST, cores=40, time="1h")
        assert ("80 are in use" in str(found.reasons), found.offers) == (True, ())
        assert (await wish(service, GUEST, cores=20, time="1h")).offers
        assert drawn(await wish(service, LOCAL, cores=50, time="1h")) == [("open",)], "what is open has no cap"
        assert not (await wish(service, LOCAL, cores=1, time="1h", pledge="srcnet")).offers
        assert not (await wish(service, OTHER, cores=1, time="1h")).offers
        [part] = await service.access.pledges.pledges(OPERATOR)
        assert (part.name, part.cores, part.taken, part.free) == ("srcnet", 100, 80, 20)


async def test_on_a_shared_queue_memory_and_storage_are_capped_too(tmp_path: Path) -> None:
    pledges = {"srcnet": {"memory": "64GiB"}}
    site = {"kind": "memory", "terms": "predicted", "nodes": 20, "cores": 50, "memory": "96GiB", "pledges": pledges}
    async with serving(tmp_path, mode="gateway", platforms={"site": site | {"takes": "10h"}}, loop=False) as service:
        await allow(service, GUEST.name, noun="pledge", name="srcnet")
        offers = [(await wish(service, GUEST, cores=1, memory="40GiB", time="1h")).offers[0] for _ in range(2)]
        done = await asyncio.gather(
            *(service.sessions.accept(offer.id, GUEST) for offer in offers), return_exceptions=True
        )
        [refused_] = [error for error in done if isinstance(error, NotAllowed)]
        in_use = "The pledge srcnet of site is 64GiB of memory; 40GiB are in use, and this needs 40GiB."
        assert refused_.message == in_use
        reasons = (await wish(service, GUEST, cores=1, memory="40GiB", time="1h")).reasons
        [left] = [reason for reason in reasons if "srcnet" in reason.message]
        assert (left.nearest, left.field) == ("24GiB", "compute.memory.min")
        assert (await wish(service, GUEST, cores=1, memory="24GiB", time="1h")).offers


async def test_on_a_shared_queue_a_session_waits_for_the_hours_of_its_pledge_and_ends_in_them(tmp_path: Path) -> None:
    tomorrow = (utc_now() + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    pledges = {"night": {"cores": 100, "when": f"{tomorrow:%a} 02:00-08:00".lower()}}
    site = {"kind": "memory", "terms": "predicted", "nodes": 20, "cores": 50, "takes": "10h", "pledges": pledges}
    async with serving(tmp_path, mode="gateway", platforms={"site": site}, loop=False) as service:
        await allow(service, GUEST.name, noun="pledge", name="night")
        [offered] = (await wish(service, GUEST, cores=40, time="4h")).offers
        opens = tomorrow + timedelta(hours=2)
        assert (offered.offer.start, offered.offer.begin) == (opens, opens)
        assert offered.offer.latest_start == opens + timedelta(hours=2), "it is given up if it could not end in time"
        session = await service.sessions.accept(offered.id, GUEST)
        [caps] = [each for each in service.sessions.admissions if isinstance(each, PledgeCaps)]
        for hours, is_refused in ((6, False), (7, True)):
            longer = replace(session.offer, duration=timedelta(hours=hours))
            with pytest.raises(NotAllowed, match="has no hours") if is_refused else nullcontext():
                await service.store.read(partial(caps.admit_longer, session=session, offer=longer, now=utc_now()))
        assert not (await wish(service, GUEST, cores=1, time="7h")).offers, "longer than the hours"
        today = await wish(service, GUEST, cores=1, time="1h", start="within 10m")
        assert not today.offers, "sooner than the hours"
        [part] = await service.access.pledges.pledges(OPERATOR)
        assert part.when == f"{tomorrow:%a} 02:00-08:00 (UTC)".lower().replace("utc", "UTC")


async def test_gpus_are_pledged_for_certain_hours_and_open_at_all_others(tmp_path: Path) -> None:
    tomorrow = (utc_now() + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    day = f"{tomorrow:%a}".lower()
    ml = {"ml": {"gpus": 6, "when": f"{day} 12:00-18:00"}}
    platforms = {"site": {"kind": "memory", "nodes": 2, "cores": 8, "gpus": 4, "pledges": ml}}
    morning, noon = (f"{tomorrow + timedelta(hours=hour):%Y-%m-%dT%H:%M:%SZ}" for hour in (8, 13))
    async with serving(tmp_path, mode="gateway", platforms=platforms, loop=False) as service:
        await allow(service, GUEST.name, noun="pledge", name="ml")
        await allow(service, LOCAL.name)
        wanted: dict[str, Any] = {"nodes": 2, "cores": 1, "time": "1h"}
        assert not (await wish(service, LOCAL, **wanted, gpus=2, start=noon)).offers, "two of eight are open then"
        assert (await wish(service, LOCAL, **wanted, gpus=4, start=morning)).offers
        theirs = await wish(service, GUEST, **wanted, gpus=3, start=noon)
        assert drawn(theirs) == [("ml",)]
        session = await service.sessions.accept(theirs.offers[0].id, GUEST)
        assert not (await wish(service, GUEST, nodes=1, cores=1, time="1h", gpus=1, start=noon)).offers
        with pytest.raises(NoRoom):
            await service.sessions.extend(session.id, GUEST, by="6h")
        reason = (await wish(service, GUEST, **wanted, gpus=4, start=noon)).reasons[0]
        assert reason.message == "site (ml) has 6 GPUs in all; 8 were asked for."
        [part, rest] = await service.access.pledges.pledges(OPERATOR)
        assert (part.name, part.pledged.gpus, part.when) == ("ml", 6, f"{day} 12:00-18:00 (UTC)")
        assert rest.name == "open"


async def test_a_platform_that_has_less_than_was_pledged_says_so_and_sells_no_more_than_it_has(tmp_path: Path) -> None:
    pledges = {"srcnet": {"cores": 12}, "night": {"cores": 12}}
    platforms = {"site": {"kind": "memory", "nodes": 2, "cores": 8, "pledges": pledges}}
    async with serving(tmp_path, platforms=platforms, loop=False) as service:
        me = Person("me")
        survey = await service.platforms.survey("site")
        assert "24 cores are pledged, but there are 16 now" in survey.notes[-1]
        assert (await ask(service, me, cores=8, pledge="open")).result == "NO"
        assert (await ask(service, me, cores=6, nodes=2, pledge="srcnet", **NOW)).result == "YES"
        assert (await ask(service, me, KEEP, cores=3, nodes=2, pledge="night", **NOW)).result == "NO"
