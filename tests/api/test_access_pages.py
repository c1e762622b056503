"""The pages of access: what you may use, asking to be let in, deciding after signing in, and the audit log."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx2
import pytest

from sublet.app import open_service
from sublet.kernel.settings import Settings
from sublet.people.model.people import Known, Role
from sublet.people.model.person import Person
from sublet.service import Service
from tests.api.conftest import Callers
from tests.api.test_pages import token_on
from tests.contract.services import allow
from tests.smtp import Mailbox, text_of

pytestmark = pytest.mark.anyio
OP, ANNA = "op@example.org", "anna@illinois.edu"


@pytest.fixture(scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory, mailbox: Mailbox) -> AsyncIterator[Service]:
    settings = Settings.load(
        tmp_path_factory.mktemp("home"),
        mode="gateway",
        platforms={"keeling": {"kind": "memory"}, "open": {"kind": "memory", "pledges": {"night": {"cores": 4}}}},
        mail=mailbox.settings,
        url="http://broker.test",
    )
    async with open_service(settings, loop=False) as opened:
        now = opened.now()
        await opened.store.write(lambda tx: tx.people.add(Known(OP, Role.OPERATOR, now)))
        await allow(opened, "*@illinois.edu", name="open", cores=8, jobs=2, hours_month=10.0)
        yield opened


async def signed_in(callers: Callers, service: Service, name: str, *, operator: bool = False) -> httpx2.AsyncClient:
    client = await callers.with_headers()
    _, secret = await service.people.tokens.make_token(Person(name, operator))
    form = {"token": await token_on(client, "/web/login", "/web/login"), "secret": secret}
    assert (await client.post("/web/login", data=form)).status_code == 303
    return client


async def sent(client: httpx2.AsyncClient, page: str, action: str, **fields: str) -> httpx2.Response:
    return await client.post(action, data={"token": await token_on(client, page, action), **fields})


async def test_someone_asks_on_the_page_and_an_operator_decides_by_the_link_of_the_mail(
    callers: Callers, service: Service, mailbox: Mailbox
) -> None:
    anna = await signed_in(callers, service, ANNA)
    shown = (await anna.get("/web/access")).text
    assert all(
        words in shown for words in ("no rule allows it", "8 cores, 2 sessions at once", "2 sessions, 10 core-hours")
    )
    assert ">Audit<" not in shown
    first, form = (await anna.get("/web/")).text, (await anna.get("/web/ask")).text
    assert ("calendar-1" in first, "calendar-2" in first) == (True, False)
    assert "There is also keeling, which you may not use" in first
    assert all(words in first for words in ("The parts of open", "night", ">12<"))
    assert ('<option value="open">' in form, "keeling" in form) == (True, False)
    asked = await sent(anna, "/web/ask", "/web/ask", document="run: 'true'\nplatform: keeling\n")
    refused = (await anna.get(asked.headers["location"])).text
    assert '<a href="/web/access">what you have access to, or ask for it</a>' in refused
    assert "--reason" not in refused
    assert (await sent(anna, "/web/access", "/web/access/ask", name="keeling", why="")).status_code == 400
    answer = await sent(anna, "/web/access", "/web/access/ask", name="keeling", why="<script>flood</script>\nmodel")
    assert answer.status_code == 303
    assert "you asked for it" in (await anna.get("/web/access")).text
    mail = mailbox.wait_for(OP)
    assert mail["Subject"] == f"{ANNA} asks for access to keeling"
    link = next(word for word in text_of(mail).split() if word.startswith("http://broker.test/web/access/requests/"))
    path = link.removeprefix("http://broker.test")

    stranger = await callers.with_headers()
    asked_in = await stranger.get(path)
    assert (asked_in.status_code, asked_in.headers["location"].startswith("/web/login?next=")) == (303, True)
    eve = await signed_in(callers, service, "eve@example.net")
    assert (await eve.get(path)).status_code == 404
    assert (await anna.get(f"{path}/grant")).status_code == 405, "a link grants nothing"
    assert f'action="{path}/grant"' not in (await anna.get(path)).text
    op = await signed_in(callers, service, OP, operator=True)
    page = (await op.get(path)).text
    assert "&lt;script&gt;flood&lt;/script&gt;" in page
    assert "<script>flood" not in page
    assert (await op.post(f"{path}/grant", data={"token": "0" * 64})).status_code == 403, "nor does a forged form"
    assert ANNA in (await op.get("/web/access")).text
    wrong = await sent(op, path, f"{path}/grant", cores="many", expires="2099-01-01")
    assert (wrong.status_code, 'value="2099-01-01"' in wrong.text) == (400, True)
    granted = await sent(op, path, f"{path}/grant", cores="4", hours_month="50", expires="2099-01-01", answer="hi")
    assert granted.status_code == 303
    told = text_of(mailbox.wait_for(ANNA))
    assert "You may use the system keeling now, within 4 cores, 50 core-hours a month, until 2099-01-01." in told
    assert "> hi" in told
    assert f"Granted by {OP}" in (await anna.get(path)).text
    assert (await anna.get("/web/access")).text.count("no rule allows it") == 1, "the pledge's"

    assert (await anna.get("/web/audit")).status_code == 403
    assert (await anna.get("/web/audit/export")).status_code == 403
    log = (await op.get("/web/audit?noun=system&since=2020-01-01")).text
    assert "access.grant" in log
    assert "rule.add" not in log
    assert "&lt;script&gt;flood" in log
    saved = await op.get("/web/audit/export?format=csv&action=access.")
    assert saved.text.count("\r\n") == 3
    assert (await op.get("/web/audit/export?format=exe")).status_code == 404


async def test_who_is_refused_is_told_and_a_dead_running_smtp_stops_nobody(
    callers: Callers, service: Service, mailbox: Mailbox
) -> None:
    ben = await signed_in(callers, service, "ben@example.net")
    mailbox.refuses = OP
    await sent(ben, "/web/access", "/web/access/ask", name="open", why="please")
    mailbox.refuses = ""
    [request] = await service.access.requests.access_requests(Person("ben@example.net"))
    op = await signed_in(callers, service, OP, operator=True)
    path = f"/web/access/requests/{request.id}"
    assert (await sent(op, path, f"{path}/refuse", answer="not this term")).status_code == 303
    assert "> not this term" in text_of(mailbox.wait_for("ben@example.net"))
    assert "not this term" in (await ben.get("/web/access")).text


async def test_offers_and_sessions_say_which_pledge_they_draw_on(callers: Callers, service: Service) -> None:
    anna = await signed_in(callers, service, ANNA)
    shown = (await anna.get("/web/access")).text
    assert '<option value="pledge:night">night (pledge)</option>' in shown
    assert (await sent(anna, "/web/access", "/web/access/ask", name="pledge:night", why="late")).status_code == 303
    [request] = [one for one in await service.access.requests.access_requests(Person(ANNA)) if one.noun == "pledge"]
    op = await signed_in(callers, service, OP, operator=True)
    path = f"/web/access/requests/{request.id}"
    assert (await sent(op, path, f"{path}/grant", cores="3")).status_code == 303
    _, secret = await service.people.tokens.make_token(Person(ANNA))
    api = await callers.with_headers({"authorization": f"Bearer {secret}"})
    ask = {"image": "docker://busybox", "cores": 3, "time": "1h", "platform": "open", "pledge": "night"}
    answer = (await api.post("/v1/offersets", json=ask)).json()
    [offer] = answer["offers"]
    assert offer["pledge"] == "night"
    assert "<dt>Pledge</dt><dd>night</dd>" in (await anna.get(f"/web/offersets/{answer['id']}")).text
    accepted = (await api.post(f"/v1/sessions/{offer['id']}/accept")).json()
    assert accepted["pledge"] == "night"
    assert "It draws on night of open." in (await api.get(f"/v1/sessions/{offer['id']}/explain")).json()["sentences"]
    assert "<dt>Pledge</dt><dd>night</dd>" in (await anna.get(f"/web/sessions/{offer['id']}")).text
    night, rest = (await api.get("/v1/pledges")).json()["items"]
    assert (night["taken"], night["free"], night["allowed"], night["limits"]["cores"]) == (3, 1, True, 3)
    assert (rest["name"], rest["cores"], rest["taken"], night["rules"]) == ("open", 12, 0, [])
    assert (await api.get("/v1/pledges/day")).status_code == 404


async def test_an_operator_adds_and_removes_rules_on_a_page(callers: Callers, service: Service) -> None:
    anna = await signed_in(callers, service, ANNA)
    assert (await anna.get("/web/rules")).status_code == 403
    assert ">Rules<" not in (await anna.get("/web/access")).text
    op = await signed_in(callers, service, OP, operator=True)
    fields = {"effect": "deny", "who": "<b>@evil.org", "noun": "system", "name": "*", "note": "no"}
    wrong = await sent(op, "/web/rules", "/web/rules", **fields, cores="lots")
    assert (wrong.status_code, "&lt;b&gt;@evil.org" in wrong.text) == (400, True)
    added = await sent(op, "/web/rules", "/web/rules", **fields, hours_month="5", expires="90d")
    assert (added.status_code, "5 core-hours a month" in added.text, "<b>@" in added.text) == (200, True, False)
    [rule] = [one for one in await service.access.rules.rules(Person(OP, True)) if one.who == "<b>@evil.org"]
    path = f"/web/rules/{rule.id}/remove"
    assert (await op.get(path)).status_code == 405
    assert (await op.post(path, data={"token": "0" * 64})).status_code == 403
    question = await sent(op, "/web/rules", path)
    asked = "Remove the rule that denies &lt;b&gt;@evil.org system *?"
    assert (question.status_code, asked in question.text) == (200, True)
    assert rule.id in {one.id for one in await service.access.rules.rules(Person(OP, True))}
    removed = await sent(op, "/web/rules", path, confirmed="yes")
    assert "is removed" in removed.text
    assert rule.id not in {one.id for one in await service.access.rules.rules(Person(OP, True))}


async def test_an_operator_pledges_a_part_of_a_platform_on_its_page_and_takes_it_back(
    callers: Callers, service: Service
) -> None:
    op = await signed_in(callers, service, OP, operator=True)
    page = "/web/platforms/open"
    assert "by the settings" in (await op.get(page)).text, "what the settings pledge is shown, and can't be changed"
    refused = await sent(op, page, f"{page}/pledge", pledge="day", cores="many")
    assert (refused.status_code, "many is not a number" in refused.text) == (400, True)
    assert (await sent(op, page, f"{page}/pledge", pledge="day", cores="2", title="Courses")).status_code == 303
    filled = (await op.get(page, params={"pledge": "day"})).text
    assert all(words in filled for words in ('value="Courses"', "Save the pledge", f"{page}?pledge=day"))
    assert (await sent(op, page, f"{page}/pledge", pledge="day", cores="3", memory="1GiB")).status_code == 303
    [state] = await service.access.pledges.pledges(Person(OP, operator=True), "day")
    assert (state.cores, state.pledged.memory, state.title) == (3, 1 << 30, "")
    hours = {"cores": "2", "gpus": "1", "storage": "1TiB", "when": "nights, weekends", "zone": "Europe/London"}
    assert (await sent(op, page, f"{page}/pledge", pledge="night-gpus", **hours)).status_code == 303
    shown = (await op.get(page)).text
    assert all(words in shown for words in ("1GiB", "1 GPU, 1TiB of storage", "nights, weekends (Europe/London)"))
    assert "nobody yet" in shown, "no rule is about it"
    rules = await op.get("/web/rules", params={"noun": "pledge", "name": "day"})
    assert all(words in rules.text for words in ("<option selected>pledge</option>", 'value="day"'))
    await sent(op, "/web/rules", "/web/rules", effect="allow", who="*@lab.org", noun="pledge", name="day")
    assert "allow *@lab.org" in (await op.get(page)).text
    asked = await sent(op, page, f"{page}/unpledge", pledge="day")
    assert "Remove the pledge day of open?" in asked.text
    assert (await sent(op, page, f"{page}/unpledge", pledge="day", confirmed="yes")).status_code == 303
    assert "Courses" not in (await op.get(page)).text
    anna = await signed_in(callers, service, ANNA)
    form = {"token": await token_on(op, page, f"{page}/pledge"), "pledge": "mine", "cores": "1"}
    assert (await anna.post(f"{page}/pledge", data=form)).status_code == 403
