"""The near half of one job: the bridge's starter runs it in place of the job; it asks the relay, and waits.

    near_half submit_wait_stageout BRIDGE ID JOB_AD STATUS_AD SANDBOX
    near_half remove BRIDGE ID

BRIDGE is the directory of one node, named by its number, below that of the relay.

It exits with 0 only after a real result, or after `remove`: any other exit would complete or hold the job. It never
exits because something is dead: then the bridge's startd evicts the job.

A starter that shuts down gracefully calls `remove` and waits: the job is asked to end on its node, and what it leaves
comes home. If that takes longer than the job may, the startd shuts the starter down fast, which calls `remove` again.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import socket
import sys
import time
from typing import Any

SHARED = (
    "the node shares no file system with the access point, so the job's files must be transferred: "
    "say should_transfer_files = YES, or leave it out"
)
PATIENCE = 3.0  # seconds that `remove` waits for a relay that isn't there
LATEST = 1 << 16  # bytes at the end of a starter's log in which it says how it shuts down


def call(
    directory: str, message: dict[str, Any], patience: float | None = None, seconds: float | None = None
) -> dict[str, Any]:
    """Ask the relay, retrying until `patience` is over if it isn't there; repeating a message is safe."""
    began = time.monotonic()
    while True:
        try:
            with socket.socket(socket.AF_UNIX) as line:
                line.settimeout(seconds)
                connect(line, directory)
                line.sendall(json.dumps(message).encode() + b"\n")
                with line.makefile() as answers:
                    answer = answers.readline()
            if answer.endswith("\n"):
                decoded: dict[str, Any] = json.loads(answer)
                return decoded
        except (OSError, ValueError):
            pass
        if patience is not None and time.monotonic() - began > patience:
            return {}
        time.sleep(0.5)


def connect(line: socket.socket, directory: str) -> None:
    """Connect to the relay's socket in a directory, however long its path is."""
    place = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        line.connect(f"/proc/self/fd/{place}/relay.sock")
    finally:
        os.close(place)


def relay_of(bridge: str) -> str:
    """Return the directory of a bridge's relay."""
    return os.path.dirname(os.path.dirname(bridge))


def submit(bridge: str, id: str, job_ad: str, sandbox: str) -> int:
    """Have the job run on the far side, with its results in the sandbox; return the exit code."""
    scratch = os.getcwd()
    if not is_within(sandbox, scratch):  # never send the directory of a submit file
        return fail(scratch, SHARED)
    if not os.path.exists(job_ad):  # the starter omits a slash
        job_ad = os.path.join(scratch, ".job.ad")
    attempt = f"{id}.{os.urandom(6).hex()}"  # unique, so that a late result is recognised
    message = {"op": "submit", "id": id, "attempt": attempt, "node": int(os.path.basename(bridge))}
    answer = call(relay_of(bridge), {**message, "job_ad": job_ad, "sandbox": sandbox, "scratch": scratch})
    if answer.get("failed"):
        return fail(scratch, answer["failed"])
    return 0


def fail(scratch: str, why: str) -> int:
    """Say why the job is to be held, and return the exit code.

    HTCondor takes the reason from this file, but has stdout written to another, whose path lacks a slash.
    """
    sys.stdout.write(f"{why}\n")
    with open(os.path.join(scratch, ".worker_stdout"), "w") as file:
        file.write(f"{why}\n")
    return 1


def remove_output(bridge: str, id: str) -> None:
    """Remove the file that HTCondor made for stdout beside the scratch directory, and would leave there."""
    name = "dir_" + id.rpartition("-")[2] + ".worker_stdout"
    with contextlib.suppress(OSError):
        os.remove(os.path.join(bridge, "execute", name))


def is_hasty(bridge: str, id: str) -> bool:
    """Whether the starter of a job shuts down fast, so that its job may not take its time."""
    slot, _, pid = id.rpartition("-")
    try:
        with open(os.path.join(bridge, "log", "StarterLog." + slot), "rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - LATEST))
            return f"(pid:{pid}) ShutdownFast".encode() in log.read()
    except OSError:
        return False


def is_within(path: str, directory: str) -> bool:
    """Whether a path is a directory or below it, with links resolved."""
    return f"{os.path.realpath(path)}{os.sep}".startswith(f"{os.path.realpath(directory)}{os.sep}")


def main() -> int:
    """Run as the starter calls it."""
    words = sys.argv[1:]
    bridge, id = words[1].rstrip("/"), re.sub(r"[^\w.-]", "_", words[2])
    if words[0] == "remove":
        remove_output(bridge, id)
        call(relay_of(bridge), {"op": "remove", "id": id, "fast": is_hasty(bridge, id)}, PATIENCE)
        return 0
    return submit(bridge, id, words[3], words[5])


if __name__ == "__main__":
    sys.exit(main())
