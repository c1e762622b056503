"""Runs a bag's tasks, a few at a time, and writes down what became of each. Travels with the job: Python alone.

In the working directory:
  tasks.jsonl   a line for each attempt as it ends: task, attempt, code, signal, start, seconds, and where its output is
  tasks.out     what the tasks printed, one after the other; `stdout: [offset, length]` in the line says where
  tasks.err     the same for their error output
Started again in the same directory it goes on with the tasks that have not succeeded.
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
from typing import Any, TextIO

from sublet.core.bag import Task, count, expand

GRACE = 3.0  # seconds that interrupted tasks have between SIGTERM and SIGKILL
SHOWN = 10  # failed tasks that are named at the end
NOT_FOUND, NOT_RUNNABLE = 127, 126  # what a shell would say
STREAMS = ("stdout", "stderr")
WAITED_FOR = {signal.SIGCHLD, signal.SIGTERM}  # blocked, and taken one by one: nothing is interrupted half done


class Slot:
    """A place in which one task runs at a time; what it prints goes to two files that are used again and again."""

    def __init__(self, directory: str, number: int) -> None:
        """Make its files."""
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        self.files = [os.open(f"{directory}/slot-{number}.{stream}", flags, 0o600) for stream in STREAMS]
        null = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self.actions = [(os.POSIX_SPAWN_DUP2, null, 0)]
        self.actions += [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(self.files, start=1)]

    def spawn(self, argv: tuple[str, ...], environment: dict[str, str]) -> int:
        """Start a task here."""
        return os.posix_spawnp(
            argv[0],
            argv,
            environment,
            file_actions=self.actions,
            setsigmask=(),
            setsigdef=(signal.SIGPIPE, signal.SIGXFSZ),  # Python ignores these two, and a program inherits that
        )

    def collect(self, logs: list[Log]) -> dict[str, Any]:
        """Move what the task printed to the logs, and say where it is."""
        places = {}
        for stream, fd, log in zip(STREAMS, self.files, logs, strict=True):
            if size := os.fstat(fd).st_size:
                places[stream] = log.take(fd, size)
                os.ftruncate(fd, 0)
        return places


class Log:
    """The output of all tasks, one after the other."""

    def __init__(self, path: str) -> None:
        """Go on where it ends."""
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.size = os.fstat(self.fd).st_size

    def take(self, source: int, size: int) -> list[int]:
        """Append `size` bytes of another file; where they are now."""
        start, done = self.size, 0
        while done < size and (piece := os.pread(source, min(size - done, 1 << 20), done)):
            write_all(self.fd, piece)
            done += len(piece)
        self.size += done
        return [start, done]

    def last_line(self, place: list[int]) -> str:
        """The last line of one piece, for people."""
        offset, length = place
        tail = os.pread(self.fd, min(length, 500), offset + max(0, length - 500))
        lines = tail.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""


def write_all(fd: int, data: bytes) -> None:
    """Write, however many calls it takes."""
    while data:
        data = data[os.write(fd, data) :]


@dataclass
class Attempt:
    """A task that runs."""

    task: Task
    number: int  # 1 for the first
    slot: Slot
    clock: float
    start: float


class Bag:
    """The tasks that are still to be run, those that run, and the record of those that ended."""

    def __init__(self, fields: dict[str, Any], tasks: Iterator[Task], parallel: int, before: dict[int, int]) -> None:
        """`before` has the attempts that each failed task already had; those that succeeded aren't in `tasks`."""
        self.tasks, self.before = tasks, before
        self.retries: int = fields.get("retries") or 0
        self.again: deque[tuple[Task, int, int]] = deque()  # task, attempt, tries left
        self.running: dict[int, tuple[Attempt, int]] = {}
        self.free = [Slot(".sublet", number) for number in range(parallel)]
        self.logs = [Log("tasks.out"), Log("tasks.err")]
        self.record = os.open("tasks.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self.environment = dict(os.environ)
        self.done = self.failed = self.repeated = 0
        self.shown: list[str] = []
        self.stopping = False

    def run(self) -> None:
        """Until there is nothing left, or someone wants it to stop."""
        while self.fill():
            if not self.reap() and signal.sigwait(WAITED_FOR) == signal.SIGTERM:
                self.stop()

    def reap(self) -> bool:
        """Write down one that has ended, if there is one."""
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid:
            attempt, left = self.running.pop(pid)
            self.ended(attempt, left, os.waitstatus_to_exitcode(status))
        return bool(pid)

    def fill(self) -> bool:
        """Start tasks in the free slots; whether anything runs."""
        while self.free and not self.stopping:
            if self.again:
                task, number, left = self.again.popleft()
            elif task_or_none := next(self.tasks, None):
                task, left = task_or_none, self.retries
                number = self.before.get(task.number, 0) + 1
            else:
                break
            self.start(Attempt(task, number, self.free.pop(), 0.0, 0.0), left)
        return bool(self.running)

    def start(self, attempt: Attempt, left: int) -> None:
        """Start one; a program that can't be started is a task that failed."""
        self.environment["SUBLET_TASK"] = str(attempt.task.number)
        self.environment["SUBLET_ATTEMPT"] = str(attempt.number)
        attempt.start, attempt.clock = time.time(), time.monotonic()
        try:
            self.running[attempt.slot.spawn(attempt.task.argv, self.environment)] = (attempt, left)
        except (OSError, ValueError) as why:
            missing = isinstance(why, OSError) and why.errno == errno.ENOENT
            told = os.strerror(why.errno) if isinstance(why, OSError) and why.errno else str(why)
            self.ended(attempt, 0, NOT_FOUND if missing else NOT_RUNNABLE, f"{attempt.task.argv[0]}: {told}")

    def ended(self, attempt: Attempt, left: int, code: int, error: str = "") -> None:
        """Write down how it ended, and try again what failed while tries are left."""
        task = attempt.task
        line: dict[str, Any] = {
            "task": task.number,
            "attempt": attempt.number,
            "code": code if code >= 0 else None,
            "signal": -code if code < 0 else None,
            "start": round(attempt.start, 6),
            "seconds": round(time.monotonic() - attempt.clock, 6),
        }
        line.update(attempt.slot.collect(self.logs))
        if task.name:
            line["name"] = task.name
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
        """Keep the first few that failed, in words."""
        if len(self.shown) < SHOWN:
            how = f"signal {line['signal']}" if line["signal"] else f"exit code {line['code']}"
            told = line.get("error") or (self.logs[1].last_line(line["stderr"]) if "stderr" in line else "")
            self.shown.append(f"task {task.name or task.number}: {how}" + (f": {told}" if told else ""))

    def stop(self) -> None:
        """Interrupt what runs, wait for it a little, and write it down."""
        self.stopping = True
        self.tell(signal.SIGTERM)
        deadline = time.monotonic() + GRACE
        while self.running:
            if not self.reap() and not signal.sigtimedwait({signal.SIGCHLD}, max(0.0, deadline - time.monotonic())):
                self.tell(signal.SIGKILL)
                deadline = time.monotonic() + GRACE

    def tell(self, number: int) -> None:
        """Send a signal to all that runs."""
        for pid in self.running:
            os.kill(pid, number)  # ours and not yet waited for: the pid can't be another's


def read_record(path: str) -> tuple[set[int], dict[int, int]]:
    """The tasks that have succeeded in an earlier run, and how often the others were tried to their end."""
    succeeded: set[int] = set()
    tried: dict[int, int] = {}
    if not os.path.exists(path):
        return succeeded, tried
    with open(path, "rb+") as file:
        for raw in file:
            try:
                line = json.loads(raw)
            except ValueError:
                continue  # cut short by a crash: that attempt isn't known to have ended
            if line["code"] == 0:
                succeeded.add(line["task"])
            elif not line.get("interrupted"):
                tried[line["task"]] = line["attempt"]
        if file.tell() and not raw.endswith(b"\n"):
            file.write(b"\n")
    return succeeded, tried


def lines_of(directory: str) -> Iterator[str]:
    """The lines of the one file that was brought."""
    for name in sorted(os.listdir(directory)):
        with open(os.path.join(directory, name), encoding="utf-8", errors="surrogateescape") as file:
            yield from file


def main() -> int:
    """Run the bag that `.sublet/bag.json` describes."""
    signal.pthread_sigmask(signal.SIG_BLOCK, WAITED_FOR)
    with open(".sublet/bag.json", encoding="utf-8") as file:
        plan = json.load(file)
    fields = plan["fields"]
    succeeded, tried = read_record("tasks.jsonl")
    tasks = expand(fields, lines_of(plan["lines"]) if plan["lines"] else ())
    bag = Bag(fields, (task for task in tasks if task.number not in succeeded), plan["parallel"], tried)
    started = time.monotonic()
    say(f"{'?' if (total := count(fields)) is None else total} tasks, {plan['parallel']} at a time")
    if succeeded:
        say(f"{len(succeeded)} succeeded earlier and aren't run again")
    bag.run()
    for told in bag.shown:
        say(told, sys.stderr)
    if bag.failed > len(bag.shown):
        say(f"and {bag.failed - len(bag.shown)} more failed: tasks.jsonl has them all", sys.stderr)
    ended = f"{bag.done} succeeded, {bag.failed} failed, {bag.repeated} tried again"
    say(f"{ended}, in {time.monotonic() - started:.1f} s" + (": interrupted before the end" if bag.stopping else ""))
    return 128 + signal.SIGTERM if bag.stopping else 1 if bag.failed else 0


def say(text: str, stream: TextIO = sys.stdout) -> None:
    """Tell the person, at once."""
    stream.write(f"bag: {text}\n")
    stream.flush()
