"""Every platform keeps the same promises."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import PrivateAttr

from sublet.booking.model.job import Job, JobState, State
from sublet.kernel.errors import PlatformRefused, PlatformUnreachable
from sublet.platforms.conformance import (
    PROMISES,
    WITH_PROCESSES,
    Rule,
    an_exit_code_comes_back,
    check_platform,
    the_survey_shows_nodes,
    try_rule,
)
from sublet.platforms.conformance_trial import Broken, ConformanceTrial
from sublet.platforms.local.platform import Local
from sublet.platforms.memory.platform import MemoryPlatform
from sublet.platforms.port import Platform, Survey

pytestmark = pytest.mark.anyio
Make = Callable[[], Platform]
MAKERS: dict[str, Make] = {
    "memory": lambda: MemoryPlatform(name="played"),
    "local": lambda: Local(name="here", grace=timedelta(seconds=2)),
}


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest) -> Make:
    return MAKERS[request.param]


@pytest.fixture
async def platform(make: Make, tmp_path: Path) -> AsyncIterator[Platform]:
    made = make()
    await made.open(tmp_path)
    yield made
    await made.close()


@pytest.mark.parametrize("rule", PROMISES, ids=lambda rule: rule.__name__)
async def test_a_platform_keeps_the_rule(platform: Platform, rule: Rule) -> None:
    finding = await try_rule(platform, rule)
    assert finding.ok, f"{finding.rule} {finding.detail}"


@pytest.mark.parametrize("make", [MAKERS["local"]], ids=["local"])
@pytest.mark.parametrize("rule", WITH_PROCESSES, ids=lambda rule: rule.__name__)
async def test_a_platform_with_processes_keeps_the_rule(platform: Platform, rule: Rule) -> None:
    finding = await try_rule(platform, rule)
    assert finding.ok, f"{finding.rule} {finding.detail}"


async def test_a_platform_opened_again_finds_what_runs_and_what_has_ended(make: Make, tmp_path: Path) -> None:
    first, second = make(), make()
    await first.open(tmp_path)
    trial = ConformanceTrial(first)
    running = await trial.submit("sleep", "50")
    over = await trial.submit("sh", "-c", "exit 4", code=4, takes="0s")
    await trial.wait_for_end(over)
    await first.close()
    await second.open(tmp_path)
    states = await second.ask([running, over])
    assert states[running].state is State.RUNNING
    assert states[over].end
    assert states[over].end.code == 4
    assert await second.find(trial.keys[0]) == running
    trial.platform = second
    await trial.clean()


async def test_two_processes_on_one_directory_agree(make: Make, tmp_path: Path) -> None:
    one, other = make(), make()
    await one.open(tmp_path)
    await other.open(tmp_path)
    trial = ConformanceTrial(one)
    key = trial.key()
    job = trial.job("sh", "-c", "echo ran; sleep 50")
    ids = await asyncio.gather(one.submit(job, key), other.submit(job, key))
    assert ids[0] == ids[1]
    await other.cancel([ids[0]], "the other")
    state = await trial.wait_for_end(ids[0])
    assert state.end
    assert state.end.by == "the other"
    await trial.clean()


async def test_news_name_what_changed_and_nothing_else(platform: Platform) -> None:
    trial = ConformanceTrial(platform)
    assert await platform.news() is None, "at first everything may have changed"
    quiet = await trial.submit("sleep", "50")
    short = await trial.submit("true", takes="0s")
    heard: set[str] = set()

    async def ended_is_heard() -> bool:
        heard.update(await platform.news() or ())
        return short in heard and (await trial.state(short)).state is State.ENDED

    await trial.until("news of the end", ended_is_heard)
    await platform.news()
    assert await platform.news() == []
    assert (await trial.state(quiet)).state is State.RUNNING
    await trial.clean()


async def test_two_who_listen_both_get_the_news(make: Make, tmp_path: Path) -> None:
    one, other = make(), make()
    for each in (one, other):
        await each.open(tmp_path)
        await each.news()
    trial = ConformanceTrial(one)
    job = await trial.submit("true", takes="0s")
    await trial.wait_for_end(job)
    for each in (one, other):
        heard: set[str] = set()

        async def is_heard(each: Platform = each, heard: set[str] = heard) -> bool:
            heard.update(await each.news() or ())
            return job in heard

        await trial.until("the news", is_heard)
    await trial.clean()


async def test_a_finding_names_the_rule_that_is_broken(tmp_path: Path) -> None:
    broken = MemoryPlatform(name="played", fault="refuses")
    await broken.open(tmp_path)
    findings = await check_platform(broken)
    assert [finding.ok for finding in findings].count(True) == 1, "only the survey needs no job"
    assert "plays refusing" in findings[-1].detail


class Misspelt(MemoryPlatform):
    """A plug-in with a mistake in it."""

    async def submit(self, job: Job, key: str) -> str:
        raise NameError("name 'Sbmission' is not defined")


async def test_a_plug_in_with_a_mistake_is_told_by_its_findings(tmp_path: Path) -> None:
    misspelt = Misspelt(name="played")
    await misspelt.open(tmp_path)
    findings = await check_platform(misspelt)
    assert findings[0].ok
    assert findings[1].detail == "NameError: name 'Sbmission' is not defined"


class OldSurvey(MemoryPlatform):
    """A platform whose survey is of some time ago."""

    age: timedelta = timedelta(0)
    trouble: str = ""
    zone: bool = True
    fresh: timedelta = timedelta(hours=1)

    async def survey(self) -> Survey:
        survey = await super().survey()
        made = survey.as_of - self.age
        return replace(survey, as_of=made if self.zone else made.replace(tzinfo=None), trouble=self.trouble)


@pytest.mark.parametrize(
    ("settings", "detail"),
    [
        ({"age": timedelta(minutes=50)}, ""),
        ({"age": timedelta(hours=2), "fresh": timedelta(hours=3)}, ""),
        ({"age": timedelta(hours=2)}, "its survey is of"),
        ({"age": timedelta(minutes=-10)}, "its survey is of"),
        ({"trouble": "sign in first"}, "sign in first"),
        ({"zone": False}, "has no time zone"),
    ],
)
async def test_a_survey_that_is_not_recent_breaks_the_rule(
    tmp_path: Path, settings: dict[str, Any], detail: str
) -> None:
    platform = OldSurvey(name="played", **settings)
    await platform.open(tmp_path)
    finding = await try_rule(platform, the_survey_shows_nodes)
    assert finding.ok is not bool(detail)
    assert detail in finding.detail


class Faltering(MemoryPlatform):
    """A platform that can't be reached every other time that it is asked how a job is, or to let go of one."""

    _calls: int = PrivateAttr(default=0)

    def _falter(self) -> None:
        self._calls += 1
        if self._calls % 2:
            raise PlatformUnreachable(platform=self.name, why="it has too much to do")

    async def ask(self, ids: Sequence[str]) -> Mapping[str, JobState]:
        self._falter()
        return await super().ask(ids)

    async def clean(self, key: str) -> None:
        self._falter()
        await super().clean(key)


async def test_a_platform_that_is_away_for_a_moment_is_asked_again(tmp_path: Path) -> None:
    faltering = Faltering(name="played")
    await faltering.open(tmp_path)
    finding = await try_rule(faltering, an_exit_code_comes_back)
    assert finding.ok, finding.detail


async def test_how_long_is_waited_can_be_said_and_what_did_not_come_is_told(tmp_path: Path) -> None:
    played = MemoryPlatform(name="played")
    await played.open(tmp_path)
    trial = ConformanceTrial(played, patience=0.1)
    job = await trial.submit("sleep", "50")
    with pytest.raises(Broken, match="waited 0 s for the job's end, and saw False"):
        await trial.wait_for_end(job)
    await trial.clean()


async def test_a_session_that_runs_is_not_cleaned_away(tmp_path: Path) -> None:
    local = Local(name="here")
    await local.open(tmp_path)
    trial = ConformanceTrial(local)
    await trial.submit("sleep", "50")
    with pytest.raises(PlatformRefused, match="still runs"):
        await local.clean(trial.keys[0])
    await trial.clean()
