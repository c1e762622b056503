"""A browser signs in to a gateway by a real OpenID provider, and shows a second factor; a terminal does too."""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import timedelta
from html import unescape
from http.cookies import SimpleCookie
from pathlib import Path

import httpx2
import pyotp
import pytest
from fastapi import FastAPI

from sublet.app import open_service
from sublet.kernel import master_key
from sublet.kernel.settings import Settings
from sublet.server.app import make_app
from tests.clocks import LateClock
from tests.openid import OpenId, openid

pytestmark = pytest.mark.anyio
HOSTS = ("http://broker.test", "https://broker.test")
BEGIN = "/web/sign-in/oidc/campus"


@pytest.fixture(scope="module")
def campus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenId]:
    with openid(tmp_path_factory.mktemp("campus"), *(f"{host}{BEGIN}/back" for host in HOSTS)) as started:
        yield started


@pytest.fixture
def clock() -> LateClock:
    return LateClock()


@pytest.fixture
async def app(tmp_path: Path, campus: OpenId, clock: LateClock) -> AsyncIterator[FastAPI]:
    """A gateway that trusts the provider."""
    key = tmp_path / "keys" / "master"
    key.parent.mkdir(mode=0o700)
    master_key.make(str(key))
    values = {"mode": "gateway", "master_key": str(key), "oidc": {"campus": campus.settings(title="the campus")}}
    platforms = {"memory": {"kind": "memory"}}
    settings = Settings.load(tmp_path / "home", platforms=platforms, **values)
    async with open_service(settings, now=clock, loop=False) as service:
        yield make_app(service, "owner")


@dataclass
class Browser:
    """Someone in front of the pages."""

    client: httpx2.AsyncClient
    campus: OpenId

    async def goes_there(self, person: str, **wish: str) -> str:
        """Begin, sign in at the provider, and say where that leads back to."""
        begun = await self.client.get(BEGIN, params=wish)
        assert begun.status_code == 303, begun.text
        return self.campus.sign_in(begun.headers["location"], person)

    async def enters(self, person: str, **wish: str) -> httpx2.Response:
        return await self.client.get(await self.goes_there(person, **wish))

    async def presses(self, page: str, action: str, **typed: str) -> httpx2.Response:
        """Send one of a page's forms."""
        form = page[page.index(f'action="{action}"') :].partition("</form>")[0]
        hidden = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)
        fields = {name: unescape(value) for name, value in hidden} | typed
        return await self.client.post(action, data=fields)


@pytest.fixture
async def browser(app: FastAPI, campus: OpenId) -> AsyncIterator[Browser]:
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url=HOSTS[0], timeout=60) as client:
        yield Browser(client, campus)


def cookies(answer: httpx2.Response) -> SimpleCookie:
    """What an answer sets."""
    found = SimpleCookie()
    for line in answer.headers.get_list("set-cookie"):
        found.load(line)
    return found


async def test_a_browser_goes_there_and_comes_back_signed_in(browser: Browser) -> None:
    client = browser.client
    login = await client.get("/web/login", params={"next": "/web/sessions"})
    assert "Sign in with the campus" in login.text
    assert f"{BEGIN}?next=/web/sessions" in unescape(login.text)

    begun = await client.get(BEGIN, params={"next": "/web/sessions"})
    kept = cookies(begun)["sublet_oidc"]
    assert (kept["samesite"], kept["path"], kept["httponly"]) == ("lax", "/web/sign-in/oidc", True)
    back = browser.campus.sign_in(begun.headers["location"], "ann")
    entered = await client.get(back)
    assert (entered.status_code, entered.headers["location"]) == (303, "/web/sessions")
    visit = cookies(entered)["sublet_web"]
    assert (visit["samesite"], visit["path"], visit["httponly"], visit["secure"]) == ("lax", "/web", True, "")
    assert "ann@illinois.edu" in (await client.get("/web/sessions")).text

    for path in ("/v1/whoami", "/v1/sessions", "/v1/factor"):  # a cookie is no token
        assert (await client.get(path, headers={"cookie": f"sublet_web={visit.value}"})).status_code == 401
    assert (await client.post("/direct", json={}, headers={"cookie": f"sublet_web={visit.value}"})).status_code == 401

    again = await client.get(back)  # the same once more
    assert again.status_code == 403
    out = await browser.presses((await client.get("/web/")).text, "/web/logout")
    assert out.status_code == 303
    stolen = await client.get("/web/", headers={"cookie": f"sublet_web={visit.value}"})
    assert stolen.status_code == 303  # the visit is over, whoever kept its cookie


async def test_another_browser_gets_nowhere_with_the_address(browser: Browser, app: FastAPI) -> None:
    back = await browser.goes_there("ann")
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url=HOSTS[0]) as victim:
        answer = await victim.get(back)
        assert answer.status_code == 403
        assert "did not begin it" in answer.text
        assert "sublet_web" not in cookies(answer)
    wrong = await browser.client.get(back.replace("state=", "state=x"))
    assert wrong.status_code == 403
    assert (await browser.client.get("/web/sign-in/oidc/nowhere")).status_code == 404
    assert (await browser.client.get(BEGIN, params={"challenge": "<script>"})).status_code == 400


