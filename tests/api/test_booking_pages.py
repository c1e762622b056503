"""The page of recurring bookings: one's own times, taken and given back."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest

from sublet.app import open_service
from sublet.booking.series import SeriesAsk
from sublet.kernel.settings import Settings
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
