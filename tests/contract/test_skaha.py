"""Skaha runs containers and notebook sessions, found again and never launched twice.

The server is written from its public description; CANFAR's own client agrees with it (`tests/engines/test_canfar.py`).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from sublet.booking.model.job import Job, JobState, Program, State
from sublet.booking.model.kernels import SKAHA, SKAHA_PLAN
from sublet.booking.model.request import Compute, Executable, Range, Request
from sublet.booking.model.session import EndKind
from sublet.booking.model.shape import Amounts, Shape
from sublet.kernel.errors import PlatformRefused, PlatformUnreachable, TokenNeeded
from sublet.platforms.skaha.platform import Skaha
from tests.skaha_server import TOKEN, SkahaServer, serve_skaha

pytestmark = pytest.mark.anyio
TERMINAL = "images.canfar.net/skaha/terminal:1.1.2"
GIB = 1 << 30


@pytest.fixture
def canfar() -> Iterator[tuple[SkahaServer, str]]:
    with serve_skaha() as served:
        yield served


def make(url: str, folder: Path) -> Skaha:
    token = folder / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    return Skaha(name="canfar", url=url, token_file=str(token))


@pytest.fixture
async def platform(canfar: tuple[SkahaServer, str], tmp_path: Path) -> AsyncIterator[Skaha]:
    made = make(canfar[1], tmp_path)
    await made.open(tmp_path / "home")
    await made.survey()
    yield made
    await made.close()


def job_of(cmd: str, *args: str, image: str = TERMINAL, seconds: float = 60, connects: str = "") -> Job:
    kind = "notebook" if connects else "headless"
    plan = {"image": image, "type": kind, "cmd": cmd, "args": list(args), "env": {"TEXT": "of a session"}}
    program = Program((SKAHA,), {}, {SKAHA_PLAN: json.dumps(plan).encode()}, connects=connects)
    until = datetime.now(UTC) + timedelta(seconds=seconds)
    return Job(program, Amounts(Shape(3, 3 * GIB)), (), until, timedelta(0))


async def wait_for(platform: Skaha, key: str, is_so: Callable[[JobState], object]) -> JobState:
    async with asyncio.timeout(20):
        while not is_so(state := (await platform.ask([key]))[key]):
            assert state.state is not State.ENDED, state
            await asyncio.sleep(0.05)
    return state


async def end_of(platform: Skaha, key: str) -> JobState:
    return await wait_for(platform, key, lambda state: state.state is State.ENDED)


async def test_a_container_runs_once_prints_and_is_gone_there_when_it_has_ended(
    platform: Skaha, canfar: tuple[SkahaServer, str]
) -> None:
    key = str(uuid4())
    assert await platform.find(key) is None
    first = await platform.submit(job_of("printenv", "TEXT"), key)
    assert await platform.submit(job_of("printenv", "TEXT"), key) == first == await platform.find(key)
    state = await end_of(platform, key)
    assert state.end
    assert (state.end.kind, state.end.code) == (EndKind.EXITED, 0)
    assert await platform.output(key, "stdout", 0, 100) == b"of a session\n"
    assert canfar[0].sessions == {}
    created = [call for call in canfar[0].calls if call.startswith("POST session")]
    assert created == ["POST session args&cmd&cores&env&image&name&ram&type"]
    await platform.clean(key)
    assert (await platform.ask([key]))[key].state is State.UNKNOWN


async def test_sizes_are_those_that_skaha_has(platform: Skaha, canfar: tuple[SkahaServer, str]) -> None:
    await platform.submit(job_of("sleep", "50"), key := str(uuid4()))
    (launched,) = canfar[0].sessions.values()
    assert (launched.first("cores"), launched.first("ram")) == ("4", "4")
    survey = await platform.survey()
    assert (survey.nodes[0].cores, survey.nodes[0].memory, survey.nodes[0].gpus) == (16, 32 * GIB, 2)
    await platform.cancel([key], "marie")
    state = await end_of(platform, key)
    assert state.end
    assert (state.end.kind, state.end.by) == (EndKind.CANCELLED, "marie")
    image = Executable("docker-container", fields={"image": {"locations": [TERMINAL]}})
    wide = Request(image, Compute(cores=Range(3, 8), memory=Range(3 * GIB, 9 * GIB)), duration=timedelta(hours=1))
    (offer,) = (await platform.offers(wide, [SKAHA], datetime.now(UTC))).offers
    assert (offer.shape.cores, offer.shape.memory, offer.terms.kind) == (4, 4 * GIB, "predicted")
    exact = Request(image, Compute(cores=Range(3, 3), memory=Range(GIB, GIB)), duration=timedelta(hours=1))
    (reason,) = (await platform.offers(exact, [SKAHA], datetime.now(UTC))).reasons
    assert reason.nearest == "4 cores, 1GiB"
    large = Request(image, Compute(cores=Range(17, 20)), duration=timedelta(hours=1))
    (reason,) = (await platform.offers(large, [SKAHA], datetime.now(UTC))).reasons
    assert "at most 16 cores" in reason.message


async def test_a_launch_whose_answer_was_lost_is_found_by_its_name_and_not_made_twice(
    platform: Skaha, canfar: tuple[SkahaServer, str], tmp_path: Path
) -> None:
    canfar[0].loses_answer = True
    key = str(uuid4())
    with pytest.raises(PlatformUnreachable):
        await platform.submit(job_of("sleep", "50"), key)
    again = make(canfar[1], tmp_path)  # as after a kill
    await again.open(tmp_path / "home")
    assert await again.find(key) == key
    assert await again.submit(job_of("sleep", "50"), key) == key
    assert len(canfar[0].sessions) == 1
    await again.cancel([key], "me")
    await end_of(again, key)
    await again.close()
    assert canfar[0].sessions == {}


async def test_ends_are_told_as_far_as_skaha_tells_them(platform: Skaha, canfar: tuple[SkahaServer, str]) -> None:
    failed = await platform.submit(job_of("ls", "/nothing"), str(uuid4()))
    end = (await end_of(platform, failed)).end
    assert end
    assert end.kind is EndKind.UNKNOWN
    assert "Skaha says that it is Failed, and tells no exit code; the last event was: Warning" in end.detail
    assert b"No such file" in await platform.output(failed, "stdout", 0, 200)
    late = await platform.submit(job_of("sleep", "50", seconds=0.5), str(uuid4()))
    end = (await end_of(platform, late)).end
    assert end
    assert end.kind is EndKind.TIMEOUT
    lost = await platform.submit(job_of("sleep", "50"), str(uuid4()))
    canfar[0].remove(next(iter(canfar[0].sessions)))
    end = (await end_of(platform, lost)).end
    assert end
    assert "does not know it any more" in end.detail
    with pytest.raises(PlatformRefused, match=r"image not found or not labelled: images\.canfar\.net/no/such:1"):
        await platform.submit(job_of("true", image="images.canfar.net/no/such:1"), str(uuid4()))


async def test_what_waits_says_why_and_a_notebook_session_is_opened_where_it_is_and_renewed(
    platform: Skaha, canfar: tuple[SkahaServer, str]
) -> None:
    canfar[0].keeps_pending = True
    waiting = await platform.submit(job_of("true"), str(uuid4()))
    state = (await platform.ask([waiting]))[waiting]
    assert (state.state, state.condition) == (State.QUEUED, "Warning  FailedScheduling   0/9 nodes: insufficient cpu")
    await platform.cancel([waiting], "me")
    canfar[0].keeps_pending = False
    week = timedelta(days=7).total_seconds()
    key = await platform.submit(job_of("", image="", seconds=week, connects="uri:jupyter-lab"), str(uuid4()))
    state = await wait_for(platform, key, lambda state: state.connector)
    (launched,) = [each for each in canfar[0].sessions.values() if each.first("type") == "notebook"]
    assert launched.first("image") == "images.canfar.net/skaha/astroml:24.07"
    assert "cmd" not in launched.given
    assert state.connector
    assert state.connector.location == f"see:{launched.describe()['connectURL']}"
    assert launched.renewals == 0
    launched.started -= timedelta(days=3, hours=13)  # it expires in eleven hours
    await platform.ask([key])
    assert launched.renewals == 1
    await platform.ask([key])
    assert launched.renewals == 1, "that is enough for now"
    await platform.cancel([key], "me")
    await end_of(platform, key)


async def test_what_a_lost_home_left_is_swept_and_others_sessions_are_not(
    platform: Skaha, canfar: tuple[SkahaServer, str], tmp_path: Path
) -> None:
    canfar[0].launch({"name": ["mine"], "image": [TERMINAL], "type": ["headless"], "cmd": ["sleep"], "args": ["50"]})
    key = await platform.submit(job_of("sleep", "50"), str(uuid4()))
    assert await platform.list_left() == []
    (tmp_path / "home" / "sessions").rename(tmp_path / "lost")
    (tmp_path / "home" / "sessions").mkdir()
    (name,) = await platform.list_left()
    assert name != key
    await platform.clean(name)
    assert [each.first("name") for each in canfar[0].sessions.values()] == ["mine"]


async def test_without_a_valid_token_nobody_is_let_in(canfar: tuple[SkahaServer, str], tmp_path: Path) -> None:
    wrong = make(canfar[1], tmp_path)
    (tmp_path / "token").write_text("polonium")
    await wrong.open(tmp_path / "home")
    with pytest.raises(TokenNeeded, match="canfar refuses the token: 401: not authenticated") as refused:
        await wrong.survey()
    assert "polonium" not in str(refused.value)
    await wrong.close()
