"""Readers for a Slurm site's jobs: rows of squeue, sacct and scontrol."""

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
MOST_JOULES = 1 << 53  # larger numbers are Slurm's codes for *no value*
CUT = "..."


def read_queue(text: str) -> dict[str, QueueRow]:
    """Read the jobs in `squeue` by name, those of an array as NAME/N; an active job wins over an ended one."""
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
    """Yield a row for each part that a row covers, and under the plain name if it doesn't list all of them."""
    numbers = elements(array)
    for number in numbers:
        yield part_of(row.name, number), replace(row, id=f"{row.id}_{number}", array=row.id)
    if not numbers or array.endswith(CUT):
        yield row.name, row


def elements(text: str) -> tuple[int, ...]:
    """Return the numbers in `3`, `[0-9%2]`, `0-9:3` or `0,2,4-6`; none if it isn't an array.

    A list that is too long is cut and ends with dots; its last number may be incomplete and is left out.
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
    """Read the jobs in `sacct -X -P` by name, those of an array as NAME/N."""
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
    """Read the joules of ended jobs in `sacct -P` by name, those of an array as NAME/N; 0 means unknown.

    If the job itself has none, the step that used most counts, because steps overlap and each counts its whole nodes.
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
    """Read an amount of energy; 0, an empty text and Slurm's codes for *no value* are unknown, and read as 0."""
    return int(text) if text.isdecimal() and int(text) < MOST_JOULES else 0


def read_jobs(text: str) -> dict[str, QueueRow]:
    """Read the jobs in `scontrol show job -o` by name, those of an array as NAME/N."""
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
