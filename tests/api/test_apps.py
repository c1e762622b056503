"""Apps over HTTP and on pages: proposed, shown without harm, decided on as they were shown, and told by mail."""

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
from tests.api.test_access_pages import sent, signed_in
from tests.contract.services import allow
from tests.git_server import GitServer, program
from tests.smtp import Mailbox, text_of

pytestmark = pytest.mark.anyio
OP, RAE, ANN, BOB = "op@example.org", "rae@example.org", "ann@example.org", "bob@example.org"
MANIFEST = f"""
name: flood
image: {{location: "docker://ghcr.io/ann/flood", digest: "sha256:{"b" * 64}"}}
run: sh flood.sh
"""
EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory, git: GitServer, mailbox: Mailbox) -> AsyncIterator[Service]:
    settings = Settings.load(
        tmp_path_factory.mktemp("home"),
        mode="gateway",
        platforms={"keeling": {"kind": "memory"}},
        mail=mailbox.settings,
        url="http://broker.test",
        apps={"private": [f"{git.url}/*"]},
    )
    async with open_service(settings, loop=False) as opened:
        now = opened.now()
        for name, role in ((OP, Role.OPERATOR), (RAE, Role.REVIEWER), (ANN, Role.PERSON), (BOB, Role.PERSON)):
            await opened.store.write(lambda tx, name=name, role=role: tx.people.add(Known(name, role, now)))
        yield opened


async def by_token(callers: Callers, service: Service, name: str) -> httpx2.AsyncClient:
    _, secret = await service.people.tokens.make_token(Person(name, name == OP))
    return await callers.with_headers({"authorization": f"Bearer {secret}"})


async def test_an_app_goes_from_a_proposal_to_a_revocation(
    callers: Callers, service: Service, git: GitServer, mailbox: Mailbox
) -> None:
    repository = git.repository("ann/flood")
    repository.commit({"sublet.yaml": MANIFEST, "flood.sh": program("echo 1\n")})
    ann, rae, bob = [await by_token(callers, service, name) for name in (ANN, RAE, BOB)]
    made = await ann.post("/v1/apps", json={"repository": repository.url})
    assert (made.status_code, made.json()["name"], made.json()["state"]) == (201, "flood@1", "proposed")
    tree = made.json()["tree"]
    letter = mailbox.to(RAE)[-1]
    assert "http://broker.test/web/apps/flood/1" in text_of(letter)
    assert (await bob.get("/v1/apps")).json()["items"] == []
    assert (await bob.get("/v1/apps/flood")).status_code == 404
    seen = (await rae.get("/v1/apps/flood/1")).json()
    first = seen["files"][0]
    assert (first["path"], first["executable"], first["text"]) == ("flood.sh", True, "echo 1\n")
    for who, body, status in ((ann, {"tree": tree}, 403), (rae, {"tree": "0" * 64}, 409), (rae, {}, 400)):
        assert (await who.post("/v1/apps/flood/1/approve", json=body)).status_code == status
    assert (await rae.post("/v1/apps/flood/1/approve", json={"tree": tree})).json()["state"] == "approved"
    assert "was approved" in str(mailbox.to(ANN)[-1]["Subject"])
    await allow(service, BOB, noun="app", name="flood")
    assert [one["current"] for one in (await bob.get("/v1/apps")).json()["items"]] == [1]
    repository.commit({"sublet.yaml": MANIFEST, "flood.sh": program("echo 2\n")})
    assert (await rae.get("/v1/apps/flood/1/upstream")).json()["words"] == "it has moved on"
    assert (await bob.post("/v1/apps", json={"repository": repository.url})).status_code == 409
    assert (await ann.post("/v1/apps", json={"repository": repository.url})).json()["number"] == 2
    news = (await rae.get("/v1/apps/flood/2")).json()
    assert [(one["path"], one["how"]) for one in news["changes"]] == [("flood.sh", "changed")]
    assert (await rae.post("/v1/apps/flood/2/refuse", json={"why": "No."})).json()["why"] == "No."
    await allow(service, BOB)
    id = (await bob.post("/v1/offersets", json={"app": "flood"})).json()["offers"][0]["id"]
    assert (await bob.post(f"/v1/sessions/{id}/accept")).status_code < 300
    gone = await rae.post("/v1/apps/flood/1/revoke", json={"why": "Old."})
    assert (gone.json()["version"]["state"], gone.json()["sessions"]) == ("revoked", [id])
    letter = mailbox.to(BOB)[-1]
    assert "flood@1, which you run, was revoked" in str(letter["Subject"])
    assert "Old." in text_of(letter)
    assert id[:8] in text_of(letter)
    assert (await bob.get("/v1/apps")).json()["items"] == []


