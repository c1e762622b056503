"""How a Slurm site tells of jobs: rows of squeue, sacct and scontrol."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from sublet.platforms.batch.states import QueueRow, part_of
from sublet.platforms.slurm.readers import moment, pairs
from sublet.platforms.slurm.states import STATES

QUEUE_FORMAT = "%F|%K|%T|%r|%S|%e|%P|%N|%j"
PAST_FORMAT = "JobID,State,ExitCode,Start,End,Partition,NodeList,JobName"
ENERGY_FORMAT = "JobID,State,ConsumedEnergyRaw,JobName"
MOST_JOULES = 1 << 53  # above that are Slurm's numbers for *no value*
CUT = "..."


def read_queue(text: str) -> dict[str, QueueRow]:
    """The jobs in `squeue`, by their names, those of an array as NAME/N; of two alike, the one that is still there."""
    rows: dict[str, QueueRow] = {}
    for line in text.splitlines():
        parts = line.split("|", 8)
        if len(parts) == 9:
            id, array, state, reason, start, end, queue, nodes, name = (part.strip() for part in parts)
            row = QueueRow(id, name, state, reason, moment(start), moment(end), queue, nodes)
            for key, job in _each(row, array):
                if not (key in rows and STATES.is_active(rows[key])):
                    rows[key] = job
    return rows


def _each(row: QueueRow, array: str) -> Iterator[tuple[str, QueueRow]]:
    """A row for each part that it speaks of; under the plain name if it doesn't say which, or not of all of them."""
    numbers = elements(array)
    for number in numbers:
        yield part_of(row.name, number), replace(row, id=f"{row.id}_{number}", array=row.id)
    if not numbers or array.endswith(CUT):
        yield row.name, row


def elements(text: str) -> tuple[int, ...]:
    """The numbers in `3`, `[0-9%2]`, `0-9:3` or `0,2,4-6`; none if it is no array.

    Of a list that is too long only the beginning is printed, and dots: its last number may not be whole.
    """
    numbers: list[int] = []
    words = text.strip("[]").partition("%")[0].split(",")
    for word in words[:-1] if text.endswith(CUT) else words:
        span = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", word)
        if span:
            first = int(span[1])
            numbers += range(first, int(span[2] or first) + 1, int(span[3] or 1))
    return tuple(numbers)


def read_past(text: str) -> dict[str, QueueRow]:
    """The jobs in `sacct -X -P`, by their names, those of an array as NAME/N."""
    rows: dict[str, QueueRow] = {}
    for line in text.splitlines():
        parts = line.split("|", 7)
        if len(parts) == 8:
            id, words, exit, start, end, queue, nodes, name = (part.strip() for part in parts)
            state, _, by = words.partition(" by ")
            code, signal = _exit(exit)
            id, _, array = id.partition("_")
            row = QueueRow(id, name, state.split()[0], "", moment(start), moment(end), queue, nodes, code, signal, by)
            rows |= _each(row, array)
    return rows


def read_energy(text: str) -> dict[str, int]:
    """The joules of jobs that are over in `sacct -P`, by their names, those of an array as NAME/N; 0: not known.

    Where the job itself has none, the step that used most counts: steps overlap, and each counts its whole nodes.
    """
    names: dict[str, str] = {}
    jobs: dict[str, int] = {}
    steps: dict[str, int] = {}
    for line in text.splitlines():
        parts = [part.strip() for part in line.split("|", 3)]
        if len(parts) < 4:
            continue
        id, state, joules, name = parts
        job, _, step = id.partition(".")
        if step:
            steps[job] = max(steps.get(job, 0), _read_joules(joules))
        elif state and not STATES.is_active(QueueRow(job, name, state.split()[0])):
            part = job.partition("_")[2]
            names[job] = part_of(name, int(part)) if part.isdecimal() else name
            jobs[job] = _read_joules(joules)
    return {names[job]: used or steps.get(job, 0) for job, used in jobs.items()}


def _read_joules(text: str) -> int:
    """What was used; what is empty, 0 or one of Slurm's numbers for *no value* is not known."""
    return int(text) if text.isdecimal() and int(text) < MOST_JOULES else 0


def read_jobs(text: str) -> dict[str, QueueRow]:
    """The jobs in `scontrol show job -o`, by their names, those of an array as NAME/N."""
    rows: dict[str, QueueRow] = {}
    for values in map(pairs, text.splitlines()):
        if values.get("JobName"):
            code, signal = _exit(values.get("ExitCode", ""))
            row = QueueRow(
                values.get("ArrayJobId") or values["JobId"],
                values["JobName"],
                values["JobState"],
                values.get("Reason", ""),
                moment(values.get("StartTime", "")),
                moment(values.get("EndTime", "")),
                values.get("Partition", ""),
                values.get("NodeList", ""),
                code,
                signal,
            )
            rows |= _each(row, values.get("ArrayTaskId", ""))
    return rows


def _exit(text: str) -> tuple[int | None, int]:
    match = re.fullmatch(r"(\d+):(\d+)", text)
    return (int(match[1]), int(match[2])) if match else (None, 0)
