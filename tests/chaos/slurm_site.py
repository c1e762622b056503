"""The Slurm site of a run: how the service reaches it, what its programs witness, and what is left on it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime
from pathlib import Path

import pytest

from tests.sites import HASTY, Site, running

USER = "service"  # gets in by its key, so that a connection that was killed is opened again by itself
NODE = "c2"  # the last one, on which the queue `shared` runs
ENDS = "jobcomp.log"  # in which Slurm writes how each job ended
LOGGED = ("--slurm", "JobCompType=jobcomp/filetxt", "--slurm", f"JobCompLoc=/var/log/site/{ENDS}")
OPTIONS = ("--nodes", "2", "--cpus", "32", "--slurm", "MinJobAge=5", *LOGGED, *HASTY)
SCANCEL = """#!/bin/sh
case $* in *--signal*) ;; *) printf '%s\\n' "$*" >>~/scancels ;; esac
exec /usr/bin/scancel "$@"
"""
TRIED = "tried-first"
JOB = re.compile(
    r"^JobId=(\d+) UserId=\S+\((\d+)\) .*\bName=(\S+) JobState=CANCELLED .*\bEndTime=(\S+) .*\bSubmitTime=(\S+)", re.M
)
KILL = re.compile(r"^\[(\S+)\] _slurm_rpc_kill_job: REQUEST_KILL_JOB JobId=(\d+) uid (\d+)", re.M)
NAMED = re.compile(r"--name=(\S+)")
SETTINGS = """
[platforms.site]
kind = "slurm"
host = "{host}"
user = "{user}"
key = "{key}"
queue = "shared"
poll = "1s"
look = "0.5s"
patience = "2s"
grace = "1s"
calls = 50
[platforms.site.ssh]
UserKnownHostsFile = "{known_hosts}"
HostKeyAlias = "{name}"
ServerAliveInterval = "1"
ServerAliveCountMax = "2"
ConnectTimeout = "3"
"""


class SlurmSite:
    """A site that is up."""

    def __init__(self, site: Site) -> None:
        """Of the testbed."""
        self.site = site

    @property
    def settings(self) -> str:
        """The platform, as it stands in `sublet.toml`."""
        site = self.site
        return SETTINGS.format(
            host=site.host, user=USER, key=site.key, known_hosts=site.facts["known_hosts"], name=site.name
        )

    @property
    def home(self) -> Path:
        """The account's home, as this machine sees it."""
        return Path(self.site.facts["home"]) / USER

    @property
    def witness(self) -> str:
        """Where programs write, as the site's nodes see it."""
        return f"/home/{USER}/witness"

    def read_witness(self) -> list[str]:
        """What they wrote."""
        file = self.home / "witness"
        return file.read_text().splitlines() if file.exists() else []

    def watch_cancels(self) -> None:
        """Have each scancel of the account written down, with its words; one shows that it is, on both sides."""
        (place := self.home / "bin").mkdir(exist_ok=True)
        (place / "scancel").write_text(SCANCEL)
        (place / "scancel").chmod(0o755)
        (self.home / ".bashrc").write_text("PATH=$HOME/bin:$PATH\n")
        words = f"sbatch --hold --job-name={TRIED} --wrap true && scancel --name={TRIED}"
        self.site.wait(lambda: self.site.ssh(USER, words).returncode == 0, 60)
        self.site.wait(lambda: TRIED in self.find_cancelled() & self.find_cancels(), 60)
        self.site.wait(self._has_no_trial, 60)  # a slow controller may have taken one whose answer was lost

    def _has_no_trial(self) -> bool:
        """Cancel what was submitted to try this; whether nothing of it is left."""
        done = self.site.ssh(USER, f"/usr/bin/scancel --name={TRIED}; squeue --noheader --name={TRIED}")
        return done.returncode == 0 and not done.stdout.strip()

    def find_cancelled(self) -> frozenset[str]:
        """The sessions whose jobs Slurm says were cancelled, and that somebody of the account asked for.

        Slurm's own daemons cancel, too, what a controller that crashed started twice: they do so as root.
        """
        logs = Path(self.site.facts["logs"])
        kills = [(id, user, _time(at)) for at, id, user in KILL.findall(_read(logs / "slurmctld.log"))]
        return frozenset(
            name
            for id, user, name, ended, submitted in JOB.findall(_read(logs / ENDS))
            if any((id, user) == kill[:2] and _time(submitted) - 1 <= kill[2] <= _time(ended) + 1 for kill in kills)
        )

    def find_cancels(self) -> frozenset[str]:
        """The sessions that Sublet named to scancel."""
        return frozenset(NAMED.findall(_read(self.home / "scancels")))

    def name_directories(self) -> list[str]:
        """The sessions that have a directory there."""
        return [path.name for path in self.home.glob(".sublet/sessions/*")]

    def find_submitted(self) -> set[str]:
        """The sessions that sbatch has given a number."""
        return {path.parent.name for path in self.home.glob(".sublet/sessions/*/id")}

    def mend_node(self) -> None:
        """Do as an administrator does: Slurm drains a node on which a controller that crashed started a job twice."""
        if "drain" in self.site.on("ctl", "sinfo", "-h", "-n", NODE, "-o", "%T", check=False):
            self.site.on("ctl", "scontrol", "update", f"NodeName={NODE}", "State=RESUME", check=False)

    def find_work(self) -> list[str]:
        """Jobs in the queue, and processes of jobs on the node.

        The job that was submitted to try the site is none: a controller that crashed may bring it back.
        """
        queue = self.site.on("ctl", "squeue", "-h", "-o", "job %A %j %T", check=False).splitlines()
        jobs = [words for words in queue if words.split()[2:3] != [TRIED]]
        listed = self.site.on(NODE, "ps", "-ww", "-o", "args=", "-u", USER, check=False).splitlines()
        return [*jobs, *(f"on {NODE}: {words}" for words in listed)]


def _time(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _read(file: Path) -> str:
    return file.read_text() if file.exists() else ""


@contextmanager
def running_site() -> Iterator[SlurmSite | None]:
    """A site for as long as the block runs, if there can be one; should this process be killed, it is swept."""
    with ExitStack() as stack:
        try:
            site = stack.enter_context(running(*OPTIONS))
        except pytest.skip.Exception as reason:
            print(f"note: there is no Slurm site: {reason.msg}")
            yield None
            return
        found = SlurmSite(site)
        found.watch_cancels()
        yield found
