"""The near half of one node: a stock HTCondor EP beside the access point, which runs only while the far half lives.

Its directory, named by the node's number, has what the service prepared when the node claimed its place; the node's
resources are added at its first heartbeat. It is the same pilot as any other: its name, its key, its slots.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from sublet.annexes.model.annex import SLOT_DRAINING
from sublet.annexes.model.inputs import LARGE
from sublet.annexes.pilots.address import is_here
from sublet.annexes.pilots.bundle import PilotPlan, changeable, values_of
from sublet.annexes.pilots.keeping import keep, make_private
from sublet.annexes.pilots.master import Master
from sublet.annexes.split import near_half
from sublet.annexes.split.ledger import clean
from sublet.kernel.errors import SubletError
from sublet.kernel.short_paths import remove_links, shorten
from sublet.platforms.batch.far.near_plugin import REQUESTS
from sublet.platforms.batch.fetching import NEAR_PLUGIN, read_program
from sublet.platforms.htcondor.configuration import PLUGINS, attribute, literal, places, write_lines
from sublet.platforms.htcondor.release import Release
from sublet.reach.target import private

PLACES = (REQUESTS, "log", "spool", "execute", "lock", "run", "etc", "credentials", "tokens.d", "passwords.d")
# The schedd keeps the first ad of a slot, so a slot that can't take jobs isn't advertised at all.
WITHHELD = write_lines({"STARTD_DIRECT_ATTACH_SCHEDD_NAME": ""})
# Before a job's files come: an empty end of the job, which is then no new file of the job (parcels.py). The starter
# takes every job's exit code for 0 there, and would leave behind the outputs of a job that is to exit with another.
BEFORE_JOB = b"""#!/bin/sh
grep -qi '^WhenToTransferOutput *= *"ON_SUCCESS"' && echo 'JobSuccessExitCode = 0'
cat >/dev/null
yes '' | head -c 16384 >"$_CONDOR_SCRATCH_DIR/.job.ad.out"
exit 0
"""
CONTAINERS = "HasSIF HasSandboxImage HasContainer HasSingularity HasDockerURL"
IDLE = "it was idle for too long"
HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
ENDS = (
    ("StartLog", "No resources have been claimed for", IDLE),
    ("MasterLog", "DAEMON_SHUTDOWN_FAST", "its lifetime was over"),
    ("MasterLog", "Got SIGQUIT", "its owner shut it down"),  # an order arrives as a signal
    ("MasterLog", "Got SIGTERM", "its owner shut it down"),
)


def prepare(directory: Path, plan: PilotPlan, release: Release, tokens: Mapping[str, str], key: bytes) -> None:
    """Write everything of a bridge except its node's resources."""
    for name in ("", *PLACES):
        make_private(directory / name)
    starter = directory / "near_half"
    keep(starter, f'#!/bin/sh\nexec {_quote(sys.executable)} -IS {_quote(near_half.__file__)} "$@"\n'.encode())
    starter.chmod(0o700)
    keep(directory / "before_job", BEFORE_JOB)
    (directory / "before_job").chmod(0o700)
    write_plugins(directory, release)
    keep(directory / "passwords.d" / "POOL", key)
    renew(directory, plan, tokens)
    keep(directory / "condor_config", configuration(directory, plan, release).encode())


def write_plugins(directory: Path, release: Release) -> None:
    """Write wrappers for HTCondor's own plug-ins, so that data that the system keeps isn't transferred."""
    keep(directory / "near_plugin.py", read_program(*NEAR_PLUGIN))
    for name, plain in find_plugins(release).items():
        words = (sys.executable, "-IS", str(directory / "near_plugin.py"), str(directory), str(LARGE), str(plain))
        keep(directory / name, f'#!/bin/sh\nexec {" ".join(map(_quote, words))} "$@"\n'.encode())
        (directory / name).chmod(0o700)


def find_plugins(release: Release) -> dict[str, Path]:
    """Return HTCondor's own plug-ins for the web and the OSDF, by the names of their wrappers."""
    own = {"near_web": release.libexec / "curl_plugin", "near_osdf": release.libexec / "stash_plugin"}
    return {name: plain for name, plain in own.items() if name == "near_web" or plain.exists()}


def renew(directory: Path, plan: PilotPlan, tokens: Mapping[str, str]) -> None:
    """Write the files that change while the bridge runs."""
    for name, token in tokens.items():
        keep(directory / "tokens.d" / name, f"{token}\n".encode())
    keep(directory / "annex.conf", changeable(plan).encode())


def reread(directory: Path) -> None:
    """Have a running bridge read its changed files."""
    pid = Master(directory / "condor_config", directory / "log").pid()
    if pid is not None:
        os.kill(pid, signal.SIGHUP)


