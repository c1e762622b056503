"""The contract of every platform, as rules that can be tried on a live one: `sublet platform check NAME`.

Each rule runs a job or two of one core and a little memory, for a moment, unbooked, and cleans up after itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from secrets import randbelow

from sublet.booking.model.job import State
from sublet.booking.model.marks import Mark
from sublet.booking.model.session import EndKind
from sublet.kernel.errors import PlatformRefused, SubletError
from sublet.kernel.log import log
from sublet.platforms.broker_promises import find_kept_offer, find_no_answer, find_refused_kind
from sublet.platforms.brokering import PassesOn
from sublet.platforms.conformance_trial import MEMORY, PATIENCE, Broken, ConformanceTrial
from sublet.platforms.port import Platform, Results
from sublet.platforms.reservation_promises import find_kept_reservation
from sublet.platforms.reserving import Reserves
from sublet.platforms.trials import WritesTrials

AT_ONCE = 4
TICK = 0.05  # seconds between two lines of a job that prints
FOREVER = "3600"  # seconds that a job sleeps which will be stopped, however long that takes
TIMES = (4, 8, 16, 32)  # seconds of a job that is extended: the later ones are for platforms where an extension is slow
RECENT = timedelta(hours=1)  # the age of a survey, unless the platform's own settings let it be older
AHEAD = timedelta(minutes=1)  # by which a survey's time may be later than now, as clocks are set now and then
LONGER = timedelta(seconds=90)  # from the moment of the extension, and longer than any of these jobs takes


@dataclass(frozen=True)
class RuleFinding:
    """Whether one rule holds."""

    rule: str
    ok: bool
    detail: str = ""


def _same(what: str, seen: object, wanted: object) -> None:
    if seen != wanted:
        raise Broken(f"{what} is {seen}, and should be {wanted}")


async def the_survey_shows_nodes(trial: ConformanceTrial) -> None:
    """A survey shows nodes with cores and memory, and is recent."""
    survey = await trial.platform.survey()
    if not survey.nodes or any(node.cores < 1 or node.memory < 1 for node in survey.nodes):
        raise Broken(f"its nodes are {survey.nodes}")
    if survey.trouble:
        raise Broken(survey.trouble)
    if survey.as_of.tzinfo is None:
        raise Broken(f"the time of its survey, {survey.as_of}, has no time zone")
    oldest = max(RECENT, survey.good_for, getattr(trial.platform, "fresh", RECENT))
    if not -AHEAD <= datetime.now(UTC) - survey.as_of <= oldest:
        raise Broken(f"its survey is of {survey.as_of:%Y-%m-%d %H:%M} UTC")


async def an_exit_code_comes_back(trial: ConformanceTrial) -> None:
    """A job that exits with 3 has ended with the code 3."""
    state = await trial.wait_for_end(await trial.submit("sh", "-c", "exit 3", code=3, takes="0s"))
    _same("its end", state.end and (state.end.kind, state.end.code), (EndKind.EXITED, 3))


async def a_key_is_one_job(trial: ConformanceTrial) -> None:
    """A job that is submitted twice under one key is one job, and is found by that key."""
    key = trial.key()
    _same("what is found before it is submitted", await trial.platform.find(key), None)
    job = trial.job("sh", "-c", "echo ran; echo ran >>ran.txt", takes="0s")
    first = await trial.platform.submit(job, key)
    _same("what is found", await trial.platform.find(key), first)
    _same("the second submit's job", await trial.platform.submit(job, key), first)
    await trial.wait_for_end(first)
    _same("the third submit's job, after its end", await trial.platform.submit(job, key), first)
    if not trial.platform.plays:
        _same("what it printed", await trial.platform.output(key, "stdout", 0, 100), b"ran\n")


async def an_unknown_job_is_unknown(trial: ConformanceTrial) -> None:
    """A job that was never submitted is unknown, and asking for it fails nothing else."""
    job = await trial.submit("true", takes="0s")
    states = await trial.platform.ask([trial.key(), job])
    _same("its state", states[trial.keys[-1]].state, State.UNKNOWN)
    _same("that the other one is known", states[job].state is not State.UNKNOWN, True)


async def a_cancelled_job_says_by_whom(trial: ConformanceTrial) -> None:
    """A job that is cancelled ends as cancelled, and says by whom."""
    job = await trial.submit("sleep", FOREVER)
    _same("its state", (await trial.state(job)).state in (State.RUNNING, State.QUEUED), True)
    await trial.platform.cancel([job], "somebody")
    state = await trial.wait_for_end(job)
    _same("its end", state.end and (state.end.kind, state.end.by), (EndKind.CANCELLED, "somebody"))
    await trial.platform.cancel([job], "somebody else")
    state = await trial.wait_for_end(job)
    _same("who cancelled it", state.end and state.end.by, "somebody")


async def the_end_of_the_time_is_a_timeout(trial: ConformanceTrial) -> None:
    """A job that runs on at the end of its time is stopped, and ends as a timeout."""
    state = await trial.wait_for_end(await trial.submit("sleep", FOREVER, seconds=1))
    _same("its end", state.end and state.end.kind, EndKind.TIMEOUT)


async def the_time_can_be_extended(trial: ConformanceTrial) -> None:
    """A job whose time is extended runs on."""
    for seconds in TIMES:
        longer = f"{1.1 * seconds:.1f}"
        job = await trial.submit("sh", "-c", f"sleep {longer}; exit 0", seconds=seconds, takes=f"{longer}s")
        await trial.platform.extend(job, datetime.now(UTC) + LONGER)
        if (await trial.wait_for_start(job)).state is State.RUNNING:
            await trial.platform.extend(job, datetime.now(UTC) + LONGER)  # the first one may have ended in the queue
        state = await trial.wait_for_end(job)
        if state.end and state.end.kind is not EndKind.TIMEOUT:
            break  # after a timeout, the extension may just have come too late
    _same("its end", state.end and (state.end.kind, state.end.code), (EndKind.EXITED, 0))


async def a_paused_job_stands_still(trial: ConformanceTrial) -> None:
    """A job that is paused says so and stands still, and goes on when it is resumed; or the platform refuses."""
    job = await trial.submit("sh", "-c", f"while :; do echo tick; sleep {TICK}; done")

    async def printed() -> bytes:
        return await trial.platform.output(trial.keys[-1], "stdout", 0, 1 << 20)

    async def is_still() -> bool:
        before = await printed()
        await asyncio.sleep(10 * TICK)
        return await printed() == before

    async def is_paused() -> bool:
        return Mark.PAUSED in (await trial.state(job)).marks

    await trial.until("what it prints", printed)
    try:
        _same("that a pause says how", bool(await trial.platform.pause(job)), True)
    except PlatformRefused:
        return
    await trial.until("it to say that it is paused", is_paused)
    await trial.until("it to stand still", is_still)
    _same("that it goes on as it says", bool(await trial.platform.resume(job)), True)
    before = await printed()

    async def goes_on() -> bool:
        moves = trial.platform.plays or len(await printed()) > len(before)
        return moves and not await is_paused()

    await trial.until("it to go on", goes_on)


async def output_is_read_by_offset(trial: ConformanceTrial) -> None:
    """What a job prints can be read by offset while it runs, and after."""
    job = await trial.submit("sh", "-c", f"echo 0123456789; echo wrong >&2; sleep {FOREVER}")
    key = trial.keys[-1]

    async def printed() -> bytes:
        return await trial.platform.output(key, "stdout", 0, 100)

    await trial.until("its output", printed)
    if not trial.platform.plays:
        _same("the part", await trial.platform.output(key, "stdout", 3, 4), b"3456")
    whole = await printed()
    _same("how much it has printed", await trial.platform.output_size(key, "stdout"), len(whole))
    _same("what follows the end", await trial.platform.output(key, "stdout", len(whole), 10), b"")
    await trial.platform.cancel([job], "check")
    await trial.wait_for_end(job)
    _same("what it printed, after its end", (await printed())[: len(whole)], whole)


async def a_missing_program_is_told(trial: ConformanceTrial) -> None:
    """A program that doesn't exist was not started, and the system's words say why."""
    state = await trial.wait_for_end(await trial.submit("no-such-program-anywhere"))
    _same("its end", state.end and state.end.kind, EndKind.NOT_STARTED)
    if not (state.end and "no-such-program-anywhere" in state.end.detail):
        raise Broken(f"its end says only {state.end}")


async def cancel_stops_grandchildren(trial: ConformanceTrial) -> None:
    """A cancel stops every process of a job, also those that left its group and session."""
    words = f"sleep {10**6 + randbelow(10**6)}"  # a pid alone may be another process's elsewhere, e.g. in another pod
    script = f"(setsid sh -c '{words} & echo $!; wait' &) ; sleep {FOREVER}"
    job = await trial.submit("sh", "-c", script)
    key = trial.keys[-1]

    async def grandchild() -> bytes:
        printed = await trial.platform.output(key, "stdout", 0, 100)
        return printed if printed.endswith(b"\n") else b""

    await trial.until("the grandchild", grandchild)
    pid = (await grandchild()).decode().strip()
    await trial.platform.cancel([job], "check")
    await trial.wait_for_end(job)
    look = f"[ \"$(tr '\\0' ' ' </proc/{pid}/cmdline)\" != '{words} ' ]"
    gone = await trial.wait_for_end(await trial.submit("sh", "-c", look))
    _same("whether the grandchild is gone", gone.end and gone.end.code, 0)


async def results_are_listed_and_read(trial: ConformanceTrial) -> None:
    """The files that a job leaves are listed with their sizes, beside empty folders, and can be read."""
    job = await trial.submit("sh", "-c", "mkdir -p a/b a/d/e; printf hello >a/b/c.txt")
    await trial.wait_for_end(job)
    key = trial.keys[-1]
    left = await trial.platform.results(key)
    own = ("executed.ipynb", "executed.html") if isinstance(trial.platform, WritesTrials) else ()
    _same("the list", [(file.path, file.size) for file in left.files if file.path not in own], [("a/b/c.txt", 5)])
    _same("the empty folders", list(left.folders), ["a/d/e"])
    _same("the file", b"".join([part async for part in trial.platform.read(key, "a/b/c.txt")]), b"hello")
    _same("its rest", b"".join([part async for part in trial.platform.read(key, "a/b/c.txt", 3)]), b"lo")


async def a_link_is_no_result(trial: ConformanceTrial) -> None:
    """A link among the files that a job leaves is not listed, wherever it leads."""
    await trial.wait_for_end(await trial.submit("sh", "-c", "ln -s /etc/hostname link"))
    _same("the list", (await trial.platform.results(trial.keys[-1])).files, ())


async def a_program_finds_the_same_everywhere(trial: ConformanceTrial) -> None:
    """A program is told what it has in the same variables everywhere, and has a place for what it need not keep."""
    variables = "$SUBLET_CORES $SUBLET_MEMORY $SUBLET_GPUS $SUBLET_NODES $SUBLET_PART $SUBLET_PARTS"
    there = '[ -d "$SUBLET_DATA" ] && [ -w "$TMPDIR" ] && [ -n "$SUBLET_SESSION$SUBLET_UNTIL$SUBLET_WARNING" ]'
    state = await trial.wait_for_end(await trial.submit("sh", "-c", f'echo "{variables}"; {there}'))
    printed = (await trial.platform.output(trial.keys[-1], "stdout", 0, 100)).decode().strip()
    _same("what it is told", printed, f"1 {MEMORY} 0 1 0 1")
    _same("whether its data, its scratch space and its own facts are there", state.end and state.end.code, 0)


async def clean_leaves_nothing(trial: ConformanceTrial) -> None:
    """After it is cleaned, a job is unknown and has no files or output."""
    job = await trial.submit("sh", "-c", "echo here | tee file", takes="0s")
    key = trial.keys[-1]
    await trial.wait_for_end(job)
    await trial.remove(key)
    _same("its state", (await trial.state(job)).state, State.UNKNOWN)
    _same("what is found", await trial.platform.find(key), None)
    _same("its files", await trial.platform.results(key), Results())
    _same("its output", await trial.platform.output(key, "stdout", 0, 10), b"")


Rule = Callable[[ConformanceTrial], Awaitable[None]]
PROMISES: tuple[Rule, ...] = (
    the_survey_shows_nodes,
    an_exit_code_comes_back,
    a_key_is_one_job,
    an_unknown_job_is_unknown,
    a_cancelled_job_says_by_whom,
    the_end_of_the_time_is_a_timeout,
    the_time_can_be_extended,
    a_paused_job_stands_still,
    output_is_read_by_offset,
    clean_leaves_nothing,
)
WITH_FILES: tuple[Rule, ...] = (
    a_program_finds_the_same_everywhere,
    results_are_listed_and_read,
)
WITH_PROCESSES: tuple[Rule, ...] = (
    *WITH_FILES,
    a_missing_program_is_told,
    cancel_stops_grandchildren,
    a_link_is_no_result,
)


async def a_broker_answers(trial: ConformanceTrial) -> None:
    """Another broker answers a request with offers or with reasons."""
    _clear(await find_no_answer(trial.platform))


async def an_unknown_kind_is_a_no(trial: ConformanceTrial) -> None:
    """Another broker says NO to a kind that it can't know, and refuses no request for it."""
    _clear(await find_refused_kind(trial.platform))


