"""Someone at `ap` who leases nodes of its site: settings that look often, and what HTCondor says of nodes and jobs."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from testbed.network import inside
from testbed.plan import Plan

from sublet.annexes.calls import annexes
from sublet.kernel.views import plain
from tests.access_points import Person
from tests.sites import Site

SYSTEM = "quick"  # the site as a platform that is asked often, as only a test may
SOON = 240.0  # seconds: HTCondor and Slurm on a busy machine
SETTINGS = """\
poll = "1s"
[platforms.quick]
kind = "slurm"
host = "{host}"
user = "researcher"
poll = "1s"
look = "0.5s"
patience = "1s"
calls = 100
[platforms.quick.ssh]
UserKnownHostsFile = "/home/researcher/.ssh/known_hosts"
HostKeyAlias = "{name}"
[annex]
"""
JOB = """\
executable = /bin/sh
arguments = "-c '{command}'"
transfer_executable = False
output = $(Cluster).out
request_cpus = 1
request_memory = 16M
request_disk = 1M
{more}
queue
"""
PACK = """\
mkdir -p /srv/condor-25/bin /srv/condor-25/sbin /srv/condor-25/lib /srv/condor-25/libexec
cp /usr/bin/condor_* /srv/condor-25/bin
cp /usr/sbin/condor_* /srv/condor-25/sbin
cp -r /usr/lib/condor /srv/condor-25/lib
cp -r /usr/libexec/condor /srv/condor-25/libexec
tar -cf /home/release.tar -C /srv condor-25
"""
SERVE = "cd /home && exec setsid python3 -m http.server -b 127.0.0.1 8000 >/dev/null 2>&1 </dev/null &"
MASTER = "/usr/sbin/condor_master"
LEFT = "find /tmp /var/tmp /dev/shm -mindepth 1 -user researcher; pgrep -u researcher -a . || :"


class Lessee(Person):
    """Someone who leases."""

    def settles(self, *lines: str) -> None:
        """Write their settings; those of the section [annex] are given."""
        text = SETTINGS.format(host=self.site.facts["host_from_ap"], name=self.site.name)
        text += "".join(f"{line}\n" for line in lines)
        self.did("sh", "-ec", 'mkdir -p "$SUBLET_HOME"; printf "%s" "$1" >"$SUBLET_HOME/sublet.toml"', "sh", text)

    def leases(
        self,
        name: str,
        *words: str,
        nodes: int = 1,
        queue: str = "compute",
        lifetime: str = "20m",
        idle: str = "10m",
    ) -> str:
        """Make an annex; its id."""
        amounts = ("--nodes", str(nodes), "--cores", "2", "--memory", "512MiB", "--lifetime", lifetime, "--idle", idle)
        self.typed("annex", "create", name, "--system", SYSTEM, "--queue", queue, *amounts, "--yes", *words)
        return str(self.annex(name)["id"])

    def annex(self, name: str) -> dict[str, Any]:
        """What `annex status --json` says, without another command line."""
        found: dict[str, Any] = plain(self.client().do(annexes.annex(name)))
        return found

    def ends(self, name: str, seconds: float = SOON) -> dict[str, Any]:
        """The last lease of an annex, once it has ended."""
        last: dict[str, Any] = {}

        def ended() -> bool:
            last.update(plain(self.client().do(annexes.history(name)))["annex"]["leases"][-1])
            return last["ended"] is not None

        self.site.wait(ended, seconds)
        return last

    def condor(self, *words: str) -> str:
        """What one of HTCondor's tools says."""
        return self.did(*words, CONDOR_CONFIG=self.owned)

    def slots(self, annex: str) -> list[dict[str, Any]]:
        """What the nodes of an annex offer."""
        words = ("condor_status", "-json", "-constraint", f'SubletAnnex=="{annex}" && PartitionableSlot')
        return list(json.loads(self.condor(*words) or "[]"))

    def submits(self, command: str, annex: str = "", **more: str) -> str:
        """Submit a job, to an annex if one is named; its id."""
        lines = {name.replace("__", "."): value for name, value in more.items()}
        if annex:
            lines |= {"My.SubletTarget": f'"{annex}"', "requirements": "TARGET.SubletAnnex =?= MY.SubletTarget"}
        text = JOB.format(command=command, more="\n".join(f"{name} = {value}" for name, value in lines.items()))
        self.did("sh", "-ec", 'printf "%s" "$1" >job.sub', "sh", text)
        return self.condor("condor_submit", "-terse", "job.sub").split()[0]

    def job(self, id: str) -> dict[str, Any]:
        """What is known of a job, in the queue or out of it."""
        for tool in ("condor_q", "condor_history"):
            if found := json.loads(self.condor(tool, "-json", id) or "[]"):
                return dict(found[0])
        return {}

    def runs_on(self, id: str) -> bool:
        """Whether a job runs, and not only begins to: one whose node is taken away just then is looked for awhile."""
        job = self.job(id)
        return bool(job.get("JobStatus") == 2 and job.get("JobCurrentStartExecutingDate"))

    def idles(self, id: str) -> bool:
        """Whether a job waits."""
        return bool(self.job(id).get("JobStatus") == 1)

    def done(self, id: str, seconds: float = SOON) -> dict[str, Any]:
        """A job, once it has ended."""
        self.site.wait(lambda: self.job(id).get("JobStatus") == 4, seconds)
        return self.job(id)

    def forgets(self, *jobs: str) -> None:
        """Remove jobs."""
        self.condor("condor_rm", *jobs)

    def carried(self, lease: dict[str, Any]) -> dict[str, str]:
        """What the job of a lease carries: its own values, as the site sees them."""
        file = (
            Path(self.site.facts["home"]) / f"researcher/.sublet/sessions/{lease['session']}/work/.sublet/pilot/values"
        )
        pairs = (line.partition("=") for line in file.read_text().splitlines())
        return {name: value.strip("'") for name, _, value in pairs}


