"""The platform that plays can play every term and every fault, and forgets nothing."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.job import State
from sublet.booking.model.offer import Predicted, Remote
from sublet.booking.model.request import Compute, Executable, Range, Request, Window
from sublet.kernel.errors import PlatformRefused, PlatformUnreachable
from sublet.platforms.conformance_trial import ConformanceTrial
from sublet.platforms.local.platform import Local
from sublet.platforms.memory.journal import Journal
from sublet.platforms.memory.platform import MemoryPlatform

pytestmark = pytest.mark.anyio
NOW = datetime(2030, 1, 1, tzinfo=UTC)
REQUEST = Request(Executable("command"), duration=timedelta(hours=1))


async def opened(home: Path, **settings: Any) -> MemoryPlatform:
    platform = MemoryPlatform(name="played", **settings)
    await platform.open(home)
    return platform


async def test_it_has_what_it_was_told_to_have(tmp_path: Path) -> None:
    survey = await (await opened(tmp_path, nodes=12, cores=4, memory="8GiB", gpus=1, storage="1TiB")).survey()
    assert [node.name for node in survey.nodes[::11]] == ["played-01", "played-12"]
    assert {(node.cores, node.memory, node.gpus) for node in survey.nodes} == {(4, 8 << 30, 1)}
    assert survey.pools == {"storage": 1 << 40}
    assert {"podman", "apptainer", "papermill", "jupyter-lab"} <= survey.tools.keys()


async def test_played_predictions_are_intervals(tmp_path: Path) -> None:
    platform = await opened(tmp_path, terms="predicted", waits=("1m", "2m", "3m"))
    answer = await platform.offers(REQUEST, ["sh"], NOW)
    (offer,) = answer.offers
    assert isinstance(offer.terms, Predicted)
    assert [at - NOW for at in (offer.terms.p10, offer.terms.p50, offer.terms.p90)] == [
        timedelta(minutes=minutes) for minutes in (1, 2, 3)
    ]
    assert offer.start == offer.terms.p50
    assert (offer.way, offer.duration, offer.nodes) == ("sh", timedelta(hours=1), ())


async def test_played_remote_offers_have_an_address_and_an_expiry(tmp_path: Path) -> None:
    (offer,) = (await (await opened(tmp_path, terms="remote")).offers(REQUEST, ["sh"], NOW)).offers
    assert isinstance(offer.terms, Remote)
    assert offer.terms.expires > NOW
    assert offer.terms.url


async def test_a_played_queue_says_no_with_the_field_and_the_limit(tmp_path: Path) -> None:
    platform = await opened(tmp_path, terms="predicted")
    much = replace(REQUEST, compute=Compute(cores=Range(64, 128)))
    (reason,) = (await platform.offers(much, ["sh"], NOW)).reasons
    assert (reason.field, reason.wanted, reason.limit) == ("compute.cores.min", "64", "16")
    soon = replace(REQUEST, windows=(Window(NOW, NOW + timedelta(minutes=1)),))
    (reason,) = (await platform.offers(soon, ["sh"], NOW)).reasons
    assert reason.field == "schedule"
    later = NOW + timedelta(days=1)
    (offer,) = (await platform.offers(replace(REQUEST, windows=(Window(later, later),)), ["sh"], NOW)).offers
    assert offer.start == later


async def test_a_played_queue_predicts_no_start_before_the_window_that_was_asked_for(tmp_path: Path) -> None:
    platform = await opened(tmp_path, terms="predicted")
    for minutes in (0, 1.5, 2.5, 600):
        opens = NOW + timedelta(minutes=minutes)
        asked = replace(REQUEST, windows=(Window(opens, opens + timedelta(hours=1)),))
        (offer,) = (await platform.offers(asked, ["sh"], NOW)).offers
        assert isinstance(offer.terms, Predicted)
        assert opens <= offer.terms.p10 <= offer.terms.p50 <= offer.terms.p90
        assert offer.start == offer.terms.p50
    trial = ConformanceTrial(platform)
    later = datetime.now(UTC) + timedelta(hours=1)
    job = await platform.submit(replace(trial.job("true"), begin=later), trial.key())
    assert (await trial.state(job)).state is State.QUEUED
    assert platform._jobs[job].starts == later.timestamp()


async def test_a_played_queue_makes_an_offer_for_each_window_that_it_can_meet(tmp_path: Path) -> None:
    hour = timedelta(hours=1)
    windows = [Window(NOW + delay, NOW + delay + hour) for delay in (-hour / 2, 5 * hour, 9 * hour)]
    missed = Window(NOW, NOW + timedelta(seconds=1))
    for terms in ("predicted", "remote"):
        platform = await opened(tmp_path, terms=terms)
        wanted = replace(REQUEST, windows=(*reversed(windows), *([missed] if terms == "predicted" else [])))
        offers = (await platform.offers(wanted, ["sh"], NOW)).offers
        assert len(offers) == 3
        for window, offer in zip(windows, offers, strict=True):
            assert window.start <= offer.start <= offer.latest_start <= window.end


async def test_in_a_played_queue_a_job_waits_and_then_has_its_whole_time(tmp_path: Path) -> None:
    platform = await opened(tmp_path, terms="predicted", waits=("0s", "1s", "1s"))
    trial = ConformanceTrial(platform)
    job = await trial.submit("true", seconds=1, takes="PT0.9S")
    assert (await trial.state(job)).state is State.QUEUED
    state = await trial.wait_for_end(job)
    assert state.end
    assert state.end.code == 0


async def test_an_interactive_job_runs_until_its_end_and_says_where_it_would_listen(tmp_path: Path) -> None:
    platform = await opened(tmp_path)
    trial = ConformanceTrial(platform)
    plain = trial.job("jupyter-lab", takes="0s")
    job = await platform.submit(replace(plain, program=replace(plain.program, connects="uri:jupyter-lab")), trial.key())
    state = await trial.state(job)
    assert state.state is State.RUNNING
    assert state.connector
    assert state.connector.kind == "uri:jupyter-lab"
    await trial.clean()


async def test_an_unreachable_platform_answers_nothing(tmp_path: Path) -> None:
    platform = await opened(tmp_path, fault="unreachable")
    for question in (platform.survey, lambda: platform.find("a"), lambda: platform.ask(["a"]), platform.news):
        with pytest.raises(PlatformUnreachable):
            await question()


async def test_a_lost_answer_is_settled_by_finding_the_key(tmp_path: Path) -> None:
    platform = await opened(tmp_path, fault="loses-answer")
    trial = ConformanceTrial(platform)
    with pytest.raises(PlatformUnreachable):
        await trial.submit("true")
    assert await platform.find(trial.keys[0]) == trial.keys[0]


async def test_a_play_that_makes_no_sense_is_refused(tmp_path: Path) -> None:
    trial = ConformanceTrial(await opened(tmp_path))
    with pytest.raises(PlatformRefused):
        await trial.submit("true", takes="a while")


async def test_ten_thousand_jobs_are_found_again_and_only_what_changed_is_news(tmp_path: Path) -> None:
    platform = await opened(tmp_path)
    trial = ConformanceTrial(platform)
    for _ in range(10_000):
        await trial.submit("true", seconds=9000)
    await platform.news()
    await platform.cancel(trial.keys[:1], "somebody")
    assert await platform.news() == trial.keys[:1]
    again = await opened(tmp_path)
    states = await again.ask(trial.keys)
    assert [state.state for state in states.values()].count(State.RUNNING) == 9_999


async def test_what_was_cleaned_is_left_out_when_the_journal_is_rewritten(tmp_path: Path) -> None:
    platform = await opened(tmp_path)
    trial = ConformanceTrial(platform)
    for _ in range(600):
        await trial.submit("true")
        if len(trial.keys) > 1:
            await platform.clean(trial.keys[-1])
    other = await opened(tmp_path)
    assert len((tmp_path / "journal").read_text().splitlines()) == 1
    for each in (platform, other):
        assert (await each.ask(trial.keys[:1]))[trial.keys[0]].state is State.RUNNING
        assert await each.find(trial.keys[1]) is None


def test_a_line_that_a_crash_cut_off_is_dropped(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal")
    journal.add({"a": 1})
    journal.news()
    with journal.path.open("a") as file:
        file.write('{"b": ')
    assert journal.news()[1] == []
    journal.add({"c": 3})
    assert [dict(entry) for entry in journal.news()[1]] == [{"c": 3}]


@pytest.mark.parametrize("kind", [MemoryPlatform, Local])
def test_every_setting_is_described(kind: type[MemoryPlatform] | type[Local]) -> None:
    for name, field in kind.model_fields.items():
        assert field.description, name


@pytest.mark.parametrize("bad", [{"memory": "much"}, {"grace": "P1H"}, {"cores": 0}, {"colour": "red"}])
def test_a_setting_that_makes_no_sense_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        Local(name="here", **bad)
