"""An annex from a laptop: it connects to the cluster, and nobody connects to it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from testbed.network import inside
from testbed.plan import Plan

from tests.access_points import at_ap
from tests.real.far_away import FarAway
from tests.sites import Site


@contextmanager
def behind_nat(site: Site) -> Iterator[None]:
    """Let nobody connect to `ap`: what comes without being asked for is dropped, as NAT does."""
    rule = ("INPUT", "!", "-i", "lo", "-p", "tcp", "--syn", "-j", "DROP")
    firewall = [*inside(Plan.load(site.name), "ap"), "iptables", "-w"]
    subprocess.run([*firewall, "-I", *rule], check=True)
    try:
        yield
    finally:
        subprocess.run([*firewall, "-D", *rule], check=True)


def test_an_annex_of_a_laptop_that_nobody_can_connect_to(ap_site: Site) -> None:
    with behind_nat(ap_site), at_ap(ap_site, "laptop") as person:
        person.starts_service()
        assert person.signs_in() == 0, person.said
        wanted = ("--system", ap_site.name, "--queue", "compute", "--nodes", "1", "--cores", "2", "--lifetime", "10m")
        person.typed("annex", "create", "mobile", *wanted, "--yes", "--wait")
        annex = FarAway(person, "mobile")
        assert "through the spool" in annex.lease()["why"]
        ap_site.wait(annex.offered)
        session = annex.asks(run=["sh", "-c", "hostname; exit 3"]).wait(120)
        assert (session.view.end.code, "".join(session.logs())) == (3, f"{annex.lease()['nodes'][0]['node']}\n")
        person.typed("annex", "shutdown", "mobile")
        ap_site.wait(lambda: not person.did("sh", "-c", 'ls "$SUBLET_HOME"/splits').split(), 60)
        person.types("annex", "setup", "--stop")
