"""All platforms are asked at once, and one that is late, hangs, fails or lies costs its own answer only."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from pydantic import PrivateAttr

from sublet.booking.candidates import Candidates
from sublet.booking.model.answers import list_unanswered
from sublet.booking.model.offer import Answer, Booked, Offer
from sublet.booking.model.request import Request
from sublet.data.executables import ExecutableKinds
from sublet.kernel.errors import PlatformTimedOut
from sublet.platforms.memory.platform import MemoryPlatform
from sublet.platforms.port import Survey
from sublet.service import Service
from sublet.systems.model.probe import Live
from tests.contract.services import ME, OPERATOR, ask, serving

pytestmark = pytest.mark.anyio
LIMIT = timedelta(seconds=0.3)
PLENTY = timedelta(seconds=20)  # for those who answer at once: telling of their fault takes a busy machine a while


class Slow(MemoryPlatform):
    """A platform that answers when it is let go."""

    _gate: asyncio.Event = PrivateAttr(default_factory=asyncio.Event)
    _surveyed: int = PrivateAttr(default=0)
    _stopped: int = PrivateAttr(default=0)

    async def survey(self) -> Survey:
        self._surveyed += 1
        await self._gate.wait()
        return await super().survey()


class Planning(Slow):
    """One that is quickly surveyed, and slow with its offers."""

    async def survey(self) -> Survey:
        return await MemoryPlatform.survey(self)

    async def offers(self, request: Request, ways: Sequence[str], now: datetime) -> Answer:
        try:
            await self._gate.wait()
        except asyncio.CancelledError:
            self._stopped += 1
            raise
        return await super().offers(request, ways, now)


class Stubborn(Planning):
    """One that goes on although it was stopped, and answers when nobody listens."""

    async def offers(self, request: Request, ways: Sequence[str], now: datetime) -> Answer:
        while not self._gate.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await self._gate.wait()
        return await MemoryPlatform.offers(self, request, ways, now)


class Raising(MemoryPlatform):
    """A plug-in with a defect."""

    async def offers(self, request: Request, ways: Sequence[str], now: datetime) -> Answer:
        raise ZeroDivisionError("its own fault")


class RaisingSurvey(MemoryPlatform):
    async def survey(self) -> Survey:
        raise KeyError("nodes")


class Lying(MemoryPlatform):
    """One whose offers can't be true; `_lie` says how."""

    _lie: dict[str, Any] = PrivateAttr(default_factory=dict)

    async def offers(self, request: Request, ways: Sequence[str], now: datetime) -> Answer:
        answer = await super().offers(request, ways, now)
        return Answer(tuple(replace(offer, **self._lie) for offer in answer.offers))


class NoAnswerAtAll(MemoryPlatform):
    async def offers(self, request: Request, ways: Sequence[str], now: datetime) -> Answer:
        return None  # type: ignore[return-value]


@contextlib.asynccontextmanager
async def beside(home: Path, *others: MemoryPlatform, **settings: Any) -> AsyncIterator[Service]:
    """A service with one platform that answers, and these."""
    async with serving(home, loop=False, **{"answer_within": LIMIT, **settings}) as service:
        for other in others:
            directory = home / "platforms" / other.name
            directory.mkdir(parents=True)
            await other.open(directory)
            service.platforms.by_name[other.name] = other
        try:
            yield service
        finally:
            for other in others:
                if isinstance(other, Slow):
                    other._gate.set()


def predicted(kind: type[MemoryPlatform], name: str = "late") -> Any:
    return kind(name=name, terms="predicted")


@pytest.mark.parametrize(
    ("kind", "terms"),
    [
        (Slow, "booked"),  # is asked for nothing but a survey
        *((kind, terms) for kind in (Slow, Planning, Stubborn) for terms in ("predicted", "remote")),
    ],
)
async def test_who_is_late_is_named_and_the_others_offer(tmp_path: Path, kind: type[Slow], terms: Any) -> None:
    async with beside(tmp_path, kind(name="late", terms=terms)) as service:
        begun = monotonic()
        answer = await ask(service)
        assert monotonic() - begun < 5, "the limit of one platform is 0.3 s; this is only about not hanging"
        assert {one.offer.platform for one in answer.offers} == {"trial"}
        assert list_unanswered(answer.reasons) == ("late",)
        [reason] = answer.reasons
        assert reason.message == "late did not answer within 0.3 s."
        assert "try again" in reason.nearest


async def test_a_no_names_who_did_not_answer_too(tmp_path: Path) -> None:
    async with beside(tmp_path, predicted(Slow)) as service:
        answer = await ask(service, cores=10_000)
        assert answer.result == "NO"
        assert list_unanswered(answer.reasons) == ("late",)
        assert {reason.platform for reason in answer.reasons} == {"trial", "late"}


async def test_many_late_ones_are_waited_for_at_the_same_time(tmp_path: Path) -> None:
    late = [predicted(Slow, f"late{number}") for number in range(20)]
    async with beside(tmp_path, *late) as service:
        begun = monotonic()
        answer = await ask(service)
        assert monotonic() - begun < 20 * LIMIT.total_seconds()
        assert len(list_unanswered(answer.reasons)) == 20


