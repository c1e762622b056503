"""An annex from a laptop: it connects to the cluster, and nobody connects to it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from testbed.network import inside
from testbed.plan import Plan

from tests.access_points import SITE
from tests.real.far_away import FarAway
from tests.real.leased import Lessee, left, without_htcondor
from tests.sites import Site, running

pytestmark = [pytest.mark.htcondor, pytest.mark.slurm]


@pytest.fixture
def leased_site(swept: None) -> Iterator[Site]:
    """A site whose nodes and firewall this test changes; its nodes connect outward."""
    with running(*SITE) as site:
        yield site


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


@pytest.mark.soak
def test_an_annex_of_a_laptop_that_nobody_can_connect_to(leased_site: Site) -> None:
    laptop, site = Lessee(leased_site, "laptop"), leased_site
    with behind_nat(site), without_htcondor(site) as (release, checksum):
        laptop.settles(*release)
        laptop.adds_system()
        laptop.starts_service()
        assert laptop.signs_in() == 0, laptop.said
        laptop.leases("mobile", "--gpus", "2", "--wait", queue="gpu")
        annex = FarAway(laptop, "mobile")
        assert "through the spool" in annex.lease()["why"]
        assert [node["node"] for node in annex.lease()["nodes"]] == ["c4"]
        cluster = annex.submits('echo "$CUDA_VISIBLE_DEVICES on $(hostname)"', request_gpus="1", output="gpu.out")
        site.wait(lambda: not annex.states(cluster), 60)
        assert laptop.file("gpu.out").read_text() in ("0 on c4\n", "1 on c4\n")
        assert (Path(site.facts["home"]) / f"researcher/.sublet/kept/sha256-{checksum}/content").exists()
        laptop.typed("annex", "shutdown", "mobile")
        site.wait(lambda: not laptop.did("sh", "-c", 'ls "$SUBLET_HOME"/splits').split(), 60)
        site.wait(lambda: [line for line in left(site, "c4") if "/.sublet" not in line] == [])
        laptop.types("annex", "setup", "--stop")
        laptop.leaves()
