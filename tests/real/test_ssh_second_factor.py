"""Password, then code, on the login host of a real site: once, and everything after that goes over it."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from testbed import people

from sublet.kernel.errors import LoginNeeded, PlatformRefused, PlatformUnreachable
from sublet.reach.login import Login
from sublet.reach.port import Command, read_printed
from sublet.reach.prompts import Prompt
from tests.sites import Site

pytestmark = pytest.mark.anyio
WHO = Command(("id", "-un"), read_printed)
WRONG = "000000"


class Person:
    """A person with a password and a phone, who remembers what they were asked."""

    def __init__(self, site: Site, code: Callable[[], str] | None = None) -> None:
        self.site, self.code, self.asked = site, code or site.fresh_code, list[str]()

    async def __call__(self, prompt: Prompt) -> str | None:
        assert prompt.secret
        self.asked.append(prompt.text.strip())
        return str(self.site.facts["password"]) if "assword" in prompt.text else self.code()


@asynccontextmanager
async def way(site: Site, home: Path, user: str = "researcher", shared: bool = True) -> AsyncIterator[Login]:
    """A login that isn't open yet."""
    options = {
        "UserKnownHostsFile": str(site.facts["known_hosts"]),
        "HostKeyAlias": site.name,
        "IdentityFile": str(site.key),
        "IdentitiesOnly": "yes",
        "IdentityAgent": "none",
    }
    login = Login(site.host, control=home / "run", platform="far", user=user, options=options, shared=shared)
    yield login
    await login.close()


async def test_a_password_and_a_code_are_asked_for_once(site: Site, tmp_path: Path) -> None:
    person = Person(site)
    async with way(site, tmp_path) as login:
        record = await login.open(person)
        assert record.user == "researcher"
        assert [await login.reach.run(WHO) for _ in range(3)] == ["researcher\n"] * 3
        assert len(person.asked) == 2
        assert "assword" in person.asked[0]
        assert "erification code" in person.asked[1]


async def test_a_key_and_a_code_are_asked_for_where_the_centre_wants_those(site: Site, tmp_path: Path) -> None:
    person = Person(site)
    async with way(site, tmp_path, "keyholder") as login:
        await login.open(person)
        assert await login.reach.run(WHO) == "keyholder\n"
        assert len(person.asked) == 1


async def test_a_service_account_gets_in_by_its_key_and_nobody_is_asked(site: Site, tmp_path: Path) -> None:
    person = Person(site)
    async with way(site, tmp_path, "service") as login:
        await login.open(person)
        assert await login.reach.run(WHO) == "service\n"
        assert person.asked == []


async def test_a_wrong_code_is_refused_in_the_centres_words_and_leaves_no_login(site: Site, tmp_path: Path) -> None:
    async with way(site, tmp_path) as login:
        with pytest.raises(PlatformRefused, match="Permission denied"):
            await login.open(Person(site, lambda: WRONG))
        with pytest.raises(LoginNeeded):
            await login.reach.run(WHO)


async def test_a_mistyped_code_is_asked_for_again(site: Site, tmp_path: Path) -> None:
    codes = iter([WRONG])
    person = Person(site, lambda: next(codes, "") or site.fresh_code())
    async with way(site, tmp_path) as login:
        await login.open(person)
        assert await login.reach.run(WHO) == "researcher\n"
        assert len(person.asked) == 4


async def test_a_lapsed_login_is_needed_again_and_nothing_is_asked_behind_the_persons_back(
    site: Site, tmp_path: Path
) -> None:
    person = Person(site)
    async with way(site, tmp_path) as login:
        await login.open(person)
        await login.close()
        asked = len(person.asked)
        with pytest.raises(LoginNeeded):
            await login.reach.run_all([WHO, WHO])
        assert len(person.asked) == asked


async def test_one_deliberate_login_with_a_code_does_all_that_waits(site: Site, tmp_path: Path) -> None:
    person = Person(site)
    async with way(site, tmp_path, shared=False) as login:
        async with login.once(person) as reach:
            assert await reach.run_all([WHO] * 5) == ["researcher\n"] * 5
            queued = await reach.run(Command(("squeue", "--me", "-h"), read_printed))
            assert queued == ""
        assert len(person.asked) == 2
        with pytest.raises(LoginNeeded):
            await login.reach.run(WHO)


async def test_a_code_of_two_minutes_ago_is_refused(site: Site, tmp_path: Path) -> None:
    async with way(site, tmp_path) as login:
        with pytest.raises(PlatformRefused, match="Permission denied"):
            await login.open(Person(site, lambda: people.code(site.facts["code_secret"], time.time() - 120)))


async def test_an_answer_after_the_host_has_closed_the_door_says_so(
    new_site: Callable[..., Site], tmp_path: Path
) -> None:
    site = new_site("--nodes", "1", "--sshd", "LoginGraceTime 1")

    def late() -> str:
        site.wait(lambda: not site.on("login", "ss", "-Htn", "state", "established", "sport = :22"))
        return site.code()

    async with way(site, tmp_path) as login:
        with pytest.raises(PlatformUnreachable, match="before the login was complete") as gone:
            await login.open(Person(site, late))
        assert gone.value.advice.endswith("sublet system login far")


async def test_a_code_that_was_used_is_refused_and_the_open_login_goes_on(
    new_site: Callable[..., Site], tmp_path: Path
) -> None:
    site = new_site("--one-time-codes", "--nodes", "1", "--bashrc", "noisy")
    code = site.fresh_code()
    person = Person(site, lambda: code)
    async with way(site, tmp_path) as login, way(site, tmp_path / "other") as other:
        await login.open(person)
        with pytest.raises(PlatformRefused, match="Permission denied"):
            await other.open(person)
        assert await login.reach.run(WHO) == "researcher\n"
