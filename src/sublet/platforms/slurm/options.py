"""Options of sbatch: those for a job, and those that a person may add."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from sublet.booking.model.scheduler import NOTHING_ASKED, SchedulerOptions, scheduler_specs
from sublet.booking.model.shape import Amounts

MIB = 1 << 20
LEEWAY = timedelta(minutes=1)  # beyond the session's own time, so that the job can stop itself and record its end
WORD = re.compile(r"--[a-z][a-z-]*(=[\x20-\x7e]{1,500})?")

# What a person may add. Excluded are options that Sublet sets itself, run other commands, or hide the job or its end.
ALLOWED = frozenset(
    """
    acctg-freq constraint contiguous core-spec cores-per-socket cpu-freq distribution exclude exclusive
    extra-node-info gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags hint
    licenses mail-type mail-user mem-bind mem-per-cpu mem-per-gpu mincpus network nice nodelist ntasks-per-core
    ntasks-per-gpu ntasks-per-socket oversubscribe power prefer reservation sockets-per-node spread-job switches
    thread-spec threads-per-core tmp tres-bind tres-per-task use-min-nodes wckey
    """.split()  # noqa: SIM905 - a list of so many words is read best as words
)
COMMENT = "comment"
FREE = ALLOWED | {COMMENT}  # what a request may add: its comment follows Sublet's own
BESIDE_A_CALENDAR = ("qos", "project", "nice", "mail")  # options that neither choose nodes nor delay a job


@dataclass(frozen=True, slots=True)
class SlurmWish:
    """What is requested of Slurm for one job."""

    queue: str
    amounts: Amounts
    threads: int = 1  # threads that Slurm counts per core
    longest: timedelta | None = None  # the queue's own limit
    begin: datetime | None = None
    names: tuple[str, ...] = ()  # exact nodes
    comment: str = ""
    wckey: str = ""
    partition: str | None = None  # its name for Slurm, if not the queue's; empty: the site chooses
    after: tuple[str, ...] = ()  # Slurm's IDs of jobs that must succeed first

    def cut(self, parts: int) -> SlurmWish:
        """Return the same wish for each of this many parts."""
        return replace(self, amounts=replace(self.amounts, parts=parts))

    @property
    def limit(self) -> timedelta:
        """Slurm's time limit for the job, in whole minutes."""
        time = self.amounts.time
        wanted = timedelta(minutes=max(1, math.ceil((time + LEEWAY) / timedelta(minutes=1))))
        return min(wanted, self.longest) if self.longest and self.longest >= time else wanted


@dataclass(frozen=True, slots=True)
class SlurmAccount:
    """A job's account and options: those requested, then those of the settings, and the settings' extra options."""

    asked: SchedulerOptions = NOTHING_ASKED
    options: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()  # options that the site refuses


def flags(wish: SlurmWish, account: SlurmAccount) -> tuple[str, ...]:
    """Return the arguments for sbatch, each value a single word; of two equal options the later one counts."""
    own = [f"--{name}={value}" for name, value in _list_words(wish, account) if value]
    asked = [f"--{name}={value}" if value else f"--{name}" for name, value in account.asked.words() if name != COMMENT]
    return tuple(word for word in (*own, *account.options, *asked) if option_name(word) not in account.refuses)


def _list_words(wish: SlurmWish, account: SlurmAccount) -> Iterator[tuple[str, object]]:
    amounts, each = wish.amounts, wish.amounts.shape
    comments = [wish.comment, *(value for name, value in account.asked.free() if name == COMMENT)]
    yield "partition", wish.queue if wish.partition is None else wish.partition
    yield "nodes", amounts.nodes
    yield "ntasks-per-node", each.cores  # one per core: what srun and mpirun start by themselves
    yield "cpus-per-task", wish.threads if wish.threads > 1 else ""
    yield "mem", f"{math.ceil(each.memory / MIB)}M" if each.memory else ""
    yield "tmp", f"{math.ceil(each.disk / MIB)}M" if each.disk else ""
    yield "gres", ":".join(filter(None, ("gpu", account.asked.gpu_type, str(each.gpus)))) if each.gpus else ""
    yield "time", math.ceil(wish.limit / timedelta(minutes=1))
    yield "begin", f"{wish.begin.astimezone(UTC):%Y-%m-%dT%H:%M:%S}" if wish.begin else ""
    yield "nodelist", ",".join(wish.names)
    yield COMMENT, " ".join(filter(None, comments))  # the person comes first, whatever is added
    yield "wckey", wish.wckey
    yield "dependency", ":".join(["afterok", *wish.after]) if wish.after else ""
    yield "kill-on-invalid-dep", "yes" if wish.after else ""
    yield "array", f"0-{amounts.parts - 1}" if amounts.parts > 1 else ""


def option_name(word: str) -> str:
    """Return the name of an option: `nice` for `--nice=100`."""
    return word.removeprefix("--").partition("=")[0]


def wrong(words: Sequence[str], allowed: Collection[str] = ALLOWED) -> list[str]:
    """Describe what is wrong with options that a person added."""
    problems = []
    for word in words:
        if not WORD.fullmatch(word):
            problems.append(f"{word!r} is not an option of the form --name=value")
        elif option_name(word) not in allowed:
            problems.append(f"--{option_name(word)} can't be added here")
    return problems


def refusals(asked: SchedulerOptions, refuses: Collection[str], *, is_booked: bool) -> Iterator[tuple[str, str]]:
    """Yield the requested options that a site doesn't take: the field, and why."""
    for name in asked.list_asked():
        spec = scheduler_specs()[name]
        if spec.sbatch in refuses:
            yield name, f"it refuses --{spec.sbatch}"
        elif is_booked and name not in BESIDE_A_CALENDAR:
            yield name, "its nodes are booked by a calendar that knows no such thing"
    for name, value in asked.free():
        if why := wrong([f"--{name}={value}" if value else f"--{name}"], FREE):
            yield f"options.{name}", why[0]
        elif name in refuses:
            yield f"options.{name}", f"it refuses --{name}"


def comment(person: str, name: str, session: str = "") -> str:
    """Return a one-line comment in plain characters on who and what a job is for; the site's accounting shows it."""
    words = ["sublet", f"person={_plain(person)[:100]}"] if person else ["sublet"]
    words += [f"session={session}"] if session else []
    return " ".join([*words, *_plain(name, " ")[:80].split()])


def wckey(person: str) -> str:
    """Return the person as a key for Slurm's own accounting."""
    return _plain(person)[:100]


def _plain(text: str, more: str = "") -> str:
    return re.sub(rf"[^A-Za-z0-9._@+{more}-]", "_", text)