async def test_a_late_survey_goes_on_once_for_all_and_the_next_who_ask_have_it(tmp_path: Path) -> None:
    late = predicted(Slow)
    async with beside(tmp_path, late) as service:
        for answer in await asyncio.gather(*(ask(service) for _ in range(5))):
            assert list_unanswered(answer.reasons) == ("late",)
        assert late._surveyed == 1
        late._gate.set()
        assert {one.offer.platform for one in (await ask(service)).offers} == {"trial", "late"}
        assert late._surveyed == 1


async def test_while_a_survey_is_late_the_last_one_does(tmp_path: Path) -> None:
    late = predicted(Slow)
    async with beside(tmp_path, late) as service:
        late._gate.set()
        seen = await service.platforms.survey("late")
        service.platforms.surveys["late"] = replace(seen, as_of=seen.as_of - timedelta(hours=3))
        late._gate.clear()
        assert {one.offer.platform for one in (await ask(service)).offers} == {"trial", "late"}


async def test_a_question_that_is_late_is_stopped_and_nothing_is_held_by_its_answer(tmp_path: Path) -> None:
    late, stubborn = predicted(Planning), predicted(Stubborn, "stubborn")
    async with beside(tmp_path, late, stubborn) as service:
        answer = await ask(service)
        await asyncio.sleep(0)  # a stopped task notices at its next turn
        assert late._stopped == 1
        for one in (late, stubborn):
            one._gate.set()
        for _ in range(5):
            await asyncio.sleep(0)
        again = await service.asking.offerset(answer.id, ME)
        assert {one.offer.platform for one in again.offers} == {"trial"}
        assert {task.get_name() for task in asyncio.all_tasks()} & {"late", "stubborn"} == set()


async def test_a_late_booked_platform_holds_nothing_when_it_comes_after_all(tmp_path: Path) -> None:
    late = Slow(name="late", cores=4)
    async with beside(tmp_path, late) as service:
        await ask(service)
        late._gate.set()
        await service.platforms.survey("late")
        now = datetime.now(UTC)
        busy = await service.usable_platforms.busy("late", ME, now, now + timedelta(days=1))
        assert not any(busy.takes.values())


@pytest.mark.parametrize(
    ("lie", "fault"),
    [
        ({"platform": "trial"}, "is for the platform trial"),
        ({"way": "magic"}, "names a way that was not asked for: magic"),
        ({"terms": Booked()}, "says that it is booked"),
        ({"start": datetime(2026, 1, 1)}, "has a start that can't be read"),
    ],
)
async def test_who_lies_costs_its_own_answer_only(tmp_path: Path, lie: dict[str, Any], fault: str) -> None:
    liar = predicted(Lying, "liar")
    liar._lie = lie
    async with beside(tmp_path, liar, answer_within=PLENTY) as service:
        answer = await ask(service)
        assert {one.offer.platform for one in answer.offers} == {"trial"}
        assert [reason.platform for reason in answer.reasons] == ["liar"]
        assert fault in answer.reasons[0].message


@pytest.mark.parametrize("kind", [Raising, RaisingSurvey, NoAnswerAtAll])
async def test_who_fails_costs_its_own_answer_only(tmp_path: Path, kind: type[MemoryPlatform]) -> None:
    async with beside(tmp_path, predicted(kind, "bad"), answer_within=PLENTY) as service:
        answer = await ask(service)
        assert {one.offer.platform for one in answer.offers} == {"trial"}
        assert [(reason.platform, reason.kind) for reason in answer.reasons] == [("bad", "urn:platform-broken")]


async def test_who_is_waited_for_can_be_seen_meanwhile_by_the_asker_alone(tmp_path: Path) -> None:
    async with beside(tmp_path, predicted(Slow)) as service:
        asking = asyncio.create_task(ask(service))
        while not any(request.waiting == {"late"} for request in service.candidates.pending.of("me")):
            await asyncio.sleep(0.01)
            assert not asking.done()
        assert not service.candidates.pending.of("other")
        await asking
        assert not service.candidates.pending.of("me")


async def test_a_look_at_all_platforms_waits_for_none_longer_than_that(tmp_path: Path) -> None:
    async with beside(tmp_path, predicted(Slow), predicted(Slow, "late2")) as service:
        states = {state.name: state.trouble for state in await service.usable_platforms.states(ME)}
        assert states["trial"] == ""
        assert states["late"].startswith("late did not answer within 0.3 s.")
        with pytest.raises(PlatformTimedOut):
            await service.platforms.survey_soon("late2")


async def seen_again(service: Service, name: str, old: datetime) -> None:
    """Wait until a platform was looked at anew, without asking it."""
    for _ in range(2000):
        if (found := service.platforms.surveys.get(name)) and found.as_of > old:
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it was not looked at anew")


