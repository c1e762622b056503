"""What the clock and the operator's rules do to a request, seen over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
import pytest

from sublet.app import open_service
from sublet.kernel.settings import Settings
from sublet.server.app import make_app
from tests.api import documents
from tests.api.conftest import Callers
from tests.clocks import StillClock

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def someone(home: Path, clock: StillClock, **settings: Any) -> AsyncIterator[httpx2.AsyncClient]:
    """A person before a service that lives by this clock."""
    values = Settings.load(home, platforms={"memory": {"kind": "memory"}}, **settings)
    async with open_service(values, now=clock, loop=False) as service, AsyncExitStack() as stack:
        yield await Callers(make_app(service), service, stack).someone("ann")


async def test_an_expired_offer_can_not_be_accepted(tmp_path: Path) -> None:
    clock = StillClock(datetime.now(UTC))
    async with someone(tmp_path, clock) as ann:
        asked = await ann.post("/requests", json=documents.full())
        session = asked.json()["offers"][0]["meta"]["uuid"]
        clock.time += timedelta(minutes=6)
        answer = await ann.post(f"/sessions/{session}", json=documents.phase_update("ACCEPTED"))
        assert (answer.status_code, answer.json()["code"]) == (409, "offer-expired")
        assert answer.json()["hint"] == "Ask again."


async def test_a_machine_that_is_busy_names_its_next_free_time(tmp_path: Path) -> None:
    clock = StillClock(datetime.now(UTC))
    async with someone(tmp_path, clock) as ann:
        whole = {"run": ["true"], "cores": 16, "time": "10m"}
        first = (await ann.post("/v1/offersets", json=whole)).json()["offers"][0]
        assert (await ann.post(f"/v1/sessions/{first['id']}/accept")).status_code == 200
        soon = await ann.post("/v1/offersets", json=whole | {"start": "within 5m"})
        assert soon.json()["result"] == "NO"
        until = (await ann.get(f"/v1/sessions/{first['id']}")).json()["until"]
        assert until[:16] in str(soon.json()["reasons"])


async def test_the_operators_rules_refuse_and_cap(tmp_path: Path) -> None:
    rules = [
        {"field": "executable.image.locations", "pattern": "registry.example.org/*", "refuse": "not from there"},
        {"field": "compute.cores.max", "cap": 3},
    ]
    async with someone(tmp_path, StillClock(datetime.now(UTC)), rules=rules) as ann:
        refused = (await ann.post("/requests", json=documents.minimal())).json()
        assert refused["result"] == "NO"
        assert "not from there" in refused["meta"]["messages"][0]["message"]
        capped = (await ann.post("/v1/offersets", json={"run": ["true"], "cores": "2-8", "time": "1h"})).json()
        assert max(offer["cores"] for offer in capped["offers"]) == 3
        assert capped["notes"]