async def what_is_given_back_is_gone(trial: ConformanceTrial) -> None:
    """An offer of another broker that was rejected can't be accepted any more."""
    _clear(await find_kept_offer(trial.platform))


async def a_reservation_is_listed_until_it_is_given_up(trial: ConformanceTrial) -> None:
    """What is offered as booked is a reservation that is listed, and gone when it is given up."""
    _clear(await find_kept_reservation(trial.platform))


def _clear(fault: str) -> None:
    if fault:
        raise Broken(fault)


BROKERS: tuple[Rule, ...] = (a_broker_answers, an_unknown_kind_is_a_no, what_is_given_back_is_gone)
RESERVING: tuple[Rule, ...] = (a_reservation_is_listed_until_it_is_given_up,)


def rules_for(platform: Platform) -> tuple[Rule, ...]:
    """Return the rules that apply to this platform.

    A simulated platform has no processes, a notebook kernel fewer rules, and a broker runs no jobs of this service.
    """
    if isinstance(platform, PassesOn):
        return BROKERS
    if platform.plays:
        return PROMISES
    promises = PROMISES + (RESERVING if isinstance(platform, Reserves) else ())
    return promises + (WITH_FILES if isinstance(platform, WritesTrials) else WITH_PROCESSES)


async def try_rule(platform: Platform, rule: Rule, patience: float = PATIENCE) -> RuleFinding:
    """Try one rule, clean up, and return whether it holds."""
    words = (rule.__doc__ or "").strip()
    trial = ConformanceTrial(platform, patience)
    try:
        try:
            await rule(trial)
        finally:
            await trial.clean()
    except (Broken, SubletError) as error:
        return RuleFinding(words, False, str(error))
    except Exception as error:  # a plug-in may fail in any way, and its other rules are tried all the same
        log.exception("platform.broken", platform=platform.name, rule=words)
        return RuleFinding(words, False, f"{type(error).__name__}: {error}")
    return RuleFinding(words, True)


async def check_platform(platform: Platform, patience: float = PATIENCE) -> Sequence[RuleFinding]:
    """Try every rule on a live platform, a few at a time; give a busy platform more patience."""
    turns = asyncio.Semaphore(AT_ONCE)

    async def in_turn(rule: Rule) -> RuleFinding:
        async with turns:
            return await try_rule(platform, rule, patience)

    return await asyncio.gather(*(in_turn(rule) for rule in rules_for(platform)))
