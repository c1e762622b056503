"""Signing in to a system on a page: a real sshd asks, the page shows it, and what is typed goes to ssh alone."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from html import unescape
from pathlib import Path

import httpx2
import pytest

from sublet.people.model.person import Person
from sublet.platforms.slurm.platform import Slurm
from sublet.service import Service
from sublet.web.entry import issue_code
from tests.api.conftest import HOST, Callers
from tests.sshd import Sshd, make_key, needs_sshd, sshd

pytestmark = [pytest.mark.anyio, needs_sshd]
PAGE = "/web/systems/far"
SECRET = "a secret phrase that is nowhere else"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Sshd]:
    """A host that nobody has met, and a key with a passphrase."""
    with sshd(tmp_path / "sshd") as started:
        for name in ("key", "key.pub", "known_hosts"):
            (started.directory / name).unlink()
        make_key(started.directory / "key", SECRET)
        yield started


@pytest.fixture
async def far(service: Service, server: Sshd) -> AsyncIterator[Slurm]:
    """The platform behind it."""
    platform = Slurm(name="far", host="127.0.0.1", port=server.port, ssh=server.options)
    home = service.settings.home / "platforms" / "far"
    home.mkdir(parents=True, exist_ok=True)
    await platform.open(home)
    service.platforms.by_name["far"] = platform
    yield platform
    await service.logins.sign_out("far", Person("owner", operator=True))
    service.logins.signing.clear()
    del service.platforms.by_name["far"]


@dataclass
class Browser:
    """Someone in front of the page."""

    client: httpx2.AsyncClient
    text: str = ""

    async def look(self) -> str:
        answer = await self.client.get(PAGE)
        assert answer.status_code == 200, answer.text
        self.text = unescape(answer.text)
        return self.text

    async def sees(self, *words: str) -> None:
        """Do as the page's script does, until all of it is there: look again whenever there is something new."""
        seen = ""
        async with asyncio.timeout(20):
            while any(word not in self.text for word in words):
                version = (await self.client.get(f"{PAGE}/state")).text
                if version != seen:
                    await self.look()
                seen = version
                await asyncio.sleep(0.05)

    def form(self, change: str) -> dict[str, str]:
        """The hidden fields of one of the page's forms."""
        form = self.text[self.text.index(f'action="{PAGE}/{change}"') :].partition("</form>")[0]
        return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))

    async def presses(self, change: str, **typed: str) -> httpx2.Response:
        return await self.client.post(f"{PAGE}/{change}", data=self.form(change) | typed)


@pytest.fixture
async def owner(callers: Callers, service: Service) -> Browser:
    """Whose service it is."""
    return await browser(callers, service, Person("owner", operator=True))


async def browser(callers: Callers, service: Service, person: Person) -> Browser:
    client = await callers.with_headers()
    assert (await client.get(f"/web/login?code={issue_code(service, person)}")).status_code == 303
    return Browser(client)


def kept(service: Service) -> Iterator[bytes]:
    """All that is in files, and all words of processes."""
    for path in service.settings.home.rglob("*"):
        if path.is_file():
            yield path.read_bytes()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            yield path.read_bytes()
        except OSError:
            continue


async def test_ssh_asks_on_the_page_and_the_answers_are_kept_nowhere(
    owner: Browser, far: Slurm, server: Sshd, service: Service
) -> None:
    await owner.sees("nobody is signed in")
    assert (await owner.presses("login")).status_code == 303
    await owner.sees("You have not met this host before", "SHA256:")
    assert not (server.directory / "known_hosts").exists()
    assert (await owner.presses("answer")).status_code == 303
    await owner.sees("Enter passphrase for key", 'type="password"')
    answer = await owner.presses("answer", answer=SECRET)
    assert (answer.status_code, answer.headers["cache-control"]) == (303, "no-store")
    await owner.sees("signed in", "Sign out of far")
    assert not [text for text in kept(service) if SECRET.encode() in text]
    assert far.login
    assert await far.login.check()
    assert (await owner.presses("logout")).status_code == 303
    await owner.sees("nobody is signed in")
    assert not await far.login.check()