async def test_a_no_says_how_old_what_it_knows_is_and_the_next_knows_better(tmp_path: Path) -> None:
    grown = predicted(MemoryPlatform, "grown")
    async with beside(tmp_path, grown) as service:
        seen = await service.platforms.survey("grown")
        old = seen.as_of - timedelta(hours=3)
        service.platforms.surveys["grown"] = replace(seen, as_of=old, tools={}, good_for=timedelta(days=1))
        wish = {"run": None, "image": "docker://busybox", "platform": "grown"}
        [reason] = (await ask(service, **wish)).reasons
        assert (reason.platform, reason.as_of) == ("grown", old)
        await seen_again(service, "grown", old)
        assert (await ask(service, **wish)).offers


async def test_a_no_of_what_was_seen_just_now_has_no_age(tmp_path: Path) -> None:
    async with beside(tmp_path, predicted(MemoryPlatform, "new")) as service:
        answer = await ask(service, cores=10_000)
        assert [reason.as_of for reason in answer.reasons] == [None, None]


class Grown(MemoryPlatform):
    """One that has more than it had when it was looked at, and says so to whoever probes it or signs in."""

    _login: Any = PrivateAttr(default=None)

    @property
    def login(self) -> Any:
        return self._login

    async def probe(self, tools: Mapping[str, str]) -> Live:
        return Live(datetime.now(UTC))


class Door:
    """A login that nobody is asked anything for."""

    shared = True

    async def open(self, ask: Any, patience: float) -> None:
        """It opens."""


@pytest.mark.parametrize("what", ["probe", "login"])
async def test_a_survey_is_renewed_by(what: str, tmp_path: Path) -> None:
    grown = predicted(Grown, "grown")
    grown._login = Door()
    async with beside(tmp_path, grown) as service:
        seen = await service.platforms.survey("grown")
        old = seen.as_of - timedelta(hours=3)
        service.platforms.surveys["grown"] = replace(seen, as_of=old, good_for=timedelta(days=1))
        assert (await service.platforms.survey("grown")).as_of == old, "it is still good"
        await (service.probing.probe("grown") if what == "probe" else service.logins.sign_in("grown", OPERATOR))
        await seen_again(service, "grown", old)


async def test_a_survey_is_renewed_by_an_edit_of_the_systems_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "systems" / "grown.json"
    file.parent.mkdir()

    def systems_of(_: Any) -> Any:
        """A system of the file's that plays: there is no cluster in this ring."""
        return {"grown": {"kind": "memory", "terms": "predicted", **json.loads(file.read_text())}}, {}

    monkeypatch.setattr("sublet.booking.platforms.systems.systems_of", systems_of)
    file.write_text('{"nodes": 1}')
    async with beside(tmp_path) as service:
        before = service.platforms.surveys["grown"]
        service.platforms.surveys["grown"] = replace(before, good_for=timedelta(days=1))
        file.write_text('{"nodes": 12}')
        await service.changes.refresh()
        assert (len(before.nodes), len(service.platforms.surveys["grown"].nodes)) == (1, 12)


def _first(offers: Sequence[Offer]) -> str:
    return offers[0].platform


async def test_offers_are_sorted_as_the_settings_prefer(tmp_path: Path) -> None:
    sooner = MemoryPlatform(name="queue", terms="predicted", waits=(timedelta(0), timedelta(0), timedelta(0)))
    async with beside(tmp_path, sooner) as service:
        assert _first([one.offer for one in (await ask(service)).offers]) == "trial"


async def test_a_platform_of_our_own_that_was_seen_just_now_is_not_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    consult = Candidates._consult

    async def noted(self: Candidates, platform: Any, *rest: Any) -> Any:
        asked.append(platform.name)
        return await consult(self, platform, *rest)

    monkeypatch.setattr(Candidates, "_consult", noted)
    platforms = {"ours": {"kind": "memory"}, "theirs": {"kind": "memory", "terms": "predicted"}}
    async with serving(tmp_path, platforms=platforms) as service:
        found = await ask(service)
        assert {session.offer.platform for session in found.offers} == {"ours", "theirs"}
        assert asked == ["theirs"]
        service.platforms.surveys.clear()
        assert (await ask(service)).result == "YES"
        assert sorted(asked) == ["ours", "theirs", "theirs"]


async def test_a_way_to_run_something_that_breaks_costs_its_own_platforms_answer_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways = ExecutableKinds.ways

    def broken(self: ExecutableKinds, executable: Any, tools: Mapping[str, str]) -> Any:
        if "fragile" in tools:
            raise ZeroDivisionError
        return ways(self, executable, tools)

    monkeypatch.setattr(ExecutableKinds, "ways", broken)
    platforms = {name: {"kind": "memory"} for name in ("one", "other")}
    async with serving(tmp_path, platforms=platforms) as service:
        survey = service.platforms.surveys["one"]
        service.platforms.surveys["one"] = replace(survey, tools={**survey.tools, "fragile": "1"})
        found = await ask(service)
        assert {session.offer.platform for session in found.offers} == {"other"}
        assert [(reason.kind, reason.platform) for reason in found.reasons] == [("urn:platform-broken", "one")]
