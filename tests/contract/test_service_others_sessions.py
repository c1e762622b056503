"""A personal service and its guests: the owner is the operator, sees theirs, and reads them unless settings say no."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from sublet.app import open_service
from sublet.booking.model.phases import Phase
from sublet.kernel.errors import ContentsPrivate, NotFound, OperatorsOnly
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person
from sublet.service import Service
from tests.clocks import LateClock
from tests.contract.services import ME, ask, change_settings, in_phase, reach, serving
from tests.databases import put_database

pytestmark = pytest.mark.anyio
OWNER, BEN = Person("owner", operator=True), Person("ben", guest=True)


async def test_the_owner_lists_and_cancels_what_others_run_and_they_learn_why(tmp_path: Path) -> None:
    async with serving(tmp_path, platforms={"trial": {"kind": "memory", "takes": "1h"}}) as service:
        mine = await service.sessions.accept((await ask(service, time="2h")).offers[0].id, ME)
        await reach(service, mine.id, in_phase(Phase.RUNNING))
        for of in ("me", "*", "everyone"):
            assert [one.id for one in (await service.sessions.page(OWNER, of=of, active=True)).items] == [mine.id]
            if of != "me":
                with pytest.raises(OperatorsOnly):
                    await service.sessions.page(ME, of=of)
            with pytest.raises(OperatorsOnly):
                await service.sessions.page(BEN, of=of)
        assert (await service.sessions.page(OWNER)).items == ()
        with pytest.raises(NotFound, match="There is no person mi"):
            await service.sessions.page(OWNER, of="mi")
        for person, of in ((OWNER, "*"), (ME, "")):
            with pytest.raises(NotFound, match="There is no platform trail"):
                await service.sessions.page(person, of=of, platform="trail")
            with pytest.raises(NotFound, match="There is no kind comand"):
                await service.sessions.page(person, of=of, kind="comand")
            with pytest.raises(NotFound, match="There is no app sumna"):
                await service.sessions.page(person, of=of, app="sumna@2")
            with pytest.raises(NotFound, match="There is no annex exampel"):
                await service.sessions.page(person, of=of, annex="exampel")
            assert (await service.sessions.page(person, of=of, kind="bag")).items == ()
        assert b"trial" in (await service.output.output(mine.id, OWNER, "stdout")).data
        ended = await service.sessions.cancel(mine.id, OWNER, "I need\nthe machine")
        assert ended.end is not None
        assert (ended.end.by, ended.end.detail) == ("owner", "I need the machine")
        _, sentences = await service.explanations.explain(mine.id, ME)
        assert "It was cancelled by owner: I need the machine." in sentences
        events = {one.kind: one.detail for one in await service.events.events(ME, session=mine.id)}
        assert events["session.cancel-asked"] == "by owner: I need the machine"


async def test_an_offer_that_is_cancelled_says_by_whom(tmp_path: Path) -> None:
    async with serving(tmp_path, loop=False) as service:
        offer = (await ask(service)).offers[0]
        ended = await service.sessions.cancel(offer.id, OWNER, "closed")
        assert (ended.phase, ended.end and ended.end.detail, ended.ended is not None) == ("CANCELLED", "closed", True)


async def looks(service: Service) -> list[str]:
    found = await service.store.read(lambda tx: tx.audit.list(action="session.read"))
    return [one.action for one in found]


async def test_each_look_is_recorded_and_reading_on_is_the_same_look(tmp_path: Path) -> None:
    clock = LateClock()
    put_database(tmp_path / "sublet.db")
    async with open_service(Settings.load(tmp_path, platforms={"trial": {"kind": "memory"}}), now=clock) as service:
        mine = await service.sessions.accept((await ask(service)).offers[0].id, ME)
        for _ in range(3):
            await service.output.output(mine.id, OWNER, "stdout")
            await service.output.output(mine.id, ME, "stdout")
        assert await looks(service) == ["session.read"]
        await service.output.results(mine.id, OWNER)
        clock.later = timedelta(minutes=11)
        await service.output.output(mine.id, OWNER, "stdout")
        assert await looks(service) == ["session.read"] * 3
        change_settings(service, operators_read=False)
        with pytest.raises(ContentsPrivate, match="Only its owner, me, can read"):
            await service.output.output(mine.id, OWNER, "stdout")
        assert (await looks(service))[-1] == "session.read-refused"


async def test_the_way_into_an_interactive_session_is_its_owners(tmp_path: Path) -> None:
    async with serving(tmp_path, operators_read=False) as service:
        mine = await service.sessions.accept(
            (await ask(service, run=None, interactive="lab", time="1h")).offers[0].id, ME
        )
        own = await reach(service, mine.id, in_phase(Phase.AVAILABLE))
        assert "?token=" in own.connectors[0].location
        assert (await service.sessions.get(mine.id, OWNER)).connectors == ()
        [listed] = (await service.sessions.page(OWNER, of="me", active=True)).items
        assert listed.connectors == ()
        _, sentences = await service.explanations.explain(mine.id, OWNER)
        assert sentences[0] == "It is up and can be connected to."
        assert "token" not in " ".join(sentences)
