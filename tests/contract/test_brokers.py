"""Another broker as a platform: offers through one and two levels, taken and given back, whatever goes wrong."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

from sublet.booking.cli.asking import describe_standing
from sublet.booking.model.brokers import BrokerAsk
from sublet.booking.model.offer import Booked, Predicted, Remote, find_first_terms
from sublet.booking.model.phases import Phase
from sublet.booking.model.series import SeatState
from sublet.booking.series import SeriesAsk
from sublet.booking.views.convert import offer_view
from sublet.kernel.errors import OfferGaveWay, SeriesHasNoRoom
from sublet.people.model.person import Person
from tests.api.test_pages import token_on
from tests.brokers import PATIENCE, RunningBroker, platforms_of, running_broker
from tests.contract.services import KEEP, ME, OTHER, ask, in_phase, over, reach
from tests.contract.stored import rows

pytestmark = pytest.mark.anyio
SOON = 5.0  # seconds: one is what it takes on a machine with nothing else to do
ACCEPT = {"kind": "uri:enum-value-update", "path": "phase", "value": "ACCEPTED"}
QUICK = {"takes": "0s"}
BOOKED: dict[str, Any] = {"slurm": {"kind": "memory", **QUICK}}
QUEUE: dict[str, Any] = {"queue": {"kind": "memory", "terms": "predicted", "waits": ["0s", "1s", "20m"], **QUICK}}


class Tree:
    """Two sites, an aggregator above them, and one above that."""

    def __init__(self, one: RunningBroker, two: RunningBroker, middle: RunningBroker, top: RunningBroker) -> None:
        self.one, self.two, self.middle, self.top = one, two, middle, top


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    """One loop for all tests of this file, which share the services."""
    return "asyncio"


@pytest.fixture
async def tree(standing_tree: Tree) -> AsyncIterator[Tree]:
    """The services, which hold nothing from one test to the next."""
    yield standing_tree
    for broker in (standing_tree.top, standing_tree.middle):
        await broker.service.offers.reject_all(ME)
    for broker in (standing_tree.middle, standing_tree.one, standing_tree.two):
        await broker.nothing_is_held()


@pytest.fixture(scope="module")
async def standing_tree(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Tree]:
    home = tmp_path_factory.mktemp("tree")
    async with AsyncExitStack() as stack:

        async def begin(name: str, **settings: Any) -> RunningBroker:
            return await stack.enter_async_context(running_broker(home / name, **settings))

        one = await begin("one", platforms=BOOKED)
        two = await begin("two", platforms=QUEUE)
        middle = await begin("middle", brokers={"cam": one, "man": two})
        top = await begin("top", brokers={"uksrc": middle}, platforms={"own": {"kind": "memory", **QUICK}})
        yield Tree(one, two, middle, top)


async def test_one_ask_gets_offers_of_all_brokers_ranked_with_where_they_come_from(tree: Tree) -> None:
    answer = await ask(tree.middle.service, cores=2, memory="2GiB", time="1h")
    assert set(platforms_of(answer)) == {"cam/slurm", "man/queue"}, answer.reasons
    assert platforms_of(answer)[0] == "cam/slurm", "what is held comes before a prediction"
    by_route = dict(zip(platforms_of(answer), answer.offers, strict=True))
    booked, predicted = by_route["cam/slurm"].offer, by_route["man/queue"].offer
    assert isinstance(booked.terms, Remote)
    assert isinstance(predicted.terms, Remote)
    assert (booked.terms.held, predicted.terms.held) == (True, False)
    assert isinstance(find_first_terms(booked.terms), Booked)
    spread = find_first_terms(predicted.terms)
    assert isinstance(spread, Predicted)
    assert spread.p90 - spread.p10 > timedelta(minutes=15)
    assert predicted.latest_start - predicted.start > timedelta(minutes=15), "the interval is passed on whole"
    assert booked.terms.url.startswith(tree.one.url)
    assert all(offer.expires < offer.offer.terms.expires for offer in answer.offers)  # type: ignore[union-attr]
    await tree.middle.service.offers.reject_set(answer.id, ME)
    await tree.one.nothing_is_held()
    await tree.two.nothing_is_held()


async def test_the_page_the_list_and_the_explanation_agree_on_what_other_brokers_hold(tree: Tree) -> None:
    service = tree.middle.service
    answer = await ask(service, cores=2, memory="2GiB", time="1h")
    views = sorted(map(offer_view, answer.offers), key=lambda view: not view.terms.is_held)
    assert describe_standing(views, service.now()).startswith("1 of them held until")
    async with tree.middle.client() as client:
        form = {"token": await token_on(client, "/web/login", "/web/login"), "secret": tree.middle.token}
        await client.post("/web/login", data=form)
        page = (await client.get(f"/web/offersets/{answer.id}")).text
        explained = [(await client.get(f"/v1/sessions/{each.id}/explain")).text for each in views]
    assert "1 of them is held for you until" in page
    assert [page.count(f"; {words}</dd>") for words in ("held there", "nothing is held")] == [1, 1]
    assert ('class="bar offer"' in page, 'class="bar predicted"' in page) == (True, True)
    assert ["It is held until" in text for text in explained] == [True, False]


async def test_what_is_accepted_three_levels_up_runs_at_the_bottom_and_all_else_is_given_back(tree: Tree) -> None:
    answer = await ask(tree.top.service, time="1h")
    assert set(platforms_of(answer)) == {"own", "uksrc/cam/slurm", "uksrc/man/queue"}, answer.reasons
    (chosen,) = [each for each in answer.offers if each.offer.platform == "uksrc" and _is_booked(each)][:1]
    session = await tree.top.service.sessions.accept(chosen.id, ME)
    ended = await over(tree.top.service, session.id)
    assert (ended.phase, ended.end and ended.end.code) == (Phase.COMPLETED, 0), ended
    (inner,) = (await tree.one.service.sessions.page(ME, phases=[Phase.COMPLETED], limit=1)).items
    assert inner.name == ended.name
    for broker in (tree.one, tree.two, tree.middle):
        await broker.nothing_is_held()


def _is_booked(session: Any) -> bool:
    return isinstance(find_first_terms(session.offer.terms), Booked)


async def test_a_session_is_cancelled_at_the_bottom_by_a_word_at_the_top(tree: Tree) -> None:
    answer = await ask(tree.top.service, time="1h", env={"SUBLET_PLAY_TAKES": "1h"}, platform="uksrc")
    chosen = next(each for each in answer.offers if _is_booked(each))
    session = await tree.top.service.sessions.accept(chosen.id, ME)
    await reach(tree.top.service, session.id, in_phase(Phase.RUNNING))
    ended = await tree.top.service.sessions.cancel(session.id, ME)
    assert (ended.phase, ended.end and ended.end.by) == (Phase.CANCELLED, ME.name)
    (inner,) = (await tree.one.service.sessions.page(ME, limit=1, phases=[Phase.CANCELLED])).items
    assert inner.phase is Phase.CANCELLED


async def test_what_it_prints_is_read_through_all_levels(tree: Tree) -> None:
    answer = await ask(tree.top.service, time="1h", platform="uksrc/cam")
    session = await tree.top.service.sessions.accept(answer.offers[0].id, ME)
    await over(tree.top.service, session.id)
    chunk = await tree.top.service.output.output(session.id, ME, "stdout")
    inner = (await tree.one.service.sessions.page(ME, limit=1)).items[0]
    assert chunk.data == (await tree.one.service.output.output(inner.id, ME, "stdout")).data
    size = await tree.top.service.platforms.of(session).output_size(session.id, "stdout")
    assert size == len(chunk.data) > 0


async def test_a_platform_behind_a_broker_can_be_named(tree: Tree) -> None:
    answer = await ask(tree.top.service, time="1h", platform="uksrc/man/queue")
    assert platforms_of(answer) == ["uksrc/man/queue"]
    refused = await ask(tree.top.service, time="1h", platform="uksrc/man/slurm")
    assert refused.result == "NO"
    assert any("man" in reason.platform for reason in refused.reasons)


async def test_accepting_one_frees_the_others_everywhere_within_a_second(tree: Tree) -> None:
    answer = await ask(tree.top.service, time="1h", env={"SUBLET_PLAY_TAKES": "1h"})
    chosen = next(each for each in answer.offers if each.offer.platform == "own")
    began = monotonic()
    session = await tree.top.service.sessions.accept(chosen.id, ME)
    for broker in (tree.middle, tree.one, tree.two):
        await broker.nothing_is_held()
    assert monotonic() - began < SOON
    await tree.top.service.sessions.cancel(session.id, ME)


async def test_a_request_does_not_run_in_circles(tmp_path: Path) -> None:
    async with (
        running_broker(tmp_path / "a", platforms=BOOKED) as first,
        running_broker(tmp_path / "b", brokers={"a": first}, platforms=BOOKED) as second,
    ):
        await first.service.brokers.add(Person(ME.name, operator=True), "b", second.url, second.token)
        answer = await ask(first.service, time="1h")
        assert sorted(set(platforms_of(answer))) == ["b/slurm", "slurm"], "each machine is offered once"
        assert [reason.platform for reason in answer.reasons if reason.kind == "urn:broker-loop"] == ["b/a"]
        assert len(await first.service.offers.open_offers(ME)) == 1, "the request that came back holds nothing"
        await first.service.offers.reject_all(ME)
        await second.nothing_is_held()


async def test_a_request_that_has_come_through_too_many_brokers_is_passed_on_no_further(tree: Tree) -> None:
    via = {"broker-via": ", ".join(f"broker-{number}" for number in range(8))}
    async with tree.top.client() as client:
        document = {"executable": {"kind": "command", "argv": ["true"]}}
        answer = (await client.post("/requests", json=document, headers=via)).json()
        assert {_values(offer)["platform"] for offer in answer["offers"]} == {"own"}
        assert "urn:broker-depth" in {message["kind"] for message in answer["meta"]["messages"]}
        wrong = await client.post("/requests", json=document, headers={"broker-via": "not an id!"})
        assert wrong.status_code == 400
        await client.delete(f"/v1/offersets/{answer['meta']['uuid']}")


def _values(offer: dict[str, Any]) -> dict[str, str]:
    (message,) = [each for each in offer["meta"]["messages"] if each["kind"] == "urn:sublet:terms"]
    values: dict[str, str] = message["values"]
    return values


async def test_a_prediction_never_looks_firm_through_any_number_of_brokers(tree: Tree) -> None:
    async with tree.top.client() as client:
        document = {"executable": {"kind": "command", "argv": ["true"]}}
        answer = (await client.post("/requests", json=document)).json()
        offers = {_values(offer)["route"]: offer for offer in answer["offers"] if "route" in _values(offer)}
        predicted, booked = offers["uksrc/man/queue"], offers["uksrc/cam/slurm"]
        values = _values(predicted)
        assert (values["terms"], values["inner-terms"], values["held"]) == ("remote", "predicted", "false")
        assert values["p10"] < values["p50"] < values["p90"]
        _, _, length = predicted["schedule"]["available"]["start"].partition("/")
        assert length not in ("", "PT0S"), "its start is an interval"
        assert "Nothing is held" in next(m["message"] for m in predicted["meta"]["messages"])
        assert (_values(booked)["inner-terms"], _values(booked)["held"]) == ("booked", "true")
        accepted = await client.post(f"/sessions/{predicted['meta']['uuid']}", json=ACCEPT)
        assert accepted.json()["phase"] != "OFFERED"
        assert accepted.json()["schedule"]["available"]["start"].partition("/")[2] != "PT0S", "also once it is taken"
        await client.post(f"/sessions/{predicted['meta']['uuid']}", json=ACCEPT | {"value": "CANCELLED"})


async def test_a_request_sent_again_under_its_key_asks_nobody_again(tree: Tree) -> None:
    async with tree.top.client() as client:
        document, key = {"executable": {"kind": "command", "argv": ["true"]}}, {"idempotency-key": "once"}
        first = (await client.post("/requests", json=document, headers=key)).json()
        held = await tree.one.open_offers()
        again = (await client.post("/requests", json=document, headers=key)).json()
        assert (again["meta"]["uuid"], await tree.one.open_offers()) == (first["meta"]["uuid"], held)
        await client.delete(f"/v1/offersets/{first['meta']['uuid']}")


async def test_what_was_asked_before_a_crash_is_given_back_after_it(tree: Tree) -> None:
    """What a service that is killed between the answer and its record leaves: the row that it wrote before asking."""
    middle, now = tree.middle.service, tree.middle.service.now()
    document = {"executable": {"kind": "command", "argv": ["true"]}}
    row = BrokerAsk("lost-key", "cam", ME.name, json.dumps(document), ("x",), now + timedelta(hours=1), now)
    await middle.store.write(lambda tx: tx.broker_calls.add_asks([row]))
    async with tree.one.client() as client:
        headers = {"idempotency-key": "lost-key", "content-type": "application/json"}
        await client.post("/requests", content=json.dumps(document), headers=headers)
    assert await tree.one.open_offers()
    await middle.store.write(lambda tx: tx.broker_calls.put_off_ask(row, now))
    await tree.one.nothing_is_held()
    async with asyncio.timeout(20):
        while rows(middle.settings.database_url, "SELECT key FROM broker_asks"):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_results_come_through_and_ways_in_lead_on(tree: Tree) -> None:
    answer = await ask(tree.top.service, run=None, interactive="lab", time="1h", platform="uksrc/cam")
    assert answer.offers, answer.reasons
    session = await tree.top.service.sessions.accept(answer.offers[0].id, ME)
    await reach(tree.top.service, session.id, in_phase(Phase.AVAILABLE))
    async with tree.top.client() as client:
        view = (await client.get(f"/v1/sessions/{session.id}")).json()
        (way,) = view["connectors"]
        there = await client.get(f"/connect/{session.id}/?token={way['location'].partition('token=')[2]}")
        assert (there.status_code, there.headers["location"].count("/connect/")) == (307, 1)
        assert session.id not in there.headers["location"], "it leads on to the other broker"
        assert (await client.get(f"/connect/{session.id}/?token=wrong")).status_code == 401
        assert (await client.get(f"/v1/sessions/{session.id}/results")).status_code == 200
    await tree.top.service.sessions.cancel(session.id, ME)


async def test_a_live_broker_keeps_the_promises_of_one(tree: Tree) -> None:
    findings = await tree.top.service.usable_platforms.check("uksrc")
    assert [(finding.rule, finding.detail) for finding in findings if not finding.ok] == []
    assert len(findings) == 3


async def _remove_cam(tree: Tree) -> None:
    """Pass nothing on to it directly any more, once it holds nothing."""
    await tree.top.service.offers.reject_all(ME)
    async with asyncio.timeout(20):
        while rows(tree.top.service.settings.database_url, "SELECT session FROM broker_offers"):  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    await tree.top.service.brokers.remove(Person(ME.name, operator=True), "cam")


async def test_a_broker_that_is_reached_by_two_ways_is_asked_and_offered_once(tree: Tree) -> None:
    operator = Person(ME.name, operator=True)
    alone = await ask(tree.top.service, time="1h", platform="uksrc/cam")
    held = await tree.one.open_offers()
    await tree.top.service.offers.reject_set(alone.id, ME)
    await tree.one.nothing_is_held()
    await tree.top.service.brokers.add(operator, "cam", tree.one.url, tree.one.token)
    try:
        answer = await ask(tree.top.service, time="1h")
        ways = {route for route in platforms_of(answer) if route.endswith("cam/slurm")}
        assert len(ways) == 1, answer.reasons
        assert set(platforms_of(answer)) == {"own", "uksrc/man/queue", *ways}
        assert await tree.one.open_offers() == held, "nor does it hold anything twice"
        assert "urn:broker-reached-twice" in {reason.kind for reason in answer.reasons}
    finally:
        await _remove_cam(tree)


async def test_a_broker_that_knows_the_asker_by_two_names_is_offered_by_the_shorter_way(tree: Tree) -> None:
    operator = Person(ME.name, operator=True)
    _, token = await tree.one.service.people.tokens.make_token(OTHER)
    await tree.top.service.brokers.add(operator, "cam", tree.one.url, token)
    try:
        answer = await ask(tree.top.service, time="1h")
        assert set(platforms_of(answer)) == {"own", "uksrc/man/queue", "cam/slurm"}, answer.reasons
        (reason,) = [reason for reason in answer.reasons if reason.kind == "urn:broker-reached-twice"]
        assert (reason.platform, "cam/slurm is offered by way of cam" in reason.message) == ("uksrc", True)
        await tree.one.nothing_is_held()  # for who was asked for by the longer way
    finally:
        await _remove_cam(tree)


async def test_ones_own_earlier_offers_give_way_at_another_broker_as_they_do_here(tmp_path: Path) -> None:
    small = {"slurm": {"kind": "memory", "nodes": 1, "cores": 1, **QUICK}}
    async with (
        running_broker(tmp_path / "site", platforms=small) as site,
        running_broker(tmp_path / "top", brokers={"cam": site}) as top,
    ):
        first, second = [(await ask(top.service, cores=1, time="1h")).offers[0] for _ in range(2)]
        assert second.offer.start - first.offer.start < timedelta(minutes=5), "it does not wait for the earlier offers"
        with pytest.raises(OfferGaveWay):
            await top.service.sessions.accept(first.id, ME)
        kept = await ask(top.service, ME, KEEP, cores=1, time="1h")
        assert kept.offers[0].offer.start - second.offer.start > timedelta(minutes=30), "unless they are to be kept"
        assert await site.open_offers() == 1 + len(kept.offers), "nothing else is held there"
        ended = await over(top.service, (await top.service.sessions.accept(second.id, ME)).id)
        assert ended.phase is Phase.COMPLETED


async def test_a_booking_that_comes_again_is_kept_by_another_broker_and_taken_whole(tree: Tree) -> None:
    bookings = tree.top.service.bookings

    async def list_there() -> list[Phase]:
        listed = await tree.one.service.sessions.page(ME, active=True, limit=100)
        return [session.phase for session in listed.items if session.name == "course"]

    request = {"run": ["true"], "name": "course", "platform": "uksrc/cam"}
    proposed = await bookings.propose(ME, SeriesAsk(every="daily 09:00-10:00 UTC", request=request, count=2))
    booked = await bookings.accept(proposed.id, ME)
    assert [seat.state for seat in booked.seats] == [SeatState.BOOKED] * 2
    async with asyncio.timeout(PATIENCE):
        while await list_there() != [Phase.WAITING] * 2:  # noqa: ASYNC110 - it is asked, and does not tell
            await asyncio.sleep(0.05)
    await bookings.cancel(booked.id, ME)
    async with asyncio.timeout(PATIENCE):
        while await list_there():  # noqa: ASYNC110 - it is asked, and does not tell
            await asyncio.sleep(0.05)
    queue = {**request, "platform": "uksrc/man"}
    for wrong in ({"request": queue}, {"request": request, "group": "lab"}):
        with pytest.raises(SeriesHasNoRoom, match="only predicts its starts"):
            await bookings.propose(ME, SeriesAsk(every="daily 09:00-10:00 UTC", count=1, **wrong))
