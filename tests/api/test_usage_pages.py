"""The page of usage: one's own, or everybody's for an operator; with the accounts and their places."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from sublet.access.model.account import Account
from sublet.app import open_service
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import Session
from sublet.booking.model.shape import TotalAmounts
from sublet.kernel.settings import Settings
from sublet.people.model.people import Known, Role
from sublet.service import Service
from tests.api.conftest import Callers
from tests.api.test_access_pages import signed_in
from tests.contract.stored import HOUR, a_session, a_set, an_offer

pytestmark = pytest.mark.anyio
OP, ANNA, BOB = "op@example.org", "anna@example.org", "<b>bob</b>@example.org"


@pytest.fixture(scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    """A gateway on which two people have used something."""
    settings = Settings.load(tmp_path_factory.mktemp("home"), mode="gateway", platforms={"x": {"kind": "memory"}})
    async with open_service(settings, loop=False) as opened:
        now = opened.now()
        await opened.store.write(lambda tx: tx.people.add(Known(OP, Role.OPERATOR, now)))
        account = Account("keeling", "127.0.0.1", "u", port=9, description="for <i>all</i>", capacity=7)
        await opened.store.write(lambda tx: tx.accounts.add(account, "", now))
        for name in (ANNA, BOB):
            await _used(opened, name)
        yield opened


async def _used(service: Service, name: str) -> None:
    offers, now = a_set(name), service.now()
    session: Session = a_session(offers, an_offer(platform="keeling"))
    await service.store.write(lambda tx: (tx.offersets.add(offers), tx.sessions.add_offers([session])))
    await service.store.write(lambda tx: tx.uses.add(session, TotalAmounts(8, 0, 0, 2, HOUR), "", now))
    for phase in (Phase.ACCEPTED, Phase.WAITING, Phase.PREPARING, Phase.RUNNING, Phase.RELEASING, Phase.COMPLETED):
        times = {"started": now, "ended": now + HOUR} if phase is Phase.COMPLETED else {}
        await service.store.write(lambda tx, to=phase, t=times: tx.sessions.move(session.id, to, now=now, **t))


async def test_an_operator_sees_what_everybody_used_and_a_person_their_own(callers: Callers, service: Service) -> None:
    operator = await signed_in(callers, service, OP, operator=True)
    shown = (await operator.get("/web/usage")).text
    assert ANNA in shown
    assert "2 people in all" in shown
    assert "&lt;b&gt;bob" in shown
    assert "for &lt;i&gt;all" in shown
    assert "0 of 7" in shown
    only = (await operator.get("/web/usage", params={"person": ANNA.upper()})).text
    assert "bob" not in only
    wrong = await operator.get("/web/usage", params={"quarter": "soon"})
    assert wrong.status_code == 400
    assert "is no quarter" in wrong.text
    anna = await signed_in(callers, service, ANNA)
    page = (await anna.get("/web/usage", params={"person": BOB})).text
    assert ("bob" in page, "0 of 7" in page) == (False, False), "she may not use keeling any more"
    table = await anna.get("/web/usage/export")
    assert table.headers["content-disposition"] == 'attachment; filename="usage.csv"'
    assert table.text.splitlines()[1].split(",")[1:4] == ["keeling", ANNA, "1"]
