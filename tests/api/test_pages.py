"""The door to the pages: who is let in, which forms are believed, and what a browser is told."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import httpx2
import pytest

from sublet.api.people import ON_SOCKET
from sublet.data.model.places import USUAL_KEEP, DeclaredPlace, PlaceKind
from sublet.people.model.person import Person
from sublet.service import Service
from sublet.web.entry import COOKIE, Sealed, issue_code, seal, unseal
from tests.api.conftest import HOST, Callers

pytestmark = pytest.mark.anyio

SHORT = {"run": "true", "cores": 1, "time": "10m"}


async def token_on(client: httpx2.AsyncClient, page: str, action: str) -> str:
    """The proof that a form on a page carries."""
    return token_in((await client.get(page)).text, action)


def token_in(text: str, action: str) -> str:
    """The proof that the form for an action carries in a page's text."""
    form = text[text.index(f'action="{action}"') :]
    found = re.search(r'name="token" value="([0-9a-f]+)"', form)
    assert found, text
    return found[1]


@pytest.fixture
async def eve(callers: Callers, service: Service) -> httpx2.AsyncClient:
    """Someone who signed in to the pages with a token."""
    client = await callers.with_headers()
    _, secret = await service.people.tokens.make_token(Person("eve"))
    form = {"token": await token_on(client, "/web/login", "/web/login"), "secret": secret}
    answer = await client.post("/web/login", data=form)
    assert (answer.status_code, answer.headers["location"]) == (303, "/web/")
    return client


async def test_without_a_cookie_every_page_leads_to_the_door_and_back(anonymous: httpx2.AsyncClient) -> None:
    for path in ("/web/", "/web/ask", "/web/sessions?name=x", "/web/sessions/1234/log"):
        answer = await anonymous.get(path)
        assert answer.status_code == 303
        assert answer.headers["location"].startswith("/web/login?next=%2Fweb%2F")


async def test_the_cookie_is_strict_hidden_from_scripts_and_for_the_pages_only(eve: httpx2.AsyncClient) -> None:
    cookie = eve.cookies.get(COOKIE)
    assert cookie
    assert (await eve.get("/web/")).status_code == 200
    for path in ("/v1/sessions", "/v1/whoami", "/sessions/1234", "/offersets/1234"):
        assert (await eve.get(path, headers={"cookie": f"{COOKIE}={cookie}"})).status_code == 401
    form = {"token": await token_on(eve, "/web/login", "/web/login"), "secret": "wrong"}
    assert (await eve.post("/web/login", data=form)).status_code == 403


async def test_signing_in_sets_all_the_flags(service: Service, anonymous: httpx2.AsyncClient) -> None:
    answer = await anonymous.get(f"/web/login?code={issue_code(service, Person('eve'))}")
    flags = answer.headers["set-cookie"].lower()
    assert all(flag in flags for flag in ("httponly", "samesite=strict", "path=/web", "max-age=43200"))
    assert "secure" not in flags  # this service is reached by http


async def test_a_revoked_token_ends_the_visit(callers: Callers, service: Service) -> None:
    client = await callers.with_headers()
    person = Person("gone")
    token, secret = await service.people.tokens.make_token(person, expires_in=timedelta(hours=1))
    form = {"token": await token_on(client, "/web/login", "/web/login"), "secret": secret}
    answer = await client.post("/web/login", data=form)
    assert 3500 < int(answer.headers["set-cookie"].lower().partition("max-age=")[2].partition(";")[0]) <= 3600
    assert (await client.get("/web/")).status_code == 200
    await service.people.tokens.revoke_token(person, token.id)
    assert (await client.get("/web/")).status_code == 303


async def test_a_link_lets_its_person_in_once(service: Service, callers: Callers) -> None:
    code = issue_code(service, Person("eve"))
    first, second = await callers.with_headers(), await callers.with_headers()
    assert (await first.get(f"/web/login?code={code}")).headers["location"] == "/web/"
    assert "eve" in (await first.get("/web/")).text
    assert (await second.get(f"/web/login?code={code}")).status_code == 403


