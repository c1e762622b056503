"""What a person's newest fifty runs of a program used, and what to advise for the next one.

A habit is kept for each person and program. Only completed runs count: one that was cancelled, or ran out of time or
memory, doesn't show what a whole run needs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from sublet.booking.model.amounts import memory_text
from sublet.booking.model.offer import HINT, Reason
from sublet.booking.model.request import GIB, Executable, Request
from sublet.booking.model.run_time import Run
from sublet.kernel.texts import describe_duration

APP = "app "  # the prefix of an app's label
KEPT = 50  # runs; older ones are less relevant
ENOUGH = 10  # runs needed for advice
MOST_RUNS = 0.8  # the share of runs that a hint mentions
ROOM = 1.2  # the advice is this factor above the most that any run used
WORTH = 0.75  # advise only if it saves at least a quarter
MIB = 1024**2
STEPS = tuple(timedelta(minutes=minutes) for minutes in (5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 360, 480, 720))
INTERPRETERS = frozenset({"python", "python3", "sh", "bash", "Rscript", "julia", "perl", "node", "ruby", "env", "time"})


def label_of(executable: Executable | None) -> str:
    """Return the label that identifies a program across runs: its app, or its kind with its image, script or name."""
    if executable is None:
        return ""
    fields = executable.fields
    if executable.kind == "app":
        return f"{APP}{str(fields.get('app', '')).partition('@')[0]}"
    words = fields.get("argv") or fields.get("command") or ()
    program = _program(words) if isinstance(words, list | tuple) else ""
    parts = [part for part in (_find_image(fields), program) if part]
    return " ".join([executable.kind, *(parts or [executable.name])]).strip()


def _program(argv: Sequence[Any]) -> str:
    """Return the script that an interpreter runs, or else the program."""
    words = [str(word) for word in argv]
    for word in words:
        name = word.rpartition("/")[2]
        if name not in INTERPRETERS and not word.startswith("-"):
            return name
    return words[0] if words else ""


def _find_image(fields: Mapping[str, Any]) -> str:
    image = fields.get("image")
    locations = image.get("locations") if isinstance(image, Mapping) else None
    location = str(locations[0]) if locations else str(fields.get("location") or "")
    return location.partition("@")[0]


def describe_program(label: str) -> str:
    """Return a label in the words of a person."""
    return label.partition(" ")[2] or label


def find_habits(runs: Sequence[Run], program: str, request: Request) -> list[Reason]:
    """Return hints where a request asks for much more memory, time or cores than the newest runs used."""
    if len(runs) < ENOUGH:
        return []
    compute = request.compute
    hints = [
        _memory(runs, program, compute.memory.min),
        _time(runs, program, request.duration),
        _cores(runs, program, compute.cores.min, compute.nodes.min),
    ]
    return [hint for hint in hints if hint is not None]


def _memory(runs: Sequence[Run], program: str, asked: int) -> Reason | None:
    used = sorted(run.peak_memory for run in runs if run.peak_memory)
    if len(used) < ENOUGH:
        return None
    enough = _round_memory(used[-1] * ROOM)
    if enough > asked * WORTH:
        return None
    most, all_of_it = memory_text(_round_memory(quantile(used, MOST_RUNS))), memory_text(asked)
    message = f"{_share()} of your {len(used)} runs of {program} used under {most} of {all_of_it} of memory."
    return Reason(HINT, "memory", message, memory_text(asked), memory_text(used[-1]), memory_text(enough))


def _time(runs: Sequence[Run], program: str, asked: timedelta) -> Reason | None:
    took = sorted(run.wall for run in runs)
    enough = _round_time(timedelta(seconds=took[-1] * ROOM))
    if enough > asked * WORTH:
        return None
    most = describe_duration(timedelta(seconds=math.ceil(quantile(took, MOST_RUNS))), units=2)
    message = f"{_share()} of your {len(took)} runs of {program} took under {most} of {describe_duration(asked)}."
    longest = describe_duration(timedelta(seconds=math.ceil(took[-1])), units=2)
    return Reason(HINT, "time", message, describe_duration(asked), longest, f"{enough // timedelta(minutes=1)}m")


def _cores(runs: Sequence[Run], program: str, asked: int, nodes: int) -> Reason | None:
    busy = sorted(run.cores for run in runs if run.cores)
    enough = math.ceil(busy[-1]) if busy else asked
    if len(busy) < ENOUGH or nodes > 1 or asked < 2 or enough > asked * WORTH:
        return None
    most = max(math.ceil(quantile(busy, MOST_RUNS) * 10) / 10, 0.1)
    message = f"{_share()} of your {len(busy)} runs of {program} kept under {most:.1f} of {asked} cores busy."
    return Reason(HINT, "cores", message, str(asked), f"{busy[-1]:.1f}", str(enough))


def _share() -> str:
    return f"{MOST_RUNS:.0%}".replace("%", " %")


def quantile(ordered: Sequence[float], part: float) -> float:
    """Return a quantile of sorted values, interpolated linearly."""
    at = (len(ordered) - 1) * part
    low = math.floor(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


def _round_memory(size: float) -> int:
    """Round up to an amount that people would ask for."""
    step = GIB if size > 4 * GIB else GIB // 2 if size > GIB else 128 * MIB
    return math.ceil(size / step) * step


def _round_time(length: timedelta) -> timedelta:
    """Round up to a duration that people would ask for."""
    hour = timedelta(hours=1)
    return next((step for step in STEPS if step >= length), -(-length // hour) * hour)
