"""A cluster that nobody is signed in to: its offers say so, come last, and are never taken for anybody."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sublet.booking.asked import Asked
from sublet.kernel.errors import LoginNeeded
from sublet.service import Service
from tests.contract.services import ME, ask, serving
from tests.surveys import keep_survey

pytestmark = pytest.mark.anyio
MINE = {"kind": "slurm", "host": "cluster.invalid"}
SEEN = datetime.now(UTC) - timedelta(hours=3)


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """This machine, so to speak, and a cluster that was seen three hours ago."""
    keep_survey(tmp_path, "mine", SEEN)
    platforms = {"trial": {"kind": "memory", "cores": 4}, "mine": MINE}
    async with serving(tmp_path, loop=False, platforms=platforms) as service:
        yield service


async def read(service: Service, **short: object) -> Asked:
    return await service.asking.read(json.dumps({"run": ["true"], **short}).encode(), "application/json", ME)


async def test_its_offers_say_so_and_come_last(service: Service) -> None:
    offers = [one.offer for one in (await ask(service)).offers]
    assert [(one.platform, one.needs_login) for one in offers] == [("trial", False), ("mine", True)]


async def test_the_same_order_is_seen_later(service: Service) -> None:
    made = await ask(service)
    again = await service.asking.offerset(made.id, ME)
    assert [one.id for one in again.offers] == [one.id for one in made.offers]


async def test_what_is_asked_and_taken_at_once_goes_where_nobody_must_sign_in(service: Service) -> None:
    assert (await service.direct.run(ME, await read(service))).offer.platform == "trial"
    with pytest.raises(LoginNeeded, match="Only mine could run it") as raised:
        await service.direct.run(ME, await read(service, cores=8))
    assert raised.value.advice == "sublet system login mine"
    assert (await service.direct.run(ME, await read(service, cores=8, platform="mine"))).offer.platform == "mine"


async def test_a_no_of_it_says_when_that_was_seen(service: Service) -> None:
    [reason] = (await ask(service, cores=9, platform="mine")).reasons
    assert (reason.kind, reason.as_of) == ("urn:resource-limit", SEEN)


async def test_the_state_of_it_says_that_a_login_is_needed(service: Service) -> None:
    states = {state.name: state for state in await service.usable_platforms.states(ME)}
    assert (states["trial"].needs_login, states["mine"].needs_login) == (False, True)
    assert states["mine"].survey
    assert states["mine"].survey.as_of == SEEN
