"""Which commands a guest's directory on a system is asked, whatever the scheduler there is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from sublet.booking.model.together import Joined
from sublet.platforms.batch import looks
from sublet.platforms.batch.failures import Failures
from sublet.platforms.batch.scheduler import Scheduler
from sublet.platforms.batch.scripts import script
from sublet.platforms.batch.states import SiteLook
from sublet.platforms.machine import CLUSTER_TOOLS
from sublet.platforms.port import Results
from sublet.reach.port import Command, Outcome, as_is

ROOM = 'df -Pk "$1" 2>/dev/null || df -Pk "${1%/*}"'  # where nothing is, its directory is gone too
MOVE_END = 'cd "$1" && printf "%s\\n" "$2" >until.part && mv until.part until'
LOOKED_AT = 200  # sessions in one command
NUMBER = re.compile(r"[0-9][A-Za-z0-9._\[\]-]*")  # as a scheduler numbers a job: 123, 123.server, 123[].server


def to_root(failures: Failures, directory: str) -> Command[str]:
    """Find and make the directory that sessions are kept below."""
    return Command(script("root", directory), failures.reading(lambda text: text.rstrip("\n")))


def to_survey(
    scheduler: Scheduler, root: str, tools: Sequence[str] = (), site_file: str = "/dev/null"
) -> dict[str, Command[Outcome]]:
    """All that a survey asks, in one exec; what a site doesn't have fails for itself."""
    return {
        **scheduler.survey,
        "tools": Command(script("tools", *tools), as_is),
        "site": Command(("head", "-c", "10000", "--", site_file), as_is),
        "room": Command(("sh", "-c", ROOM, "sublet", root), as_is),
    }


def to_probe_tools(tools: Mapping[str, str]) -> Command[Outcome]:
    """Look for tools, each in the module that has it."""
    words = [word for pair in tools.items() for word in pair]
    return Command(script("probe", *words), as_is, seconds=120)


def where_tools_are(path: Sequence[str], modules: Sequence[str], in_modules: Mapping[str, str]) -> tuple[str, ...]:
    """The words of `tools.sh`: where to look, and for what."""
    wanted = [f"{tool}={in_modules[tool]}" if tool in in_modules else tool for tool in CLUSTER_TOOLS]
    return (str(len(path)), *path, str(len(modules)), *modules, *wanted)


@dataclass(frozen=True, slots=True)
class SubmitAnswer:
    """What came of handing a job in: its number, if the scheduler said one; or it was there already."""

    id: str = ""
    known: bool = False


def read_submitted(text: str) -> SubmitAnswer:
    """What `submit.sh` says."""
    word, _, id = text.strip().partition(" ")
    return SubmitAnswer(id if NUMBER.fullmatch(id) else "", word == "known")


def to_submit(scheduler: Scheduler, root: str, key: str, words: Sequence[str], files: bytes) -> Command[Outcome]:
    """Submit, once; all in one exec."""
    argv = script("submit", root, key, *words, package=scheduler.package)
    return Command(argv, as_is, stdin=files, seconds=180, calls=2)


def to_find(root: str, key: str) -> Command[bool]:
    """Whether it was submitted, or that was tried."""
    return Command(("test", "-d", f"{root}/sessions/{key}"), lambda outcome: outcome.code == 0)


def to_look(failures: Failures, root: str, keys: Sequence[str]) -> Iterator[Command[dict[str, SiteLook]]]:
    """What the directories of these sessions say."""
    for some in _parts(keys):
        reader = failures.reading(partial(looks.read_looks, keys=some))
        yield Command(script("look", root, *some), reader)


def _parts(keys: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The keys, in parts that fit on a command line."""
    for first in range(0, len(keys), LOOKED_AT):
        yield tuple(keys[first : first + LOOKED_AT])


def to_cancel(
    scheduler: Scheduler, failures: Failures, root: str, keys: Sequence[str], by: str
) -> Iterator[Command[str]]:
    """Stop them."""
    for some in _parts(keys):
        words = script("cancel", root, json.dumps(by[:200]), *some, package=scheduler.package)
        yield Command(words, failures.reading(str), seconds=60 + len(some), calls=2 * len(some))


def to_pause(scheduler: Scheduler, failures: Failures, root: str, key: str, what: str) -> Command[list[str]]:
    """Pause it, or let it go on: `queued`, `running`, both in part, or neither if it is over."""
    words = script("pause", root, key, what, package=scheduler.package)
    return Command(words, failures.reading(str.split), calls=3)


def to_move_end(failures: Failures, root: str, key: str, until: int) -> Command[str]:
    """Move the end of a job's time by its own clock."""
    return Command(("sh", "-c", MOVE_END, "sublet", f"{root}/sessions/{key}", str(until)), failures.reading(str))


def to_join(root: str, key: str) -> Command[Joined]:
    """Put together what the parts of a session left."""
    return Command(script("join", f"{root}/sessions/{key}"), _read_joined, seconds=600)


def _read_joined(outcome: Outcome) -> Joined:
    failed = Joined(words=f"the parts' results could not be put together: {outcome.complaint}")
    return failed if outcome.code else looks.read_joined(outcome.text) or failed


def to_output(root: str, key: str, stream: str, offset: int, limit: int) -> Command[bytes]:
    """What the parts of a session have printed."""
    words = script("output", f"{root}/sessions/{key}", stream, str(offset), str(limit))
    return Command(words, lambda outcome: outcome.stdout)


def to_results(root: str, key: str) -> Command[Results]:
    """What it left."""
    words = script("results", f"{root}/sessions/{key}")
    return Command(words, lambda outcome: looks.read_results(outcome.stdout), seconds=120)


def to_result(root: str, key: str, path: str, offset: int, limit: int) -> Command[bytes | None]:
    """Part of one of them; None if it is no file of this session's."""
    words = script("result", f"{root}/sessions/{key}", path, str(offset), str(limit))
    return Command(words, lambda outcome: None if outcome.code else outcome.stdout)


def to_clean(failures: Failures, root: str, key: str) -> Command[str]:
    """Remove all that it left."""
    return Command(script("clean", root, key), failures.reading(str), seconds=600)


def to_open_place(failures: Failures, root: str, path: str, scratch: str) -> Command[str]:
    """Find a directory that sessions share, or make someone's scratch."""
    words = script("scratch" if scratch else "place", root, path, scratch)
    return Command(words, failures.reading(lambda text: text.rstrip("\n")))


def to_remove_scratch(failures: Failures, root: str, path: str, scratch: str) -> Command[str]:
    """Remove someone's scratch."""
    return Command(script("unscratch", root, path, scratch), failures.reading(str), seconds=600)


def to_sweep(failures: Failures, root: str, owner: str, age: timedelta) -> Command[list[str]]:
    """The sessions that this service left there so long ago."""
    return Command(script("sweep", root, owner, str(round(age.total_seconds()))), failures.reading(str.split))


def to_incoming(failures: Failures, root: str, key: str, owner: str) -> Command[str]:
    """Make the place that a session's data is sent to."""
    return Command(script("incoming", root, key, owner), failures.reading(str))
