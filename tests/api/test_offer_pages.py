"""The page of offers: each is drawn and in the table, the first comes first, and held is said of holds alone."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import httpx2
import pytest

from sublet.people.model.person import Person
from sublet.service import Service
from tests.api.conftest import Callers
from tests.api.test_pages import token_on

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def platforms() -> dict[str, Any]:
    """One that holds what it offers, and a queue that others share."""
    waits = {"waits": ["10m", "30m", "2h"], "terms": "predicted"}
    return {
        "cluster": {"kind": "memory", "nodes": 40, "cores": 16, "memory": "16GiB", "takes": "0.1s"},
        "queue": {"kind": "memory", "nodes": 2, "cores": 16, "memory": "16GiB", **waits},
    }


@pytest.fixture
async def eve(callers: Callers, service: Service) -> httpx2.AsyncClient:
    """Someone who signed in to the pages with a token."""
    client = await callers.with_headers()
    _, secret = await service.people.tokens.make_token(Person("eve"))
    form = {"token": await token_on(client, "/web/login", "/web/login"), "secret": secret}
    assert (await client.post("/web/login", data=form)).status_code == 303
    return client


async def offers(eve: httpx2.AsyncClient, **fields: str) -> tuple[str, str]:
    """The page of the offers to a request, and what a reader sees of its head."""
    token = await token_on(eve, "/web/ask", "/web/ask")
    form = {"token": token, "what": "command", "script": "true", "cores": "1", "time": "30m", **fields}
    text = (await eve.get((await eve.post("/web/ask", data=form)).headers["location"])).text
    lead = " ".join(re.sub(r"<[^>]*>", " ", text.partition('<p class="lead">')[2].partition("</p>")[0]).split())
    return text, lead


async def test_of_a_shared_queue_nothing_is_called_held_and_its_bars_are_hatched(eve: httpx2.AsyncClient) -> None:
    text, lead = await offers(eve, platform="queue")
    assert lead.startswith("Nothing is held: the start depends on a queue that others share. You can accept until ")
    assert 'class="bar predicted"' in text
    assert 'class="bar offer"' not in text
    assert "held for you" not in text.lower()
    assert "predicted, nothing is held; likely to start between" in text
    session = re.findall(r'action="(/web/sessions/[0-9a-f-]+)/accept"', text)[0]
    assert "It can be accepted until" in (await eve.get(session)).text


async def test_where_some_are_held_the_page_says_how_many(eve: httpx2.AsyncClient) -> None:
    text, lead = await offers(eve, start="within 4h")
    held, predicted = text.count('class="card offer booked"'), text.count('class="card offer predicted"')
    assert held > 1
    assert predicted == 1
    assert lead.startswith(f"{held} of them are held for you until ")
    assert "For the other nothing is held" in lead


async def test_every_offer_is_in_the_picture_and_in_the_table_and_the_first_is_above_both(
    eve: httpx2.AsyncClient,
) -> None:
    text, _ = await offers(eve, cores="1-16", nodes="1-20", start="within 9h", platform="cluster")
    numbers = {int(number) for number in re.findall(r'id="offer-([0-9]+)"', text)}
    assert len(numbers) > 3
    table = text[text.index("The same as a table") :]
    for number in numbers:
        assert f'text-anchor="middle">{number}</text>' in text, number
        assert f"<td>Offer {number}:" in table, number
    assert text.index("/accept") < text.index('<svg class="calendar"')


async def test_the_page_the_api_and_the_sdk_say_the_same_of_each_way(
    eve: httpx2.AsyncClient, callers: Callers, service: Service
) -> None:
    before = await service.offers.open_offers(Person("eve"))
    token = await token_on(eve, "/web/ask", "/web/ask")
    shown = await eve.post("/web/ask", data={"token": token, "what": "notebook", "notebook": "data:,{}", "go": "ways"})
    rows = re.findall(r'<th scope="row">(.*?)</th><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td>', shown.text)
    said = await (await callers.someone("eve")).post("/v1/offersets/ways", json={"notebook": "data:,{}"})
    items = [each | {"possible": "yes" if each["possible"] else "no"} for each in said.json()["items"]]
    assert [tuple(map(unescape, row)) for row in rows] == [tuple(each.values()) for each in items]
    assert ("cluster", "kernel", "no", "it is not a Jupyter service") in rows
    assert await service.offers.open_offers(Person("eve")) == before, "nothing is held"
    typed = {"token": token, "document": "notebook: 'data:,{}'\n", "go": "ways"}
    assert (await eve.post("/web/ask", data=typed)).text.count('<th scope="row">') == len(rows)
    wrong = await eve.post("/web/ask", data=typed | {"document": "notebook: [1"})
    assert (wrong.status_code, 'name="document"' in wrong.text) == (400, True)
