"""The login host falls silent, or loses power, for seconds or for an hour: sessions wait, and ends are true."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic

import pytest

from sublet.app import open_service
from sublet.booking.model.answers import list_unanswered
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import EndKind, Session
from sublet.kernel.settings import Settings
from sublet.people.model.person import Person
from sublet.reach.prompts import Prompt
from sublet.service import Service
from tests.contract.services import ask
from tests.real.clusters import SOON, ssh_options
from tests.sites import Site, running

pytestmark = [pytest.mark.anyio, pytest.mark.engines]
OWNER = Person("owner", operator=True)
HASTY = {"ServerAliveInterval": "1", "ServerAliveCountMax": "2", "ConnectTimeout": "3"}  # else silence takes 45 s
WAITS = "echo begun; until [ -e go ]; do sleep 0.1; done; echo done; exit 3"


@pytest.fixture(scope="module")
def far(swept: None) -> Iterator[Site]:
    with running("--nodes", "1") as site:
        yield site


@dataclass
class Clock:
    """The service's own time, which a test can move on."""

    ahead: timedelta = field(default_factory=timedelta)

    def __call__(self) -> datetime:
        return datetime.now(UTC) + self.ahead


@dataclass
class Person2FA:
    """Someone with a password and a phone, and a service of their own."""

    site: Site
    service: Service
    clock: Clock

    async def signs_in(self) -> None:
        """As on their page."""
        await self.service.logins.sign_in("far", OWNER)
        async with asyncio.timeout(SOON):
            while (state := await self.service.logins.login_state("far", OWNER)).stage != "open":
                assert state.stage != "refused", state.failure
                if state.question:
                    words = await self._answer(state.question.prompt)
                    await self.service.logins.answer("far", OWNER, state.question.id, words)
                await asyncio.sleep(0.05)

    async def _answer(self, prompt: Prompt) -> str:
        known = str(self.site.facts["password"])
        return known if "assword" in prompt.text else await asyncio.to_thread(self.site.fresh_code)

    async def asks(self, script: str) -> Session:
        """The first offer."""
        wish = {"run": ["sh", "-c", script], "time": "4m", "memory": "64MiB", "platform": "far", "queue": "debug"}
        offered = await ask(self.service, OWNER, **wish)
        assert offered.offers, offered.reasons
        return offered.offers[0]

    async def runs(self, script: str) -> Session:
        return await self.service.sessions.accept((await self.asks(script)).id, OWNER)

    async def sees(self, id: str, seen: Callable[[Session], bool]) -> Session:
        session = await self.service.sessions.get(id, OWNER)
        try:
            async with asyncio.timeout(SOON):
                while not seen(session):
                    await self.service.signals.wait(0.05)
                    session = await self.service.sessions.get(id, OWNER)
        except TimeoutError:
            raise AssertionError(f"after {SOON:.0f} s: {session}") from None
        return session

    async def printed(self, id: str) -> bytes:
        return (await self.service.output.output(id, OWNER, "stdout", 0)).data


@asynccontextmanager
async def served(
    site: Site, home: Path, ssh: dict[str, str] = HASTY, answer_within: float = 30, **others: dict[str, str]
) -> AsyncIterator[Person2FA]:
    clock = Clock()
    slurm = {"kind": "slurm", "host": site.host, "user": "researcher", "ssh": ssh_options(site) | ssh}
    slurm |= {"poll": "0.3s", "look": "0.1s", "patience": "1s", "grace": "1s", "calls": 100}
    settings = Settings(
        home=home,
        poll=timedelta(seconds=1),
        answer_within=timedelta(seconds=answer_within),
        platforms={"far": slurm, **others},
    )
    async with open_service(settings, now=clock) as service:
        person = Person2FA(site, service, clock)
        try:
            await person.signs_in()
            yield person
        finally:
            await service.logins.sign_out("far", OWNER)


def let_go(site: Site, session: str) -> None:
    (Path(site.facts["home"]) / "researcher/.sublet/sessions" / session / "work/go").touch()


async def test_a_pulled_cable_for_an_hour_fails_nothing_and_the_end_is_told_as_it_was(
    far: Site, tmp_path: Path
) -> None:
    async with served(far, tmp_path / "home") as person:
        session = await person.runs(WAITS)
        await person.sees(session.id, lambda seen: seen.phase is Phase.RUNNING)
        far.pull_cable("login")
        try:
            away = await person.sees(session.id, lambda seen: "can't be reached" in seen.condition)
            assert away.phase is Phase.RUNNING
            let_go(far, session.id)  # it ends while nobody can look
            person.clock.ahead = timedelta(hours=1)  # long after its time was over
            still = await person.sees(session.id, lambda seen: seen.modified > away.modified)
            assert still.phase is Phase.RUNNING
        finally:
            far.put_cable("login")
        person.clock.ahead += timedelta(minutes=1)
        waiting = await person.sees(session.id, lambda seen: "sublet system login far" in seen.condition)
        assert waiting.phase is Phase.RUNNING
        await person.signs_in()
        over = await person.sees(session.id, lambda seen: seen.phase is Phase.FAILED)
        assert over.end
        assert (over.end.kind, over.end.code) == (EndKind.EXITED, 3)
        assert await person.printed(session.id) == b"begun\ndone\n"


async def test_while_the_cable_is_out_the_others_answer_and_who_did_not_is_named(far: Site, tmp_path: Path) -> None:
    async with served(far, tmp_path / "home", ssh={}, answer_within=3, here={"kind": "memory"}) as person:
        far.pull_cable("login")  # ssh itself notices after 45 s
        try:
            begun = monotonic()
            answer = await ask(person.service, OWNER, run=["true"], time="4m", memory="64MiB")
            assert monotonic() - begun < 30, "it hangs as long as ssh does"
            assert {one.offer.platform for one in answer.offers} == {"here"}
            assert list_unanswered(answer.reasons) == ("far",)
            states = {
                state.name: state.trouble for state in await person.service.usable_platforms.states(OWNER, anew=True)
            }
            assert states["here"] == ""
            assert "did not answer within 3 s" in states["far"]
        finally:
            far.put_cable("login")


async def test_a_login_host_without_power_holds_what_was_accepted_and_after_one_login_all_of_it_goes_on(
    far: Site, tmp_path: Path
) -> None:
    async with served(far, tmp_path / "home") as person:
        before = await person.runs(WAITS)
        await person.sees(before.id, lambda seen: seen.phase is Phase.RUNNING)
        offered = await person.asks("true")
        far.crash("login")
        accepted = await person.service.sessions.accept(offered.id, OWNER)
        try:
            for one in (before, accepted):
                await person.sees(one.id, lambda seen: "can't be reached" in seen.condition)
        finally:
            far.boot("login")
        person.clock.ahead = timedelta(minutes=1)
        for one in (before, accepted):
            await person.sees(one.id, lambda seen: "sublet system login far" in seen.condition)
        let_go(far, before.id)
        await person.signs_in()
        assert (await person.sees(before.id, lambda seen: seen.phase is Phase.FAILED)).end.code == 3  # type: ignore[union-attr]
        assert (await person.sees(accepted.id, lambda seen: seen.phase is Phase.COMPLETED)).end
        jobs = far.on("ctl", "squeue", "-h", "-t", "all", "-o", "%j").split()
        assert jobs.count(accepted.id) <= 1