async def test_what_is_in_a_repository_is_shown_as_text(callers: Callers, service: Service, git: GitServer) -> None:
    repository = git.repository("eve/xss")
    files = {"sublet.yaml": MANIFEST, "flood.sh": f"{EVIL}\x1b[2J\u202e\n", f"{EVIL.replace('/', '')}.txt": EVIL}
    repository.commit(files, f"{EVIL} \x1b[31m")
    op = await signed_in(callers, service, OP, operator=True)
    form = {"repository": repository.url, "name": "xss"}
    made = await sent(op, "/web/apps", "/web/apps", **form)
    assert made.headers["location"] == "/web/apps/xss/1"
    for path in ("/web/apps", "/web/apps/xss", "/web/apps/xss/1"):
        text = (await op.get(path)).text
        assert "<script>alert" not in text
        assert "<script>" not in text.replace("<script src=", "")
        assert not {"\x1b", "\u202e"} & set(text)
    assert "&lt;script&gt;alert(1)&lt;/script&gt;\\u001b[2J\\u202e" in text
    evil = {"repository": f"https://{EVIL}", "branch": EVIL, "name": EVIL}
    wrong = await sent(op, "/web/apps", "/web/apps", **evil)
    assert (wrong.status_code, "<script>alert" in wrong.text) == (400, False)


async def test_a_page_approves_what_it_showed(callers: Callers, service: Service, git: GitServer) -> None:
    repository = git.repository("ann/paged")
    repository.commit({"sublet.yaml": MANIFEST, "flood.sh": "echo 1\n"})
    version = await service.apps.proposing.propose(Person(ANN), repository.url, name="paged")
    op = await signed_in(callers, service, OP, operator=True)
    page, action = "/web/apps/paged/1", "/web/apps/paged/1/approve"
    assert f'name="tree" value="{version.tree}"' in (await op.get(page)).text
    assert (await op.post(action, data={"token": "0" * 64, "tree": version.tree})).status_code == 403
    stale = await sent(op, page, action, tree="0" * 64)
    assert (stale.status_code, "is not what you reviewed" in stale.text) == (409, True)
    assert (await sent(op, page, action, tree=version.tree)).status_code == 303
    ann = await signed_in(callers, service, ANN)
    theirs = (await ann.get(page)).text
    assert ("approved by" in theirs, "Revoke" in theirs) == (True, False)
    repository.commit({"sublet.yaml": MANIFEST, "flood.sh": "echo 2\n"})
    await service.apps.proposing.propose(Person(ANN), repository.url, name="paged")
    news = (await op.get("/web/apps/paged/2")).text
    assert ("What is new since paged@1" in news, "+echo 2" in news) == (True, True)
    no_why = await sent(op, "/web/apps/paged/2", "/web/apps/paged/2/refuse", why=" ")
    assert no_why.status_code == 400
    question = await sent(op, page, "/web/apps/paged/1/revoke", why="It leaks.", cancel="1")
    assert (question.status_code, "Revoke paged@1?" in question.text) == (200, True)
    assert 'name="why" value="It leaks."' in question.text
    done = await sent(op, page, "/web/apps/paged/1/revoke", why="It leaks.", cancel="1", confirmed="yes")
    assert done.status_code == 303
    assert "It leaks." in (await op.get(page)).text


async def test_the_page_of_an_app_that_is_closed_says_how_to_ask_for_access(
    callers: Callers, service: Service, git: GitServer
) -> None:
    repository = git.repository("ann/closed")
    repository.commit({"sublet.yaml": MANIFEST, "flood.sh": "echo 1\n"})
    version = await service.apps.proposing.propose(Person(ANN), repository.url, name="closed")
    await service.apps.reviewing.approve("closed@1", Person(OP, True), version.tree)
    bob = await signed_in(callers, service, BOB)
    page = "/web/apps/closed"
    assert f'href="{page}"' in (await bob.get("/web/access")).text
    closed = await bob.get(page)
    assert (closed.status_code, "You may not run this app yet: no rule allows it." in closed.text) == (403, True)
    assert repository.url not in closed.text
    assert (await sent(bob, page, "/web/access/ask", name="app:closed", why="I teach with it.")).status_code == 303
    assert "You asked for access" in (await bob.get(page)).text
    assert (await bob.get("/web/apps/nowhere")).status_code == 404


async def test_a_second_factor_is_not_offered_where_it_can_not_be_set_up(callers: Callers, service: Service) -> None:
    page = "/web/account/factor"
    bob, op = await signed_in(callers, service, BOB), await signed_in(callers, service, OP, operator=True)
    theirs, operators = (await bob.get(page)).text, (await op.get(page)).text
    assert "Set it up" not in theirs + operators
    assert "its operator has to set a master key first" in theirs
    assert ("sublet account key FILE" in theirs, "sublet account key FILE" in operators) == (False, True)