async def test_by_https_the_cookie_is_this_hosts_alone(app: FastAPI, campus: OpenId) -> None:
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url=HOSTS[1], timeout=60) as client:
        visit = cookies(await Browser(client, campus).enters("ann"))["__Host-sublet_web"]
        assert (visit["samesite"], visit["path"], visit["httponly"], visit["secure"], visit["domain"]) == (
            "lax",
            "/",
            True,
            True,
            "",
        )
        assert (await client.get("/web/")).status_code == 200
        assert (await client.get("/v1/whoami")).status_code == 401
        client.cookies.clear()
        client.cookies.set("sublet_web", visit.value, domain="broker.test")  # as a neighbouring host could
        assert (await client.get("/web/")).status_code == 303


async def test_a_second_factor_is_set_up_on_a_page_and_asked_for_from_then_on(
    browser: Browser, clock: LateClock
) -> None:
    client = browser.client
    await browser.enters("ann")
    page = (await client.get("/web/account/factor")).text
    begun = (await browser.presses(page, "/web/account/factor/begin")).text
    secret = re.search(r"<code>((?:[A-Z2-7]{4} ?){8})</code>", begun)
    assert secret
    otp = pyotp.TOTP(secret[1].replace(" ", ""))
    wrong = await browser.presses(begun, "/web/account/factor/confirm", code="000000")
    assert wrong.status_code == 403
    on = await browser.presses(wrong.text, "/web/account/factor/confirm", code=otp.at(clock()))
    assert on.status_code == 200, on.text
    recovery = re.findall(r"^(?:<pre[^>]*>)?([a-z2-9]{10})$", on.text, re.M)
    assert len(recovery) == 8

    client.cookies.clear()
    clock.later = timedelta(seconds=30)
    asked = await browser.enters("ann", next="/web/sessions")
    assert "Second factor" in asked.text
    assert "sublet_web" not in cookies(asked)
    assert (await client.get("/web/")).status_code == 303
    refused = await browser.presses(asked.text, "/web/login/second", code="123")
    assert refused.status_code == 403
    entered = await browser.presses(refused.text, "/web/login/second", code=otp.at(clock()))
    assert entered.headers["location"] == "/web/sessions"
    assert (await client.get("/web/account/factor")).status_code == 200
    off = await browser.presses(
        (await client.get("/web/account/factor")).text, "/web/account/factor/off", code=recovery[3]
    )
    assert "It is off" in off.text


async def test_a_terminal_signs_in_by_the_code_that_a_page_shows(browser: Browser, clock: LateClock) -> None:
    client = browser.client
    (way,) = (await client.get("/v1/sign-in/ways")).json()["items"]
    assert way == {"name": "campus", "title": "the campus", "page": f"{HOSTS[0]}{BEGIN}"}
    verifier = "known to the terminal alone"
    challenge = hashlib.sha256(verifier.encode()).hexdigest()
    shown = await browser.enters("ann", challenge=challenge)
    code = re.search(r"<code>(sublet_[^<]+)</code>", shown.text)
    assert code
    assert "sublet_web" not in cookies(shown)
    wish = {"code": code[1], "verifier": verifier, "client": "laptop"}
    made = (await client.post("/v1/sign-in/once", json=wish)).json()
    assert (made["person"], made["use"]) == ("ann@illinois.edu", "api")
    assert (await client.post("/v1/sign-in/once", json=wish)).json()["code"] == "wrong-code"
    headers = {"authorization": f"Bearer {made['token']}"}
    assert (await client.get("/v1/factor", headers=headers)).json()["on"] is False

    begun = (await client.post("/v1/factor", headers=headers)).json()
    otp = pyotp.TOTP(begun["secret"])
    done = await client.post("/v1/factor/confirm", headers=headers, json={"code": otp.at(clock())})
    assert len(done.json()["codes"]) == 8
    shown = await browser.enters("ann", challenge=challenge)
    code = re.search(r"<code>(sublet_[^<]+)</code>", shown.text)
    assert code
    half = (await client.post("/v1/sign-in/once", json=wish | {"code": code[1]})).json()
    assert half["use"] == "half-api"
    assert (await client.get("/v1/whoami", headers={"authorization": f"Bearer {half['token']}"})).status_code == 401
    clock.later = timedelta(seconds=30)
    wish = {"token": half["token"], "code": otp.at(clock())}
    whole = (await client.post("/v1/sign-in/second", json=wish)).json()
    headers = {"authorization": f"Bearer {whole['token']}"}
    assert (await client.get("/v1/whoami", headers=headers)).json()["person"] == "ann@illinois.edu"
    assert (await client.post("/v1/factor/remove", headers=headers, json={})).json()["code"] == "factor-needed"
    assert (await client.post("/v1/factor/remove", headers=headers, json={"code": done.json()["codes"][0]})).is_success


async def test_an_identity_is_added_only_by_a_form_of_ones_own(browser: Browser) -> None:
    client = browser.client
    await browser.enters("ann")
    account = (await client.get("/web/account")).text
    leaving = await browser.presses(account, "/web/account/link/campus")
    there = re.search(r'rel="noreferrer" href="([^"]+)"', leaving.text)
    assert there
    linked = await client.get(browser.campus.sign_in(unescape(there[1]), "eve"))
    assert linked.headers["location"] == "/web/account"
    assert "u-eve" in (await client.get("/web/account")).text
    client.cookies.clear()
    await browser.enters("eve")
    assert "ann@illinois.edu" in (await client.get("/web/account")).text
    forged = await client.post("/web/account/link/campus", data={"token": "guessed"})
    assert forged.status_code == 403
    assert (await client.get("/web/account/link/campus")).status_code == 405
