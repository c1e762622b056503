"""Someone at `ap` whose annex has nodes that reach nothing: what they ask, and what is to be seen of it everywhere."""

from __future__ import annotations

import json
import re
from typing import Any

from sublet.annexes.calls import access_point, annexes
from sublet.client import Session
from sublet.kernel.views import plain
from tests.access_points import Person
from tests.sites import Site

NODES = ("c1", "c2", "c3", "c4")
ON_LOGIN = "find /home/researcher /scratch /tmp /var/tmp -user researcher 2>/dev/null; exit 0"
ON_NODE = "find /tmp /var/tmp -user researcher; ps -u researcher -o comm=; exit 0"
FAR_HALF = "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline | grep -q [f]ar.py && echo ${p#/proc/}; done; exit 0"


class FarAway:
    """One annex, and its person."""

    def __init__(self, person: Person, name: str) -> None:
        """Nothing is asked yet."""
        self.person, self.site, self.name, self.platform = person, person.site, name, f"annex-{name}"

    def offered(self) -> bool:
        """Whether it is among those that sessions can run on."""
        return any(one.name == self.platform and one.nodes for one in self.person.client().platforms())

    def status(self) -> dict[str, Any] | None:
        """How its lease is; None if it has none."""
        leases = plain(self.person.client().do(annexes.annex(self.name)))["leases"]
        return leases[0] if leases else None

    def lease(self) -> dict[str, Any]:
        """How its lease is, which has to be there."""
        found = self.status()
        assert found, "it has no lease"
        return found

    def asks(self, **wishes: Any) -> Session:
        """Have a session there."""
        offers = self.person.client().ask(**({"platform": self.platform, "time": "5m", "memory": "64MiB"} | wishes))
        assert offers.result == "YES", offers.reasons
        return offers[0].accept()

    def runs(self, **wishes: Any) -> Session:
        """Have a session there, which runs."""
        session = self.asks(**wishes)
        self.site.wait(lambda: session.refresh().phase == "RUNNING", 60)
        return session

    # HTCondor

    def condor(self, *words: str) -> str:
        """What one of its tools says."""
        return self.person.condor(*words)

    def submits(self, script: str, count: int = 1, **more: str) -> str:
        """Jobs of HTCondor's own for the annex, which may run again elsewhere; their cluster."""
        self.describes(script, count, **more)
        return self.submitted()

    def submitted(self) -> str:
        """The cluster of jobs that are described already."""
        return self.condor("condor_submit", "-terse", "jobs.sub").partition(".")[0]

    def describes(self, script: str, count: int, **more: str) -> None:
        """Write down such jobs."""
        found = self.person.client().do(annexes.annex(self.name)).id
        owner = self.person.client().do(access_point.access_point()).owner
        self.person.file("loop.sh").write_text(f"#!/bin/sh\n{script}\n")
        self.person.file("loop.sh").chmod(0o755)
        values = {
            "executable": "loop.sh",
            "request_memory": "16M",
            "request_disk": "1M",
            "job_lease_duration": "60",
            "+SubletTarget": f'"{found}"',
            "+SubletSupplier": f'"{owner}"',
            "requirements": "TARGET.SubletAnnex =?= MY.SubletTarget",
            **more,
        }
        lines = [f"{name} = {value}" for name, value in values.items()]
        self.person.file("jobs.sub").write_text("\n".join([*lines, f"queue {count}", ""]))

    def states(self, cluster: str) -> list[str]:
        """The states of a cluster's jobs in the queue, as HTCondor counts them."""
        return self.condor("condor_q", cluster, "-af", "JobStatus").split()

    def starts(self, session: Session) -> list[str]:
        """How often a session's job was started, once it is over."""
        mine = ("-constraint", f'SubletSession == "{session.id}"', "-af", "NumJobStarts")
        return self.condor("condor_history", *mine).split()

    # Both sides

    def relay(self, file: str) -> str:
        """A file of its relay's."""
        return self.person.kept("splits", self.lease()["id"], file).read_text()

    def running(self) -> dict[str, int]:
        """How many jobs each node says that it runs."""
        return {node["node"]: node["runs"] for node in json.loads(self.relay("state.json"))["nodes"].values()}

    def far_half(self, node: str) -> str:
        """The process of the far half on a node."""
        return self.site.on(node, "sh", "-c", FAR_HALF).split()[-1]

    def processes(self, program: str) -> set[str]:
        """The processes of this program that nodes run for the person."""
        asked = ("pgrep", "-u", "researcher", "-x", program)
        return {f"{node} {pid}" for node in ("c1", "c2") for pid in self.site.on(node, *asked, check=False).split()}


# What a guest may leave in a home directory: images that are kept for the next session, and empty directories.
MAY_STAY = re.compile(r"/\.sublet(/kept(/.*)?|/sessions|/incoming|/trash|/t)?$")


def left_on(site: Site) -> list[str]:
    """What there is of the person on the site: files and processes, all over their home directory."""
    found = [f"login {line}" for line in site.on("login", "sh", "-c", ON_LOGIN).splitlines()]
    for node in NODES:
        found += [f"{node} {line}" for line in site.on(node, "sh", "-c", ON_NODE, check=False).splitlines()]
    lost = "c1 /tmp/sublet-pilot."  # a node that loses its power keeps its disk; the next pilot there sweeps it
    return [line for line in found if not MAY_STAY.search(line) and not line.startswith(lost)]