async def test_what_is_sealed_for_one_purpose_or_has_expired_or_was_changed_is_worth_nothing(service: Service) -> None:
    eve = Sealed(Person("eve"), "")
    good = seal(service, "cookie", eve, timedelta(hours=1))
    assert unseal(service, "cookie", good) == eve
    assert unseal(service, "code", good) is None
    assert unseal(service, "cookie", seal(service, "cookie", eve, timedelta(seconds=-1))) is None
    body, _, signature = good.partition(".")
    for forged in (f"{body[:-1]}.{signature}", f"{body}.{signature[:-1]}0x", body, "", ".", "é.é"):
        assert unseal(service, "cookie", forged) is None


async def test_codes_are_made_by_the_unix_socket_alone(callers: Callers, anonymous: httpx2.AsyncClient) -> None:
    assert (await anonymous.post("/web/code")).status_code == 404
    async with by_socket(callers) as owner:
        made = await owner.post("/web/code")
        assert "/web/login?code=" in made.json()["url"]
        assert (await owner.post("/web/code", headers={"origin": "http://evil.example"})).status_code == 404


def by_socket(callers: Callers, host: str = "http://localhost") -> httpx2.AsyncClient:
    """The owner, who comes by the Unix socket."""

    async def app(scope: dict, receive: object, send: object) -> None:  # type: ignore[type-arg]
        await callers.app({**scope, ON_SOCKET: True}, receive, send)  # type: ignore[arg-type]

    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=host)


async def test_by_the_unix_socket_nobody_signs_in_and_no_other_host_is_believed(callers: Callers) -> None:
    async with by_socket(callers) as owner:
        page = await owner.get("/web/")
        assert page.status_code == 200
        assert "Sign out" not in page.text
    async with by_socket(callers, "http://rebound.example") as tricked:
        assert (await tricked.get("/web/")).status_code == 403


async def test_a_form_without_proof_or_from_elsewhere_changes_nothing(eve: httpx2.AsyncClient) -> None:
    good = await token_on(eve, "/web/ask", "/web/ask")
    form = {"token": good, "document": "run: 'true'\ntime: 10m\n"}
    for headers in ({"sec-fetch-site": "cross-site"}, {"sec-fetch-site": "same-site"}, {"origin": "http://evil.test"}):
        assert (await eve.post("/web/ask", data=form, headers=headers)).status_code == 403
    for token in ("", "0" * 64, await token_on(eve, "/web/", "/web/logout")):
        assert (await eve.post("/web/ask", data=form | {"token": token})).status_code == 403
    assert (await eve.post("/web/ask", content=b"{}", headers={"content-type": "text/plain"})).status_code == 415
    answer = await eve.post("/web/ask", data=form, headers={"origin": HOST, "sec-fetch-site": "same-origin"})
    assert answer.headers["location"].startswith("/web/offersets/")


async def test_what_belongs_to_someone_else_is_not_shown(eve: httpx2.AsyncClient, ann: httpx2.AsyncClient) -> None:
    made = (await ann.post("/v1/offersets", json=SHORT)).json()
    session = made["offers"][0]["id"]
    below = ("", "/log", "/log/download", "/files", "/preview/a.txt", "/raw/a.html", "/results/a.txt", "/archive")
    paths = [f"sessions/{session}{path}" for path in below]
    for path in (f"offersets/{made['id']}", f"ask?from={made['id']}", *paths):
        assert (await eve.get(f"/web/{path}")).status_code in (403, 404)


async def test_text_that_people_wrote_is_text_on_every_page(eve: httpx2.AsyncClient) -> None:
    evil = "<script>alert(1)</script>\"'; $(id)"
    token = await token_on(eve, "/web/ask", "/web/ask")
    form = {"token": token, "what": "command", "script": evil, "name": evil, "cores": "1", "time": "10m"}
    where = (await eve.post("/web/ask", data=form)).headers["location"]
    pages = [
        where,
        f"/web/ask?from={where.rpartition('/')[2]}",
        "/web/sessions?phase=OFFERED",
        f"/web/sessions?name={evil}",
    ]
    for path in pages:
        text = (await eve.get(path)).text
        assert "<script>alert" not in text
        assert evil in unescape(text)


