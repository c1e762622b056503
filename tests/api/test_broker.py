"""The IVOA Execution Broker at the root."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest
import yaml

from sublet.server.app import openapi_document
from tests.api import documents
from tests.api.conftest import HOST
from tests.api.documents import SIMPLE, Document, phase_update

pytestmark = pytest.mark.anyio
OLDER = "https://www.purl.org/ivoa.net/EB/schema/types"


async def ask(client: httpx2.AsyncClient, document: Document) -> Document:
    """The offer set, as a client gets it that follows the 303."""
    answer = await client.post("/requests", json=document)
    assert answer.status_code == 303, answer.text
    looked = await client.get(answer.headers["location"])
    assert looked.status_code == 200
    assert looked.json() == answer.json()
    found: Document = looked.json()
    return found


async def offered(client: httpx2.AsyncClient, **more: Any) -> list[str]:
    """The uuids of some offers."""
    found = await ask(client, documents.full() | more)
    return [offer["meta"]["uuid"] for offer in found["offers"]]


@pytest.mark.parametrize("name", documents.YES)
async def test_what_can_be_run_gets_a_yes_with_offers_that_are_held(ann: httpx2.AsyncClient, name: str) -> None:
    found = await ask(ann, documents.YES[name]())
    assert found["result"] == "YES", found["meta"]["messages"]
    assert found["offers"]
    for offer in found["offers"]:
        assert offer["kind"].endswith("/scheduled-execution-session.yaml")
        assert offer["phase"] == "OFFERED"
        assert datetime.fromisoformat(offer["expires"]) > datetime.now(UTC)
        assert offer["meta"]["options"][0]["values"] == ["ACCEPTED", "REJECTED", "CANCELLED"]


@pytest.mark.parametrize("name", documents.NO)
async def test_what_can_not_be_run_gets_a_no_that_says_why(ann: httpx2.AsyncClient, name: str) -> None:
    document: Callable[[], Document] = documents.NO[name][0]
    found = await ask(ann, document())
    assert (found["result"], found["offers"]) == ("NO", [])
    assert documents.NO[name][1] in {message["kind"] for message in found["meta"]["messages"]}
    assert all(message["level"] == "WARN" for message in found["meta"]["messages"])


async def test_the_303_points_to_an_absolute_address_and_has_the_answer_in_it(ann: httpx2.AsyncClient) -> None:
    answer = await ann.post("/requests", json=documents.minimal())
    uuid = answer.json()["meta"]["uuid"]
    assert answer.headers["location"] == f"{HOST}/offersets/{uuid}" == answer.json()["meta"]["url"]


async def test_offers_start_inside_the_requested_window_and_within_the_amounts(ann: httpx2.AsyncClient) -> None:
    found = await ask(ann, documents.full())
    first = datetime.fromisoformat(documents.monday())
    for offer in found["offers"]:
        start = datetime.fromisoformat(offer["schedule"]["available"]["start"].partition("/")[0])
        assert 0 <= (start - first).total_seconds() <= 3 * 3600
        assert offer["schedule"]["available"]["duration"] == "PT4H"
        assert 2 <= offer["compute"]["cores"]["min"] <= 4
        assert 4 <= offer["compute"]["memory"]["min"] <= 8
        assert offer["data"][0]["schedule"]["preparing"]["duration"] == "PT10M"


def test_the_description_calls_nothing_held_that_is_not() -> None:
    told = openapi_document()["paths"]["/requests"]["post"]
    words = " ".join(f"{told['summary']} {told.get('description', '')}".split())
    assert "what is booked is held" in words
    assert "Of a queue that others share nothing is held" in words


async def test_the_older_address_for_asking_works_alike(ann: httpx2.AsyncClient) -> None:
    answer = await ann.post("/offersets", json=documents.older())
    assert (answer.status_code, answer.json()["result"]) == (303, "YES")


async def test_asking_again_with_the_same_key_gives_the_same_offers(ann: httpx2.AsyncClient) -> None:
    headers = {"idempotency-key": "once"}
    uuids = {
        (await ann.post("/requests", json=documents.minimal(), headers=headers)).json()["meta"]["uuid"]
        for _ in range(3)
    }
    assert len(uuids) == 1
    other = await ann.post("/requests", json={"run": ["true"]}, headers=headers)
    assert (other.status_code, other.json()["code"]) == (422, "key-reused")
    assert "once" in other.json()["detail"]


@pytest.mark.parametrize("path", ["phase", "/phase"])
async def test_accepting_an_offer_rejects_its_siblings(ann: httpx2.AsyncClient, path: str) -> None:
    first, *others = await offered(ann)
    assert others
    answer = await ann.post(f"/sessions/{first}", json=phase_update("ACCEPTED", path))
    assert answer.status_code == 200
    assert answer.json()["phase"] in {"ACCEPTED", "WAITING", "PREPARING"}
    assert answer.json()["meta"]["options"][0]["values"] == ["CANCELLED"]
    for other in others:
        assert (await ann.get(f"/sessions/{other}")).json()["phase"] == "REJECTED"


async def test_a_rejected_offer_is_rejected(ann: httpx2.AsyncClient) -> None:
    first, *_ = await offered(ann)
    answer = await ann.post(f"/sessions/{first}", json={"update": phase_update("REJECTED")})
    assert (answer.status_code, answer.json()["phase"]) == (200, "REJECTED")


async def test_a_session_can_be_cancelled_in_yaml_and_with_the_older_type(ann: httpx2.AsyncClient) -> None:
    first, *_ = await offered(ann)
    await ann.post(f"/sessions/{first}", json=phase_update("ACCEPTED"))
    body = "type: uri:enum-value-update\npath: phase\nvalue: CANCELLED\n"
    answer = await ann.post(f"/sessions/{first}", content=body, headers={"content-type": "application/yaml"})
    assert answer.status_code == 200
    assert yaml.safe_load(answer.text)["phase"] == "CANCELLED"


async def test_a_session_lasts_longer_by_the_option_that_says_so(ann: httpx2.AsyncClient) -> None:
    first, *_ = await offered(ann)
    accepted = (await ann.post(f"/sessions/{first}", json=phase_update("ACCEPTED"))).json()
    option = accepted["meta"]["options"][1]
    assert option["kind"] == "uri:integer-delta-option"
    update = {"kind": "uri:integer-delta-update", "path": option["path"], "delta": 90, "units": "minutes"}
    longer = await ann.post(f"/sessions/{first}", json=update)
    assert longer.status_code == 200, longer.text
    assert longer.json()["schedule"]["available"]["duration"] == "PT5H30M"


@pytest.mark.parametrize(
    "update",
    [
        {"kind": "uri:integer-delta-update", "path": "compute.cores", "delta": 2, "units": "cores"},
        {"kind": "uri:string-value-update", "path": "meta.name", "value": "x"},
    ],
)
async def test_what_no_option_offers_can_not_be_changed(ann: httpx2.AsyncClient, update: Document) -> None:
    first, *_ = await offered(ann)
    answer = await ann.post(f"/sessions/{first}", json=update)
    assert (answer.status_code, answer.json()["code"]) == (409, "not-changeable")


@pytest.mark.parametrize(
    "update",
    [
        {},
        {"kind": "uri:enum-value-update", "path": "phase"},
        {"kind": "uri:enum-value-update", "path": "phase", "value": 7},
        {"kind": "uri:enum-value-update", "path": "phase", "value": "HAPPY"},
        {"kind": "uri:no-such-update", "path": "phase", "value": "ACCEPTED"},
        {"kind": "uri:integer-delta-update", "path": "schedule.available.duration", "delta": -5},
        {"kind": "uri:integer-delta-update", "path": "schedule.available.duration", "delta": 1, "units": "apples"},
        {"update": []},
    ],
)
async def test_an_update_that_means_nothing_is_a_bad_request(ann: httpx2.AsyncClient, update: Document) -> None:
    first, *_ = await offered(ann)
    answer = await ann.post(f"/sessions/{first}", json=update)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-request")
    assert (await ann.get(f"/sessions/{first}")).json()["phase"] == "OFFERED"


async def test_a_move_that_the_table_does_not_have_is_refused(ann: httpx2.AsyncClient) -> None:
    first, *_ = await offered(ann)
    for wanted in ("RUNNING", "COMPLETED", "EXPIRED"):
        answer = await ann.post(f"/sessions/{first}", json=phase_update(wanted))
        assert (answer.status_code, answer.json()["code"]) == (409, "not-allowed-now")


async def test_another_person_can_neither_see_nor_change_it(ann: httpx2.AsyncClient, bob: httpx2.AsyncClient) -> None:
    found = await ask(ann, documents.minimal())
    session = found["offers"][0]["meta"]["uuid"]
    for phase in ("ACCEPTED", "REJECTED", "CANCELLED"):
        assert (await bob.post(f"/sessions/{session}", json=phase_update(phase))).status_code == 403
    assert (await bob.get(f"/sessions/{session}")).status_code == 403
    assert (await bob.get(f"/offersets/{found['meta']['uuid']}")).status_code == 403
    assert (await ann.get(f"/sessions/{session}")).json()["phase"] == "OFFERED"


async def test_without_a_token_nothing_is_done(ann: httpx2.AsyncClient, anonymous: httpx2.AsyncClient) -> None:
    session, *_ = await offered(ann)
    for path, body in (
        ("/requests", documents.minimal()),
        ("/direct", documents.minimal()),
        ("/offersets", documents.minimal()),
        (f"/sessions/{session}", phase_update("ACCEPTED")),
    ):
        answer = await anonymous.post(path, json=body)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("name", ["4ff9be8e-19ed-4456-bb1a-ba5f5e905923", "not-a-uuid", "%2e%2e", "1234"])
async def test_what_is_not_there_is_a_404(ann: httpx2.AsyncClient, name: str) -> None:
    assert (await ann.get(f"/sessions/{name}")).status_code == 404
    assert (await ann.get(f"/offersets/{name}")).status_code == 404
    assert (await ann.post(f"/sessions/{name}", json=phase_update("ACCEPTED"))).status_code == 404


async def test_direct_accepts_the_best_offer_at_once(ann: httpx2.AsyncClient) -> None:
    answer = await ann.post("/direct", json=documents.minimal())
    assert answer.status_code == 303
    assert answer.headers["location"] == f"{HOST}/sessions/{answer.json()['meta']['uuid']}"
    looked = await ann.get(answer.headers["location"])
    assert looked.json()["phase"] not in {"OFFERED", "FAILED"}


@pytest.mark.parametrize("name", documents.NO)
async def test_direct_answers_what_can_not_be_run_with_a_failed_session(ann: httpx2.AsyncClient, name: str) -> None:
    document: Callable[[], Document] = documents.NO[name][0]
    answer = await ann.post("/direct", json=document(), headers={"accept": "application/yaml"})
    assert answer.status_code == 400
    said = yaml.safe_load(answer.text)
    assert said["phase"] == "FAILED"
    assert documents.NO[name][1] in {message["kind"] for message in said["meta"]["messages"]}
    assert "uuid" not in said["meta"]


ODD: dict[str, Document] = {
    "dangling storage": {"data": [{"location": "https://data.example.org/x", "storage": "gone"}]},
    "no location": {"data": [{"meta": {"name": "x"}}]},
    "cores without end": {"compute": {"kind": SIMPLE, "cores": {"min": 10**18, "max": 10**18}}},
    "more cores than a long counts": {"compute": {"kind": SIMPLE, "cores": {"min": 10**19, "max": 10**25}}},
    "more memory than a long counts": {"compute": {"kind": SIMPLE, "memory": {"min": 1e25}}},
    "a metric without end": {"metrics": [{"type": "urn:ivoa:calycopis:metric:compute-performance", "min": 1e300}]},
    "unknown cost": {"costs": [{"kind": "urn:example:cost:bond", "rating": "AAA", "years": 10}]},
    "unknown volume": {"compute": {"kind": SIMPLE, "volumes": [{"kind": "urn:example:volume:tape", "drive": 3}]}},
    "a month": {"schedule": {"requested": {"duration": "P1M"}}},
    "a year": {"schedule": {"requested": {"duration": "P1Y"}}},
    "component cost": {"compute": {"costs": [{"type": "urn:ivoa:calycopis:cost:none", "max": 0.0001}]}},
}


@pytest.mark.parametrize("name", ODD)
async def test_what_a_document_may_say_is_a_no_and_no_error(ann: httpx2.AsyncClient, name: str) -> None:
    answer = await ann.post("/requests", json=documents.minimal() | ODD[name])
    assert answer.status_code == 303, answer.text
    assert answer.json()["result"] == "NO"
    assert answer.json()["meta"]["messages"][0]["message"]
    direct = await ann.post("/direct", json=documents.minimal() | ODD[name])
    assert (direct.status_code, direct.json()["phase"]) == (400, "FAILED")


@pytest.mark.parametrize("most", ["1e19", "10000000000000000000", "1e25", "1.7976931348623157e308", "1.8e308"])
@pytest.mark.parametrize("kind", ["application/json", "application/yaml"])
async def test_a_cost_limit_beyond_all_costs_is_a_yes(ann: httpx2.AsyncClient, most: str, kind: str) -> None:
    document = documents.minimal() | {"costs": [{"type": "urn:ivoa:calycopis:cost:monetary", "max": "MOST"}]}
    body = json.dumps(document).replace('"MOST"', most)
    answer = await ann.post("/requests", content=body, headers={"content-type": kind, "accept": "application/json"})
    assert (answer.status_code, answer.json().get("result")) == (303, "YES"), answer.text


async def test_fields_of_a_newer_schema_are_ignored_and_said_to_be_wherever_they_stand(ann: httpx2.AsyncClient) -> None:
    document = documents.full() | {"priority": 3, "version": "1.1"}
    port = {"internal": {"port": 80, "family": "ipv6"}, "access": True, "label": "web", "external": None}
    image = document["executable"]["image"] | {"platform": {"os": "linux", "variant": "v8"}}
    document["executable"] |= {"restarts": 2, "image": image, "network": {"ports": [port], "dns": []}}
    document["compute"] = document["compute"] | {"accelerators": {"min": 1}}
    document["data"] = [document["data"][0] | {"mirrors": []}]
    answer = (await ann.post("/requests", json=document)).json()
    assert answer["result"] == "YES", answer["meta"]["messages"]
    said = [message for message in answer["meta"]["messages"] if message["kind"] == "urn:ignored-field"]
    assert {message["values"]["field"] for message in said} == {
        "priority",
        "version",
        "executable.restarts",
        "executable.image.platform.variant",
        "executable.network.dns",
        "executable.network.ports[0].label",
        "executable.network.ports[0].internal.family",
        "compute.accelerators",
        "data[0].mirrors",
    }
    assert all(message["message"].startswith(f"{message['values']['field']}: ") for message in said)


@pytest.mark.parametrize(
    "odd", [{"compute": [{}, {}]}, {"compute": {"volumes": ["gone"]}, "volumes": []}, {"executable": {"name": "x"}}]
)
async def test_a_no_has_no_reason_that_is_not_true(ann: httpx2.AsyncClient, odd: Document) -> None:
    found = await ask(ann, documents.minimal() | odd)
    assert found["result"] == "NO"
    assert "urn:executable-required" not in {message["kind"] for message in found["meta"]["messages"]}


async def test_an_older_volume_of_several_resources_is_offered(ann: httpx2.AsyncClient) -> None:
    names = ("flat.fits", "dark.fits")
    older = {
        "computer": {"type": f"{OLDER}/computer/simple-compute-resource-1.0", "volumes": ["calibration"]},
        "volumes": [
            {"meta": {"name": "calibration"}, "path": "/calibration", "mode": "READONLY", "resources": [*names]}
        ],
        "data": [{"meta": {"name": name}, "location": f"https://data.example.org/{name}"} for name in names],
    }
    document = documents.minimal() | older | {"executable": documents.CONTAINER | {"command": [10, 0]}}
    found = await ask(ann, document)
    assert found["result"] == "YES", found["meta"]["messages"]
    offer = found["offers"][0]
    assert offer["executable"]["command"] == ["10", "0"]
    assert [volume["path"] for volume in offer["compute"]["volumes"]] == [f"/calibration/{name}" for name in names]


async def test_older_lists_of_times_get_an_offer_for_each(ann: httpx2.AsyncClient) -> None:
    day = documents.monday()[:10]
    windows = [f"{day}T{hour:02}:00:00Z/PT30M" for hour in (9, 12, 15)]
    requested = [{"start": window, "duration": "PT1H"} for window in windows]
    answer = (await ann.post("/offersets", json=documents.minimal() | {"schedule": {"requested": requested}})).json()
    hours = {offer["schedule"]["available"]["start"][11:13] for offer in answer["offers"]}
    assert (answer["result"], hours) == ("YES", {"09", "12", "15"})


async def test_the_most_that_is_welcome_is_offered_in_plain_whole_numbers(ann: httpx2.AsyncClient) -> None:
    wanted = {
        "compute": {"kind": SIMPLE, "memory": {"min": 1, "max": 1000}},
        "storage": [{"meta": {"name": "scratch"}, "size": {"min": 10, "max": 20}}],
    }
    answer = (await ann.post("/requests", json=documents.minimal() | wanted)).json()
    assert {offer["compute"]["kind"] for offer in answer["offers"]} == {SIMPLE}
    assert {offer["compute"]["memory"]["max"] for offer in answer["offers"]} == {1, 16}
    assert {offer["storage"][0]["size"]["max"] for offer in answer["offers"]} == {10, 20}


@pytest.mark.parametrize("memory", [0, 0.5, {"min": 0, "max": 0.5}])
async def test_a_part_of_a_gib_is_offered_as_a_whole_one_in_a_plain_kind(ann: httpx2.AsyncClient, memory: Any) -> None:
    found = await ask(ann, documents.minimal() | {"compute": {"kind": SIMPLE, "memory": memory}})
    seen = [(offer["compute"]["kind"], offer["compute"]["memory"]) for offer in found["offers"]]
    assert seen == [(SIMPLE, {"min": 1, "max": 1})] * len(seen) != []
