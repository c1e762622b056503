"""Runs several programs in one session, in sequence or in parallel. Travels with the job: standard library only.

In the working directory, each step has `steps/NAME/stdout` and `steps/NAME/stderr` as it runs, and when it has ended
`steps/NAME/end.json` with its code or signal, start and seconds. Their output is printed here too.

Of parallel steps, each that states its cores begins when so many are free, in order.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from typing import IO, Any

PLAN = ".sublet/steps.json"
GRACE = 3.0  # seconds that interrupted steps have between SIGTERM and SIGKILL
NOT_FOUND, NOT_RUNNABLE = 127, 126  # the exit codes of a shell
TIMED_OUT = 124  # the exit code of timeout(1)
PRINTING = threading.Lock()


class RunningStep:
    """A running program, whose end is recorded."""

    def __init__(self, plan: dict[str, Any], prefix: str) -> None:
        """Make its folder, and start the program; `prefix` is printed before each of its lines."""
        self.name, self.prefix = plan["name"], prefix
        self.folder = os.path.join("steps", self.name)
        os.makedirs(self.folder, exist_ok=True)
        self.began, self.clock = time.time(), time.monotonic()
        self.process: subprocess.Popen[bytes] | None = None
        self.is_asked_to_end = self.is_timed_out = False
        self.cores, self.seconds = plan.get("cores", 0), plan.get("seconds")
        self.copying: list[threading.Thread] = []
        sizes = dict.fromkeys(("SUBLET_CORES", "OMP_NUM_THREADS"), str(self.cores)) if self.cores else {}
        environment = {**os.environ, **sizes, **plan["environment"], "SUBLET_STEP": self.name}
        try:
            self.process = subprocess.Popen(
                plan["argv"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except (OSError, ValueError) as error:
            self.code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_RUNNABLE
            say(f"{self.name}: {plan['argv'][0]}: {getattr(error, 'strerror', None) or error}")
            return
        streams = (("stdout", self.process.stdout, sys.stdout), ("stderr", self.process.stderr, sys.stderr))
        for name, source, target in streams:
            thread = threading.Thread(target=self._copy, args=(name, source, target.buffer))
            thread.start()
            self.copying.append(thread)

    def _copy(self, name: str, source: IO[bytes], target: IO[bytes]) -> None:
        with open(os.path.join(self.folder, name), "ab", buffering=0) as kept:
            for line in source:
                kept.write(line)
                with PRINTING:
                    target.write(self.prefix.encode() + line)
                    target.flush()

    def wait(self) -> int:
        """Wait until it has ended; return its exit code, or 128 plus the number of the signal that ended it."""
        if self.process is not None:
            self.code = self._wait_in_time(self.process)
            for thread in self.copying:
                thread.join()
        code, by = (self.code, None) if self.code >= 0 else (128 - self.code, signal.Signals(-self.code).name)
        end: dict[str, Any] = {"name": self.name, "code": None if by else code, "signal": by, "start": self.began}
        end["seconds"] = round(time.monotonic() - self.clock, 3)
        if self.is_timed_out:
            say(f"{self.name}: it reached its time limit of {self.seconds:g} s")
            code, end = TIMED_OUT, {**end, "timed_out": True}
        write_end(self.folder, end)
        return code

    def _wait_in_time(self, process: subprocess.Popen[bytes]) -> int:
        """Wait for its exit code; when its own time limit is over, it gets SIGTERM, then SIGKILL."""
        try:
            return process.wait(self.seconds)
        except subprocess.TimeoutExpired:
            self.is_timed_out = True
            process.terminate()
        try:
            return process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def ask_to_end(self) -> None:
        """Send SIGTERM, once; the session's other processes are left to the platform."""
        if self.process is not None and not self.is_asked_to_end:
            self.is_asked_to_end = True
            self.process.terminate()

    def kill(self) -> None:
        """Send SIGKILL."""
        if self.process is not None:
            self.process.kill()


def say(text: str) -> None:
    """Print a message to the session's error output."""
    with PRINTING:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def write_end(folder: str, end: dict[str, Any]) -> None:
    """Write how a step ended, atomically."""
    part = os.path.join(folder, "end.json.part")
    with open(part, "w", encoding="utf-8") as file:
        json.dump(end, file)
    os.replace(part, os.path.join(folder, "end.json"))


class Runner:
    """Runs all steps of a session."""

    def __init__(self, plan: dict[str, Any]) -> None:
        """Take the plan; nothing runs yet."""
        self.steps, self.together, self.keep_going = plan["steps"], plan["together"], plan["keep_going"]
        self.running: list[RunningStep] = []
        self.stopping = False
        self.codes: dict[str, int] = {}
        self.free = plan.get("cores", 0)
        self.changed = threading.Condition()

    def stop(self, *_: object) -> None:
        """Start no further step, and ask the running ones to end, as the session is to end."""
        self.stopping = True
        for step in self.running:
            step.ask_to_end()
        timer = threading.Timer(GRACE, self.kill_all)
        timer.daemon = True
        timer.start()

    def kill_all(self) -> None:
        """Kill all running steps."""
        for step in self.running:
            step.kill()

    def _wait_for_room(self, plan: dict[str, Any]) -> bool:
        """Wait until a step can begin; return False if it mustn't."""
        needed = plan.get("cores", 0)
        with self.changed:
            while not (self.free >= needed if self.together else len(self.codes) == len(self.running)):
                self.changed.wait()
            failed = any(self.codes.values())
            if self.stopping or (failed and not self.keep_going and not (self.together and not needed)):
                return False
            self.free -= needed
            return True

    def _wait(self, step: RunningStep) -> None:
        code = step.wait()
        with self.changed:
            self.codes[step.name] = code
            self.free += step.cores
            self.changed.notify_all()

    def run(self) -> int:
        """Run the steps; return the code of the first one, in the order of the request, that didn't succeed."""
        waiting = []
        for plan in self.steps:
            if not self._wait_for_room(plan):
                break
            step = RunningStep(plan, f"[{plan['name']}] " if self.together else "")
            self.running.append(step)
            if self.stopping:
                step.ask_to_end()  # the signal may have come while it was being started
            waiting.append(threading.Thread(target=self._wait, args=(step,)))
            waiting[-1].start()
        for thread in waiting:
            thread.join()
        self.codes = {plan["name"]: self.codes[plan["name"]] for plan in self.steps if plan["name"] in self.codes}
        for plan in self.steps[len(self.codes) :]:
            os.makedirs(os.path.join("steps", plan["name"]), exist_ok=True)
            write_end(os.path.join("steps", plan["name"]), {"name": plan["name"], "skipped": True})
        ends = [f"{name} {'succeeded' if code == 0 else f'failed ({code})'}" for name, code in self.codes.items()]
        skipped = [f"{plan['name']} did not begin" for plan in self.steps[len(self.codes) :]]
        say(f"steps: {', '.join([*ends, *skipped])}")
        return next((code for code in self.codes.values() if code), 0)


def main() -> int:
    """Run the plan that came with the job."""
    with open(PLAN, encoding="utf-8") as file:
        runner = Runner(json.load(file))
    signal.signal(signal.SIGTERM, runner.stop)
    return runner.run()
