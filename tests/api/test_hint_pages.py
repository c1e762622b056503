"""Hints on the page of an answer: what is advised in words, and a button for each that asks like that."""

from __future__ import annotations

import re
from html import unescape

import httpx2
import pytest

from sublet.archive.model.habits import ENOUGH
from sublet.booking.model.run_time import Run
from sublet.people.model.person import Person
from sublet.service import Service
from sublet.store import Tx
from tests.api.test_pages import eve, token_in, token_on

pytestmark = pytest.mark.anyio
__all__ = ["eve"]


async def remember(service: Service, person: str) -> None:
    def work(tx: Tx) -> None:
        who = tx.archive.find_who(person)
        for _ in range(ENOUGH):
            tx.habits.add(who, "command sim.py", Run(60.0, 0.9, 100 << 20), service.now())

    await service.store.write(work)


async def ask(client: httpx2.AsyncClient) -> str:
    token = await token_on(client, "/web/ask", "/web/ask")
    document = "run: [python3, sim.py]\ncores: 2\nmemory: 1GiB\ntime: 2h\n"
    return (await client.post("/web/ask", data={"token": token, "document": document})).headers["location"]


async def test_a_hint_is_taken_by_its_button_and_its_offers_take_the_place_of_the_earlier(
    eve: httpx2.AsyncClient, service: Service
) -> None:
    await remember(service, "eve")
    where = await ask(eve)
    text = unescape((await eve.get(where)).text)
    assert f"1 min, by your last {ENOUGH} runs of sim.py; over by" in text
    assert [re.sub(r"<[^>]*>", "", line) for line in re.findall(r"[^.]* is enough\.", text)] == [
        " 128MiB is enough.",
        " 5 min is enough.",
        " 1 core is enough.",
    ]
    action = f"{where}/hints/2"
    answer = await eve.post(action, data={"token": token_in(text, action)})
    taken = answer.headers["location"]
    assert (answer.status_code, taken != where) == (303, True)
    made = await service.asking.offerset(taken.rpartition("/")[2], Person("eve"))
    assert (made.request.duration.total_seconds(), made.request.compute.cores.min) == (300, 2)
    assert "gave way" in (await eve.get(where)).text


async def test_a_hint_that_there_is_not_and_one_of_somebody_else_are_refused(
    eve: httpx2.AsyncClient, service: Service
) -> None:
    await remember(service, "eve")
    where = await ask(eve)
    token = token_in((await eve.get(where)).text, f"{where}/hints/1")
    assert (await eve.post(f"{where}/hints/9", data={"token": token})).status_code in (403, 404)
    assert (await eve.post(f"{where}/hints/1", data={"token": "0" * 64})).status_code == 403
