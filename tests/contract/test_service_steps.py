"""Several executables in one session, from the short form to the end that is told of all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.documents.short import full_document
from sublet.kernel.errors import BadRequest
from tests.contract.services import ME, allow, ask, reach, serving

pytestmark = pytest.mark.anyio


def find_work(home: Path, session: str) -> Path:
    [work] = home.rglob(f"*{session}*/work")
    return work


async def run_steps(home: Path, steps: Any) -> tuple[Any, Path]:
    async with serving(home, platforms={"here": {"kind": "local"}}) as service:
        offers = (await ask(service, ME, run=None, steps=steps, time="1m")).offers
        accepted = await service.sessions.accept(offers[0].id, ME)
        ended = await reach(service, accepted.id, lambda session: session.end is not None, ME)
        return ended, find_work(home, accepted.id)


async def test_two_executables_run_in_one_session_with_results_of_each(tmp_path: Path) -> None:
    steps = [
        {"name": "prepare", "run": ["sh", "-c", "echo 7 > x"]},
        {"run": ["sh", "-c", "cat x; exit $V"], "env": {"V": 5}},
    ]
    ended, work = await run_steps(tmp_path, steps)
    assert ended.end.code == 5, "the end of the step that failed is the end of the session"
    assert (work / "steps" / "step-2" / "stdout").read_text() == "7\n"
    ends = [json.loads((work / "steps" / name / "end.json").read_text())["code"] for name in ("prepare", "step-2")]
    assert ends == [0, 5]


def test_steps_are_words_or_maps_and_what_is_not_known_is_refused() -> None:
    whole = full_document({"steps": {"run": ["python a.py", ["b", "c"]], "together": True}, "cores": 2})
    assert whole["executable"]["steps"] == [{"argv": ["python", "a.py"]}, {"argv": ["b", "c"]}]
    assert whole["executable"]["together"] is True
    sized = full_document({"steps": [{"run": "a", "cores": 2, "time": "10m"}], "cores": 2})
    assert sized["executable"]["steps"] == [{"argv": ["a"], "cores": 2, "time": "10m"}]
    for wrong in ({"steps": [{"image": "x"}]}, {"steps": {"tasks": []}}, {"steps": [], "run": "true"}):
        with pytest.raises(BadRequest):
            full_document(wrong)


async def test_a_gateway_runs_steps_in_an_image_and_not_without_one(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway", platforms={"trial": {"kind": "memory"}}, loop=False) as service:
        await allow(service, name="trial")
        wish = {"run": None, "steps": ["true", "false"], "time": "1m"}
        refused = await ask(service, ME, **wish)
        assert "permission to run outside a container" in str(refused.reasons)
        offered = await ask(service, ME, **wish, image="docker://python")
        assert {session.offer.platform for session in offered.offers} == {"trial"}, offered.reasons


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"cores": 3}, "a step of 3 cores does not fit into the 2 of its session"),
        ({"cores": 0}, "cores is a number from 1 on"),
        ({"time": "soon"}, "soon"),
    ],
)
async def test_a_step_that_can_not_have_its_size_is_a_no(tmp_path: Path, step: dict[str, Any], words: str) -> None:
    async with serving(tmp_path, loop=False) as service:
        answer = await ask(service, ME, run=None, steps=[{"run": "true", **step}], cores=2, time="1m")
        assert words in str(answer.reasons)
        assert not answer.offers