def configuration(directory: Path, plan: PilotPlan, release: Release) -> str:
    """Return a pilot's configuration that hands each job to a near half."""
    values = values_of(plan)
    evicted = 'stringListMember(split(Name, "@")[0], SubletFarEvict ?: "")'
    values |= {
        **places(str(directory)),
        **release.places,
        "FILETRANSFER_PLUGINS": ", ".join(
            [*(literal(str(directory / name)) for name in find_plugins(release)), *PLUGINS.split(", ")[1:2]]
        ),
        "CCB_ADDRESS": "",
        "NETWORK_INTERFACE": values["CONDOR_HOST"] if is_here(values["CONDOR_HOST"]) else "*",
        "STARTER_REMOTE_CMD": literal(str(directory / "near_half")),
        "STARTER_REMOTE_DIR": literal(str(directory)),
        "STARTER_NESTED_SCRATCH": "False",
        "STARTER_DEFAULT_JOB_HOOK_KEYWORD": "SUBLET",
        "SUBLET_HOOK_PREPARE_JOB_BEFORE_TRANSFER": literal(str(directory / "before_job")),
        "STARTD_CRON_JOBLIST": "FAR",
        "STARTD_CRON_FAR_EXECUTABLE": "/bin/cat",
        "STARTD_CRON_FAR_ARGS": "probe.out",
        "STARTD_CRON_FAR_CWD": literal(str(directory)),
        "STARTD_CRON_FAR_PERIOD": "5s",
        "STARTD_CRON_FAR_MODE": "Periodic",
        "START": f"({values['START']}) && SubletFarAlive =!= False",
        "PREEMPT": f"SubletFarAlive =?= False || {evicted}",
        "RANK": "0",
        "WANT_SUSPEND": "False",
        "WANT_VACATE": "False",
        "KILLING_TIMEOUT": "20",
        "POLLING_INTERVAL": "2",
    }
    parts = "".join(f"include : $(LOCAL_DIR)/{name}.conf\n" for name in ("annex", "node", "link"))
    return write_lines(values, ["SECURITY:strong"]) + parts


def node_configuration(facts: Mapping[str, str], now: int) -> str:
    """Return the resources of the far half's node for its slots; its end is by this machine's clock."""
    contained = str(facts.get("containers") == "yes")
    values = {
        **_machine(facts.get("machine", "")),
        "NUM_CPUS": str(_number(facts, "cores", 1)),
        "MEMORY": str(_number(facts, "memory", 1024)),
        "SubletEnd": str(now + _number(facts, "left", 60)),
        "SubletTools": attribute(clean(facts.get("tools", "")[:4000])),
        "HasSIF": contained,
        "HasContainer": contained,
        "HasSingularity": contained,
        "HasDockerURL": contained,
        "HasSandboxImage": contained,
        "SubletFarMachine": attribute(clean(facts.get("machine", "")[:200])),
        "STARTD_ATTRS": f"$(STARTD_ATTRS) {CONTAINERS} SubletFarMachine",
    }
    gpus = [word for word in facts.get("gpus", "").replace(",", " ").split() if word.replace("-", "").isalnum()]
    if gpus:
        values["MACHINE_RESOURCE_GPUs"] = " ".join(f"CUDA{word}" if word.isdecimal() else word for word in gpus)
    return write_lines(values)


def _machine(name: str) -> dict[str, str]:
    """Return the host name of the slots: `$$(Machine)` is the node, as for a node that is reached directly."""
    named = name if HOST.fullmatch(name) else ""
    return {"NETWORK_HOSTNAME": named} if named else {}


class Bridge:
    """The process of a bridge: started when its node is alive, and stopped when it isn't."""

    def __init__(self, directory: Path, release: Release) -> None:
        """Use a directory, and find the process that an earlier relay started."""
        self.directory, self.release = directory, release
        self.master = Master(directory / "condor_config", directory / "log")
        self.running = self.ready and self.master.pid() is not None
        self.over = ""  # why it ended by itself
        self.withheld = self.ready and bool(self._read_complaint("../link.conf"))

    @property
    def ready(self) -> bool:
        """Whether the service has prepared the bridge."""
        return (self.directory / "condor_config").exists()

    def start(self, facts: Mapping[str, str], now: int) -> None:
        """Start the bridge, which offers the node's resources."""
        sockets = write_lines({"DAEMON_SOCKET_DIR": literal(str(shorten(private(self.directory / "sockets"))))})
        keep(self.directory / "node.conf", (node_configuration(facts, now) + sockets).encode())
        self._withhold(False)
        for log in ("StartLog", "MasterLog"):
            (self.directory / "log" / log).unlink(missing_ok=True)
        self.master.start(self.release)
        self.running = True

    def offer(self, linked: bool) -> None:
        """Accept new jobs only while they can reach the node; running jobs continue."""
        if self.running and self.withheld == linked:
            self._withhold(not linked)
            reread(self.directory)

    def _withhold(self, withheld: bool) -> None:
        keep(self.directory / "link.conf", WITHHELD.encode() if withheld else b"")
        self.withheld = withheld

    def look(self) -> None:
        """Check whether the bridge has ended by itself, and why."""
        if not self.running:
            return
        try:
            self.master.check()
            there = self.master.alive()
        except SubletError:
            there = False
        if not there:
            self.running = False
            self.over = next(
                (why for log, mark, why in ENDS if mark in self._read_complaint(log)), "HTCondor ended by itself"
            )
            if self.over == IDLE and f"{SLOT_DRAINING} = True" in self._read_complaint("../annex.conf"):
                self.over = "it was drained"

    async def stop(self) -> None:
        """Stop the bridge at once; its jobs go back to the queue."""
        if self.ready:
            await self.master.stop()
            remove_links(self.directory / "sockets")
            shutil.rmtree(self.directory / "sockets", ignore_errors=True)
        self.running = False

    def _read_complaint(self, log: str) -> str:
        try:
            return (self.directory / "log" / log).read_text(errors="replace")
        except OSError:
            return ""


def _number(facts: Mapping[str, str], name: str, otherwise: int) -> int:
    word = facts.get(name, "")
    return max(1, int(word)) if word.isascii() and word.isdecimal() else otherwise


def _quote(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"
