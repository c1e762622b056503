"""Brokers that are no Sublet, and brokers that are slow, dead or lie: each costs its own answer only."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from sublet.booking.model.brokers import BrokerOffer
from sublet.booking.model.offer import Remote
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import EndKind, OfferSet
from sublet.booking.ways import WayFinding
from sublet.kernel.data_urls import MOST, DataUrl, read_data_url
from sublet.kernel.errors import BadSettings, NoOffers
from sublet.people.model.person import Person
from sublet.service import Service
from tests.brokers import listening
from tests.contract.services import ME, OTHER, ask, in_phase, over, reach, serving
from tests.contract.stored import rows
from tests.foreign_broker import KINDS, Document, ForeignBroker

pytestmark = pytest.mark.anyio
LIMIT = timedelta(seconds=2)
OPERATOR = Person(ME.name, operator=True)
SOME_DAY = datetime(2030, 1, 1, tzinfo=UTC)
LATE = 30.0  # seconds: far beyond the limit


@asynccontextmanager
async def above(
    home: Path, *brokers: ForeignBroker, dead: bool = False, **settings: Any
) -> AsyncIterator[tuple[Service, list[ForeignBroker]]]:
    """A service that passes requests on to these, and has a platform of its own."""
    async with AsyncExitStack() as stack:
        urls = [await stack.enter_async_context(listening(broker.app)) for broker in brokers]
        settings = {"answer_within": LIMIT, **settings}
        service = await stack.enter_async_context(serving(home, **settings))
        for number, url in enumerate([*urls, *(["http://127.0.0.1:9"] if dead else [])]):
            await service.brokers.add(OPERATOR, f"far{number}", url)
        yield service, list(brokers)


def by_platform(answer: OfferSet) -> dict[str, int]:
    names = [offer.offer.platform for offer in answer.offers]
    return {name: names.count(name) for name in names}


async def wait_until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not is_so():  # noqa: ASYNC110 - it does not tell
            await asyncio.sleep(0.02)


async def test_a_broker_of_ivoa_is_asked_taken_looked_at_and_cancelled(tmp_path: Path) -> None:
    async with above(tmp_path, ForeignBroker()) as (service, (far,)):
        answer = await ask(service, platform="far0")
        assert by_platform(answer) == {"far0": 2}, answer.reasons
        offer = answer.offers[0].offer
        assert (offer.shape.cores, offer.shape.memory >> 30) == (4, 8)
        assert offer.latest_start - offer.start == timedelta(minutes=30)
        assert isinstance(offer.terms, Remote)
        assert (offer.terms.inner, offer.terms.held) == (None, False), "what it does not say is not made up"
        assert "elsewhere.invalid" not in offer.terms.url, "its addresses are made here, not taken from its answer"
        session = await service.sessions.accept(answer.offers[0].id, ME)
        assert session.job
        await wait_until(lambda: far.phases() == ["ACCEPTED", "REJECTED"])
        far.sessions[offer.terms.url.rpartition("/")[2]]["phase"] = "RUNNING"
        await reach(service, session.id, in_phase(Phase.RUNNING))
        ended = await service.sessions.cancel(session.id, ME, "enough")
        assert (ended.phase, far.phases()) == (Phase.CANCELLED, ["CANCELLED", "REJECTED"])


async def test_a_broker_of_an_older_schema_is_understood_and_written_to_in_its_own_words(tmp_path: Path) -> None:
    async with above(tmp_path, ForeignBroker(is_older=True)) as (service, (far,)):
        answer = await ask(service, platform="far0", name="sums")
        assert by_platform(answer) == {"far0": 2}, answer.reasons
        _, document = far.asked[0]
        assert document["executable"]["type"].endswith("executable:command")
        assert (document["executable"]["name"], "kind" in document["executable"]) == ("sums", False)
        assert document["compute"]["type"].endswith("/types/compute/simple-compute-resource-1.0")
        session = await service.sessions.accept(answer.offers[0].id, ME)
        assert {"update": {"type": "uri:enum-value-update", "path": "phase", "value": "ACCEPTED"}} in far.updates
        await reach(service, session.id, in_phase(Phase.RUNNING, Phase.AVAILABLE))


async def test_kinds_and_fields_that_nobody_here_knows_are_passed_on_as_they_are(tmp_path: Path) -> None:
    request = {
        "executable": {"kind": f"{KINDS}/executable/zeppelin.yaml", "flags": [{"mode": "readwrite"}]},
        "compute": {"kind": "urn:quantum:qpu", "qubits": {"min": 5}},
        "data": [{"kind": "urn:tape:reel", "reel": 7}],
        "tint": {"blue": 1.5},
    }
    async with above(tmp_path, ForeignBroker()) as (service, (far,)):
        asked = await service.asking.read(json.dumps(request).encode(), "application/json", ME)
        answer = await service.asking.ask(ME, asked)
        assert by_platform(answer) == {"far0": 2}, answer.reasons
        assert far.asked[0][1] == request
        assert any(reason.kind == "urn:unknown-kind" for reason in answer.reasons), "this machine says why it can't"
        terms = answer.offers[0].offer.terms
        assert isinstance(terms, Remote)
        assert terms.components["executable"] == {"kind": "urn:elsewhere:executable", "note": "as it came"}
        session = await service.sessions.accept(answer.offers[0].id, ME)
        assert (session.kind, bool(session.job)) == ("zeppelin", True)


async def test_what_the_rules_refuse_or_cannot_read_is_not_passed_on(tmp_path: Path) -> None:
    rules = [{"field": "compute.cores.max", "cap": 2}, {"field": "executable.argv", "pattern": "rm"}]
    async with above(tmp_path, ForeignBroker(), rules=rules) as (service, (far,)):
        assert (await ask(service, run=["rm", "x"])).result == "NO"
        unknown = {"executable": {"kind": "command", "argv": ["x"]}, "compute": {"kind": "urn:quantum:qpu"}}
        asked = await service.asking.read(json.dumps(unknown).encode(), "application/json", ME)
        await service.asking.ask(ME, replace(asked))
        capped = await ask(service, cores="1-8")
        assert len(far.asked) <= 2
        assert far.asked[-1][1]["compute"]["cores"] == {"min": 1, "max": 2}, capped.reasons


async def test_a_slow_and_a_dead_broker_cost_their_own_answers_only(tmp_path: Path) -> None:
    slow = ForeignBroker(delay=LATE)
    async with above(tmp_path, ForeignBroker(), slow, dead=True) as (service, _):
        began = monotonic()
        answer = await ask(service)
        took = monotonic() - began
        assert {"far0", "trial"} == set(by_platform(answer))
        assert took < LATE / 3
        whys = {reason.platform: reason.kind for reason in answer.reasons}
        assert (whys["far1"], whys["far2"]) == ("urn:platform-timed-out", "urn:platform-unreachable")
        within = float(slow.asked[0][0]["prefer"].removeprefix("wait="))
        assert 0 < within < LIMIT.total_seconds(), "who is below has less time than we have"


LIES: dict[str, Callable[[Document], Any]] = {
    "less than was asked for": lambda offer: offer | {"compute": {"cores": {"min": 1}, "memory": {"min": 1}}},
    "it lasts": lambda offer: (
        offer | {"schedule": {"available": {"start": "2030-01-01T00:00:00Z", "duration": "PT1M"}}}
    ),
    "expired": lambda offer: offer | {"expires": "2001-01-01T00:00:00Z"},
    "until when": lambda offer: {name: value for name, value in offer.items() if name != "expires"},
    "its phase is": lambda offer: offer | {"phase": "RUNNING"},
    "its uuid": lambda offer: offer | {"meta": {"uuid": "../../admin"}},
    "its start can't be read": lambda offer: offer | {"schedule": {"available": {"start": "soon/later"}}},
    "its cores can't be read": lambda offer: offer | {"compute": {"cores": {"min": "many"}}},
    "percentiles": lambda offer: offer | _terms(terms="predicted", p10="2030-01-02T00:00:00Z"),
}


def _terms(**values: str) -> Document:
    times = {"p10": "2030-01-01T00:00:00Z", "p50": "2030-01-01T00:00:00Z", "p90": "2030-01-01T00:00:00Z"}
    message = {"kind": "urn:sublet:terms", "values": {**times, **values}}
    return {"meta": {"uuid": "6f9619ff-8b86-4d01-b42d-00cf4fc964ff", "messages": [message]}}


async def test_lies_are_no_offers_and_are_named(tmp_path: Path) -> None:
    far = ForeignBroker()
    async with above(tmp_path, far) as (service, _):
        for words, lie in LIES.items():
            far.change = lie
            answer = await ask(service, cores=4, memory="8GiB", time="2h")
            assert set(by_platform(answer)) == {"trial"}, words
            about = [reason.message for reason in answer.reasons if reason.platform == "far0"]
            assert any(words in message for message in about), (words, about)


ODD: dict[str, Callable[[], Response]] = {
    "platform-broken": lambda: Response(b"<html>", media_type="text/html"),
    "platform-unreachable": lambda: JSONResponse({"detail": "on fire"}, 503),
    "broker-refused": lambda: JSONResponse({"detail": "no such image"}, 400),
    "login-needed": lambda: JSONResponse({}, 401),
    "not-supported": lambda: JSONResponse({"result": "NO"}),
}


async def test_odd_answers_are_reasons(tmp_path: Path) -> None:
    far = ForeignBroker()
    async with above(tmp_path, far) as (service, _):
        for kind, far.answer in ODD.items():
            answer = await ask(service)
            assert set(by_platform(answer)) == {"trial"}
            assert f"urn:{kind}" in {reason.kind for reason in answer.reasons if reason.platform == "far0"}, kind
        far.answer = lambda: Response(b"[" + b"1," * (5 << 20) + b"1]", media_type="application/json")
        answer = await ask(service)
        assert any("MiB" in reason.message for reason in answer.reasons if reason.platform == "far0")


async def test_an_answer_that_is_an_address_alone_is_fetched_from_that_broker_and_nowhere_else(tmp_path: Path) -> None:
    async with above(tmp_path, ForeignBroker(without_body=True)) as (service, _):
        assert by_platform(await ask(service, platform="far0")) == {"far0": 2}


async def test_a_broker_that_says_it_accepts_and_does_not_is_found_out_at_once(tmp_path: Path) -> None:
    async with above(tmp_path, ForeignBroker(accepts=False)) as (service, (far,)):
        answer = await ask(service, platform="far0")
        session = await service.sessions.accept(answer.offers[0].id, ME)
        assert (session.phase, session.end and session.end.kind) == (Phase.FAILED, EndKind.NOT_STARTED)
        assert session.end
        assert "OFFERED" in session.end.detail
        await wait_until(lambda: far.phases() == ["REJECTED", "REJECTED"])


async def test_offers_that_are_not_passed_on_are_given_back(tmp_path: Path) -> None:
    far = ForeignBroker()
    far.change = lambda offer: offer | ({"expires": ""} if len(far.sessions) % 2 else {})
    async with above(tmp_path, far) as (service, _):
        answer = await ask(service, platform="far0")
        assert by_platform(answer) == {"far0": 1}
        await wait_until(lambda: far.phases() == ["OFFERED", "REJECTED"])


async def test_each_person_shows_their_own_token_or_else_that_of_the_service(tmp_path: Path) -> None:
    from sublet.data.model.credentials import Credential, CredentialKind

    async with above(tmp_path, ForeignBroker()) as (service, (far,)):
        url = (await service.brokers.list(OPERATOR))[0].broker.url
        await service.brokers.set_token(OPERATOR, "far0", "shared-token")
        own = Credential(url, CredentialKind.TOKEN, secret="my-own-token")
        await service.credentials.add(OTHER, own)
        await ask(service, ME)
        await ask(service, OTHER)
        shown = [headers["authorization"] for headers, _ in far.asked]
        assert shown == ["Bearer shared-token", "Bearer my-own-token"]
        sealed = (await service.store.read(lambda tx: tx.brokers.get("far0"))).token  # type: ignore[union-attr]
        assert "shared-token" not in sealed


async def test_a_broker_without_https_is_refused(tmp_path: Path) -> None:
    async with above(tmp_path) as (service, _):
        for url in ("http://broker.example.org", "ftp://x", "https://me:secret@x", "nonsense"):
            with pytest.raises(Exception, match="can't be used as a broker"):
                await service.brokers.add(OPERATOR, "bad", url)
    with pytest.raises(BadSettings, match="https"):
        async with serving(tmp_path / "other", platforms={"x": {"kind": "broker", "url": "http://far.org"}}):
            pass


async def test_data_of_this_machine_and_waiting_for_sessions_are_not_passed_on(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "large").write_bytes(bytes(MOST + 1))
    (tmp_path / "small").write_text("1")
    own: list[tuple[str, dict[str, Any]]] = [
        ("data", {"data": [f"file:{tmp_path / 'large'}"]}),
        ("data", {"data": [f"file:{tmp_path / 'folder'}"]}),
        ("data", {"data": [{"location": f"file:{tmp_path / 'small'}", "path": "small", "write_back": True}]}),
        ("data", {"data": [f"file:{tmp_path / 'nothing'}"]}),
        ("outputs", {"outputs": [{"path": "*.txt", "to": f"file://{tmp_path}/"}]}),
        ("data", {"run": None, "notebook": str(tmp_path / "large")}),
    ]
    async with above(tmp_path, ForeignBroker()) as (service, (far,)):
        for field, short in own:
            answer = await ask(service, **short)
            assert "far0" not in by_platform(answer), short
            assert [reason.field for reason in answer.reasons if reason.platform == "far0"] == [field], short
        first = await service.sessions.accept((await ask(service, platform="trial")).offers[0].id, ME)
        later = await ask(service, after=[first.id])
        assert [reason.field for reason in later.reasons if reason.platform == "far0"] == ["after"]
        assert far.asked == []
        await over(service, first.id)


async def test_small_files_of_the_asker_go_with_the_request(tmp_path: Path) -> None:
    (tmp_path / "sim.sh").write_text("echo 42\n")
    (tmp_path / "sim.sh").chmod(0o755)
    (tmp_path / "a.ipynb").write_text("{}")
    async with above(tmp_path, ForeignBroker()) as (service, (far,)):
        answer = await ask(service, run=["./sim.sh"], data=[{"location": f"{tmp_path / 'sim.sh'}", "path": "sim.sh"}])
        assert "far0" in by_platform(answer)
        [item] = far.asked[-1][1]["data"]
        assert read_data_url(item["location"]) == DataUrl("sim.sh", b"echo 42\n", is_executable=True)
        await ask(service, run=None, notebook=str(tmp_path / "a.ipynb"))
        assert read_data_url(far.asked[-1][1]["executable"]["location"]) == DataUrl("a.ipynb", b"{}")
        assert str(tmp_path) not in json.dumps([document for _, document in far.asked])


async def test_ways_at_another_broker_are_its_own_and_a_platform_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(bytes(MOST + 1))

    async def explain(**short: Any) -> dict[tuple[str, str], WayFinding]:
        asked = await service.asking.read(json.dumps({"run": ["true"], **short}).encode(), "application/json", ME)
        return {(each.platform, each.way): each for each in await service.ways.explain(ME, asked)}

    async with above(tmp_path, ForeignBroker()) as (service, (far,)):
        ways = await explain()
        assert [way for platform, way in ways if platform == "far0"] == ["broker"]
        assert ways["far0", "broker"].is_possible
        assert list(await explain(platform="far0/slurm")) == [("far0", "broker")]
        large = await explain(data=[str(tmp_path / "large")])
        assert "can't read it" in large["far0", "broker"].why
        assert not large["far0", "broker"].is_possible
        with pytest.raises(NoOffers, match="There is no platform nowhere here; there are: trial, far0"):
            await explain(platform="nowhere")
        with pytest.raises(NoOffers, match="nothing like this"):
            await explain(run=None, interactive="nothing like this")
        assert far.asked == []


async def test_a_service_stops_although_a_broker_does_not_answer_and_remembers_what_to_give_back(
    tmp_path: Path,
) -> None:
    broker, called = ForeignBroker(), asyncio.Event()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and "/sessions/" in scope["path"]:
            called.set()
            await asyncio.Event().wait()
        await broker.app(scope, receive, send)

    async with listening(app) as url:
        async with serving(tmp_path) as service:
            await service.brokers.add(OPERATOR, "far", url)
            offer = BrokerOffer("gone", "far", ME.name, f"{url}/sessions/1", "", service.now() + timedelta(hours=1))
            await service.store.write(lambda tx: tx.broker_calls.add_offers([offer], service.now()))
            async with asyncio.timeout(20):
                await called.wait()
            [giving] = [task for task in asyncio.all_tasks() if task.get_name() == "broker outbox"]
        assert giving.cancelled()
        assert rows(service.settings.database_url, "SELECT session, tries FROM broker_offers") == [("gone", 0)]
