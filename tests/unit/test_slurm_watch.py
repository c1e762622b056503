"""A good guest: many jobs are asked for at once, rarely, and more rarely while the scheduler is in trouble."""

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from sublet.booking.model.job import State
from sublet.booking.model.session import EndKind
from sublet.kernel.errors import PlatformUnreachable
from sublet.platforms.batch.commands import read_submitted
from sublet.platforms.batch.pace import Limiter, Pace, pace_of
from sublet.platforms.batch.scripts import read_script
from sublet.platforms.batch.watch import SiteWatch
from sublet.platforms.slurm.readers import read_limiter
from sublet.platforms.slurm.scheduler import SLURM
from sublet.reach.port import Command, Outcome

pytestmark = pytest.mark.anyio
END = {"kind": "exited", "by": "", "detail": "", "started": 10, "ended": 12, "job": "7"}


class Site:
    """A reach to a site that is only told of: its queue, its files, its accounting, and how often each was asked."""

    name = "far"

    def __init__(self) -> None:
        """Nothing is there."""
        self.queue: dict[str, str] = {}
        self.files: dict[str, str] = {}
        self.past = ""
        self.trouble = ""
        self.asked: list[str] = []
        self.execs = 0
        self.meanwhile: Callable[[], None] = lambda: None  # what is done while it is asked

    async def run_all(self, commands: Sequence[Command[Any]]) -> list[Any]:
        """Answer each."""
        self.execs += 1
        answers = [command.reader(self._answer(command.argv)) for command in commands]
        self.meanwhile()
        return answers

    def _answer(self, argv: tuple[str, ...]) -> Outcome:
        name = {read_script("look"): "look", read_script("join"): "join"}[argv[2]] if argv[0] == "sh" else argv[0]
        self.asked.append(name)
        if name == "squeue":
            rows = [_row(key, state) for key, state in self.queue.items()]
            return Outcome(1 if self.trouble else 0, "\n".join(rows).encode(), self.trouble.encode())
        if name == "look":
            asked = [
                name for key in argv[5:] for name in (key, *(one for one in self.files if one.startswith(f"{key}/")))
            ]
            return Outcome(0, "".join(self.files.get(key, key) + "\n" for key in asked).encode(), b"")
        if name == "join":
            return Outcome(0, b"0 all is well\n", b"")
        return Outcome(0, self.past.encode() if name == "sacct" else b"", b"")

    def has(self, key: str, flags: str = "cr", code: int | None = None) -> None:
        """Put a session's directory there."""
        end = "" if code is None else json.dumps({**END, "code": code})
        self.files[key] = "\t".join([key, flags, "7", "60", "7", "10.0", "", "", "", end, "", "", ""])

    def has_parts(self, key: str, *codes: int | None) -> None:
        """Put the directory of a session in parts there, each with its exit code, if it has ended."""
        self.files[key] = "\t".join([key, "c", "7", "60", *[""] * 6, str(len(codes)), "", ""])
        for number, code in enumerate(codes):
            self.has(f"{key}/{number}", "cr" if code is not None else "c", code)

    async def ask(self, watch: SiteWatch, *keys: str) -> list[State]:
        """Their states."""
        states = await watch.ask(self, "/root", keys)  # type: ignore[arg-type]
        return [states[key].state for key in keys]


def _row(key: str, state: str) -> str:
    name, _, part = key.partition("/")
    return f"7|{part or 'N/A'}|{state}|None|N/A|N/A|q|c1|{name}"


async def test_many_jobs_are_one_call_and_asking_again_is_none() -> None:
    site, watch = Site(), SiteWatch(SLURM, "far", every=1000, look=1000, patience=0)
    keys = [f"k{number}" for number in range(500)]
    for key in keys:
        site.has(key)
        site.queue[key] = "RUNNING"
    assert await site.ask(watch, *keys) == [State.RUNNING] * 500
    for key in keys:
        assert await site.ask(watch, key) == [State.RUNNING]
    assert site.asked.count("squeue") == 1
    assert site.execs == 1


async def test_records_are_looked_at_between_two_calls_of_squeue() -> None:
    site, watch = Site(), SiteWatch(SLURM, "far", every=1000, look=0, patience=0)
    site.has("k")
    site.queue["k"] = "RUNNING"
    assert await site.ask(watch, "k") == [State.RUNNING]
    site.has("k", code=3)
    states = await watch.ask(site, "/root", ["k"])  # type: ignore[arg-type]
    assert states["k"].end
    assert states["k"].end.code == 3
    assert site.asked.count("squeue") == 1


