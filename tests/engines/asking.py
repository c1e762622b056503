"""What the tests of batch systems ask of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from sublet.booking.model.job import Job, JobState, Program, State
from sublet.booking.model.offer import Offer
from sublet.booking.model.request import Compute, Executable, Range, Request, Window
from sublet.booking.model.session import End, EndKind
from sublet.booking.model.shape import Amounts, Shape
from sublet.platforms.port import Platform
from tests.engines.machines import EngineMachine

PATIENCE = 300  # seconds: a scheduler that shares a busy machine takes minutes
MEMORY = 128 << 20


def request_for(platform: str, minutes: int = 10, *windows: Window, cores: int = 1, nodes: int = 1) -> Request:
    """A small request that names a platform."""
    compute = Compute(cores=Range.exactly(cores), nodes=Range.exactly(nodes), memory=Range.exactly(MEMORY))
    executable = Executable("command", "test", {})
    return Request(executable, compute, duration=timedelta(minutes=minutes), windows=windows, platform=platform)


async def find_booked(platform: Platform, request: Request) -> Offer:
    """An offer that is reserved; a busy site may answer too late at first, and then it is only predicted."""
    async with asyncio.timeout(PATIENCE):
        while True:
            answer = await platform.offers(request, ["exec"], datetime.now(UTC))
            for offer in answer.offers:
                if offer.reservation:
                    return offer


async def wait_until(platform: Platform, key: str, seen: Callable[[JobState], bool]) -> JobState:
    """The state of a job once it is so."""
    async with asyncio.timeout(PATIENCE):
        while not seen(state := (await platform.ask([key]))[key]):  # noqa: ASYNC110 (it happens elsewhere)
            await asyncio.sleep(0.3)
    return state


async def wait_for_end(platform: Platform, key: str) -> End:
    """How a job ended."""
    state = await wait_until(platform, key, lambda state: state.state is State.ENDED)
    assert state.end
    return state.end


def list_sleepers(machine: EngineMachine) -> list[str]:
    """What runs there of scripts that would go on for minutes."""
    return [line for line in machine.run_as_person("ps -u $(id -un) -o args=").splitlines() if "sleep 300" in line]


async def run_on_each_node(platform: Platform, script: str) -> str:
    """Submit a script for each of two nodes; the session's key."""
    until = datetime.now(UTC) + timedelta(minutes=5)
    program = Program(("sh", "-c", script), each_node=True)
    return await platform.submit(Job(program, Amounts(Shape(2, MEMORY), 2), (), until, timedelta(0)), str(uuid4()))


async def check_each_node(platform: Platform) -> None:
    """A program for each of two nodes runs once on each, and the first that fails ends the other."""
    greet = 'echo "$SUBLET_NODE_NUMBER of $SUBLET_NODES, $SUBLET_NODE_NAME, $SUBLET_FIRST_NODE, $OMP_NUM_THREADS"; '
    fail = "[ $SUBLET_NODE_NUMBER = 0 ] && : >there && sleep 300; until [ -e there ]; do sleep 0.2; done; exit 3"
    for script, code in ((greet, 0), (greet + fail, 3)):
        end = await wait_for_end(platform, key := await run_on_each_node(platform, script))
        errors = (await platform.output(key, "stderr", 0, 2000)).decode()
        assert (end.kind, end.code) == (EndKind.EXITED, code), errors
        lines = sorted((await platform.output(key, "stdout", 0, 2000)).decode().splitlines())
        numbers, names, firsts, threads = zip(*(line.split(", ") for line in lines), strict=True)
        assert (numbers, threads) == (("0 of 2", "1 of 2"), ("2", "2")), errors
        assert len(set(names)) == 2, lines
        assert {*firsts} == {names[0]}, "each is told where the first is"
        await platform.clean(key)
    key = await run_on_each_node(platform, "trap 'echo over; exit 1' TERM; echo up; while :; do sleep 0.2; done")
    await wait_until(platform, key, lambda state: state.state is State.RUNNING)
    async with asyncio.timeout(PATIENCE):
        while (await platform.output(key, "stdout", 0, 100)).count(b"up\n") < 2:  # noqa: ASYNC110 (it happens elsewhere)
            await asyncio.sleep(0.3)
    await platform.cancel([key], "ann")
    end = await wait_for_end(platform, key)
    assert (end.kind, end.by) == (EndKind.CANCELLED, "ann")
    assert (await platform.output(key, "stdout", 0, 100)).count(b"over\n") == 2, "both had time to end"
    await platform.clean(key)
