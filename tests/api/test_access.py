"""Access over HTTP on a gateway: rules, standings, requests, and the audit log, each for those whom it concerns."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from sublet.access.audit import csv_line
from sublet.app import open_service
from sublet.kernel import metrics
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person
from sublet.service import Service
from tests.api.conftest import Callers
from tests.api.documents import phase_update

pytestmark = pytest.mark.anyio
RULE = {"effect": "allow", "who": "*@illinois.edu", "noun": "system", "name": "memory"}
IMAGE = {"image": "docker://busybox", "time": "1h", "cores": 2}


@pytest.fixture(scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    platforms = {"memory": {"kind": "memory", "nodes": 10, "cores": 16, "takes": "1h"}}
    settings = Settings.load(tmp_path_factory.mktemp("home"), mode="gateway", platforms=platforms)
    async with open_service(settings) as opened:
        yield opened


async def as_person(callers: Callers, service: Service, name: str, *, operator: bool = False) -> httpx2.AsyncClient:
    _, secret = await service.people.tokens.make_token(Person(name, operator))
    return await callers.with_headers({"authorization": f"Bearer {secret}"})


async def test_rules_let_people_in_and_out_at_once(callers: Callers, service: Service) -> None:
    op = await as_person(callers, service, "op@example.org", operator=True)
    anna = await as_person(callers, service, "anna@illinois.edu")
    eve = await as_person(callers, service, "eve@illinois.edu.evil.org")
    assert (await anna.get("/v1/rules")).status_code == 403
    assert (await anna.post("/v1/rules", json=RULE)).status_code == 403
    assert (await anna.post("/v1/offersets", json=IMAGE)).json()["result"] == "NO"
    limits = {"cores": 4, "jobs": 1, "time": "PT2H", "hours_month": 100}
    made = await op.post("/v1/rules", json=RULE | {"limits": limits})
    assert made.status_code == 201
    rule = made.json()["rule"]
    assert rule["limits"] == {
        **dict.fromkeys(("memory", "gpus", "nodes", "hours")),
        **limits,
    }
    assert (await op.get(f"/v1/rules/{rule['id'][:8]}")).json() == rule
    offers = (await anna.post("/v1/offersets", json=IMAGE)).json()["offers"]
    assert (await eve.post("/v1/offersets", json=IMAGE)).json()["reasons"][0]["kind"] == "urn:not-allowed"
    assert (await anna.post("/v1/offersets", json=IMAGE | {"cores": 5})).json()["result"] == "NO"
    spare = (await anna.post("/v1/offersets", json=IMAGE)).json()["offers"][0]["id"]
    running = (await anna.post(f"/v1/sessions/{offers[0]['id']}/accept")).json()["id"]
    refused = await anna.post(f"/v1/sessions/{spare}/accept")
    assert (refused.status_code, refused.json()["code"]) == (403, "not-allowed")
    assert "1 session" in refused.json()["detail"]
    by_ivoa = await anna.post(f"/sessions/{spare}", json=phase_update("ACCEPTED"))
    assert (by_ivoa.status_code, by_ivoa.json()["code"]) == (403, "not-allowed"), "no way round"
    assert (await anna.get(f"/v1/sessions/{spare}")).json()["phase"] == "OFFERED"
    [mine] = (await anna.get("/v1/access")).json()["items"]
    assert (mine["allowed"], mine["jobs"], mine["hours"], mine["limit_rules"]["jobs"]) == (True, 1, 2.0, rule["id"])
    assert mine["why"] == f"rule {rule['id'][:8]} allows *@illinois.edu"
    assert (await anna.get("/v1/access?person=eve@illinois.edu.evil.org")).status_code == 403
    theirs = (await op.get("/v1/access?person=eve@illinois.edu.evil.org")).json()
    assert (theirs["items"][0]["allowed"], theirs["items"][0]["why"]) == (False, "no rule allows it")
    gone = (await op.delete(f"/v1/rules/{rule['id']}")).json()
    assert [one["session"] for one in gone["running"]] == [running]
    assert (await anna.post("/v1/offersets", json=IMAGE)).json()["result"] == "NO"
    assert (await op.delete(f"/v1/rules/{rule['id']}")).status_code == 404
    await anna.post(f"/v1/sessions/{running}/cancel")


async def test_platforms_are_shown_to_who_may_use_them_and_their_names_to_who_can_ask(
    callers: Callers, service: Service
) -> None:
    op = await as_person(callers, service, "op@example.org", operator=True)
    zoe, eve = [await as_person(callers, service, name) for name in ("zoe@closed.org", "eve@closed.org")]
    whole = (await op.get("/v1/platforms")).json()["items"]
    assert (whole[0]["name"], len(whole[0]["nodes"])) == ("memory", 10), "operators see what they operate"
    [named] = (await zoe.get("/v1/platforms")).json()["items"]
    told = {"name": "memory", "working": False, "problem": "You may not use it."}
    told |= {"ask": "sublet access ask memory --reason TEXT", "kind": "", "terms": "", "as_of": None}
    assert named == {key: told.get(key, type(value)()) for key, value in whole[0].items()}
    inside = ("/v1/platforms/memory", "/v1/calendar?platform=memory", "/v1/systems/memory/record")
    for address in inside:
        refused = await zoe.get(address)
        assert (refused.status_code, refused.json()["code"], refused.json()["hint"]) == (
            403,
            "not-allowed",
            "sublet access ask memory --reason TEXT",
        )
    assert (await zoe.get("/v1/calendar")).status_code == 404
    made = [RULE | {"who": "zoe@closed.org"}, RULE | {"who": "eve@closed.org", "effect": "deny", "note": "left"}]
    rules = [(await op.post("/v1/rules", json=rule)).json()["rule"]["id"] for rule in made]
    assert (await zoe.get("/v1/platforms")).json()["items"][0]["nodes"] == whole[0]["nodes"]
    assert {(await zoe.get(address)).status_code for address in (*inside, "/v1/calendar")} == {200}
    assert (await eve.get("/v1/platforms")).json()["items"] == [], "asking would not help"
    assert "left" in (await eve.get(inside[0])).json()["detail"]
    unknown = [await eve.get(address.replace("memory", "none")) for address in inside]
    assert [(one.status_code, "memory" in one.text) for one in unknown] == [(404, False)] * 3, "nor by guessing"
    anyone = await callers.with_headers()
    seen = [(await who.get("/health")).json()["platforms"] for who in (anyone, eve, zoe, op)]
    assert seen == [[], [], ["memory"], ["memory"]]
    metrics.platform_errors.labels("memory", "away").inc()
    pages = [(await who.get("/metrics")).text for who in (anyone, zoe, op)]
    assert ["memory" in page for page in pages] == [False, False, True]
    for rule in rules:
        await op.delete(f"/v1/rules/{rule}")


@pytest.mark.parametrize(
    "wrong",
    [
        {"effect": "maybe"},
        {"noun": "node"},
        {"who": ""},
        {"who": "a b"},
        {"name": ""},
        {"limits": {"cores": -1}},
        {"expires": "2020-01-01T00:00:00Z"},
        {"expires": "2099-01-01T00:00:00"},
    ],
)
async def test_a_rule_that_can_not_be_meant_is_refused(
    callers: Callers, service: Service, wrong: dict[str, Any]
) -> None:
    op = await as_person(callers, service, "op@example.org", operator=True)
    assert (await op.post("/v1/rules", json=RULE | wrong)).status_code == 400


async def test_requests_are_seen_by_their_asker_and_decided_by_operators(callers: Callers, service: Service) -> None:
    op = await as_person(callers, service, "op@example.org", operator=True)
    ben, eve = [await as_person(callers, service, f"{name}@example.net") for name in ("ben", "eve")]
    asked = await ben.post("/v1/access/requests", json={"name": "memory", "why": "to learn"})
    assert asked.status_code == 201
    id = asked.json()["request"]["id"]
    assert (await eve.get(f"/v1/access/requests/{id}")).status_code == 404
    assert (await eve.get("/v1/access/requests")).json()["items"] == []
    assert (await ben.post(f"/v1/access/requests/{id}/grant", json={})).status_code == 403
    assert (await ben.get(f"/v1/access/requests/{id}/grant")).status_code == 405, "no GET decides anything"
    granted = await op.post(f"/v1/access/requests/{id}/grant", json={"limits": {"cores": 2}, "answer": "ok"})
    assert granted.json()["request"]["state"] == "granted"
    assert (await op.post(f"/v1/access/requests/{id}/refuse", json={})).status_code == 409
    assert (await ben.post("/v1/offersets", json=IMAGE)).json()["result"] == "YES"
    assert (await ben.get("/v1/access/requests?state=granted")).json()["items"][0]["answer"] == "ok"


async def test_the_audit_log_is_paged_exported_and_everyones_own(callers: Callers, service: Service) -> None:
    op = await as_person(callers, service, "op2@example.org", operator=True)
    cleo = await as_person(callers, service, "cleo@example.net")
    for why in ("=1+1", "more", "please"):
        await cleo.post("/v1/access/requests", json={"name": "memory", "why": why})
    await op.post("/v1/rules", json=RULE | {"note": "=HYPERLINK(1)"})
    first = (await op.get("/v1/audit?limit=1")).json()
    assert len(first["items"]) == 1
    second = (await op.get(f"/v1/audit?limit=1&after={first['next']}")).json()
    assert second["items"][0]["id"] > first["items"][0]["id"]
    assert {entry["person"] for entry in (await cleo.get("/v1/audit")).json()["items"]} == {"cleo@example.net"}
    assert (await cleo.get("/v1/audit?person=op2@example.org")).status_code == 403
    assert (await cleo.get("/v1/audit/export?person=op2@example.org")).status_code == 403
    exported = await op.get("/v1/audit/export?format=csv&person=op2@example.org&action=rule.")
    assert exported.headers["content-type"].startswith("text/csv")
    assert "attachment" in exported.headers["content-disposition"]
    [row] = csv.DictReader(io.StringIO(exported.text))
    assert (row["action"], json.loads(row["detail"])["note"]) == ("rule.add", "=HYPERLINK(1)")
    lines = (await cleo.get("/v1/audit/export?noun=system")).text.splitlines()
    assert [json.loads(line)["detail"]["why"] for line in lines] == ["=1+1"]
    assert (await op.get("/v1/audit?since=2099-01-01T00:00:00Z")).json() == {"items": [], "next": None}


def test_no_cell_is_a_formula() -> None:
    assert csv_line(["=1", "+1", "-1", "@x", "\tx", "plain", 3]) == "'=1,'+1,'-1,'@x,'\tx,plain,3\r\n"


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/rules", RULE, "expires"),
        ("/v1/budgets", {"holder": "*", "limit": "5EUR"}, "until"),
        ("/v1/platforms/memory/drain", {}, "until"),
    ],
)
async def test_the_field_without_a_time_zone_is_named(
    callers: Callers, service: Service, path: str, body: dict[str, Any], field: str
) -> None:
    op = await as_person(callers, service, "op3@example.org", operator=True)
    answer = await op.post(path, json=body | {field: "2099-01-01T00:00:00"})
    assert answer.status_code == 400
    assert f"`{field}` needs a time zone" in answer.json()["detail"]
