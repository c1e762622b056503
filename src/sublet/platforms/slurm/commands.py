"""Which commands a Slurm site is asked, and what their failures mean; how they answer is in `slurm_readers.py`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import TypeVar

from sublet.booking.model.together import Joined
from sublet.kernel.errors import DiskFull, PlatformRefused, PlatformUnreachable, SubletError, UnsafeSite
from sublet.platforms.machine import CLUSTER_TOOLS
from sublet.platforms.port import Results
from sublet.platforms.slurm import readers as read
from sublet.platforms.slurm import rows as rows
from sublet.platforms.slurm.job import far
from sublet.platforms.slurm.states import SiteLook, SlurmRow
from sublet.reach.port import Command, Outcome, as_is

T = TypeVar("T")
NO_ROOM = re.compile(r"quota exceeded|no space left", re.IGNORECASE)
AWAY = re.compile(  # the controller is away, restarting, or has too much to do: it is tried again
    r"unable to contact|socket timed out|connection refused|connect failure|timed out|zero bytes were transmitted"
    r"|backup controller in standby|too many requests|rate limit|resource temporarily unavailable|not responding"
    r"|communication connection failure|connection reset|slurmdbd: .* refused",
    re.IGNORECASE,
)
ACCOUNTS = 'sacctmgr --noheader --parsable2 show assoc user="$(id -un)" format=account,maxsubmit,grpsubmit'
QOS = ("sacctmgr", "--noheader", "--parsable2", "show", "qos", "format=name,maxsubmitpu,grpsubmit")
ROOM = 'df -Pk "$1" 2>/dev/null || df -Pk "${1%/*}"'  # where nothing is, its directory is gone too
MOVE_END = 'cd "$1" && printf "%s\\n" "$2" >until.part && mv until.part until'
LOOKED_AT = 200  # sessions in one command
SHARED = {  # scripts → those whose functions they have
    **dict.fromkeys(("clean", "let_go"), ("aside",)),
    **dict.fromkeys(("root", "submit", "incoming", "keep"), ("own",)),
}
UNSAFE = 77  # the exit code of scripts that found a directory which others could change


def trouble(platform: str, outcome: Outcome) -> SubletError:
    """What a command's failure means, in its own words."""
    words = outcome.complaint
    if outcome.code == 127:
        return PlatformRefused(
            platform=platform,
            why=words,
            hint="Slurm's commands must be on the PATH there, also for ssh without a terminal.",
        )
    if outcome.code == UNSAFE:
        return UnsafeSite(platform=platform, why=words)
    if NO_ROOM.search(words):
        return DiskFull(platform=platform, why=words)
    kind = PlatformUnreachable if AWAY.search(words) else PlatformRefused
    return kind(platform=platform, why=words)


def reading(platform: str, reader: Callable[[str], T]) -> Callable[[Outcome], T]:
    """A reader of what a command printed, if it succeeded."""

    def check(outcome: Outcome) -> T:
        if outcome.code:
            raise trouble(platform, outcome)
        return reader(outcome.text)

    return check


def script(name: str, *words: str) -> tuple[str, ...]:
    """A script of ours, with the functions that it has from others, and its arguments."""
    parts = (*SHARED.get(name, ()), name)
    return ("sh", "-c", "".join(map(far, parts)), "sublet", *words)


def to_root(platform: str, directory: str) -> Command[str]:
    """Find and make the directory that sessions are kept below."""
    return Command(script("root", directory), reading(platform, lambda text: text.rstrip("\n")))


def to_survey(root: str, tools: Sequence[str] = (), site_file: str = "/dev/null") -> dict[str, Command[Outcome]]:
    """All that a survey asks, in one exec; what a site doesn't have fails for itself."""
    return {
        "nodes": Command(("sinfo", "--Node", "--noheader", "--all", f"--format={read.NODE_FORMAT}"), as_is, calls=2),
        "queues": Command(("scontrol", "show", "partition", "--oneliner"), as_is, calls=1),
        "reservations": Command(("scontrol", "show", "reservation", "--oneliner"), as_is, calls=1),
        "config": Command(("scontrol", "show", "config"), as_is, calls=2),
        "accounts": Command(("sh", "-c", ACCOUNTS), as_is, seconds=20),
        "qos": Command(QOS, as_is, seconds=20),
        "tools": Command(script("tools", *tools), as_is),
        "site": Command(("head", "-c", "10000", "--", site_file), as_is),
        "room": Command(("sh", "-c", ROOM, "sublet", root), as_is),
    }


def where_tools_are(path: Sequence[str], modules: Sequence[str], in_modules: Mapping[str, str]) -> tuple[str, ...]:
    """The words of `tools.sh`: where to look, and for what."""
    wanted = [f"{tool}={in_modules[tool]}" if tool in in_modules else tool for tool in CLUSTER_TOOLS]
    return (str(len(path)), *path, str(len(modules)), *modules, *wanted)


def to_plan(flags: Sequence[str]) -> Command[Outcome]:
    """Ask when a job would start."""
    return Command(("sbatch", "--test-only", *flags), as_is, stdin=b"#!/bin/sh\nexit 0\n", seconds=30, calls=2)


def to_submit(root: str, key: str, flags: Sequence[str], files: bytes) -> Command[Outcome]:
    """Submit, once; all in one exec."""
    return Command(script("submit", root, key, *flags), as_is, stdin=files, seconds=180, calls=2)