async def test_steps_are_asked_for_in_the_form_and_changed_there(eve: httpx2.AsyncClient) -> None:
    token = await token_on(eve, "/web/ask", "/web/ask")
    form = {"token": token, "what": "steps", "cores": "1", "time": "10m", "steps_how": "together"}
    empty = await eve.post("/web/ask", data=form)
    assert (empty.status_code, "Say what the steps run." in empty.text) == (400, True)
    unclosed = await eve.post("/web/ask", data=form | {"steps": "true\necho 'a"})
    assert (unclosed.status_code, 'id="steps-wrong"' in unclosed.text) == (400, True)
    where = (await eve.post("/web/ask", data=form | {"steps": "make=echo 1\r\necho 2\r\n"})).headers["location"]
    again = unescape((await eve.get(f"/web/ask?from={where.rpartition('/')[2]}")).text)
    assert "make=echo 1\necho 2</textarea>" in again
    assert '<option value="together" selected>' in again


async def test_a_program_for_each_node_is_asked_for_in_the_form_and_changed_there(eve: httpx2.AsyncClient) -> None:
    token = await token_on(eve, "/web/ask", "/web/ask")
    form = {"token": token, "what": "command", "script": "true", "cores": "1", "time": "10m"}
    box = '<input type="checkbox" id="each_node" name="each_node" value="true"{} aria-describedby="each_node-hint">'
    for more, checked in (({"each_node": "true"}, " checked"), ({}, "")):
        where = (await eve.post("/web/ask", data=form | more)).headers["location"]
        assert box.format(checked) in unescape((await eve.get(f"/web/ask?from={where.rpartition('/')[2]}")).text)


async def test_browsers_are_told_to_be_strict(eve: httpx2.AsyncClient, anonymous: httpx2.AsyncClient) -> None:
    for answer in (await eve.get("/web/"), await anonymous.get("/web/login"), await eve.get("/web/nowhere")):
        headers = answer.headers
        assert headers["content-security-policy"].startswith("default-src 'self';")
        assert "unsafe" not in headers["content-security-policy"]
        assert (headers["x-frame-options"], headers["referrer-policy"]) == ("DENY", "no-referrer")
        assert headers["cache-control"] == "no-store"
        assert not re.search(r"<script(?! src)|<style| style=| on[a-z]+=", answer.text)


@pytest.mark.parametrize("path", ["//evil.example", "https://evil.example", "/web/\\evil", "/v1/x", "javascript:1", ""])
async def test_after_signing_in_nobody_is_sent_elsewhere(anonymous: httpx2.AsyncClient, path: str) -> None:
    page = (await anonymous.get("/web/login", params={"next": path})).text
    assert 'name="next" value="/web/"' in page


async def test_a_log_offset_or_filter_that_is_nonsense_is_not_an_error(eve: httpx2.AsyncClient) -> None:
    token = await token_on(eve, "/web/ask", "/web/ask")
    made = (await eve.post("/web/ask", data={"token": token, "document": "run: 'true'\ntime: 10m\n"})).headers[
        "location"
    ]
    session = re.findall(r'action="(/web/sessions/[0-9a-f-]+)/accept"', (await eve.get(made)).text)[0]
    assert (await eve.get(f"{session}/log?stream=nothing&offset=-1")).status_code == 200
    assert (await eve.get(f"{session}?stdout=99999999999999999999")).status_code == 200
    assert (await eve.get("/web/sessions?phase=NOWHERE&kind=%00&after=x")).status_code in (200, 400)
    assert (await eve.get(f"/web/ask?from={made.rpartition('/')[2]}&heed=%00")).status_code == 200


