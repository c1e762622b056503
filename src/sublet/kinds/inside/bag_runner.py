"""Runs a bag's tasks, a few at a time, and records how each ended. Travels with the job: standard library only.

In the working directory, `tasks.jsonl` has a line for each attempt as it ends: task, attempt, code, signal, start,
seconds, and where its output is; for a grid or table also its parameters and argv.

`tasks.out` has the tasks' output one after another, located by `stdout: [offset, length]` in the line; `tasks.err` has
their error output in the same way.

Started again in the same directory, it continues with the tasks that haven't succeeded. Of several parts each writes
its own files below `tasks.parts`, and the argument `join` joins them when all have ended.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from sublet.booking.model.bag import Task, count, expand
from sublet.booking.model.parts import NONE_LEFT, Part, chunk_size, fair, is_mine, read_part
from sublet.kinds.inside.bag_joining import PARTS, RECORD, join, say
from sublet.kinds.inside.bag_output import Log, OutputSlot, write_all

GRACE = 3.0  # seconds that interrupted tasks have between SIGTERM and SIGKILL
SHOWN = 10  # failed tasks that are listed at the end
NOT_FOUND, NOT_RUNNABLE = 127, 126  # the exit codes of a shell
WAITED_FOR = {signal.SIGCHLD, signal.SIGTERM}  # blocked, and handled one by one, so that nothing is interrupted halfway


@dataclass
class TaskAttempt:
    """A running task."""

    task: Task
    number: int  # 1 for the first
    slot: OutputSlot
    clock: float
    start: float


class TaskBag:
    """The tasks that are still to be run, the running ones, and the record of those that ended."""

    def __init__(self, tasks: Iterator[Task], before: dict[int, int], parallel: int, retries: int, part: Part) -> None:
        """Take the tasks to run, and in `before` the attempts that each failed task had already."""
        self.tasks, self.before, self.retries, self.part = tasks, before, retries, part
        files = files_of(part)
        self.again: deque[tuple[Task, int, int]] = deque()  # task, attempt, retries left
        self.running: dict[int, tuple[TaskAttempt, int]] = {}
        self.free = [OutputSlot(f".sublet/slot-{part.number}-{number}") for number in range(parallel)]
        self.logs = [Log(f"{files}.out"), Log(f"{files}.err")]
        self.record = os.open(f"{files}.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.environment = dict(os.environb)  # bytes, as they are passed on for each task
        self.plain = _plain(part)
        self.done = self.failed = self.repeated = 0
        self.shown: list[str] = []
        self.stopping = False

    def run(self) -> None:
        """Run until nothing is left, or a SIGTERM comes."""
        while self.fill():
            if not self.reap() and signal.sigwait(WAITED_FOR) == signal.SIGTERM:
                self.stop()

    def reap(self) -> bool:
        """Record a task that has ended; return whether there was one."""
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid:
            attempt, left = self.running.pop(pid)
            self.note_end(attempt, left, os.waitstatus_to_exitcode(status))
        return bool(pid)

    def fill(self) -> bool:
        """Start tasks in the free slots; return whether anything is running."""
        while self.free and not self.stopping:
            if self.again:
                task, number, left = self.again.popleft()
            elif task_or_none := next(self.tasks, None):
                task, left = task_or_none, self.retries
                number = self.before.get(task.number, 0) + 1
            else:
                break
            self.start(TaskAttempt(task, number, self.free.pop(), 0.0, 0.0), left)
        return bool(self.running)

    def start(self, attempt: TaskAttempt, left: int) -> None:
        """Start a task; one whose program can't be started has failed."""
        self.environment[b"SUBLET_TASK"] = b"%d" % attempt.task.number
        self.environment[b"SUBLET_ATTEMPT"] = b"%d" % attempt.number
        attempt.start, attempt.clock = time.time(), time.monotonic()
        try:
            self.running[attempt.slot.spawn(attempt.task.argv, self.environment)] = (attempt, left)
        except (OSError, ValueError) as why:
            missing = isinstance(why, OSError) and why.errno == errno.ENOENT
            reason = os.strerror(why.errno) if isinstance(why, OSError) and why.errno else str(why)
            self.note_end(attempt, 0, NOT_FOUND if missing else NOT_RUNNABLE, f"{attempt.task.argv[0]}: {reason}")

    def note_end(self, attempt: TaskAttempt, left: int, code: int, error: str = "") -> None:
        """Record how a task ended, and queue a retry if it failed and retries are left."""
        task = attempt.task
        seconds = time.monotonic() - attempt.clock
        printed = attempt.slot.collect(self.logs)
        if not (
            code or printed or task.name or task.parameters or self.stopping
        ):  # the common case, written without building JSON
            self.free.append(attempt.slot)
            self.done += 1
            write_all(self.record, self.plain % (task.number, attempt.number, attempt.start, seconds))
            return
        line: dict[str, Any] = {
            "task": task.number,
            "attempt": attempt.number,
            "code": code if code >= 0 else None,
            "signal": -code if code < 0 else None,
            "start": round(attempt.start, 6),
            "seconds": round(seconds, 6),
            **printed,
            **_describe_task(task),
        }
        if self.part.of > 1:
            line["part"] = self.part.number
        if error:
            line["error"] = error
        if self.stopping:
            line["interrupted"] = True
        self.free.append(attempt.slot)
        if code == 0:
            self.done += 1
        elif left and not self.stopping:
            self.repeated += 1
            self.again.append((task, attempt.number + 1, left - 1))
        elif not self.stopping:
            self.failed += 1
            self.show(task, line)
        if code:
            line["argv"] = task.argv
        write_all(self.record, json.dumps(line).encode() + b"\n")

    def show(self, task: Task, line: dict[str, Any]) -> None:
        """Remember the first few failures, in words."""
        if len(self.shown) < SHOWN:
            how = f"signal {line['signal']}" if line["signal"] else f"exit code {line['code']}"
            complaint = line.get("error") or (self.logs[1].last_line(line["stderr"]) if "stderr" in line else "")
            self.shown.append(f"task {task.name or task.number}: {how}" + (f": {complaint}" if complaint else ""))

    def stop(self) -> None:
        """Interrupt the running tasks, wait a little, and record them."""
        self.stopping = True
        self.tell(signal.SIGTERM)
        deadline = time.monotonic() + GRACE
        while self.running:
            if not self.reap() and not signal.sigtimedwait({signal.SIGCHLD}, max(0.0, deadline - time.monotonic())):
                self.tell(signal.SIGKILL)
                deadline = time.monotonic() + GRACE

    def tell(self, number: int) -> None:
        """Send a signal to all running tasks."""
        for pid in self.running:
            os.kill(pid, number)  # our child and not yet reaped, so the pid can't be another's


