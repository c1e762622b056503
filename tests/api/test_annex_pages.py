"""The pages of annexes: shown live, changed by forms of our own, and each person's own."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2
import pytest

from sublet.annexes.lease_plans import WantedLease
from sublet.annexes.model.annex import Pilot
from sublet.annexes.model.jobs import QueuedJob
from sublet.annexes.model.lease_state import JobCounts, Slots
from sublet.annexes.status import Heard
from sublet.booking.model.phases import Phase
from sublet.people.model.person import Person
from tests.api.conftest import Callers
from tests.api.test_pages import token_in, token_on
from tests.contract.leases import TWO, PlayedService, ended, lease_when, leasing
from tests.contract.services import in_phase, reach

pytestmark = pytest.mark.anyio
EVE = Person("eve")


@pytest.fixture(scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PlayedService]:
    async with leasing(tmp_path_factory.mktemp("home")) as opened:
        yield opened


@pytest.fixture
async def eve(callers: Callers, service: PlayedService) -> httpx2.AsyncClient:
    """Someone who signed in to the pages with a token."""
    client = await callers.with_headers()
    _, secret = await service.people.tokens.make_token(EVE)
    form = {"token": await token_on(client, "/web/login", "/web/login"), "secret": secret}
    assert (await client.post("/web/login", data=form)).status_code == 303
    return client


async def test_annexes_leases_and_nodes_are_shown_and_changed(eve: httpx2.AsyncClient, service: PlayedService) -> None:
    assert "There are no annexes yet" in (await eve.get("/web/annexes")).text
    annex, lease, _ = await service.annexes.leases.lease("bold", WantedLease(TWO), EVE, more=False)
    now = service.now()
    await service.store.write(lambda tx: tx.pilots.claim(Pilot(lease.id, 0, now, "c<1>")))
    slots = Slots(lease.id, 0, "c1", 4, 3, 3, 8 << 30, 0, now, TWO.lifetime or now - now)
    service.silent = Heard([slots], {annex.id: JobCounts(idle=5, running=3)})
    listed = (await eve.get("/web/annexes")).text
    assert all(words in listed for words in ("bold", "3 of 4", "3 run, 5 wait", 'aria-current="page">Annexes'))
    shown = (await eve.get("/web/annexes/bold")).text
    assert all(words in shown for words in ("bold#1", "c&lt;1&gt;", "3 of 4", "8 GiB", "your jobs that name it"))
    for change, words in (("open", "For all your jobs."), ("close", "For your jobs that name it.")):
        action = f"/web/annexes/bold/{change}"
        form = {"token": await token_on(eve, "/web/annexes/bold", action)}
        assert (await eve.post(action, data=form)).status_code == 303
        assert words in (await eve.get("/web/annexes/bold")).text
    end = "/web/annexes/bold/shutdown"
    forged = await eve.post(end, data={"token": "0" * 64, "lease": "1"})
    assert forged.status_code == 403
    form = {"token": await token_on(eve, "/web/annexes/bold", end), "lease": "1"}
    service.queued = [QueuedJob("7.0", "running", "flood<1>", annex.id), QueuedJob("7.1", "idle", "later", annex.id)]
    question = await eve.post(end, data=form)
    assert question.status_code == 200
    said = ("End bold#1?", "3 jobs run on it now: 3 on c&lt;1&gt;.", "flood&lt;1&gt;", 'name="lease" value="1"')
    assert all(words in question.text for words in said)
    assert "later" not in question.text
    assert "It has no lease now" not in (await eve.get("/web/annexes/bold")).text  # nothing has ended yet
    form = {"token": token_in(question.text, end), "lease": "1", "confirmed": "yes"}
    assert (await eve.post(end, data=form)).status_code == 303
    await ended(service, lease.id)
    after = (await eve.get("/web/annexes/bold")).text
    assert "It has no lease now" in after
    assert "It was cancelled by eve." in after or "eve shut it down" in after  # its session's word, or its pilot's
    assert (await eve.post("/web/annexes/bold/explode", data=form)).status_code == 404


async def test_what_can_not_be_done_is_said_on_the_page(eve: httpx2.AsyncClient, service: PlayedService) -> None:
    await service.annexes.leases.lease("busy", WantedLease(TWO), EVE, more=False)
    text = (await eve.get("/web/annexes/busy")).text
    change = "cancel" if "/web/annexes/busy/cancel" in text else "shutdown"
    form = {"token": token_in(text, f"/web/annexes/busy/{change}"), "lease": "9"}
    refused = await eve.post(f"/web/annexes/busy/{change}", data=form)
    assert (refused.status_code, "There is no lease busy#9." in refused.text) == (404, True)
    assert (await eve.get("/web/annexes/nobodys")).status_code == 404


async def test_cancelling_the_session_of_a_lease_asks_about_its_jobs_too(
    eve: httpx2.AsyncClient, service: PlayedService
) -> None:
    _, lease, _ = await service.annexes.leases.lease("asked", WantedLease(TWO), EVE, more=False)
    session = (await lease_when(service, lease.id, lambda one: bool(one.session))).session
    await reach(service, session, in_phase(Phase.RUNNING), person=EVE)
    path = f"/web/sessions/{session}/cancel"
    question = await eve.post(path, data={"token": await token_on(eve, f"/web/sessions/{session}", path)})
    assert (question.status_code, "End asked#1?" in question.text) == (200, True)
    assert (await service.sessions.get(session, EVE)).phase is Phase.RUNNING
    done = await eve.post(path, data={"token": token_in(question.text, path), "confirmed": "yes"})
    assert (done.status_code, done.headers["location"]) == (303, f"/web/sessions/{session}")
    await ended(service, lease.id)
