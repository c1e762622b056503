"""A gateway's pages: signing in by mail, one's own account, and visits that end when they should."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from datetime import timedelta

import httpx2
import pytest
from starlette.requests import Request

from sublet.access.audit import Sought
from sublet.app import open_service
from sublet.kernel.errors import TooMany
from sublet.kernel.master_key import make
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person
from sublet.people.pages.signing_in import browser_of
from sublet.service import Service
from sublet.web.entry import COOKIE as NAME
from sublet.web.entry import HOST, KNOWN_COOKIE, Sealed, form_token, issue_code, seal
from tests.api.conftest import Callers
from tests.api.test_pages import token_in, token_on
from tests.smtp import Mailbox

pytestmark = pytest.mark.anyio
COOKIE, KNOWN = f"{HOST}{NAME}", f"{HOST}{KNOWN_COOKIE}"
ROOT = Person("root", operator=True)
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"


@pytest.fixture(scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory, mailbox: Mailbox) -> AsyncIterator[Service]:
    """A gateway that is reached by https."""
    home, trial = tmp_path_factory.mktemp("gateway"), {"trial": {"kind": "memory"}}
    master = str(tmp_path_factory.mktemp("key") / "master")
    make(master)
    url = "https://gateway.example.org"
    settings = Settings.load(home, mode="gateway", mail=mailbox.settings, platforms=trial, url=url, master_key=master)
    async with open_service(settings, loop=False) as opened:
        yield opened


async def coming(callers: Callers, mailbox: Mailbox, address: str, to: str = "") -> httpx2.Response:
    """What is answered to someone who types an address, and the code that came there."""
    client = await callers.with_headers({"user-agent": FIREFOX})
    number = len(mailbox.to(address)) + 1
    form = {"token": await token_on(client, "/web/login", "/web/login"), "address": address, "next": to}
    asked = await client.post("/web/login", data=form)
    assert asked.status_code == 200, asked.text
    await mailbox.comes_for(address, number)
    proof = asked.text[asked.text.index('action="/web/login/code"') :].partition('name="token" value="')[2][:64]
    typed = {"token": proof, "address": address, "code": mailbox.code(address, number), "next": to}
    return await client.post("/web/login/code", data=typed)


async def visit(callers: Callers, mailbox: Mailbox, address: str) -> httpx2.AsyncClient:
    """Someone who signed in on the pages."""
    answer = await coming(callers, mailbox, address)
    assert answer.status_code == 303, answer.text
    return await callers.with_headers({"cookie": f"{COOKIE}={answer.cookies[COOKIE]}"})


async def test_the_cookie_of_a_visit_has_all_its_flags_and_no_secret_of_its_token(
    callers: Callers, mailbox: Mailbox, service: Service
) -> None:
    answer = await coming(callers, mailbox, "anna@example.org", "/web/sessions?name=x")
    assert (answer.status_code, answer.headers["location"]) == (303, "/web/sessions?name=x")
    flags = answer.headers["set-cookie"].lower()
    assert all(flag in flags for flag in ("httponly", "samesite=lax", "secure", "path=/;", "max-age=43"))
    (token,) = await service.people.tokens.tokens(Person("anna@example.org"))
    assert (token.use, token.name) == ("browser", "Firefox on Linux")
    anna = await callers.with_headers({"cookie": f"{COOKIE}={answer.cookies[COOKIE]}"})
    assert (await anna.get("/web/")).status_code == 200
    assert (await anna.get("/v1/whoami")).status_code == 401
    bearer = await callers.with_headers({"authorization": f"Bearer {answer.cookies[COOKIE]}"})
    assert (await bearer.get("/v1/whoami")).status_code == 401


async def test_a_browser_that_signed_in_before_gets_a_code_however_many_strangers_ask_for(
    callers: Callers, mailbox: Mailbox, service: Service
) -> None:
    address = "ines@example.org"
    known = (await coming(callers, mailbox, address)).cookies[KNOWN]
    assert "ines" not in known
    for number in range(service.settings.throttle.sign_ins_per_address.most):
        with contextlib.suppress(TooMany):
            await service.people.signing_in.ask_code(address, f"192.0.2.{number}")
    answers = []
    for cookie, whom in (("", address), (known, "jane@example.org"), (known[::-1], address), (known, address)):
        client = await callers.with_headers({"cookie": f"{KNOWN}={cookie}"})
        form = {"token": await token_on(client, "/web/login", "/web/login"), "address": whom}
        answers.append((await client.post("/web/login", data=form)).status_code)
    assert answers == [429, 200, 429, 200]
    bearer = await callers.with_headers({"cookie": f"{KNOWN}={known}; {COOKIE}={known}"})
    assert (await bearer.get("/web/")).status_code == 303, "it opens nothing"


async def test_signing_out_ends_the_visit_whoever_has_its_cookie(callers: Callers, mailbox: Mailbox) -> None:
    ben = await visit(callers, mailbox, "ben@example.org")
    form = {"token": await token_on(ben, "/web/", "/web/logout")}
    assert (await ben.post("/web/logout", data=form)).headers["location"] == "/web/login"
    assert (await ben.get("/web/")).headers["location"].startswith("/web/login")


async def test_on_their_account_people_see_who_they_are_and_end_other_visits(
    callers: Callers, mailbox: Mailbox, service: Service
) -> None:
    here, there = [await visit(callers, mailbox, "carl@example.org") for _ in range(2)]
    await service.people.groups.add_group(ROOT, "hydro")
    await service.people.groups.join_group(ROOT, "hydro", "carl@example.org")
    await service.people.directory.add_identity(ROOT, "carl@example.org", "system:expanse", "<b>carl7</b>")
    page = (await here.get("/web/account")).text
    assert all(text in page for text in ("carl@example.org", "You are in hydro.", "&lt;b&gt;carl7", "this one"))
    assert page.count("Firefox on Linux</") + page.count("Firefox on Linux <") == 2
    tokens = {one.id for one in await service.people.tokens.tokens(Person("carl@example.org"))}
    proof = await token_on(here, "/web/account", "/web/account/revoke")
    for id in tokens:
        if f'value="{id}"' in page and id not in page.partition("this one")[2].partition("</tr>")[0]:
            question = await here.post("/web/account/revoke", data={"token": proof, "id": id})
            assert (question.status_code, "Sign out Firefox on Linux?" in question.text) == (200, True)
            assert (await there.get("/web/account")).status_code == 200
            sure = {"token": token_in(question.text, "/web/account/revoke"), "id": id, "confirmed": "yes"}
            assert (await here.post("/web/account/revoke", data=sure)).status_code == 303
    assert (await here.get("/web/account")).status_code == 200
    assert (await there.get("/web/account")).status_code == 303


async def test_nobody_ends_the_visit_of_another(callers: Callers, mailbox: Mailbox, service: Service) -> None:
    dora, eve = await visit(callers, mailbox, "dora@example.org"), await visit(callers, mailbox, "eve@example.org")
    (hers,) = await service.people.tokens.tokens(Person("dora@example.org"))
    proof = await token_on(eve, "/web/account", "/web/account/revoke")
    assert (await eve.post("/web/account/revoke", data={"token": proof, "id": hers.id})).status_code == 404
    assert (await eve.post("/web/account/revoke", data={"token": "0" * 64, "id": hers.id})).status_code == 403
    assert (await dora.get("/web/account")).status_code == 200


async def test_a_block_ends_the_visit_and_a_part_that_is_taken_away_is_gone(
    callers: Callers, mailbox: Mailbox, service: Service
) -> None:
    name = "fred@example.org"
    await service.people.directory.add_person(ROOT, name, "operator")
    fred = await visit(callers, mailbox, name)
    assert '<p class="over">operator</p>' in (await fred.get("/web/account")).text
    await service.people.directory.set_role(ROOT, name, "person")
    assert '<p class="over">person</p>' in (await fred.get("/web/account")).text
    await service.people.directory.block(ROOT, name, "left")
    kept_out = await fred.get("/web/account")
    assert (kept_out.status_code, "An operator has blocked fred@example.org" in kept_out.text) == (403, True)


async def test_a_cookie_that_names_no_visit_is_worth_nothing_here(callers: Callers, service: Service) -> None:
    for token in ("", "4b1f7f86-0000-4000-8000-000000000000"):
        cookie = seal(service, "cookie", Sealed(ROOT, token), timedelta(hours=1))
        someone = await callers.with_headers({"cookie": f"{COOKIE}={cookie}"})
        assert (await someone.get("/web/")).status_code == 303


async def test_the_owner_of_the_socket_comes_by_a_link_and_is_listed_too(callers: Callers, service: Service) -> None:
    client = await callers.with_headers()
    answer = await client.get(f"/web/login?code={issue_code(service, ROOT)}")
    root = await callers.with_headers({"cookie": f"{COOKIE}={answer.cookies[COOKIE]}"})
    assert '<p class="over">operator</p>' in (await root.get("/web/account")).text
    (token,) = await service.people.tokens.tokens(ROOT)
    await service.people.tokens.revoke_token(ROOT, token.id)
    assert (await root.get("/web/account")).status_code == 303


async def test_a_wrong_code_and_a_wrong_address_are_told_and_nothing_typed_becomes_part_of_the_page(
    callers: Callers, mailbox: Mailbox
) -> None:
    client = await callers.with_headers()
    proof = await token_on(client, "/web/login", "/web/login")
    for address in ('"><script>alert(1)</script>', "a@example.org\r\nBcc: eve@example.net"):
        said = await client.post("/web/login", data={"token": proof, "address": address})
        assert said.status_code == 400
        assert "<script>alert" not in said.text
        assert "is not an e-mail address" in said.text
    asked = await client.post("/web/login", data={"token": proof, "address": "gina@example.org"})
    code = asked.text[asked.text.index('action="/web/login/code"') :].partition('name="token" value="')[2][:64]
    wrong = {"token": code, "address": "gina@example.org", "code": "0", "next": "https://evil.example/"}
    said = await client.post("/web/login/code", data=wrong)
    assert said.status_code == 403
    assert "This code is wrong" in said.text
    assert "evil.example" not in said.text
    assert (await client.post("/web/login/code", data=wrong | {"token": "0" * 64})).status_code == 403
    assert COOKIE not in client.cookies
    await mailbox.comes_for("gina@example.org")


async def test_the_page_says_the_same_to_whoever_is_typed(callers: Callers, service: Service) -> None:
    await service.people.directory.add_person(ROOT, "known@example.org")
    await service.people.directory.add_person(ROOT, "shut@example.org")
    await service.people.directory.block(ROOT, "shut@example.org")
    client = await callers.with_headers()
    proof = await token_on(client, "/web/login", "/web/login")
    texts = set()
    for address in ("known@example.org", "other@example.org", "shut@example.org"):
        answer = await client.post("/web/login", data={"token": proof, "address": address})
        texts.add((answer.status_code, answer.text.replace(address, "ADDRESS")))
    assert len(texts) == 1


async def test_the_menu_leads_operators_to_what_they_operate(
    callers: Callers, mailbox: Mailbox, service: Service
) -> None:
    await service.people.directory.add_person(ROOT, "olga@example.org", "operator")
    op, other = await visit(callers, mailbox, "olga@example.org"), await visit(callers, mailbox, "ole@example.org")
    theirs = ("operate", "platforms", "rules", "people", "audit")
    for who, is_there in ((op, True), (other, False)):
        menu = (await who.get("/web/")).text.partition("</nav>")[0]
        assert {word: f'href="/web/{word}"' in menu for word in theirs} == dict.fromkeys(theirs, is_there)
    for word in theirs:
        assert f'href="/web/{word}" aria-current="page"' in (await op.get(f"/web/{word}")).text
    for who in (op, other):
        listed = await who.get("/web/platforms")
        assert (listed.status_code, "trial" in listed.text) == (200, True)
    assert 'href="/web/platforms/trial"' in (await op.get("/web/platforms")).text
    assert 'href="/web/platforms/trial"' not in (await other.get("/web/platforms")).text


async def test_lists_of_a_gateway_stay_true_while_they_are_open(
    callers: Callers, mailbox: Mailbox, service: Service
) -> None:
    await service.people.directory.add_person(ROOT, "olaf@example.org", "operator")
    op = await visit(callers, mailbox, "olaf@example.org")
    lists = ("people", "rules", "apps", "access", "operate", "platforms")
    for word in (*lists, "platforms/trial", "account", "hooks", "audit", "usage"):
        assert "data-live data-watch" in (await op.get(f"/web/{word}")).text, word
    sought = {"only": "operator", "after": "a@example.org"}
    assert (
        'data-watch="/web/people?only=operator&amp;after=a%40example.org"'
        in (await op.get("/web/people", params=sought)).text
    )


async def test_operators_see_and_change_people_on_a_page_and_nobody_else_does(
    callers: Callers, mailbox: Mailbox, service: Service
) -> None:
    boss, gus, here = "boss@example.org", "gus@example.org", "/web/people"
    await service.people.directory.add_person(ROOT, boss, "operator")
    op, other = await visit(callers, mailbox, boss), await visit(callers, mailbox, gus)

    async def act(change: str, **fields: str) -> httpx2.Response:
        proof = await token_on(op, here, f"{here}/{change}")
        return await op.post(f"{here}/{change}", data={"token": proof, **fields})

    assert (await act("add", name="Hal@Example.org", role="reviewer")).status_code == 303
    text = (await op.get(here)).text
    assert all(words in text for words in ("hal@example.org", ">People</a>", f"Role of {gus}"))
    assert all(f">{words}<" in text for words in ("Add a person", "Role", "Can sign in", "Filter", "Search"))
    assert "with a second factor" not in text
    now = service.now()
    await service.store.write(lambda tx: (tx.factors.put(gus, "sealed", now), tx.factors.confirm(gus, (), now)))
    rows = (await op.get(here)).text.split("<tr>")
    assert [gus in row for row in rows if "with a second factor" in row] == [True]
    assert (await act("reset-factor", name=gus)).status_code == 303
    assert "with a second factor" not in (await op.get(here)).text
    assert (await op.get(here)).text.count("Lost second factor") == 0
    assert f"Role of {boss}" not in text, "nobody takes away their own part by a slip"
    assert (await act("role", name=gus, role="reviewer")).status_code == 303
    assert gus in (await op.get(here, params={"only": "reviewer"})).text
    assert (await act("block", name=gus, why="<b>left</b>")).status_code == 303
    kept_out = await other.get("/web/")
    assert kept_out.status_code == 403
    assert f"An operator has blocked {gus};" in kept_out.text
    assert "Ask an operator to unblock you: " in kept_out.text
    assert boss in kept_out.text
    assert "left" not in kept_out.text, "the note is for operators"
    blocked = (await op.get(here, params={"only": "blocked"})).text
    assert ("&lt;b&gt;left" in blocked, boss in blocked.partition("<tbody>")[2]) == (True, False)
    assert (await act("unblock", name=gus)).status_code == 303
    assert (await other.get("/web/")).status_code == 200
    for wrong in ({"name": "nonsense"}, {"name": boss, "role": "person"}, {"name": "x@example.org", "role": "king"}):
        said = await act("add", **{"role": "person", **wrong})
        assert (said.status_code in (400, 409), 'role="alert"' in said.text) == (True, True)
    assert (await op.get(here, params={"name": "nobody@example.org"})).status_code == 404
    assert (await other.get(here)).status_code == 403
    assert ">People</a>" not in (await other.get("/web/")).text
    done = {one.action for one in await service.access.audit.audit(ROOT, Sought(person=boss))}
    assert done >= {"person.add", "person.role", "person.block", "person.unblock", "factor.off"}


async def test_on_a_page_people_say_who_is_told_of_their_sessions(
    callers: Callers, mailbox: Mailbox, service: Service
) -> None:
    name, here = "ina@example.org", "/web/hooks"
    ina = await visit(callers, mailbox, name)

    async def act(path: str, **fields: str) -> httpx2.Response:
        return await ina.post(path, data={"token": await token_on(ina, here, path), **fields})

    assert f'value="{name}"' in (await ina.get(here)).text
    by_mail = await act(here, address=name, expires="2d", **{"on.failed": "1", "on.ended": "1"})
    assert (by_mail.status_code, "failed, ended" in by_mail.text, "secret" in by_mail.text) == (200, True, False)
    [(hook, _)] = await service.notices.hooks.hooks(Person(name))
    assert (hook.address, hook.events) == (f"mailto:{name}", ("failed", "ended"))
    assert "It took it: sent." in (await act(f"{here}/{hook.id}/test")).text
    called = await act(here, address="https://8.8.8.8/told")
    secret = called.text.partition("shown this once: <code>")[2].partition("<")[0]
    assert len(secret) >= 40
    assert secret not in (await ina.get(here)).text
    evil = '"><script>alert(1)</script>'
    for wrong in ({"address": evil}, {"address": "eve@example.net"}, {"address": name, "expires": evil}):
        said = await act(here, **wrong)
        assert (said.status_code, "<script>alert" in said.text) == (400, False)
    jon = await visit(callers, mailbox, "jon@example.org")
    assert name not in (await jon.get(here)).text
    proof = form_token(service, jon.headers["cookie"].partition("=")[2], f"{here}/{hook.id}/remove")
    assert (await jon.post(f"{here}/{hook.id}/remove", data={"token": proof})).status_code == 404
    question = await act(f"{here}/{hook.id}/remove")
    assert f"Remove {name}?" in question.text
    assert len(await service.notices.hooks.hooks(Person(name))) == 2
    gone = await act(f"{here}/{hook.id}/remove", confirmed="yes")
    assert "will not be notified any more" in gone.text
    assert len(await service.notices.hooks.hooks(Person(name))) == 1


@pytest.mark.parametrize(
    ("said", "name"),
    [
        (FIREFOX, "Firefox on Linux"),
        ("Mozilla/5.0 (Windows NT 10.0) Chrome/128.0 Safari/537.36 Edg/128.0", "Edge on Windows"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) Version/17.0 Safari/604.1", "Safari on iPhone"),
        ("", "A browser"),
    ],
)
def test_a_browser_is_listed_by_its_name(said: str, name: str) -> None:
    scope = {"type": "http", "headers": [(b"user-agent", said.encode())]}
    assert browser_of(Request(scope)) == name
