"""Someone at a machine with Sublet and HTCondor, wired to a site of another batch system whose nodes have it too."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from testbed import checkout
from testbed.box import find_base
from testbed.plan import Skip

from tests.engines.machines import PERSON, EngineMachine, start_machine, wire
from tests.serving import eventually

SOON = 120.0
ADD = (
    "sublet system add far --host {host} --user researcher --scheduler {kind} --ssh IdentityFile=~/.ssh/site "
    "--ssh UserKnownHostsFile=~/.ssh/known_hosts && printf 'poll: 1s\\nlook: 0.5s\\n' >>~/sublet/systems/far.yaml"
)
JOB = """\
executable = /bin/sh
arguments = "-c '{command}'"
transfer_executable = False
output = $(Cluster).out
request_cpus = 1
request_memory = 16M
request_disk = 1M
My.SubletTarget = "{annex}"
requirements = TARGET.SubletAnnex =?= MY.SubletTarget
queue
"""
LEFT = "find /home/researcher/.sublet/sessions /tmp /var/tmp -user researcher; pgrep -u researcher -a condor; exit 0"


class EngineLeaser:
    """One person's Sublet at `ap`, and a site that it leases nodes of."""

    def __init__(self, ap: EngineMachine, site: EngineMachine) -> None:
        """Nothing is started yet."""
        self.ap, self.site = ap, site

    def types(self, line: str) -> str:
        """What a command line prints that has to succeed."""
        return self.ap.run_as_person(f"export SUBLET_HOME=~/sublet; {line}")

    def asks(self, line: str) -> Any:
        """What a command line of Sublet answers."""
        return json.loads(self.types(f"sublet {line} --json"))

    def lease(self, name: str) -> dict[str, Any]:
        """How the last lease of an annex is."""
        leases = self.asks(f"annex history {name}")["annex"]["leases"]
        return dict(leases[-1])

    def leases(self, name: str, *words: str) -> str:
        """Lease nodes, and wait until they have reported; the annex's id."""
        amounts = "--cores 1 --memory 256MiB --lifetime 20m --idle 15m"
        self.types(f"sublet annex create {name} --system far {amounts} --yes --wait {' '.join(words)}")
        return str(self.asks(f"annex status {name}")["id"])

    def runs(self, annex: str, command: str) -> str:
        """What an HTCondor job of the person's prints that runs on an annex."""
        self.ap.run("sh", "-c", "cat >/home/researcher/job.sub", stdin=JOB.format(command=command, annex=annex))
        cluster = self.condor("condor_submit -terse job.sub").partition(".")[0]
        look = f"condor_history {cluster} -af JobStatus"
        eventually(lambda: self.condor(look).split() == ["4"], f"the end of job {cluster}", SOON, 1.0)
        return self.types(f"cat {cluster}.out")

    def condor(self, line: str) -> str:
        """What one of HTCondor's own tools prints."""
        return self.types(f"CONDOR_CONFIG=~/sublet/ap/tools.conf {line}")

    def ends(self, name: str) -> dict[str, Any]:
        """Shut an annex down; its lease, once it has ended."""
        self.types(f"sublet annex shutdown {name} --yes")
        eventually(lambda: self.lease(name)["ended"], f"the end of {name}", SOON, 1.0)
        return self.lease(name)

    def list_left(self) -> list[str]:
        """What there is of the person on the site: files of sessions, and HTCondor's processes."""
        shown = self.site.run("sh", "-c", LEFT).splitlines()
        return [line for line in shown if not line.endswith("/.sublet/sessions")]

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Let nothing on the site connect to `ap`."""
        rule = ("OUTPUT", "-o", "wan0", "-m", "conntrack", "--ctstate", "NEW", "-j", "REJECT")
        firewall = ["nsenter", f"--net=/run/netns/{self.site.network}", "iptables", "-w"]
        subprocess.run([*firewall, "-I", *rule], check=True)
        try:
            yield
        finally:
            subprocess.run([*firewall, "-D", *rule], check=True)


@contextmanager
def leasing(site: EngineMachine, kind: str, place: Path) -> Iterator[EngineLeaser]:
    """Someone at `ap` who may use a site; what this machine lacks for that is said aloud."""
    try:
        base = find_base("box")
        checkout.install(base)
    except Skip as missing:
        pytest.skip(str(missing))
    with start_machine("ap", Path(base), place, mounts=checkout.mounts(base)) as ap, wire(ap, site) as (_, far):
        for file, text in checkout.files(base).items():
            ap.run("sh", "-c", f"mkdir -p /$(dirname {file}) && cat >/{file} && chmod 755 /{file}", stdin=text)
        known = site.key.with_name("known_hosts").read_text().partition(" ")[2]
        for file, text in {
            ".ssh/site": site.key.read_text(),
            ".ssh/known_hosts": f"{far} {known}",
            "sublet/sublet.toml": 'poll = "1s"\n',
        }.items():
            line = f"umask 077; mkdir -p $(dirname {file}) && cat >{file}"
            ap.run("runuser", "-l", PERSON, "-c", line, stdin=text)
        leaser = EngineLeaser(ap, site)
        leaser.types(ADD.format(host=far, kind=kind))
        leaser.types("sublet up && sublet system login far")
        try:
            yield leaser
        finally:
            leaser.types("sublet down")
