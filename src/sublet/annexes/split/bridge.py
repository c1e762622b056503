"""The near half of one node: a stock HTCondor EP beside the access point, that runs only while the far half lives.

Its directory, named by the node's number, has all that the service prepared when the node claimed its place; what the
node has is written down when it is first heard. It is the same pilot as any other: its name, its key, its slots.
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
# The schedd keeps what it was first told of a slot, so one that can't take jobs is not offered at all.
WITHHELD = write_lines({"STARTD_DIRECT_ATTACH_SCHEDD_NAME": ""})
IDLE = "it was idle for too long"
HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")
ENDS = (
    ("StartLog", "No resources have been claimed for", IDLE),
    ("MasterLog", "DAEMON_SHUTDOWN_FAST", "its lifetime was over"),
    ("MasterLog", "Got SIGQUIT", "its owner shut it down"),  # an order comes as one
    ("MasterLog", "Got SIGTERM", "its owner shut it down"),
)


def prepare(directory: Path, plan: PilotPlan, release: Release, tokens: Mapping[str, str], key: bytes) -> None:
    """Write all of a bridge but what its node has."""
    for name in ("", *PLACES):
        make_private(directory / name)
    starter = directory / "near_half"
    keep(starter, f'#!/bin/sh\nexec {_quote(sys.executable)} -IS {_quote(near_half.__file__)} "$@"\n'.encode())
    starter.chmod(0o700)
    write_plugins(directory, release)
    keep(directory / "passwords.d" / "POOL", key)
    renew(directory, plan, tokens)
    keep(directory / "condor_config", configuration(directory, plan, release).encode())


def write_plugins(directory: Path, release: Release) -> None:
    """What is put in the places of HTCondor's own plug-ins, so that what its system keeps doesn't travel."""
    keep(directory / "near_plugin.py", read_program(*NEAR_PLUGIN))
    for name, plain in find_plugins(release).items():
        words = (sys.executable, "-IS", str(directory / "near_plugin.py"), str(directory), str(LARGE), str(plain))
        keep(directory / name, f'#!/bin/sh\nexec {" ".join(map(_quote, words))} "$@"\n'.encode())
        (directory / name).chmod(0o700)


def find_plugins(release: Release) -> dict[str, Path]:
    """HTCondor's own plug-ins for addresses, by what is put in their places: for the web, and for the OSDF."""
    own = {"near_web": release.libexec / "curl_plugin", "near_osdf": release.libexec / "stash_plugin"}
    return {name: plain for name, plain in own.items() if name == "near_web" or plain.exists()}


def renew(directory: Path, plan: PilotPlan, tokens: Mapping[str, str]) -> None:
    """Write what changes while it runs."""
    for name, token in tokens.items():
        keep(directory / "tokens.d" / name, f"{token}\n".encode())
    keep(directory / "annex.conf", changeable(plan).encode())


def reread(directory: Path) -> None:
    """Have it read what has changed, if it runs."""
    pid = Master(directory / "condor_config", directory / "log").pid()
    if pid is not None:
        os.kill(pid, signal.SIGHUP)


def configuration(directory: Path, plan: PilotPlan, release: Release) -> str:
    """A pilot's configuration, whose jobs are handed to the near half of each."""
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
        "MachineMaxVacateTime": "1",
        "KILLING_TIMEOUT": "20",
        "POLLING_INTERVAL": "2",
    }
    parts = "".join(f"include : $(LOCAL_DIR)/{name}.conf\n" for name in ("annex", "node", "link"))
    return write_lines(values, ["SECURITY:strong"]) + parts


def node_configuration(facts: Mapping[str, str], now: int) -> str:
    """What the far half's node has, so that the slot says the truth about it; its end by this machine's own clock."""
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
        "SubletFarMachine": attribute(clean(facts.get("machine", "")[:200])),
        "STARTD_ATTRS": "$(STARTD_ATTRS) HasSIF HasContainer HasSingularity HasDockerURL SubletFarMachine",
    }
    gpus = [word for word in facts.get("gpus", "").replace(",", " ").split() if word.replace("-", "").isalnum()]
    if gpus:
        values["MACHINE_RESOURCE_GPUs"] = " ".join(f"CUDA{word}" if word.isdecimal() else word for word in gpus)
    return write_lines(values)


def _machine(name: str) -> dict[str, str]:
    """What its slots say where jobs run: `$$(Machine)` is the node, as it is of a node that is reached directly."""
    named = name if HOST.fullmatch(name) else ""
    return {"NETWORK_HOSTNAME": named} if named else {}


class Bridge:
    """One, as a process: started when its node is there, stopped when it is not."""

    def __init__(self, directory: Path, release: Release) -> None:
        """One that an earlier relay started is found again."""
        self.directory, self.release = directory, release
        self.master = Master(directory / "condor_config", directory / "log")
        self.running = self.ready and self.master.pid() is not None
        self.over = ""  # why it ended by itself
        self.withheld = self.ready and bool(self._read_complaint("../link.conf"))

    @property
    def ready(self) -> bool:
        """Whether the service has prepared it."""
        return (self.directory / "condor_config").exists()

    def start(self, facts: Mapping[str, str], now: int) -> None:
        """Offer the node."""
        sockets = write_lines({"DAEMON_SOCKET_DIR": literal(str(shorten(private(self.directory / "sockets"))))})
        keep(self.directory / "node.conf", (node_configuration(facts, now) + sockets).encode())
        self._withhold(False)
        for log in ("StartLog", "MasterLog"):
            (self.directory / "log" / log).unlink(missing_ok=True)
        self.master.start(self.release)
        self.running = True

    def offer(self, linked: bool) -> None:
        """Let new jobs come only while they can get to the node; those that run go on."""
        if self.running and self.withheld == linked:
            self._withhold(not linked)
            reread(self.directory)

    def _withhold(self, withheld: bool) -> None:
        keep(self.directory / "link.conf", WITHHELD.encode() if withheld else b"")
        self.withheld = withheld

    def look(self) -> None:
        """Notice if it has ended by itself, and why."""
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
        """Withdraw the node at once; its jobs go back to the queue."""
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
