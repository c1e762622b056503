"""Both halves of a split pilot on this machine, and jobs that a starter of ours plays on them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from sublet.annexes.split import near_half
from sublet.annexes.split.channel import BOOT
from sublet.annexes.split.travel import FAR_HALF, program
from tests.serving import eventually

STARTER = """#!/usr/bin/env python3
import os, re, signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
words = dict(zip(sys.argv[5::2], sys.argv[6::2]))
ad = open(words["-job-input-ad"]).read()
get = lambda name: re.search(r'(?m)^%s = "(.*)"' % name, ad).group(1)
os.chdir(get("Iwd"))
if "Broken = True" in ad:
    sys.exit("the starter is broken")
if "ContainerImage" in ad:
    sys.exit("singularity output was FATAL: could not open image %s/bad.sif: no image\\nExiting" % get("Iwd"))
default = lambda: signal.signal(signal.SIGTERM, signal.SIG_DFL)
manifest = os.path.dirname(os.getcwd()) + "/manifest"  # which the wrapper of jobs runs
if os.path.exists(manifest):
    subprocess.run([manifest], env={"A": "1"}, check=True)
child = subprocess.Popen(
    [get("Cmd")], preexec_fn=default, stdout=open("_condor_stdout", "wb"), stderr=open("_condor_stderr", "wb")
)
signal.signal(signal.SIGTERM, lambda *_: child.terminate())
signal.signal(signal.SIGQUIT, lambda *_: (child.kill(), os._exit(0)))
open(words["-job-output-ad"], "w").write("ExitCode = %d\\n" % child.wait())
"""


class Split:
    """A lease of a few nodes, all on this machine."""

    def __init__(self, directory: Path, **plan: Any) -> None:
        self.directory, self.spool = directory, directory / "shared" / "spool"
        self.near = directory / "near"
        for node in ("0", "1"):
            (self.near / "bridge" / node).mkdir(mode=0o700, parents=True)
        self.spool.parent.mkdir(exist_ok=True)
        self.noise = directory / "noise.sh"
        self.noise.write_text(f"printf 'Welcome!\\nno end of line'\nexec {sys.executable} -u -c \"$1\"\n")
        settings = {"lease": "l1", "nodes": 2, "spool": str(self.spool), "dead": 2.0, "silent": 3.0, "poll": 0.05}
        settings["channel"] = ["sh", str(self.noise), BOOT]
        (self.near / "relay.json").write_text(json.dumps({**settings, **plan}))
        self.starter = directory / "condor_starter"
        self.starter.write_text(STARTER)
        self.starter.chmod(0o755)
        self.processes: list[subprocess.Popen[bytes]] = []
        self.jobs = 0

    def start(self, *words: str, cwd: Path | None = None) -> subprocess.Popen[bytes]:
        log = (self.directory / "log").open("ab")
        process = subprocess.Popen([sys.executable, *words], cwd=cwd, stdout=log, stderr=log, start_new_session=True)
        log.close()
        self.processes.append(process)
        return process

    def relay(self) -> subprocess.Popen[bytes]:
        return self.start("-m", "sublet.annexes.split.relay", str(self.near))

    def far(self, node: int, place: Path | None = None, **more: Any) -> subprocess.Popen[bytes]:
        eventually((self.spool / "agent").exists, "an agent")  # whose answer a far half comes with
        place = place or self.directory / f"node{node}-{len(self.processes)}"
        place.mkdir(exist_ok=True)
        settings = {"spool": str(self.spool), "node": node, "lease_id": "l1", "starter": str(self.starter)}
        settings |= {"poll": 0.05, "life": 3600, "lease": 60, "facts": {"cores": "2"}}
        (place / "far.py").write_bytes(program(FAR_HALF, {**settings, **more}))
        return self.start("far.py", cwd=place)

    def job(self, script: str, node: int = 0, ad: str = "", **files: bytes) -> Job:
        self.jobs += 1
        return Job(self, self.jobs, node, script, ad, files)

    def state(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self.near / "state.json").read_text())
        except FileNotFoundError:
            return {"link": False, "nodes": {}, "attempts": {}, "refused": {}, "waits": []}
        return found

    def alive(self, node: int) -> bool | None:
        found = self.state()["nodes"].get(str(node))
        return found and bool(found["alive"])

    def beats(self, node: int) -> int:
        return int(json.loads((self.spool / "alive" / str(node)).read_text())["count"])

    def probe(self, node: int = 0) -> str:
        return (self.near / "bridge" / str(node) / "probe.out").read_text()

    def stop(self) -> None:
        for process in self.processes:
            with contextlib.suppress(ProcessLookupError):  # a job goes on without its far half
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


class Job:
    """What the bridge's starter does for one job: its sandbox, and a near half that waits."""

    def __init__(
        self,
        split: Split,
        number: int,
        node: int,
        script: str,
        ad: str,
        files: dict[str, bytes],
        sandbox: Path | None = None,
    ) -> None:
        self.split, self.id, self.bridge = split, f"slot1_{number}-{number}", str(split.near / "bridge" / str(node))
        self.scratch = split.directory / f"scratch{number}"
        self.scratch.mkdir(exist_ok=True)
        for name, content in {"run": f"#!/bin/sh\n{script}\n".encode(), **files}.items():
            (self.scratch / name).write_bytes(content)
        words = f'{ad}\nClusterId = {number}\nProcId = 0\nCmd = "/somewhere/run"\nIn = "/dev/null"\n'
        (self.scratch / ".job.ad").write_text(words)
        near = [sys.executable, near_half.__file__, "submit_wait_stageout", self.bridge, self.id]
        self.process = subprocess.Popen(
            [*near, "no-such-file", "unused", str(sandbox or self.scratch)],
            cwd=self.scratch,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        split.processes.append(self.process)

    def ends(self) -> int:
        return self.process.wait(30)

    def remove(self) -> None:
        """Shut the job's starter down; it is asked to end, and if that is said twice it is stopped."""
        words = [sys.executable, near_half.__file__, "remove", self.bridge, self.id]
        subprocess.run(words, check=True, timeout=30)

    def told(self) -> str:
        return (self.scratch / ".job.ad.out").read_text()

    def has(self, name: str) -> bytes:
        return (self.scratch / name).read_bytes()


@pytest.fixture
def splits(tmp_path: Path) -> Iterator[Callable[..., Split]]:
    """Makes leases; all their processes are gone at the end."""
    with ExitStack() as stack:

        def make(**plan: Any) -> Split:
            split = Split(tmp_path, **plan)
            stack.callback(split.stop)
            return split

        yield make


def again(split: Split, ad: str = "Broken = True", **files: bytes) -> Job:
    """The same job in the same slot once more."""
    shutil.rmtree(split.directory / "scratch1", ignore_errors=True)
    return Job(split, 1, 0, "true", ad, files)


def files_of(directory: Path) -> set[str]:
    return {str(file.relative_to(directory)) for file in directory.rglob("*") if file.is_file()}


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_forgotten(split: Split) -> bool:
    """Whether neither side remembers an attempt: what was to be stopped is not noted for ever."""
    noted = [name for name in files_of(split.spool) if name.startswith(("kill/", "tmp/put"))]
    return not noted and not list((split.near / "attempts").iterdir())
