"""`run` asks, takes one offer, waits and gives back what it does not take; and what `import sublet` has."""

from __future__ import annotations

import asyncio
import inspect
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import sublet
from sublet import AsyncClient, Client, NoOffers, NotOverYet
from sublet.booking.documents import short
from sublet.booking.views.offers import ReasonView, RejectedView
from sublet.booking.views.quotes import QuoteView
from sublet.client.documents import STAY
from sublet.client.wishes import Wishes
from sublet.kernel.errors import BadRequest, CostsMoney, SubletError
from tests.canned import ID, NOW, Canned, Said, a_no, a_session, a_yes, an_end, an_offer

MONEY = "urn:ivoa:calycopis:cost:monetary"
DONE = a_session(phase="COMPLETED", end=an_end(code=0))
REJECT = "DELETE /v1/offersets/"
Serve = Callable[..., tuple[str, Canned]]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Makes a service that says these answers: its address, and what it heard."""
    with ExitStack() as stack:

        def made(*offers: Any, session: Any = DONE, **more: Said) -> tuple[str, Canned]:
            view = a_yes(*offers) if offers else a_no(ReasonView(kind="urn:x", field="cores", message="No room."))
            canned = Canned(
                {
                    "POST /v1/offersets": Said(view),
                    f"DELETE /v1/offersets/{view.id}": Said(RejectedView(offers=1)),
                    f"POST /v1/sessions/{ID}/accept": Said(a_session()),
                    f"GET /v1/sessions/{ID}": Said(session),
                    f"POST /v1/sessions/{ID}/fetched": Said(status=204),
                    **more,
                }
            )
            return stack.enter_context(canned.serving(tmp_path)), canned

        yield made


def calls(canned: Canned) -> list[str]:
    return [f"{heard.method} {heard.target.partition('?')[0]}" for heard in canned.heard]


def test_run_takes_the_earliest_offer_and_waits(serve: Serve) -> None:
    later = an_offer(id="77b1", start=NOW + timedelta(hours=1))
    url, canned = serve(later, an_offer())
    with Client(url) as client:
        session = client.run(run=["python", "-m", "sim"], cores=2, time=timedelta(minutes=10))
    assert (session.phase, session.exit_code) == ("COMPLETED", 0)
    assert f"POST /v1/sessions/{ID}/accept" in calls(canned)
    asked = json.loads(canned.heard[0].body)
    assert (asked["run"], asked["cores"], asked["time"]) == (["python", "-m", "sim"], 2, "600.000000s")


def test_run_takes_what_is_chosen_and_need_not_wait(serve: Serve) -> None:
    url, canned = serve(an_offer(id="77b1"), an_offer(start=NOW + timedelta(hours=1)))
    session = Client(url).run(choose=lambda offers: offers[-1], wait=False, run="true")
    assert session.id == ID
    assert f"GET /v1/sessions/{ID}" not in calls(canned)


def test_run_says_why_not(serve: Serve) -> None:
    url, _ = serve()
    with pytest.raises(NoOffers, match=r"No room\."):
        Client(url).run(run="true")


def test_run_gives_back_what_it_does_not_take(serve: Serve) -> None:
    url, canned = serve(an_offer())

    def undecided(_: sublet.Offers) -> sublet.Offer:
        raise LookupError("none of them will do")

    with pytest.raises(LookupError):
        Client(url).run(choose=undecided, run="true")
    assert calls(canned)[-1].startswith(REJECT)


def test_run_spends_no_money_unless_it_may(serve: Serve) -> None:
    price = QuoteView(type=MONEY, min=1.5, max=1.5, description="in EUR")
    url, canned = serve(an_offer(costs=(price,)))
    with pytest.raises(CostsMoney, match=r"1\.5 EUR"):
        Client(url).run(run="true")
    assert calls(canned)[-1].startswith(REJECT)
    assert Client(url).run(run="true", max_cost=2).phase == "COMPLETED"


def test_a_wait_that_was_too_short_is_a_timeout_error(serve: Serve) -> None:
    url, _ = serve(an_offer(), session=a_session(phase="RUNNING"))
    with pytest.raises(TimeoutError) as caught:
        Client(url).run(run="true", timeout=0)
    assert isinstance(caught.value, NotOverYet)
    assert isinstance(caught.value, SubletError)
    assert Client(url).session(caught.value.session).phase == "RUNNING", "it goes on, and is found by what was raised"
    assert caught.value.advice
    assert "RUNNING" in str(caught.value)


@pytest.mark.parametrize("timeout", ["10m", float("nan")])
def test_what_is_no_timeout_is_refused_before_anything_is_booked(serve: Serve, timeout: Any) -> None:
    url, canned = serve(an_offer())
    with pytest.raises(BadRequest, match=f"timeout: {timeout} is no number of seconds") as caught:
        Client(url).run(run="true", timeout=timeout)
    assert "timedelta(minutes=10)" in caught.value.advice
    with pytest.raises(BadRequest, match="no number of seconds"):
        asyncio.run(AsyncClient(url).run(run="true", timeout=timeout))
    assert canned.heard == []
    with pytest.raises(BadRequest, match="no number of seconds"):
        Client(url).session(ID).wait(timeout)


@pytest.mark.anyio
async def test_the_client_that_awaits_runs_likewise(serve: Serve) -> None:
    url, canned = serve(an_offer())
    async with AsyncClient(url) as client:
        session = await client.run(run="true", start=datetime(2027, 1, 4, 9, tzinfo=UTC))
        await session.fetched()
    assert session.phase == "COMPLETED"
    assert json.loads(canned.heard[0].body)["start"] == "2027-01-04T09:00:00+00:00"
    assert calls(canned)[-1] == f"POST /v1/sessions/{ID}/fetched"


def keys(canned: Canned) -> list[str]:
    return [f"{heard.method} {heard.headers.get('Idempotency-Key', '')}".strip() for heard in canned.heard]


def test_a_run_under_a_key_takes_what_was_taken_under_it_before(serve: Serve) -> None:
    url, canned = serve(an_offer(id="77b1", phase="REJECTED"), an_offer(phase="COMPLETED"))
    session = Client(url).run(
        run="true", key="mine-1", choose=lambda offers: pytest.fail(f"nothing to choose: {offers}")
    )
    assert (session.id, session.phase) == (ID, "COMPLETED")
    assert keys(canned)[0] == "POST mine-1"
    assert not [call for call in calls(canned) if call.endswith("/accept") or call.startswith(REJECT)]


def test_a_run_under_a_new_key_takes_an_offer_as_ever(serve: Serve) -> None:
    url, canned = serve(an_offer())
    assert Client(url).run(run="true", key="mine-2").phase == "COMPLETED"
    assert keys(canned)[:2] == ["POST mine-2", "POST"]


def test_whatever_starts_something_takes_a_key(serve: Serve) -> None:
    again = {f"POST /v1/sessions/{ID}/again": Said(a_yes(an_offer()))}
    url, canned = serve(an_offer(), **again)
    client = Client(url)
    client.ask(run="true", key="a")
    client.sweep("echo {a}", {"a": [1, 2]}, key="b")
    client.run(run="true", key="c")
    client.ask(run="true")[0].accept(key="d")
    client.session(ID).accept(key="e")
    client.session(ID).again(cores=2, key="f")
    sent = [heard.headers["Idempotency-Key"] for heard in canned.heard if "Idempotency-Key" in heard.headers]
    assert sent == ["a", "b", "c", "d", "e", "f"]
    assert "key" not in json.loads(canned.heard[0].body)


@pytest.mark.anyio
async def test_the_client_that_awaits_takes_keys_too(serve: Serve) -> None:
    again = {f"POST /v1/sessions/{ID}/again": Said(a_yes(an_offer()))}
    url, canned = serve(an_offer(phase="COMPLETED"), **again)
    async with AsyncClient(url) as client:
        await client.ask(run="true", key="a")
        await client.sweep("echo {a}", {"a": [1, 2]}, key="b")
        assert (await client.run(run="true", key="c")).phase == "COMPLETED"
        await (await client.ask(run="true"))[0].accept(key="d")
        session = await client.session(ID)
        await session.accept(key="e")
        await session.again(cores=2, key="f")
    sent = [
        value for heard in canned.heard for name, value in heard.headers.items() if name.lower() == "idempotency-key"
    ]
    assert sent == ["a", "b", "c", "d", "e", "f"]
    assert not [call for call in calls(canned) if call.startswith(REJECT)]


def test_a_key_that_says_nothing_is_refused_and_one_of_any_letters_is_sent(serve: Serve) -> None:
    url, canned = serve(an_offer())
    for empty in ("", "  "):
        with pytest.raises(BadRequest, match="key is empty"):
            Client(url).ask(run="true", key=empty)
    assert not canned.heard
    for key in ("Ночь 1", "Утро 1", "two\nlines"):
        Client(url).ask(run="true", key=key)
    assert len(set(keys(canned))) == 3
    assert all(line.isascii() for line in keys(canned))


def test_a_session_says_that_its_files_are_home(serve: Serve) -> None:
    url, canned = serve(an_offer())
    Client(url).session(ID).fetched()
    assert calls(canned)[-1] == f"POST /v1/sessions/{ID}/fetched"
    assert not hasattr(sublet.Offer, "fetched")


def test_every_word_of_the_short_form_is_a_keyword() -> None:
    words = set(Wishes.__annotations__)
    assert words - {STAY} == set(short._ONLY_SHORT | short._SHARED), "sublet/client/wishes.py lists them"
    for method in (Client.ask, Client.run, AsyncClient.ask, AsyncClient.run):
        assert words <= set(inspect.signature(method).parameters)


def test_what_there_is_can_be_listed_and_had() -> None:
    assert {"Client", "AsyncClient", "Session", "NoOffers", "errors", "__version__"} <= set(dir(sublet))
    assert all(getattr(sublet, name) for name in sublet.__all__)
    assert sublet.__version__[0].isdigit()
    with pytest.raises(AttributeError, match="no attribute 'Clinet'"):
        _ = sublet.Clinet  # type: ignore[attr-defined]


def test_importing_sublet_loads_nothing_of_it() -> None:
    program = "import sys, sublet; print([name for name in sys.modules if name.startswith('sublet.')])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"
