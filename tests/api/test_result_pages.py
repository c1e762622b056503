"""The page of a session's files: results are sent to storage from there, and how far that is, and by whom, is shown."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

from sublet.booking.model.phases import Phase
from sublet.booking.model.request import SentResults
from sublet.kernel.errors import BadRequest
from sublet.people.model.person import Person
from sublet.service import Service
from tests.api.conftest import Callers
from tests.api.test_access_pages import sent, signed_in
from tests.contract.services import ask, in_phase, reach

pytestmark = pytest.mark.anyio
OWNER = Person("owner")


@pytest.fixture(scope="module")
def platforms() -> dict[str, Any]:
    return {"here": {"kind": "local"}}


async def test_results_are_sent_from_their_page_which_tells_how_it_went(
    callers: Callers, service: Service, tmp_path: Path
) -> None:
    run = ["sh", "-c", "mkdir out; echo 1 >out/a.csv; echo 2 >out/b.csv; echo 3 >note.txt"]
    offers = await ask(service, OWNER, run=run, time="1m", platform="here")
    session = await service.sessions.accept(offers.offers[0].id, OWNER)
    await reach(service, session.id, in_phase(Phase.COMPLETED), OWNER)
    owner, base = await signed_in(callers, service, "owner"), f"/web/sessions/{session.id}"
    assert f"{base}/files#send" in (await owner.get(base)).text, "its own page leads there"

    async def send(**typed: str) -> httpx2.Response:
        return await sent(owner, f"{base}/files", f"{base}/send", **typed)

    wrong = await send(to="gopher://hole/", path="out")
    assert wrong.status_code == 400
    assert "Nothing here can send results to gopher: addresses" in wrong.text
    assert 'value="gopher://hole/"' in wrong.text, "what was typed stays"
    assert (await send(to=f"file://{tmp_path}/kept/", path="none*")).status_code == 404
    begun = await send(to=f"file://{tmp_path}/kept/", path="out/*.csv")
    assert (begun.status_code, begun.headers["location"]) == (303, f"{base}/files#send")
    assert "2 files were sent to" in await over(owner, base)
    assert sorted(file.name for file in (tmp_path / "kept").iterdir()) == ["a.csv", "b.csv"]
    assert (await send(to=f"file://{tmp_path}/kept/", path="out/*.csv")).status_code == 303
    assert "2 files were there already" in await over(owner, base)
    (tmp_path / "taken" / "note.txt").mkdir(parents=True)
    refused = await send(to=f"file://{tmp_path}/taken/", path="note.txt")
    assert "a folder has that name" in (refused.text if refused.status_code != 303 else await over(owner, base))


async def test_sending_goes_on_unseen_tells_how_far_it_is_and_can_be_stopped(
    callers: Callers, service: Service, tmp_path: Path
) -> None:
    offers = await ask(service, OWNER, run=["sh", "-c", "head -c 9M /dev/zero >big"], time="1m", platform="here")
    session = await service.sessions.accept(offers.offers[0].id, OWNER)
    await reach(service, session.id, in_phase(Phase.COMPLETED), OWNER)
    owner, base = await signed_in(callers, service, "owner"), f"/web/sessions/{session.id}"
    silent = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)  # it takes all, and says nothing
    port = silent.sockets[0].getsockname()[1]
    to = f"http://127.0.0.1:{port}/big?X-Amz-Signature=secret"
    assert (await sent(owner, f"{base}/files", f"{base}/send", to=to)).status_code == 303
    shown = (await owner.get(f"{base}/files")).text
    assert "Sending big (1 of 1) to http://127.0.0.1" in shown
    assert "secret" not in shown
    assert f'action="{base}/send"' not in shown, "one at a time"
    with pytest.raises(BadRequest, match="its results are being sent"):
        await service.sendings.start(session.id, OWNER, SentResults("*", to))
    assert (await sent(owner, f"{base}/files", f"{base}/send/stop")).status_code == 303
    assert "It was stopped" in (await owner.get(f"{base}/files")).text
    silent.close()


async def over(client: httpx2.AsyncClient, base: str) -> str:
    """The page, once nothing is being sent any more."""
    async with asyncio.timeout(30):
        while True:
            shown = (await client.get(f"{base}/files")).text
            if "Stop sending" not in shown:
                return shown
            await asyncio.sleep(0.05)