async def test_a_page_has_one_clock_and_a_typed_time_is_on_it(eve: httpx2.AsyncClient, service: Service) -> None:
    eve.cookies.set("sublet_zone", "Asia/Tehran")
    token = await token_on(eve, "/web/ask", "/web/ask")
    form = {"token": token, "what": "command", "script": "true", "cores": "1", "time": "10m"}
    where = (await eve.post("/web/ask", data={**form, "start": "tomorrow 09:00-10:00"})).headers["location"]
    shown = await eve.get(where)
    [asked] = (await service.asking.offerset(where.rpartition("/")[2], Person("eve"))).request.windows
    assert (asked.start.hour, asked.start.minute) == (5, 30)
    assert "tomorrow 09:00" in shown.text
    session = re.findall(r'action="(/web/sessions/[0-9a-f-]+)/accept"', shown.text)[0]
    for path in (where, session, f"/web/ask?from={where.rpartition('/')[2]}", "/web/sessions", "/web/"):
        seen = re.sub(r"<[^>]*>", "", (await eve.get(path)).text)
        assert not re.search(r"[0-9] ?UTC|:[0-9]{2}Z", seen), path  # UTC is in titles, for the record
    late = await eve.post("/web/ask", data={**form, "start": "2020-01-01T09:00/PT1H"})
    assert not re.search(
        r"[0-9] ?UTC|:[0-9]{2}Z", re.sub(r"<[^>]*>", "", (await eve.get(late.headers["location"])).text)
    )


async def test_a_sessions_page_says_what_it_runs(eve: httpx2.AsyncClient) -> None:
    token = await token_on(eve, "/web/ask", "/web/ask")
    document = "script: |\n  set -e\n  make <all>\nenv:\n  API_TOKEN: hunter2\ncores: 2\ntime: 10m\n"
    where = (await eve.post("/web/ask", data={"token": token, "document": document})).headers["location"]
    session = re.findall(r'action="(/web/sessions/[0-9a-f-]+)/accept"', (await eve.get(where)).text)[0]
    text = unescape((await eve.get(session)).text)
    assert "set -e\nmake <all>\n</pre>" in text
    assert "API_TOKEN (values are not shown)" in text
    assert "2 cores, 1 GiB, for 10 min" in text
    assert "hunter2" not in text


async def test_places_are_offered_in_the_form_and_asked_for_by_name(eve: httpx2.AsyncClient, service: Service) -> None:
    assert "Places it shares" not in (await eve.get("/web/ask")).text
    name = next(iter(service.platforms.by_name))
    place = DeclaredPlace(
        "scratch", name, PlaceKind.SCRATCH, "", "/scratch", True, USUAL_KEEP, (), "<mine>", service.now(), ""
    )
    await service.store.write(lambda tx: tx.places.put(place))
    shown = (await eve.get("/web/ask")).text
    assert f'<option value="scratch">scratch on {name}: &lt;mine&gt;</option>' in shown
    form = {"what": "command", "script": "true", "time": "10m", "cores": "1", "memory": "1GiB", "places": "scratch"}
    answer = await eve.post("/web/ask", data={**form, "token": token_in(shown, "/web/ask")})
    assert answer.status_code == 303
    offers = await service.asking.offerset(answer.headers["location"].rpartition("/")[2], Person("eve"))
    assert [wish.name for wish in offers.request.places] == ["scratch"]
    again = (await eve.get(f"/web/ask?from={offers.id}")).text
    assert 'name="places" value="scratch"' in again


async def test_who_follows_a_link_of_another_site_is_asked_to_sign_in_only_if_they_are_not(
    anonymous: httpx2.AsyncClient,
) -> None:
    path = "/web/sessions?name=%22%3E%3Cscript%3E"
    first = await anonymous.get(path, headers={"sec-fetch-site": "cross-site"})
    assert first.status_code == 200
    assert '<meta http-equiv="refresh" content="0; url=/web/sessions?name=%22%3E%3Cscript%3E">' in first.text
    again = await anonymous.get(path, headers={"sec-fetch-site": "same-origin"})
    assert again.status_code == 303
    assert again.headers["location"].startswith("/web/login?next=")
