"""A gateway over HTTP: signing in by mail, people and groups, and what nobody can find out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from sublet.app import open_service
from sublet.kernel.settings import Settings
from sublet.kernel.settings_tables import SigningSettings
from sublet.people.model.person import Person
from sublet.service import Service
from tests.api.conftest import HOST, Callers
from tests.smtp import Mailbox

pytestmark = pytest.mark.anyio
BOSS = "boss@example.org"


@pytest.fixture(scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory, mailbox: Mailbox) -> AsyncIterator[Service]:
    """A gateway for two domains, with one operator."""
    home: Path = tmp_path_factory.mktemp("gateway")
    allow = SigningSettings(allow=("*@example.org", "*@example.edu"))
    platforms = {"trial": {"kind": "memory"}}
    settings = Settings.load(home, mode="gateway", mail=mailbox.settings, signing=allow, platforms=platforms)
    async with open_service(settings, loop=False) as opened:
        yield opened


async def signed_in(callers: Callers, mailbox: Mailbox, address: str) -> httpx2.AsyncClient:
    """Someone who has just signed in, as a client would."""
    number = len(mailbox.to(address)) + 1
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=callers.app), base_url=HOST) as nobody:
        assert (await nobody.post("/v1/sign-in", json={"address": address})).status_code == 202
        await mailbox.comes_for(address, number)
        body = {"address": address, "code": mailbox.code(address, number), "client": "a test"}
        answer = await nobody.post("/v1/sign-in/code", json=body)
    assert answer.status_code == 201, answer.text
    return await callers.with_headers({"authorization": f"Bearer {answer.json()['token']}"})


@pytest.fixture(scope="module")
async def boss(callers: Callers, mailbox: Mailbox) -> httpx2.AsyncClient:
    """The gateway's operator, whom its machine's owner made one."""
    await callers.service.people.directory.add_person(Person("owner", operator=True), BOSS, "operator")
    return await signed_in(callers, mailbox, BOSS)


async def test_someone_signs_in_looks_who_they_are_and_signs_out(callers: Callers, mailbox: Mailbox) -> None:
    anna = await signed_in(callers, mailbox, "anna@example.org")
    who = (await anna.get("/v1/whoami")).json()
    assert (who["person"], who["mode"], who["role"]) == ("anna@example.org", "gateway", "person")
    (token,) = (await anna.get("/v1/tokens")).json()["items"]
    assert (token["note"], token["use"], token["token"]) == ("a test", "api", "")
    mine = (await anna.get("/v1/people/anna@example.org")).json()
    assert [(one["kind"], one["value"]) for one in mine["identities"]] == [("email", "anna@example.org")]
    assert (await anna.post("/v1/sign-out")).status_code == 204
    assert (await anna.get("/v1/whoami")).status_code == 401
    assert (await anna.post("/v1/sign-out")).status_code == 401


async def test_the_answer_is_the_same_whoever_is_asked_for(
    callers: Callers, boss: httpx2.AsyncClient, mailbox: Mailbox, anonymous: httpx2.AsyncClient
) -> None:
    await boss.post("/v1/people", json={"address": "blocked@example.org"})
    await boss.post("/v1/people/blocked@example.org/block", json={"why": "left"})
    addresses = (BOSS, "new@example.org", "eve@elsewhere.example", "blocked@example.org")
    asked = [await anonymous.post("/v1/sign-in", json={"address": one}) for one in addresses]
    assert len({(one.status_code, one.content, str(one.headers)) for one in asked}) == 1
    tried = [await anonymous.post("/v1/sign-in/code", json={"address": one, "code": "0"}) for one in addresses]
    assert {one.status_code for one in tried} == {403}
    assert len({(one.content, str(one.headers)) for one in tried}) == 1
    await mailbox.comes_for("new@example.org")
    assert mailbox.to("eve@elsewhere.example") == mailbox.to("blocked@example.org") == []


async def test_what_is_no_address_is_refused_and_no_header_is_added(
    anonymous: httpx2.AsyncClient, mailbox: Mailbox
) -> None:
    before = len(mailbox.mails)
    for address in ("anna@example.org\r\nBcc: eve@example.net", "anna@example.org,eve@example.net", ""):
        answer = await anonymous.post("/v1/sign-in", json={"address": address})
        assert (answer.status_code, answer.json()["code"]) == (400, "bad-address")
    assert len(mailbox.mails) == before


async def test_too_many_codes_for_one_address_must_wait(anonymous: httpx2.AsyncClient) -> None:
    answers = [await anonymous.post("/v1/sign-in", json={"address": "often@example.org"}) for _ in range(7)]
    assert [one.status_code for one in answers] == [202] * 6 + [429]
    assert int(answers[-1].headers["retry-after"]) > 3000


async def test_an_operator_sees_and_changes_people(
    boss: httpx2.AsyncClient, callers: Callers, mailbox: Mailbox
) -> None:
    ben = await signed_in(callers, mailbox, "ben@example.edu")
    path = "/v1/people/ben@example.edu"
    names = [one["name"] for one in (await boss.get("/v1/people")).json()["items"]]
    assert {"ben@example.edu", BOSS} <= set(names)
    first = (await boss.get("/v1/people", params={"limit": 1})).json()
    assert (len(first["items"]), first["next"]) == (1, names[0])
    assert (await boss.get("/v1/people", params={"limit": 1, "after": names[0]})).json()["items"][0]["name"] == names[1]
    assert (await boss.put(f"{path}/role", json={"role": "reviewer"})).json()["role"] == "reviewer"
    assert (await ben.get("/v1/whoami")).json()["role"] == "reviewer"
    assert (await boss.put(f"{path}/role", json={"role": "king"})).status_code == 400
    identity = {"kind": "system:expanse", "value": "ben7"}
    assert (await boss.post(f"{path}/identities", json=identity)).status_code == 201
    assert (await boss.post(f"{path}/identities", json=identity)).json()["code"] == "already-there"
    assert len((await boss.get(path)).json()["identities"]) == 2
    assert len((await boss.delete(f"{path}/identities", params=identity)).json()["identities"]) == 1
    own = {"kind": "email", "value": "ben@example.edu"}
    assert (await boss.delete(f"{path}/identities", params=own)).status_code == 400
    assert (await boss.post("/v1/people", json={"address": "Ben@Example.edu"})).status_code == 409
    assert (await boss.post(f"{path}/block", json={"why": "on leave"})).json()["why"] == "on leave"
    kept_out = await ben.get("/v1/whoami")
    assert (kept_out.status_code, kept_out.json()["code"]) == (403, "blocked")
    assert BOSS in kept_out.json()["hint"]
    assert "on leave" not in kept_out.text
    blocked = (await boss.get("/v1/people", params={"blocked": True})).json()["items"]
    assert "ben@example.edu" in {one["name"] for one in blocked}
    assert (await boss.post(f"{path}/unblock")).json()["blocked"] is False
    assert (await ben.get("/v1/whoami")).status_code == 200
    assert (await boss.delete(path)).status_code == 204
    assert (await ben.get("/v1/whoami")).status_code == 401
    assert (await boss.get(path)).status_code == 404


async def test_an_operator_makes_groups(boss: httpx2.AsyncClient) -> None:
    made = await boss.post("/v1/groups", json={"name": "hydro", "note": "who model rivers"})
    assert (made.status_code, made.json()["members"]) == (201, [])
    assert (await boss.post("/v1/groups", json={"name": "hydro"})).status_code == 409
    assert (await boss.post("/v1/groups", json={"name": "a:b"})).status_code == 400
    joined = (await boss.put("/v1/groups/hydro/members/Carl@Example.edu")).json()
    assert joined["members"] == ["carl@example.edu"]
    assert (await boss.get("/v1/groups")).json()["items"] == [joined]
    assert (await boss.delete("/v1/groups/hydro/members/carl@example.edu")).json()["members"] == []
    assert (await boss.delete("/v1/groups/hydro")).status_code == 204
    assert (await boss.get("/v1/groups/hydro")).status_code == 404


async def test_a_person_sees_themselves_and_nobody_else(
    callers: Callers, mailbox: Mailbox, boss: httpx2.AsyncClient
) -> None:
    dora = await signed_in(callers, mailbox, "dora@example.org")
    looks = ("/v1/people", f"/v1/people/{BOSS}", "/v1/people/nobody@example.org", "/v1/groups", "/v1/groups/hydro")
    assert {(await dora.get(path)).status_code for path in looks} == {403}
    role = await dora.put("/v1/people/dora@example.org/role", json={"role": "operator"})
    assert (role.status_code, role.json()["code"]) == (403, "operators-only")
    assert (await dora.post(f"/v1/people/{BOSS}/block", json={})).status_code == 403
    assert (await dora.delete(f"/v1/people/{BOSS}")).status_code == 403


async def test_what_operators_did_is_written_down(boss: httpx2.AsyncClient, service: Service) -> None:
    await boss.post("/v1/people", json={"address": "noted@example.org", "role": "reviewer"})
    await boss.post("/v1/people/noted@example.org/block", json={"why": "a test"})
    found = await service.store.read(lambda tx: tx.audit.list(name="noted@example.org"))
    said = [(one.person, one.action, one.detail, one.host) for one in found]
    assert said == [
        (BOSS, "person.add", {"role": "reviewer"}, "127.0.0.1"),
        (BOSS, "person.block", {"why": "a test"}, "127.0.0.1"),
    ]


async def test_a_class_of_forty_behind_one_address_signs_in_within_a_minute(
    callers: Callers, mailbox: Mailbox, service: Service
) -> None:
    """Under the default limits, although each shows an old token, mistypes the code once and asks for access."""
    transport = httpx2.ASGITransport(app=callers.app, client=("198.51.100.40", 4711))
    async with httpx2.AsyncClient(transport=transport, base_url=HOST) as room:
        for number in range(40):
            pupil = {"address": f"pupil-{number}@example.edu"}
            assert (await room.get("/v1/whoami", headers={"authorization": "Bearer sublet_old"})).status_code == 401
            assert (await room.post("/v1/sign-in", json=pupil)).status_code == 202
            await mailbox.comes_for(pupil["address"])
            assert (await room.post("/v1/sign-in/code", json=pupil | {"code": "1"})).status_code == 403
            code = {"code": mailbox.code(pupil["address"]), "client": "class"}
            signed_in = await room.post("/v1/sign-in/code", json=pupil | code)
            assert signed_in.status_code == 201, (number, signed_in.text)
            asked = {"name": "trial", "why": "for the class"}
            bearer = {"authorization": f"Bearer {signed_in.json()['token']}"}
            assert (await room.post("/v1/access/requests", json=asked, headers=bearer)).status_code == 201
