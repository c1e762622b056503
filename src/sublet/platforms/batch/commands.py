"""Commands on a guest's directory on a system, the same for all schedulers."""

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

ROOM = 'df -Pk "$1" 2>/dev/null || df -Pk "${1%/*}"'  # the directory may not exist yet, so its parent is tried too
MOVE_END = 'cd "$1" && printf "%s\\n" "$2" >until.part && mv until.part until'
LOOKED_AT = 200  # sessions per command
NUMBER = re.compile(r"[0-9][A-Za-z0-9._\[\]-]*")  # a scheduler's job ID: 123, 123.server, 123[].server


def to_root(failures: Failures, directory: str) -> Command[str]:
    """Find or create the directory below which sessions are kept."""
    return Command(script("root", directory), failures.reading(lambda text: text.rstrip("\n")))


def to_survey(
    scheduler: Scheduler, root: str, tools: Sequence[str] = (), site_file: str = "/dev/null"
) -> dict[str, Command[Outcome]]:
    """Return all commands of a survey, which run in one exec; a command that the site lacks fails on its own."""
    return {
        **scheduler.survey,
        "tools": Command(script("tools", *tools), as_is),
        "site": Command(("head", "-c", "10000", "--", site_file), as_is),
        "room": Command(("sh", "-c", ROOM, "sublet", root), as_is),
    }


def to_probe_tools(tools: Mapping[str, str]) -> Command[Outcome]:
    """Look for tools, each in the module that provides it."""
    words = [word for pair in tools.items() for word in pair]
    return Command(script("probe", *words), as_is, seconds=120)


def where_tools_are(path: Sequence[str], modules: Sequence[str], in_modules: Mapping[str, str]) -> tuple[str, ...]:
    """Return the arguments of `tools.sh`: where to look, and for which tools."""
    wanted = [f"{tool}={in_modules[tool]}" if tool in in_modules else tool for tool in CLUSTER_TOOLS]
    return (str(len(path)), *path, str(len(modules)), *modules, *wanted)


@dataclass(frozen=True, slots=True)
class SubmitAnswer:
    """The answer to submitting a job: its ID, if the scheduler gave one, and whether the job was known already."""

    id: str = ""
    known: bool = False


def read_submitted(text: str) -> SubmitAnswer:
    """Read the output of `submit.sh`."""
    word, _, id = text.strip().partition(" ")
    return SubmitAnswer(id if NUMBER.fullmatch(id) else "", word == "known")


def to_submit(scheduler: Scheduler, root: str, key: str, words: Sequence[str], files: bytes) -> Command[Outcome]:
    """Submit a job once, in a single exec."""
    argv = script("submit", root, key, *words, package=scheduler.package)
    return Command(argv, as_is, stdin=files, seconds=180, calls=2)


def to_find(root: str, key: str) -> Command[bool]:
    """Ask whether a session was submitted, or its submission was tried."""
    return Command(("test", "-d", f"{root}/sessions/{key}"), lambda outcome: outcome.code == 0)


def to_look(failures: Failures, root: str, keys: Sequence[str]) -> Iterator[Command[dict[str, SiteLook]]]:
    """Read the state of these sessions from their directories."""
    for some in _parts(keys):
        reader = failures.reading(partial(looks.read_looks, keys=some))
        yield Command(script("look", root, *some), reader)


def _parts(keys: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Split the keys into groups that fit on a command line."""
    for first in range(0, len(keys), LOOKED_AT):
        yield tuple(keys[first : first + LOOKED_AT])


def to_cancel(
    scheduler: Scheduler, failures: Failures, root: str, keys: Sequence[str], by: str
) -> Iterator[Command[str]]:
    """Cancel these sessions."""
    for some in _parts(keys):
        words = script("cancel", root, json.dumps(by[:200]), *some, package=scheduler.package)
        yield Command(words, failures.reading(str), seconds=60 + len(some), calls=2 * len(some))


def to_pause(scheduler: Scheduler, failures: Failures, root: str, key: str, what: str) -> Command[list[str]]:
    """Pause or resume a session; the answer has `queued`, `running`, both for its parts, or neither if it has ended."""
    words = script("pause", root, key, what, package=scheduler.package)
    return Command(words, failures.reading(str.split), calls=3)


def to_move_end(failures: Failures, root: str, key: str, until: int) -> Command[str]:
    """Move the end of a job's time in its own record, which the job watches."""
    return Command(("sh", "-c", MOVE_END, "sublet", f"{root}/sessions/{key}", str(until)), failures.reading(str))


def to_join(root: str, key: str) -> Command[Joined]:
    """Join the results of a session's parts."""
    return Command(script("join", f"{root}/sessions/{key}"), _read_joined, seconds=600)


def _read_joined(outcome: Outcome) -> Joined:
    failed = Joined(words=f"the parts' results could not be put together: {outcome.complaint}")
    return failed if outcome.code else looks.read_joined(outcome.text) or failed


def to_output(root: str, key: str, stream: str, offset: int, limit: int) -> Command[bytes]:
    """Read part of a session's output, over all its parts."""
    words = script("output", f"{root}/sessions/{key}", stream, str(offset), str(limit))
    return Command(words, lambda outcome: outcome.stdout)


def to_results(root: str, key: str) -> Command[Results]:
    """List a session's results."""
    words = script("results", f"{root}/sessions/{key}")
    return Command(words, lambda outcome: looks.read_results(outcome.stdout), seconds=120)


def to_result(root: str, key: str, path: str, offset: int, limit: int) -> Command[bytes | None]:
    """Read part of a result file; None if the session has no such file."""
    words = script("result", f"{root}/sessions/{key}", path, str(offset), str(limit))
    return Command(words, lambda outcome: None if outcome.code else outcome.stdout)


def to_clean(failures: Failures, root: str, key: str) -> Command[str]:
    """Remove everything of a session."""
    return Command(script("clean", root, key), failures.reading(str), seconds=600)


def to_open_place(failures: Failures, root: str, path: str, scratch: str) -> Command[str]:
    """Find a shared directory, or create someone's scratch directory."""
    words = script("scratch" if scratch else "place", root, path, scratch)
    return Command(words, failures.reading(lambda text: text.rstrip("\n")))


def to_remove_scratch(failures: Failures, root: str, path: str, scratch: str) -> Command[str]:
    """Remove someone's scratch directory."""
    return Command(script("unscratch", root, path, scratch), failures.reading(str), seconds=600)


def to_sweep(failures: Failures, root: str, owner: str, age: timedelta) -> Command[list[str]]:
    """List the sessions that this service left there at least `age` ago."""
    return Command(script("sweep", root, owner, str(round(age.total_seconds()))), failures.reading(str.split))


def to_incoming(failures: Failures, root: str, key: str, owner: str) -> Command[str]:
    """Create the directory to which a session's data is sent."""
    return Command(script("incoming", root, key, owner), failures.reading(str))