def _describe_task(task: Task) -> dict[str, Any]:
    """Return a task's name, and for a sweep its parameters."""
    facts: dict[str, Any] = {"name": task.name} if task.name else {}
    return facts | ({"parameters": task.parameters, "argv": task.argv} if task.parameters else {})


def _plain(part: Part) -> bytes:
    """Return the format of the line of a task that succeeded without output: number, attempt, start, seconds."""
    last = b', "part": %d' % part.number if part.of > 1 else b""
    return b'{"task": %d, "attempt": %d, "code": 0, "signal": null, "start": %.6f, "seconds": %.6f' + last + b"}\n"


def read_record(path: str) -> tuple[set[int], dict[int, int]]:
    """Return the tasks that succeeded in an earlier run, and how many attempts of others ended."""
    succeeded: set[int] = set()
    tried: dict[int, int] = {}
    if not os.path.exists(path):
        return succeeded, tried
    with open(path, "rb+") as file:
        for raw in file:
            try:
                line = json.loads(raw)
            except ValueError:
                continue  # truncated by a crash: that attempt isn't known to have ended
            if line["code"] == 0:
                succeeded.add(line["task"])
            elif not line.get("interrupted"):
                tried[line["task"]] = line["attempt"]
        if file.tell() and not raw.endswith(b"\n"):
            file.write(b"\n")
    return succeeded, tried


def lines_of(directory: str) -> Iterator[str]:
    """Yield the lines of the file that was staged."""
    for name in sorted(os.listdir(directory)):
        with open(os.path.join(directory, name), encoding="utf-8", errors="surrogateescape") as file:
            yield from file


def files_of(part: Part) -> str:
    """Return the prefix of a part's file names."""
    return "tasks" if part.of == 1 else f"{PARTS}/{part.number}"


def take_tasks(tasks: Iterator[Task], total: int, part: Part) -> Iterator[Task]:
    """Yield this part's tasks: the chunks that it claims as it gets to them, or its fixed share."""
    if not part.claims:
        yield from (task for task in tasks if is_mine(task.number, part))
        return
    size = chunk_size(total, part.of)
    for chunk, some in groupby(tasks, key=lambda task: task.number // size):
        if claim(part, chunk):
            yield from some
    os.close(os.open(os.path.join(part.claims, NONE_LEFT), os.O_CREAT | os.O_CLOEXEC, 0o600))


def claim(part: Part, chunk: int) -> bool:
    """Claim a chunk; the symbolic link is created once, and names its owner even if the answer was lost."""
    path = os.path.join(part.claims, str(chunk))
    try:
        os.symlink(str(part.number), path)
    except FileExistsError:
        return os.readlink(path) == str(part.number)
    return True


def main() -> int:
    """Run the bag that `.sublet/bag.json` describes, or this part of it; with `join`, join the parts."""
    with open(".sublet/bag.json", encoding="utf-8") as file:
        plan = json.load(file)
    known = count(plan["fields"])
    total = sum(1 for _ in tasks_of(plan)) if known is None else known
    if sys.argv[1:] == ["join"]:
        return join(total)
    signal.pthread_sigmask(signal.SIG_BLOCK, WAITED_FOR)
    return run(plan, total, read_part(os.environ))


def tasks_of(plan: dict[str, Any]) -> Iterator[Task]:
    """Yield all tasks of the bag."""
    return expand(plan["fields"], lines_of(plan["lines"]) if plan["lines"] else ())


def run(plan: dict[str, Any], total: int, part: Part) -> int:
    """Run this part's tasks, and report the outcome."""
    if part.of > 1:
        os.makedirs(PARTS, exist_ok=True)
    succeeded, tried = read_record(f"{files_of(part)}.jsonl")
    mine = take_tasks(tasks_of(plan), total, part)
    parallel = max(1, fair(plan["parallel"], part))
    left = (task for task in mine if task.number not in succeeded)
    bag = TaskBag(left, tried, parallel, plan["fields"].get("retries") or 0, part)
    started = time.monotonic()
    say(f"{total} tasks, {parallel} at a time" + (f", in part {part.number} of {part.of}" if part.of > 1 else ""))
    if succeeded:
        say(f"{len(succeeded)} succeeded earlier and aren't run again")
    bag.run()
    for failure in bag.shown:
        say(failure, sys.stderr)
    if bag.failed > len(bag.shown):
        say(f"and {bag.failed - len(bag.shown)} more failed: {RECORD} has them all", sys.stderr)
    ended = f"{bag.done} succeeded, {bag.failed} failed, {bag.repeated} tried again"
    say(f"{ended}, in {time.monotonic() - started:.1f} s" + (": interrupted before the end" if bag.stopping else ""))
    return 128 + signal.SIGTERM if bag.stopping else 1 if bag.failed else 0