async def test_what_has_ended_is_never_asked_for_again() -> None:
    site, watch = Site(), SiteWatch(SLURM, "far", every=0, look=0, patience=0)
    site.has("k", code=0)
    assert await site.ask(watch, "k") == [State.ENDED]
    before = site.execs
    assert await site.ask(watch, "k") == [State.ENDED]
    assert site.execs == before


async def test_a_job_submitted_after_the_queue_was_seen_waits() -> None:
    site, watch = Site(), SiteWatch(SLURM, "far", every=1000, look=0, patience=0)
    await site.ask(watch, "other")
    site.has("k", "c")
    watch.note_submitted("k")
    assert await site.ask(watch, "k") == [State.QUEUED]
    assert site.asked.count("squeue") == 1


async def test_a_scheduler_in_trouble_is_asked_less_and_less() -> None:
    site, watch = Site(), SiteWatch(SLURM, "far", every=1000, look=0, patience=0)
    site.trouble = "slurm_load_jobs error: Socket timed out on send/recv operation"
    for _ in range(5):
        with pytest.raises(PlatformUnreachable, match="timed out"):
            await site.ask(watch, "k")
    assert site.asked.count("squeue") == 1


async def test_trouble_that_is_over_is_forgotten() -> None:
    site, watch = Site(), SiteWatch(SLURM, "far", every=0, look=0, patience=0)
    site.trouble = "Unable to contact slurm controller (connect failure)"
    with pytest.raises(PlatformUnreachable):
        await site.ask(watch, "k")
    site.trouble = ""
    site.has("k")
    site.queue["k"] = "RUNNING"
    assert await site.ask(watch, "k") == [State.RUNNING]


async def test_slurms_memory_is_asked_only_for_what_nothing_else_tells() -> None:
    site, watch = Site(), SiteWatch(SLURM, "far", every=0, look=0, patience=0)
    site.has("k")
    site.has("known", code=0)
    site.past = "7|NODE_FAIL|0:0|Unknown|Unknown|q|c1|k\n"
    states = await watch.ask(site, "/root", ["k", "known"])  # type: ignore[arg-type]
    assert states["k"].end
    assert states["k"].end.kind is EndKind.NODE_LOST
    assert site.asked.count("sacct") == 1


async def test_what_slurm_does_not_know_either_is_unknown_and_is_not_asked_for_all_the_time() -> None:
    site, watch = Site(), SiteWatch(SLURM, "far", every=0, look=0, patience=0)
    site.has("k")
    for _ in range(5):
        assert await site.ask(watch, "k") == [State.UNKNOWN]
    assert site.asked.count("sacct") == 1


async def test_a_record_is_waited_for_before_slurms_exit_code_is_believed() -> None:
    site, watch = Site(), SiteWatch(SLURM, "far", every=0, look=0, patience=1000)
    site.has("k")
    site.queue["k"] = "COMPLETED"
    site.past = "7|COMPLETED|0:0|Unknown|Unknown|q|c1|k\n"
    assert await site.ask(watch, "k") == [State.RUNNING]
    assert site.asked.count("sacct") == 0
    site.has("k", code=2)
    assert await site.ask(watch, "k") == [State.ENDED]


async def test_a_burst_is_let_through_and_then_the_pace_is_kept() -> None:
    pace = Pace(per_second=1000, at_once=10)
    started = time.monotonic()
    await pace.take(10)
    for _ in range(50):
        await pace.take()
    assert time.monotonic() - started >= 0.05, "50 calls more, at 1000 a second"


async def test_a_session_that_was_cleaned_is_unknown_though_the_queue_still_shows_it() -> None:
    site, watch = Site(), SiteWatch(SLURM, "far", every=0, look=0, patience=0)
    site.has("k", code=0)
    site.queue["k"] = "COMPLETING"
    assert await site.ask(watch, "k") == [State.ENDED]
    del site.files["k"]
    watch.note_cleaned("k")
    assert await site.ask(watch, "k") == [State.UNKNOWN]


