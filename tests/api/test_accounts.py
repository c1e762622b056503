"""Accounts and usage over HTTP: operators manage them, people see that they are there, nobody sees a key."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from sublet.app import open_service
from sublet.kernel.master_key import make
from sublet.kernel.settings import Settings
from sublet.kernel.ssh_keys import read_key
from sublet.service import Service
from tests.api.conftest import Callers
from tests.api.test_access_pages import signed_in

pytestmark = pytest.mark.anyio
SEED = {
    "keeling_community": {
        "ip": "127.0.0.1",
        "port": 9,
        "is_community_account": True,
        "community_login": {"user": "cigi", "use_local_key": True},
        "connector": "SlurmConnector",
        "root_path": "/tmp",
        "init_sbatch_script": ["export A=1", "ulimit -s 9"],
    }
}


@pytest.fixture(scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    """A service with a master key."""
    place = tmp_path_factory.mktemp("accounts")
    make(str(place / "master"))
    platform = {"kind": "memory", "takes": "0.1s"}
    settings = Settings.load(place / "home", master_key=str(place / "master"), platforms={"memory": platform})
    async with open_service(settings) as opened:
        yield opened


@pytest.fixture
async def olga(callers: Callers) -> httpx2.AsyncClient:
    """An operator."""
    return await callers.someone("olga", operator=True)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A private key and its public half."""
    file: Path = tmp_path_factory.mktemp("keys") / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file], check=True)
    return file.read_text(), file.with_suffix(".pub").read_text()


def wish(pair: tuple[str, str], **more: Any) -> dict[str, Any]:
    known = {"name": "keeling", "host": "127.0.0.1", "port": 9, "user": "cigi", "description": "for <b>all</b>"}
    return {**known, "key": pair[0], "host_keys": [f"keeling.example.org {pair[1]}"], **more}


async def test_an_account_is_added_seen_changed_and_removed_and_its_key_never_comes_back(
    olga: httpx2.AsyncClient, ann: httpx2.AsyncClient, pair: tuple[str, str], callers: Callers, service: Service
) -> None:
    made = await olga.post("/v1/accounts", json=wish(pair))
    assert made.status_code == 201, made.text
    seen = made.json()
    assert seen["key"].startswith("SHA256:")
    assert seen["host_keys"] == [seen["key"]]
    theirs = (await ann.get("/v1/accounts/keeling")).json()
    assert (theirs["name"], theirs["description"], theirs["capacity"]) == ("keeling", "for <b>all</b>", 10)
    hidden = ("host", "user", "port", "key", "public", "host_keys", "directory", "by", "created")
    assert not any(theirs[name] for name in hidden)
    changed = await olga.patch("/v1/accounts/keeling", json={"capacity": 3, "options": ["--nice=5"]})
    assert (changed.json()["capacity"], changed.json()["options"]) == (3, ["--nice=5"])
    assert "can't be reached" in (await olga.post("/v1/accounts/keeling/check")).json()["problem"]
    assert [one["name"] for one in (await ann.get("/v1/accounts")).json()["items"]] == ["keeling"]
    assert (await olga.post("/v1/vault/rekey")).json()["sealed"]["account"] == 1
    visitor = await signed_in(callers, service, "olga", operator=True)
    paths = ("/v1/accounts", "/v1/platforms", "/v1/audit/export", "/v1/events", "/metrics", "/health")
    pages = ("/web/usage", "/web/", "/web/audit", "/web/systems", "/web/rules", "/web/account", "/web/people")
    shown = [await visitor.get(page) for page in pages]
    answers = [made, changed, *[await olga.get(path) for path in paths], *shown]
    assert "keeling" in shown[0].text, "what is looked at speaks of it"
    secret = [line for text in (pair[0], read_key(pair[0])[0]) for line in text.splitlines()[3:-1]]
    assert secret
    assert not any(line in answer.text for line in secret for answer in answers)
    assert (await olga.delete("/v1/accounts/keeling")).status_code == 204
    assert (await olga.get("/v1/accounts/keeling")).status_code == 404


async def test_people_who_are_no_operators_change_nothing(ann: httpx2.AsyncClient, pair: tuple[str, str]) -> None:
    tries = [
        await ann.post("/v1/accounts", json=wish(pair)),
        await ann.patch("/v1/accounts/keeling", json={"capacity": 3}),
        await ann.delete("/v1/accounts/keeling"),
        await ann.post("/v1/accounts/keeling/check"),
        await ann.post("/v1/account-plans", json={"document": SEED}),
        await ann.post("/v1/host-keys", json={"host": "127.0.0.1", "port": 9}),
        await ann.post("/v1/vault/rekey"),
    ]
    assert {answer.status_code for answer in tries} == {403}
    assert {answer.json()["code"] for answer in tries} == {"operators-only"}


