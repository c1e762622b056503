"""The page of caches: what is kept, who needs it, and removing it, for the owner alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from sublet.app import open_service
from sublet.booking.model.phases import Phase
from sublet.kernel.settings import Settings
from sublet.people.model.people import Known, Role
from sublet.people.model.person import Person
from sublet.server.app import make_app
from sublet.service import Service
from tests.api.conftest import Callers
from tests.api.test_access_pages import sent, signed_in
from tests.api.test_pages import token_in
from tests.contract.services import ask, in_phase, reach
from tests.web_source import WebSource, serve_source

pytestmark = pytest.mark.anyio
OWNER = Person("owner")
REMOVE = "/web/caches/here/remove"


@pytest.fixture(scope="module")
def platforms() -> dict[str, Any]:
    return {"here": {"kind": "local", "cache": "1GiB"}, "trial": {"kind": "memory"}}


@pytest.fixture(scope="module")
def source() -> Iterator[WebSource]:
    with serve_source("127.0.0.1") as server:
        yield server


async def run(service: Service, address: str) -> str:
    offers = await ask(service, OWNER, run=["true"], data=address, time="1m", platform="here")
    session = await service.sessions.accept(offers.offers[0].id, OWNER)
    await reach(service, session.id, in_phase(Phase.COMPLETED), OWNER)
    return session.id


async def test_what_is_kept_is_shown_and_removed_once_that_was_confirmed(
    callers: Callers, service: Service, source: WebSource
) -> None:
    for name in ("cube", "sky"):
        await run(service, source.put(f"/{name}.fits", name.encode() * 2000))
    owner = await signed_in(callers, service, "owner")
    shown = (await owner.get("/web/caches")).text
    assert "1.0 GiB used" in shown or "1 GiB used" in shown, shown
    assert "trial" not in shown
    [report] = await service.caches.list(OWNER, "here")
    entry = next(each for each in report.entries if each.title.startswith("cube"))
    question = await sent(owner, "/web/caches", REMOVE, name=entry.digest)
    assert "Remove 1 entry" in question.text
    assert len((await service.caches.list(OWNER, "here"))[0].entries) == 2, "it was only asked"
    form = {"token": token_in(question.text, REMOVE), "name": entry.digest, "confirmed": "yes"}
    assert "1 entry" in (await owner.post(REMOVE, data=form)).text
    [report] = await service.caches.list(OWNER, "here")
    assert [each.title[:3] for each in report.entries] == ["sky"]
    kept = await sent(owner, "/web/caches", REMOVE, unused="3d")
    assert "Nothing to remove from here" in kept.text
    assert "Nothing to remove" not in (await sent(owner, "/web/caches", REMOVE)).text
    gone = await sent(owner, "/web/caches", REMOVE, name="data:nothing")
    assert gone.status_code == 404
    assert (await owner.post(REMOVE, data={"name": entry.digest, "confirmed": "yes"})).status_code >= 400, "no proof"


async def test_on_a_gateway_only_operators_look_into_caches(tmp_path: Path) -> None:
    settings = Settings.load(tmp_path, mode="gateway", platforms={"trial": {"kind": "memory"}})
    async with open_service(settings) as gateway, AsyncExitStack() as stack:
        callers = Callers(make_app(gateway, "owner"), gateway, stack)
        for name, role, code in (("op@example.org", Role.OPERATOR, 200), ("ann@example.org", Role.PERSON, 403)):
            known = Known(name, role, gateway.now())
            await gateway.store.write(lambda tx, known=known: tx.people.add(known))
            client = await signed_in(callers, gateway, name, operator=role is Role.OPERATOR)
            assert (await client.get("/web/caches")).status_code == code
            assert ('href="/web/caches"' in (await client.get("/web/uploads")).text) is (code == 200)
