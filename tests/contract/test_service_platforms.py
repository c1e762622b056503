"""Platforms come and go while somebody looks at all of them: annexes, accounts and systems are taken up and let go."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sublet.app import build_loop
from sublet.booking.loop.sweeping import sweep
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import OfferSet
from sublet.booking.platforms.systems import directory_of
from sublet.kernel.errors import NotFound, PlatformBroken
from sublet.platforms.memory.platform import MemoryPlatform
from sublet.platforms.port import Survey
from sublet.platforms.slurm.platform import Slurm
from sublet.service import Service
from sublet.systems.own import Systems
from tests.contract.services import ME, ask, in_phase, reach, serving

pytestmark = pytest.mark.anyio
THREE = {name: {"kind": "memory"} for name in ("a", "b", "c")}


@pytest.fixture
async def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    """While its platforms are surveyed, one of them goes and another one comes."""
    async with serving(tmp_path, loop=False, platforms=THREE) as service:
        service.platforms.surveys.clear()
        survey = MemoryPlatform.survey

        async def meanwhile(platform: MemoryPlatform) -> Survey:
            service.platforms.by_name.pop("b", None)
            if "d" not in service.platforms.by_name:
                service.platforms.by_name["d"] = MemoryPlatform(name="d")
            return await survey(platform)

        monkeypatch.setattr(MemoryPlatform, "survey", meanwhile)
        yield service


async def test_those_there_are_shown_while_others_come_and_go(service: Service) -> None:
    shown = {state.name: state.trouble for state in await service.usable_platforms.states(ME)}
    assert shown == {"a": "", "b": "There is no platform b. There are: a, c, d.", "c": ""}
    assert [state.name for state in await service.usable_platforms.states(ME)] == ["a", "c", "d"]


async def test_who_asks_meanwhile_gets_the_offers_of_those_that_stay(service: Service) -> None:
    answer = await ask(service)
    assert {session.offer.platform for session in answer.offers} == {"a", "c"}


async def test_what_is_gone_is_not_found(service: Service) -> None:
    await service.usable_platforms.states(ME)
    for act in (
        service.platforms.survey("b"),
        service.usable_platforms.platform("b", ME),
        sweep(service.platforms, service.store, "b"),
    ):
        with pytest.raises(NotFound, match="no platform b"):
            await act


async def test_a_survey_of_what_was_replaced_meanwhile_is_not_kept(tmp_path: Path) -> None:
    async with serving(tmp_path, loop=False, platforms=THREE) as service:
        new = MemoryPlatform(name="a", cores=2)

        class Replaced(MemoryPlatform):
            async def survey(self) -> Survey:
                service.platforms.by_name["a"] = new
                return await super().survey()

        old = Replaced(name="a", cores=1)
        for platform in (old, new):
            await platform.open(tmp_path / "home" / "platforms" / "a")
        service.platforms.by_name["a"] = old
        service.platforms.surveys.clear()
        assert _cores(await service.platforms.survey("a")) == 1, "who asked for it then gets it"
        assert _cores(await service.platforms.survey("a")) == 2


async def test_a_new_platform_is_shown_when_it_is_open_and_one_that_can_not_be_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, loop=False, platforms=THREE) as service:
        opening = Slurm.open
        full = [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))]

        async def slowly(platform: Slurm, home: Path) -> None:
            assert "far" not in service.platforms.by_name
            if full:
                raise full.pop()
            await opening(platform, home)

        monkeypatch.setattr(Slurm, "open", slowly)
        Systems(str(directory_of(service.settings))).add("far", {"login": {"hosts": ["127.0.0.1"]}})
        await service.changes.refresh()
        shown = {state.name: state.trouble for state in await service.usable_platforms.states(ME)}
        assert "No space left" in shown["system far"]
        await service.changes.refresh()
        assert "far" in service.platforms.by_name
        assert "system far" not in service.platforms.broken


async def test_a_platform_that_can_not_be_loaded_is_no_unknown_one(tmp_path: Path) -> None:
    async with serving(tmp_path, loop=False, platforms={}) as service:
        service.platforms.broken["bad"] = "ModuleNotFoundError: No module named 'misspelt'"
        for look in (service.usable_platforms.check("bad"), service.usable_platforms.platform("bad", ME)):
            with pytest.raises(PlatformBroken, match=r"bad does not work: .*misspelt"):
                await look
        with pytest.raises(NotFound) as refused:
            await service.usable_platforms.check("other")
        assert refused.value.advice == "There are: none."


@pytest.mark.parametrize("way", ["ask", "explain", "show"])
async def test_a_system_that_was_added_a_moment_ago_is_known_before_the_loop_looks(tmp_path: Path, way: str) -> None:
    async with serving(tmp_path, loop=False, platforms=THREE) as service:
        Systems(str(directory_of(service.settings))).add("far", {"login": {"hosts": ["127.0.0.1"]}})
        if way == "show":
            assert (await service.usable_platforms.open_for("far", ME)).name == "far"
        elif way == "ask":
            reasons = (await ask(service, run=["true"], platform="far")).reasons
            assert [reason.message for reason in reasons if "There is no platform" in reason.message] == []
        else:
            asked = await service.asking.read(b'{"run": ["true"], "platform": "far"}', "application/json", ME)
            assert {finding.platform for finding in await service.ways.explain(ME, asked)} == {"far"}
        assert "far" in service.platforms.by_name


async def test_a_session_whose_platform_was_removed_says_so_and_goes_on_when_it_is_back(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms={"a": {"kind": "memory", "takes": "1h"}}) as service:
        made = await ask(service, time="2h")
        session = await service.sessions.accept(made.offers[0].id, ME)
        await reach(service, session.id, in_phase(Phase.RUNNING))
        removed = service.platforms.by_name.pop("a")
        assert "its platform a is missing at the moment" in (await service.sessions.get(session.id, ME)).condition
        await service.store.write(lambda tx: service.endings.cancel(tx, session.id, ME))
        service.platforms.by_name["a"] = removed
        await service.signals.announce()
        await reach(service, session.id, in_phase(Phase.CANCELLED))


async def test_what_is_claimed_again_before_its_last_step_is_put_away_stays_in_hand(tmp_path: Path) -> None:
    async with serving(tmp_path, loop=False) as service:
        loop = build_loop(service)
        first, second = (asyncio.create_task(asyncio.sleep(0)) for _ in range(2))
        await asyncio.gather(first, second)
        loop.tasks["s"] = second, "later"
        loop._end_step("s", "earlier", first)
        assert loop.tasks == {"s": (second, "later")}
        loop._end_step("s", "later", second)
        assert not loop.tasks


def _cores(survey: Survey) -> int:
    return sum(node.cores for node in survey.nodes)


@pytest.mark.parametrize("terms", ["booked", "predicted"])
async def test_what_a_platform_is_stated_to_perform_is_offered_and_compared(tmp_path: Path, terms: str) -> None:
    metrics = {"io-throughput": [500, 900], "compute-performance": 10}
    platforms = {"trial": {"kind": "memory", "terms": terms, "metrics": metrics}}
    async with serving(tmp_path, loop=False, platforms=platforms) as service:

        async def asking(least: float) -> OfferSet:
            limit = {"type": "urn:ivoa:calycopis:metric:io-throughput", "min": least}
            document = {"executable": {"kind": "command", "argv": ["true"]}, "compute": {"metrics": [limit]}}
            asked = await service.asking.read(json.dumps(document).encode(), "application/json", ME)
            return await service.asking.ask(ME, asked)

        enough = await asking(500)
        assert {(quote.type.rpartition(":")[2], quote.min, quote.max) for quote in enough.offers[0].offer.metrics} == {
            ("io-throughput", 500, 900),
            ("compute-performance", 10, 10),
        }
        too_little = await asking(501)
        assert [(reason.field, reason.nearest) for reason in too_little.reasons] == [("compute.metrics[0].min", "500")]


async def test_a_limit_on_costs_is_kept_by_platforms_that_answer_for_themselves(tmp_path: Path) -> None:
    platforms = {"queue": {"kind": "memory", "terms": "predicted"}}
    async with serving(tmp_path, loop=False, platforms=platforms) as service:
        for cost, result in (("monetary", "YES"), ("carbon", "NO")):
            limit = {"type": f"urn:ivoa:calycopis:cost:{cost}", "max": 0.5}
            document = {"executable": {"kind": "command", "argv": ["true"]}, "costs": [limit]}
            asked = await service.asking.read(json.dumps(document).encode(), "application/json", ME)
            found = await service.asking.ask(ME, asked)
            assert (found.result, [reason.field for reason in found.reasons]) == (
                result,
                [] if result == "YES" else ["costs[0].type"],
            )
