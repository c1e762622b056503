"""Pilots on real nodes, behind NAT: from the claim to the end, and nothing left."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.access_points import SITE
from tests.real.leased import SYSTEM, Lessee, closed, left, without_htcondor
from tests.sites import Site, running

pytestmark = [pytest.mark.htcondor, pytest.mark.slurm, pytest.mark.engines]

ENDPOINT = 9790  # where pilots ask
TOKENS = 20  # seconds that a pilot's tokens are good for
TRY = """\
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), 3)
except OSError as error:
    print(type(error).__name__)
"""
ASK = 'printf "%s" "$1" | curl -sk -o answer -w "%{http_code} " --data-binary @- "$2"; head -c 200 answer'
DEAD = """\
mkdir /tmp/sublet-pilot.dead /tmp/sublet-pilot.alive
setsid sleep 600 >/dev/null 2>&1 </dev/null &
began() { set -- $(sed 's/.*) //' "/proc/$1/stat"); echo "${20}"; }
echo "$! 1" >/tmp/sublet-pilot.dead/process
echo "$! $(began $!)" >/tmp/sublet-pilot.alive/process
touch -d '5 minutes ago' /tmp/sublet-pilot.dead /tmp/sublet-pilot.alive
echo $!
"""


@pytest.fixture(scope="module")
def leased_site(swept: None) -> Iterator[Site]:
    """A site whose nodes and firewall these tests change."""
    with running(*SITE) as site:
        yield site


@pytest.fixture(scope="module")
def lessee(leased_site: Site) -> Iterator[Lessee]:
    """Someone who has signed in."""
    one = Lessee(leased_site, "pilots")
    one.settles('renew = "1s"', f'tokens = "{TOKENS}s"', f"endpoint = {ENDPOINT}")
    one.adds_system()
    one.starts_service()
    assert one.signs_in() == 0, one.said
    one.typed("annex", "setup", "--system", SYSTEM)
    try:
        yield one
    finally:
        one.types("annex", "setup", "--stop")
        one.leaves()


def ask(lessee: Lessee, url: str, what: str, **said: str) -> str:
    """What the service answers to who asks as a pilot would."""
    body = "".join(f"{name}={value}\n" for name, value in said.items())
    return lessee.did("sh", "-c", ASK, "sh", body, f"{url}/pilots/{what}")


def age(lessee: Lessee, name: str) -> float:
    """For how many seconds the nodes of an annex have run."""
    (lease,) = lessee.annex(name)["leases"]
    return (datetime.now(UTC) - datetime.fromisoformat(lease["started"])).total_seconds()


@pytest.mark.soak
def test_two_nodes_behind_nat_take_the_jobs_of_their_annex_and_end_at_their_owners_order(lessee: Lessee) -> None:
    site = lessee.site
    annex = lessee.leases("example", "--wait", nodes=2)
    slots = lessee.slots(annex)
    assert sorted(slot["SubletNode"] for slot in slots) == [0, 1]
    for slot in slots:
        assert (slot["Cpus"], slot["Memory"]) == (8, 512)  # a whole node's cores, and the memory that was asked for
        assert slot["HasSIF"]
        assert "python3=/usr/bin/python3" in slot["SubletTools"]
        host, port = re.findall(r"addrs=([\d.]+)-(\d+)", slot["MyAddress"].replace("%3d", "="))[-1]
        assert "CCBID" in slot["MyAddress"]
        assert "Timeout" in lessee.did("python3", "-c", TRY, host, port)  # nobody connects inward
    stranger = lessee.submits("sleep 600")
    job = lessee.done(lessee.submits("hostname; pwd", annex))
    assert job["ExitCode"] == 0
    said = lessee.file(f"{job['ClusterId']}.out").read_text().split()
    assert said[0] in ("c1", "c2")
    assert said[1].startswith("/tmp/sublet-pilot.")
    assert lessee.idles(stranger)

    (lease,) = lessee.annex("example")["leases"]
    carried = lessee.carried(lease)
    place = f"{carried['lease']}/0/claim"
    nonce = "0" * 32
    assert ask(lessee, carried["urls"], place, token=carried["token"], nonce=nonce).startswith(
        "403 Node 0 of this lease"
    )
    assert ask(lessee, carried["urls"], place, token="x" * 40, nonce=nonce).startswith("403 There is no such lease")
    assert ask(lessee, carried["urls"], f"{carried['lease']}/2/claim", token=carried["token"], nonce=nonce)[:3] == "403"
    log = lessee.kept("logs", "service.log").read_text()
    assert carried["token"] not in log
    assert not re.search(r"eyJ[A-Za-z0-9_-]{20,}", log)  # no token of HTCondor's
    session = f"/home/researcher/.sublet/sessions/{lease['session']}"
    kept = f"{session}/work/.sublet/pilot/values"
    assert site.on("researcher@login", "stat", "-c", "%a", session, kept).split() == ["700", "600"]
    assert "Permission denied" in site.does("keyholder@login", "cat", kept).stderr
    [pilot] = site.on("researcher@c1", "sh", "-c", "echo /tmp/sublet-pilot.*").split()
    assert site.on("researcher@c1", "ls", f"{pilot}/tokens.d", f"{pilot}/passwords.d")
    assert "Permission denied" in site.does("keyholder@c1", "ls", f"{pilot}/tokens.d").stderr
    shown = site.on("keyholder@c1", "ps", "-ww", "-eo", "args") + site.on(
        "keyholder@login", "scontrol", "show", "job", "-dd"
    )
    assert "sublet-pilot" in shown
    assert carried["token"] not in shown

    lessee.typed("annex", "open", "example")
    site.wait(lambda: lessee.runs_on(stranger), 60)
    lessee.kills_service()
    running = lessee.submits("sleep 2; hostname", annex)
    assert lessee.done(running)["ExitCode"] == 0
    lessee.starts_service()

    lessee.forgets(stranger)
    site.wait(lambda: age(lessee, "example") > TOKENS)  # what it came with is worthless by now
    lessee.typed("annex", "setup", "--stop")
    lessee.typed("annex", "setup")
    last = lessee.submits("sleep 600", annex)
    site.wait(lambda: lessee.runs_on(last), 60)

    lessee.typed("annex", "shutdown", "example")
    site.wait(lambda: lessee.idles(last))
    lessee.forgets(last)
    assert lessee.ends("example")["why"] == "researcher shut it down"
    site.wait(lambda: left(site, "c1", "c2") == [])


@pytest.mark.soak
def test_leases_end_by_themselves_or_by_the_sites_will_or_because_they_cant_get_through(lessee: Lessee) -> None:
    site = lessee.site
    brief = lessee.leases("brief", lifetime="1m")
    stopped = lessee.leases("stopped")
    jobs = [lessee.submits("sleep 600", annex) for annex in (brief, stopped)]
    idle = lessee.leases("idle", idle="6s")
    longer = lessee.submits("sleep 10", idle)
    site.wait(lambda: all(map(lessee.runs_on, jobs)), 60)
    (lease,) = lessee.annex("stopped")["leases"]
    site.on("ctl", "scancel", f"--name={lease['session']}")
    site.wait(lambda: lessee.idles(jobs[1]))
    lessee.ends("stopped")
    with closed(site, ENDPOINT):
        lessee.leases("unheard", "--carry", "direct")
        assert lessee.done(longer)["NumJobStarts"] == 1
        why = "its nodes could not reach this service: the service can't be reached: https://"
        assert lessee.ends("unheard")["why"].startswith(why)
    assert re.fullmatch(r"it was idle for too long \(c\d\)", lessee.ends("idle")["why"])
    assert re.fullmatch(r"its lifetime was over \(c\d\)", lessee.ends("brief")["why"])
    assert all(map(lessee.idles, jobs))
    lessee.forgets(*jobs)
    collector = lessee.condor("condor_config_val", "COLLECTOR_HOST").strip()
    with closed(site, int(collector.rpartition(":")[2])):
        lessee.leases("unmet", "--carry", "direct")
        assert f"the access point at {collector} can't be reached" in lessee.ends("unmet")["why"]
    site.wait(lambda: left(site, "c1", "c2", "c3") == [])


def test_nodes_that_reach_the_service_but_not_the_access_point_get_their_jobs_through_the_spool(lessee: Lessee) -> None:
    collector = lessee.condor("condor_config_val", "COLLECTOR_HOST").strip()
    with closed(lessee.site, int(collector.rpartition(":")[2])):
        annex = lessee.leases("halfway", "--wait")
        (lease,) = lessee.annex("halfway")["leases"]
        assert "through the spool" in lease["why"]
        assert lessee.done(lessee.submits("true", annex))["ExitCode"] == 0
    assert f"the access point at {collector} can't be reached" in lessee.typed("annex", "logs", "halfway")
    lessee.typed("annex", "shutdown", "halfway")
    lessee.ends("halfway")
    lessee.site.wait(lambda: left(lessee.site, "c1", "c2", "c3") == [])


@pytest.fixture
def bare_node(lessee: Lessee) -> Iterator[str]:
    """A node without HTCondor, and a release of it that is served to the service."""
    with without_htcondor(lessee.site) as (release, checksum):
        lessee.typed("down")
        lessee.settles('renew = "1s"', *release)
        lessee.starts_service()
        yield checksum


def test_a_node_without_htcondor_is_sent_one_which_its_system_keeps(lessee: Lessee, bare_node: str) -> None:
    site = lessee.site
    alive = site.on("researcher@c4", "sh", "-c", DEAD).strip()
    annex = lessee.leases("bare", "--gpus", "2", "--wait", queue="gpu")
    (slot,) = lessee.slots(annex)
    assert slot["GPUs"] == 2
    assert lessee.done(lessee.submits("hostname; env", annex, request_gpus="1"))["ExitCode"] == 0
    assert site.on("c4", "sh", "-c", "ls -d /tmp/sublet-pilot.dead /tmp/sublet-pilot.alive || :") == (
        "/tmp/sublet-pilot.alive\n"
    )
    site.on("c4", "kill", alive)
    site.on("c4", "rm", "-r", "/tmp/sublet-pilot.alive")
    kept = Path(site.facts["home"]) / f"researcher/.sublet/kept/sha256-{bare_node}/content"
    site.wait(kept.exists)
    lessee.typed("annex", "shutdown", "bare")
    assert lessee.ends("bare")["why"] == "researcher shut it down"

    lessee.leases("again", "--wait", queue="shared")
    lessee.typed("annex", "shutdown", "again")
    sent = [event for event in events(lessee) if event["event"] == "release.sent"]
    assert len(sent) <= 1, "none, if the system kept it before the node looked there"
    assert [line for line in left(site, "c4") if "/.sublet" not in line] == []


def events(lessee: Lessee) -> list[dict[str, str]]:
    """What the service has logged."""
    lines = lessee.kept("logs", "service.log").read_text().splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]
