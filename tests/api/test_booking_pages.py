"""The page of recurring bookings: one's own times, taken and given back."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from sublet.app import open_service
from sublet.booking.series import SeriesAsk
from sublet.kernel.settings import Settings
from sublet.people.model.people import Group
from sublet.people.model.person import Person
from sublet.service import Service
from tests.api.conftest import Callers
from tests.api.test_access_pages import signed_in
from tests.contract.services import allow

pytestmark = pytest.mark.anyio
ANN, EVE = "ann@example.org", "eve@example.net"


@pytest.fixture(scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    """A gateway on which someone holds a course."""
    home = tmp_path_factory.mktemp("home")
    async with open_service(
        Settings.load(home, mode="gateway", platforms={"x": {"kind": "memory"}}), loop=False
    ) as opened:
        await allow(opened)
        request = {"image": "docker.io/library/alpine:3.20", "run": ["true"], "name": "<b>course</b>"}
        await opened.bookings.propose(Person(ANN), SeriesAsk("mon 09:00-12:00 UTC", request, count=2))
        yield opened


async def test_a_course_is_taken_and_given_back_by_its_owner_alone(callers: Callers, service: Service) -> None:
    ann, eve = await signed_in(callers, service, ANN), await signed_in(callers, service, EVE)
    assert "course" not in (await eve.get("/web/bookings")).text
    shown = (await ann.get("/web/bookings")).text
    assert "&lt;b&gt;course" in shown
    assert shown.count("offered") == 3
    [id] = set(re.findall(r'action="/web/bookings/([0-9a-f-]+)/accept"', shown))

    async def press(change: str, **form: str) -> str:
        text = (await ann.get("/web/bookings")).text
        path = f"/web/bookings/{id}/{change}"
        found = re.search(rf'action="{path}".*?name="token" value="([^"]+)"', text, re.S)
        assert found
        answer = await ann.post(path, data={"token": found[1], **form}, follow_redirects=True)
        return answer.text

    assert (await press("accept")).count("booked") == 3
    assert "still to come are cancelled" in await press("cancel")
    assert ">mon 09:00-12:00 UTC, booked<" in (await ann.get("/web/bookings")).text


async def test_a_member_takes_a_seat_and_the_organiser_sees_whose_it_is(callers: Callers, service: Service) -> None:
    ann, eve = await signed_in(callers, service, ANN), await signed_in(callers, service, EVE)

    def enrol(tx: Any) -> None:
        tx.groups.add(Group("lab", datetime.now(UTC)))
        tx.groups.join("lab", EVE)

    await service.store.write(enrol)
    shown = {}
    for name in (ANN, EVE):
        _, secret = await service.people.tokens.make_token(Person(name))
        shown[name] = {"authorization": f"Bearer {secret}"}
    request = {"image": "docker.io/library/alpine:3.20", "run": ["true"], "name": "workshop"}
    asked = {"every": "tue 09:00-12:00 UTC", "request": request, "count": 1, "seats": 2, "group": "lab"}
    made = (await ann.post("/v1/bookings", json=asked, headers=shown[ANN])).json()
    assert (await ann.post(f"/v1/bookings/{made['id']}/accept", json={}, headers=shown[ANN])).json()[
        "state"
    ] == "booked"
    [shared] = (await eve.get("/v1/bookings", headers=shown[EVE])).json()["open"]
    assert (shared["organiser"], [seat["session"] for seat in shared["seats"]]) == (ANN, ["", ""])
    path = f"/web/bookings/{made['id']}"

    async def press(browser: Any, change: str) -> str:
        text = (await browser.get("/web/bookings")).text
        found = re.search(rf'action="{path}/{change}".*?name="token" value="([^"]+)"', text, re.S)
        assert found, text
        return str((await browser.post(f"{path}/{change}", data={"token": found[1]}, follow_redirects=True)).text)

    assert "Your seat:" in await press(eve, "claim")
    assert f"<td>{EVE}</td>" in (await ann.get("/web/bookings")).text
    assert await press(ann, "release")
    seats = (await ann.get(f"/v1/bookings/{made['id']}", headers=shown[ANN])).json()["seats"]
    assert [(seat["state"], seat["taker"]) for seat in seats] == [("booked", EVE), ("released", "")]
    assert (await eve.post(f"/v1/bookings/{made['id']}/release", json={}, headers=shown[EVE])).status_code == 404