async def test_a_wrong_wish_is_told_without_its_key(olga: httpx2.AsyncClient, pair: tuple[str, str]) -> None:
    for more, code in (
        ({"host_keys": []}, "unknown-host-key"),
        ({"host_keys": ["x"]}, "bad-account"),
        ({"host": "-oProxyCommand=id"}, "bad-account"),
        ({"options": ["--wrap=id"]}, "bad-account"),
        ({"key": pair[0].replace("b3Blb", "secret")}, "bad-key"),
        ({"port": "x"}, "bad-request"),
    ):
        answer = await olga.post("/v1/accounts", json=wish(pair, **more))
        assert answer.status_code in (400, 409)
        assert answer.json()["code"] == code, answer.text
        assert answer.json()["hint"]
        assert pair[0].splitlines()[2] not in answer.text


async def test_a_key_is_not_taken_where_others_could_read_it_on_its_way(
    callers: Callers, pair: tuple[str, str]
) -> None:
    transport = httpx2.ASGITransport(app=callers.app, client=("192.0.2.7", 1234))
    headers = dict((await callers.someone("otto", operator=True)).headers)
    async with httpx2.AsyncClient(transport=transport, base_url="http://broker.test", headers=headers) as far:
        assert (await far.post("/v1/accounts", json=wish(pair))).json()["code"] == "not-private"
    async with httpx2.AsyncClient(transport=transport, base_url="https://broker.test", headers=headers) as safe:
        assert (await safe.post("/v1/accounts", json=wish(pair, host_keys=[]))).json()["code"] == "unknown-host-key"


async def test_an_hpc_json_is_told_field_by_field(olga: httpx2.AsyncClient) -> None:
    (plan,) = (await olga.post("/v1/account-plans", json={"document": SEED})).json()["items"]
    assert plan["fields"]["host"] == "127.0.0.1"
    assert plan["refused"] == ["init_sbatch_script"]
    assert {"field": "root_path", "state": "taken", "words": "sessions are kept below /tmp"} in plan["notes"]
    assert (await olga.post("/v1/account-plans", json={"document": {}})).json()["code"] == "bad-account"


async def test_a_host_that_does_not_answer_shows_no_keys(olga: httpx2.AsyncClient) -> None:
    answer = await olga.post("/v1/host-keys", json={"host": "127.0.0.1", "port": 9})
    assert (answer.status_code, answer.json()["code"]) == (503, "platform-unreachable")
    answer = await olga.post("/v1/host-keys", json={"host": "-D", "port": 9})
    assert answer.json()["code"] == "platform-refused"


async def test_usage_is_ones_own_and_comes_as_a_table_too(olga: httpx2.AsyncClient, ann: httpx2.AsyncClient) -> None:
    asked = await ann.post("/v1/offersets", json={"run": ["true"], "time": "1m"})
    id = asked.json()["offers"][0]["id"]
    assert (await ann.post(f"/v1/sessions/{id}/accept")).status_code < 300
    while (await ann.get(f"/v1/sessions/{id}")).json()["phase"] != "COMPLETED":
        await ann.get("/v1/events")
    mine = (await ann.get("/v1/usage")).json()
    assert [one["sessions"] for one in mine["items"]] == [1]
    assert mine["totals"][0]["people"] == 1
    name = mine["items"][0]["person"]
    assert name in {one["person"] for one in (await olga.get("/v1/usage")).json()["items"]}
    table = await ann.get("/v1/usage", headers={"accept": "text/csv"})
    assert table.headers["content-type"].startswith("text/csv")
    assert table.text.splitlines()[0].startswith("quarter,platform,person,sessions")
    assert f"memory,{name},1," in table.text
    assert (await ann.get("/v1/usage?person=somebody")).status_code == 403
    since = await ann.get("/v1/usage?since=2026-01-01T01:00:00%2B01:00")
    assert since.json()["since"] == "2026-01-01T00:00:00Z"
    for wrong in ("2026-01-01T00:00:00", "5", "0001-01-01T00:00:00%2B14:00"):
        assert (await ann.get(f"/v1/usage?since={wrong}")).status_code == 400
    assert (await ann.get("/v1/usage?quarter=2026Q9")).status_code == 400
    assert (await ann.get("/v1/usage?since=2026-01-01T00:00:00Z&quarter=2026Q1")).status_code == 400
