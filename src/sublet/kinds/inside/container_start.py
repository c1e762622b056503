"""Distinguishes a container that couldn't start from a program that failed.

Travels with the job: standard library only.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
from contextlib import suppress

from sublet.kinds.inside.container_tools import Plan

KEPT = 8192  # bytes of a tool's messages that are kept
OWN_CODES = {"podman": (125, 126, 127), "docker": (125, 126, 127), "apptainer": (255,), "singularity": (255,)}
NOT_MADE = 125  # exit code of Podman and Docker if no container was made
NEVER = "0001-01-01"  # start time of a container that never started
ERROR = re.compile(r"^(?:Error: |docker: |FATAL: {3}|ch-run\[\d+\]: error: )")
# messages of a container's init process, which starts the program: Podman's, and Docker's
INIT = re.compile(r"(?:ERROR \(catatonit:\d+\): failed to exec pid1: |\[FATAL tini \(\d+\)\] exec .* failed: )(.*)\Z")


class NotStarted(Exception):
    """The container could not be started; the message is what the tool said."""


class Tail:
    """Passes on a process's stderr, and keeps the end of it."""

    def __init__(self) -> None:
        """Open a pipe; `write_end` is for the process."""
        self._end = b""
        self._read_end, self.write_end = os.pipe()
        self._thread = threading.Thread(target=self._pump, daemon=True)

    def start(self) -> None:
        """Start copying, once the process has its end of the pipe."""
        os.close(self.write_end)
        self._thread.start()

    def _pump(self) -> None:
        with os.fdopen(self._read_end, "rb", buffering=0) as source:
            while piece := source.read(65536):
                self._end = (self._end + piece)[-KEPT:]
                with suppress(OSError):  # no one reads it: that must not block the process
                    while piece:
                        piece = piece[os.write(2, piece) :]

    def read(self) -> str:
        """Return the last output, once the process has ended; its children may still hold the pipe open."""
        self._thread.join(1.0)
        return self._end.decode(errors="replace")


def find_words(text: str) -> str:
    """Return the tool's own last error, without its prefix."""
    lines = [line.strip() for line in text.splitlines()]
    complaints = [ERROR.sub("", line) for line in lines if ERROR.match(line)]
    return complaints[-1] if complaints else ""


def find_why_unstarted(plan: Plan, code: int, pid: int, stderr: str) -> str:
    """Return why nothing was run in the container, in the tool's words; empty if the exit code is the program's own."""
    tool, last = plan["tool"], stderr.rstrip().rpartition("\n")[2]
    if code and tool in ("podman", "docker") and (match := INIT.match(last)):
        return f"{' '.join((plan['entrypoint'] or ['its program'])[:1])}: {match[1]}"
    if tool == "charliecloud":  # it execs the program, so only its own earlier errors have our pid
        return find_words(stderr) if code and f"ch-run[{pid}]: error: " in stderr else ""
    if code not in OWN_CODES[tool]:
        return ""
    words = find_words(stderr)
    if tool in ("podman", "docker"):
        was_started = was_container_started(plan["paths"][tool], plan["name"], code)
        return "" if was_started else words or f"{tool} ended with {code} and said nothing"
    return words if ERROR.match(last) else ""


def was_container_started(tool: str, name: str, code: int) -> bool:
    """Whether the tool ever started anything in this container.

    The tool still knows a container that was made but couldn't be started. For an unknown one, the exit code says
    whether it was made.
    """
    argv = [tool, "inspect", "--type", "container", "--format", "{{.State.StartedAt}}", name]
    answer = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    return code != NOT_MADE if answer.returncode else not answer.stdout.startswith(NEVER)
