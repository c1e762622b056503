"""The state of a job in several parts, derived from its parts: one state, and one end with every part's reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sublet.booking.model.job import JobState, State
from sublet.booking.model.marks import Mark, Marks
from sublet.booking.model.parts import INCOMPLETE, ranges
from sublet.booking.model.session import End, EndKind, Usage

WORST = (  # if parts ended in several ways, the whole ended in the first of these that occurs
    EndKind.CANCELLED,
    EndKind.NODE_LOST,
    EndKind.PREEMPTED,
    EndKind.CULLED,
    EndKind.KERNEL_DIED,
    EndKind.OUT_OF_MEMORY,
    EndKind.DISK_FULL,
    EndKind.TIMEOUT,
    EndKind.SIGNALLED,
    EndKind.NOT_STARTED,
    EndKind.STAGING_FAILED,
    EndKind.WINDOW_PASSED,
    EndKind.UNKNOWN,
    EndKind.EXITED,
)
JOINING = "all parts have ended; their results are being put together"
TOLD = 5  # the most reasons that are listed


@dataclass(frozen=True, slots=True)
class Joined:
    """The outcome of the program that joined the parts' results."""

    code: int | None = None  # None: there is no such program
    words: str = ""


def together(parts: Sequence[JobState], joined: Joined | None = None) -> JobState:
    """Return one state for all parts; the whole has ended when every part has and their results are joined."""
    started = min((part.started for part in parts if part.started), default=None)
    until = max((part.until for part in parts if part.until), default=None)
    left = [part for part in parts if part.state is not State.ENDED]
    if not left and joined:
        ended = max((part.ended for part in parts if part.ended), default=None)
        wall = (ended - started).total_seconds() if started and ended else 0.0
        end = end_of([part.end or End(EndKind.UNKNOWN) for part in parts], joined, wall)
        return JobState(State.ENDED, end, started, ended)
    if not left:
        return JobState(State.RUNNING, started=started, condition=JOINING)
    marks = Marks.intersection(*(part.marks for part in left))
    words = left[0].condition if Mark.PAUSED in marks else _condition(parts)
    return JobState(_state(parts), started=started, condition=words, until=until, marks=marks)


def _state(parts: Sequence[JobState]) -> State:
    states = {part.state for part in parts}
    if states == {State.QUEUED}:
        return State.QUEUED
    return State.UNKNOWN if State.UNKNOWN in states and not states & {State.RUNNING, State.QUEUED} else State.RUNNING


def _condition(parts: Sequence[JobState]) -> str:
    """Describe how many parts are in each state, and the condition of the first part that has one."""
    counted = Counter(part.state for part in parts)
    words = {State.RUNNING: "run", State.QUEUED: "wait", State.UNKNOWN: "are unknown", State.ENDED: "have ended"}
    counts = ", ".join(f"{counted[state]} {word}" for state, word in words.items() if counted[state])
    for state in (State.UNKNOWN, State.QUEUED, State.RUNNING):
        first = next((part.condition for part in parts if part.state is state and part.condition), "")
        if first:
            return f"of {len(parts)} parts {counts}: {first}"
    return f"of {len(parts)} parts {counts}"


def end_of(ends: Sequence[End], joined: Joined, wall: float = 0.0) -> End:
    """Return the end of the whole: the joined work's exit code if none of it is missing, else the worst end."""
    usage = _usage((end.usage for end in ends if end.usage), wall)
    odd = {number: end for number, end in enumerate(ends) if end.kind is not EndKind.EXITED}
    if joined.code is not None and joined.code != INCOMPLETE:
        return End(EndKind.EXITED, code=joined.code, detail=_reasons(odd, len(ends)), usage=usage)
    worst = min(ends, key=lambda end: (WORST.index(end.kind), -(end.code or 0)))
    detail = "; ".join(words for words in (_reasons(odd, len(ends)), joined.words) if words)
    code = worst.code
    if worst.kind is EndKind.EXITED and joined.code == INCOMPLETE and not code:
        code = 1
    return replace(worst, code=code, detail=detail, usage=usage)


def _reasons(odd: dict[int, End], parts: int) -> str:
    """Describe which parts did not exit by themselves, and why, grouped by reason."""
    by_reason: dict[str, list[int]] = {}
    for number, end in odd.items():
        by_reason.setdefault(_reason(end), []).append(number)
    sentences = [f"part {ranges(numbers)} of {parts}: {reason}" for reason, numbers in by_reason.items()]
    return "; ".join(sentences[:TOLD] + [f"and {len(sentences) - TOLD} more reasons"] * (len(sentences) > TOLD))


def _reason(end: End) -> str:
    words = end.kind.value if end.signal is None else f"{end.kind.value} {end.signal}"
    by = f" by {end.by}" if end.by else ""
    return f"{words}{by}" + (f" ({end.detail})" if end.detail else "")


def _usage(used: Iterable[Usage], wall: float) -> Usage | None:
    """Return what the parts used together: CPU time and measured energy add up; memory is that of the largest part."""
    usages = list(used)
    if not usages:
        return None
    cpu = sum(usage.cpu for usage in usages)
    whole = Usage(round(wall, 3), round(cpu, 3), max(usage.peak_memory for usage in usages))
    if any(usage.energy_source != "measured" for usage in usages):
        return whole
    return replace(whole, energy=sum(usage.energy for usage in usages), energy_source="measured")
