"""Platforms come and go while somebody looks at all of them: annexes, accounts and systems are taken up and let go."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sublet.errors import NotFound
from sublet.platforms.memory import MemoryPlatform
from sublet.platforms.port import Survey
from sublet.service.service import Service
from sublet.service.sweeping import sweep
from tests.contract.services import ME, ask, serving

pytestmark = pytest.mark.anyio
THREE = {name: {"kind": "memory"} for name in ("a", "b", "c")}


@pytest.fixture
async def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Service]:
    """While its platforms are surveyed, one of them goes and another one comes."""
    async with serving(tmp_path, loop=False, platforms=THREE) as service:
        service.surveys.clear()
        survey = MemoryPlatform.survey

        async def meanwhile(platform: MemoryPlatform) -> Survey:
            service.platforms_by_name.pop("b", None)
            if "d" not in service.platforms_by_name:
                service.platforms_by_name["d"] = MemoryPlatform(name="d")
            return await survey(platform)

        monkeypatch.setattr(MemoryPlatform, "survey", meanwhile)
        yield service


async def test_those_there_are_shown_while_others_come_and_go(service: Service) -> None:
    shown = {state.name: state.trouble for state in await service.platforms(ME)}
    assert shown == {"a": "", "b": "There is no platform b. There are: a, c, d.", "c": ""}
    assert [state.name for state in await service.platforms(ME)] == ["a", "c", "d"]


async def test_who_asks_meanwhile_gets_the_offers_of_those_that_stay(service: Service) -> None:
    answer = await ask(service)
    assert {session.offer.platform for session in answer.offers} == {"a", "c"}


async def test_what_is_gone_is_not_found(service: Service) -> None:
    await service.platforms(ME)
    for act in (service.survey("b"), service.platform("b", ME), sweep(service, "b")):
        with pytest.raises(NotFound, match="no platform b"):
            await act