async def test_a_host_whose_key_has_changed_is_refused_and_nothing_is_asked(
    owner: Browser, far: Slurm, server: Sshd
) -> None:
    server.trust()
    server.stop()
    server.new_host_key()
    server.start()
    await owner.look()
    await owner.presses("login")
    await owner.sees("has changed, so it may not be 127.0.0.1 that answers", "ssh-keygen", "Sign in")


async def test_a_form_that_is_not_ours_or_an_answer_to_another_question_goes_nowhere(
    owner: Browser, far: Slurm, server: Sshd, callers: Callers, service: Service
) -> None:
    server.trust()
    await owner.look()
    for headers in ({"sec-fetch-site": "cross-site"}, {"origin": "http://evil.test"}):
        assert (await owner.client.post(f"{PAGE}/login", data=owner.form("login"), headers=headers)).status_code == 403
    assert (await owner.client.post(f"{PAGE}/login", data={"token": "x"})).status_code == 403
    assert "far" not in service.logins.signing
    await owner.presses("login")
    await owner.sees("Enter passphrase for key")
    assert (await owner.presses("answer", question="another", answer=SECRET)).status_code == 409
    other = await browser(callers, service, Person("other", operator=True))
    await other.sees("ssh is signing in")  # questions are shown to who began it, and to nobody else
    assert "Enter passphrase" not in other.text
    stolen = other.form("stop") | {"question": owner.form("answer")["question"], "answer": SECRET}
    assert (await other.client.post(f"{PAGE}/answer", data=stolen)).status_code == 403
    await owner.look()
    assert (await owner.presses("stop")).status_code == 303
    await owner.sees("nobody is signed in")
    assert (await owner.client.post(f"{PAGE}/nonsense", data=owner.form("login"))).status_code == 404


async def test_a_person_who_never_answers_is_not_waited_for(
    owner: Browser, far: Slurm, server: Sshd, service: Service
) -> None:
    server.trust()
    service.logins.patience = 0.3
    try:
        await owner.look()
        await owner.presses("login")
        await owner.sees("no login within")
    finally:
        del service.logins.patience
    assert far.login
    assert not await far.login.check()


async def test_where_connections_are_not_shared_one_login_does_what_waits(
    owner: Browser, server: Sshd, service: Service, far: Slurm
) -> None:
    assert far.login
    far.login.shared = False
    server.trust()
    service.logins.quiet = 0.2
    try:
        await owner.look()
        assert "everything that waits is done in this one login" in owner.text
        await owner.presses("login")
        await owner.sees("Enter passphrase")
        await owner.presses("answer", answer=SECRET)
        await owner.sees("signed in for this once")
        assert await far.root() == f"{server.home}/.sublet"
        await owner.sees("nobody is signed in")
    finally:
        del service.logins.quiet
        far.login.shared = True


async def test_only_the_owner_signs_in_and_only_where_nobody_can_listen(
    owner: Browser, far: Slurm, callers: Callers, service: Service
) -> None:
    guest = await browser(callers, service, Person("guest"))
    assert (await guest.client.get(PAGE)).status_code == 403
    assert PAGE not in (await guest.client.get("/web/")).text
    assert PAGE in (await owner.client.get("/web/")).text
    await owner.look()
    away = httpx2.ASGITransport(app=callers.app, client=("192.0.2.7", 4000))
    for base, status in ((HOST, 403), (HOST.replace("http:", "https:"), 303)):
        async with httpx2.AsyncClient(transport=away, base_url=base, cookies=owner.client.cookies) as client:
            answer = await client.post(f"{PAGE}/login", data=owner.form("login"))
            assert answer.status_code == status
            assert status != 403 or "would travel unprotected" in answer.text
    assert (await owner.client.get("/web/systems/memory")).status_code == 404
    assert (await owner.client.get("/web/systems/nowhere")).status_code == 404