@pytest.mark.parametrize("during", ["look", "sacct", "join"])
async def test_a_session_that_is_cleaned_while_others_are_asked_for_is_forgotten(during: str) -> None:
    site, watch = Site(), SiteWatch(SLURM, "far", every=0, look=0, patience=0)
    site.has("other")
    site.has_parts("k", 0, 0)

    def clean() -> None:
        if during in site.asked:
            watch.note_cleaned("k")

    site.meanwhile = clean
    assert await site.ask(watch, "other", "k") == [State.UNKNOWN, State.UNKNOWN]
    assert during in site.asked
    assert not watch.knows("k")


async def test_a_thousand_parts_are_one_call_and_their_results_are_put_together_once() -> None:
    site, watch = Site(), SiteWatch(SLURM, "far", every=0, look=0, patience=0)
    site.has_parts("k", *[None] * 1000)
    site.queue = {f"k/{number}": "RUNNING" if number < 10 else "PENDING" for number in range(1000)}
    states = await watch.ask(site, "/root", ["k"])  # type: ignore[arg-type]
    assert states["k"].state is State.RUNNING
    assert states["k"].condition.startswith("of 1000 parts 10 run, 990 wait")
    assert states["k"].until
    assert (site.execs, site.asked) == (1, ["squeue", "look"])
    site.has_parts("k", *[0] * 1000)
    assert await site.ask(watch, "k", "k") == [State.ENDED] * 2
    assert await site.ask(watch, "k") == [State.ENDED]
    assert site.asked.count("join") == 1
    watch.forget("k")
    assert not watch.knows("k")
    assert not watch.knows("k/999")


async def test_a_part_that_was_lost_is_asked_for_and_the_others_count() -> None:
    site, watch = Site(), SiteWatch(SLURM, "far", every=0, look=0, patience=0)
    site.has_parts("k", 0, None, 0)
    site.has("k/1", "cr")
    assert await site.ask(watch, "k") == [State.UNKNOWN]
    site, watch = Site(), SiteWatch(SLURM, "far", every=0, look=0, patience=0)
    site.has_parts("k", 0, None, 0)
    site.past = "7_1|NODE_FAIL|0:0|Unknown|Unknown|q|c1|k\n"
    states = await watch.ask(site, "/root", ["k"])  # type: ignore[arg-type]
    assert states["k"].end
    assert (states["k"].end.kind, states["k"].end.code) == (EndKind.EXITED, 0), "the others did its work"
    assert states["k"].end.detail.startswith("part 1 of 3: node-lost")
    assert site.asked.count("sacct") == 1


async def test_parts_that_were_submitted_after_the_queue_was_seen_wait() -> None:
    site, watch = Site(), SiteWatch(SLURM, "far", every=1000, look=0, patience=0)
    await site.ask(watch, "other")
    site.has_parts("k", None, None)
    watch.note_submitted("k", parts=2)
    assert await site.ask(watch, "k") == [State.QUEUED]
    assert site.asked.count("squeue") == 1


@pytest.mark.parametrize(
    ("said", "limiter"),
    [
        ("(null)", None),
        ("cloud_dns,enable_configless", None),
        ("rl_enable", Limiter(30, 2)),
        ("idle_on_node_suspend,RL_ENABLE,rl_bucket_size=50,rl_refill_rate=10,rl_refill_period=2", Limiter(50, 5)),
        ("rl_enable,rl_bucket_size=many", Limiter(30, 2)),
    ],
)
def test_slurms_own_limiter_is_read(said: str, limiter: Limiter | None) -> None:
    assert read_limiter({"SlurmctldParameters": said}) == limiter


def test_platforms_of_one_account_keep_one_pace() -> None:
    first = pace_of(("host", 0, "me"), 2)
    assert pace_of(("host", 0, "me"), 5) is first
    assert pace_of(("host", 0, "you"), 5) is not first


async def test_the_number_of_a_job_is_as_sbatch_said_else_as_the_queue_shows_it() -> None:
    site, watch = Site(), SiteWatch(SLURM, "far", every=0, look=0, patience=0)
    watch.note_submitted("said", "41")
    assert watch.find_number("said") == "41"
    watch.note_submitted(
        "unsaid", read_submitted("known\n").id
    )  # an earlier try was cut off, and sbatch's answer was lost
    assert watch.find_number("unsaid") == ""
    site.files["unsaid"] = "\t".join(["unsaid", "c", *[""] * 11])
    site.queue["unsaid"] = "PENDING"
    await site.ask(watch, "unsaid")
    assert watch.find_number("unsaid") == "7"
    assert watch.find_number("never heard of") == ""