def to_find(root: str, key: str) -> Command[bool]:
    """Whether it was submitted, or that was tried."""
    return Command(("test", "-d", f"{root}/sessions/{key}"), lambda outcome: outcome.code == 0)


def to_queue(platform: str) -> Command[dict[str, SlurmRow]]:
    """The person's own jobs, those that ended a moment ago too; the parts of an array that wait are one line."""
    argv = ("squeue", "--me", "--noheader", "--states=all", f"--format={rows.QUEUE_FORMAT}")
    return Command(argv, reading(platform, rows.read_queue), calls=3)


def to_look(platform: str, root: str, keys: Sequence[str]) -> Iterator[Command[dict[str, SiteLook]]]:
    """What the directories of these sessions say."""
    for some in _parts(keys):
        reader = reading(platform, partial(rows.read_looks, keys=some))
        yield Command(script("look", root, *some), reader)


def _parts(keys: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The keys, in parts that fit on a command line."""
    for first in range(0, len(keys), LOOKED_AT):
        yield tuple(keys[first : first + LOOKED_AT])


def to_remember(ids: Sequence[str], keys: Sequence[str]) -> list[Command[dict[str, SlurmRow]]]:
    """What Slurm still knows of jobs that left the queue; what it can't tell is left out."""
    jobs = [
        Command(("scontrol", "show", "job", "--oneliner", id), lambda said: rows.read_jobs(said.text), calls=2)
        for id in ids
    ]
    past = ("sacct", "--allocations", "--noheader", "--parsable2", "--starttime=now-30days")
    words = (*past, f"--format={rows.PAST_FORMAT}", f"--name={','.join(keys)}")
    return [*jobs, Command(words, _read_ends, seconds=30)]


def _read_ends(said: Outcome) -> dict[str, SlurmRow]:
    """What accounting tells of jobs that are over; those that a controller lost wait or run there for ever."""
    return {name: row for name, row in rows.read_past(said.text).items() if not row.active}


def to_cancel(platform: str, root: str, keys: Sequence[str], by: str) -> Iterator[Command[str]]:
    """Stop them."""
    for some in _parts(keys):
        words, count = script("cancel", root, json.dumps(by[:200]), *some), len(some)
        yield Command(words, reading(platform, str), seconds=60 + count, calls=2 * count)


def to_extend(platform: str, root: str, key: str, until: int, minutes: int) -> list[Command[str]]:
    """Move the end of a job's time: Slurm's limit first, where that must move too, then the job's own."""
    limit = script("extend", key, str(minutes))
    own = ("sh", "-c", MOVE_END, "sublet", f"{root}/sessions/{key}", str(until))
    found = [Command(own, reading(platform, str))]
    return [Command(limit, reading(platform, str), calls=3), *found] if minutes else found


def to_limit(key: str) -> Command[tuple[SlurmRow, ...]]:
    """A job, or the parts of one, as the queue has it: when it ends by Slurm's limit."""
    argv = ("squeue", "--me", "--noheader", "--array", f"--name={key}", f"--format={rows.QUEUE_FORMAT}")
    return Command(argv, lambda said: tuple(rows.read_queue(said.text).values()), calls=3)


def to_give_back(platform: str, root: str, key: str, nodes: Sequence[str]) -> Command[str]:
    """Give some of a job's nodes back."""
    return Command(script("give_back", root, key, *nodes), reading(platform, str))


def to_pause(platform: str, root: str, key: str, what: str) -> Command[list[str]]:
    """Pause it, or let it go on: `queued`, `running`, both in part, or neither if it is over."""
    return Command(script("pause", root, key, what), reading(platform, str.split), calls=3)


def to_join(root: str, key: str) -> Command[Joined]:
    """Put together what the parts of a session left."""
    return Command(script("join", f"{root}/sessions/{key}"), _joined, seconds=600)


def _joined(outcome: Outcome) -> Joined:
    failed = Joined(words=f"the parts' results could not be put together: {outcome.complaint}")
    return failed if outcome.code else rows.read_joined(outcome.text) or failed


def to_output(root: str, key: str, stream: str, offset: int, limit: int) -> Command[bytes]:
    """What the parts of a session have printed."""
    words = script("output", f"{root}/sessions/{key}", stream, str(offset), str(limit))
    return Command(words, lambda said: said.stdout)


def to_results(root: str, key: str) -> Command[Results]:
    """What it left."""
    return Command(
        script("results", f"{root}/sessions/{key}"), lambda said: read.read_results(said.stdout), seconds=120
    )


def to_result(root: str, key: str, path: str, offset: int, limit: int) -> Command[bytes | None]:
    """Part of one of them; None if it is no file of this session's."""
    words = script("result", f"{root}/sessions/{key}", path, str(offset), str(limit))
    return Command(words, lambda said: None if said.code else said.stdout)


def to_clean(platform: str, root: str, key: str) -> Command[str]:
    """Remove all that it left."""
    return Command(script("clean", root, key), reading(platform, str), seconds=600)


def to_sweep(platform: str, root: str, owner: str, age: timedelta) -> Command[list[str]]:
    """The sessions that this service left there so long ago."""
    return Command(script("sweep", root, owner, str(round(age.total_seconds()))), reading(platform, str.split))


def to_incoming(platform: str, root: str, key: str, owner: str) -> Command[str]:
    """Make the place that a session's data is sent to."""
    return Command(script("incoming", root, key, owner), reading(platform, str))