def left(site: Site, *nodes: str) -> list[str]:
    """All that the researcher has on nodes, and in the site's queue and shared file systems."""
    found = [f"{node}: {line}" for node in nodes for line in site.on(node, "sh", "-c", LEFT).splitlines()]
    # What is being removed may go while it is looked at.
    look = "find /home/researcher /scratch -mindepth 1 -not -name .bashrc 2>/dev/null || true"
    shared = site.on("ctl", "sh", "-c", look)
    return [*found, *shared.split(), *site.on("ctl", "squeue", "--noheader").splitlines()]


@contextmanager
def closed(site: Site, port: int) -> Iterator[None]:
    """Let no node connect to a port outside."""
    rule = ("FORWARD", "-p", "tcp", "--dport", str(port), "-j", "REJECT", "--reject-with", "tcp-reset")
    firewall = [*inside(Plan.load(site.name), "login"), "iptables", "-w"]
    subprocess.run([*firewall, "-I", *rule], check=True)
    try:
        yield
    finally:
        subprocess.run([*firewall, "-D", *rule], check=True)


@contextmanager
def without_htcondor(site: Site) -> Iterator[tuple[list[str], str]]:
    """Take HTCondor from `c4`; settings of a release of it that is served on `ap`, and its checksum."""
    site.on("ap", "sh", "-ec", PACK)
    site.on("researcher@ap", "sh", "-c", SERVE)
    with (Path(site.facts["ap_home"]) / "release.tar").open("rb") as file:
        checksum = hashlib.file_digest(file, "sha256").hexdigest()
    site.on("c4", "mv", MASTER, f"{MASTER}.away")
    try:
        yield ['release = "http://127.0.0.1:8000/release.tar"', f'release_sha256 = "{checksum}"'], checksum
    finally:
        site.on("c4", "mv", f"{MASTER}.away", MASTER)
