"""An access point of one's own, on a machine beside a site whose nodes are behind NAT; real HTCondor throughout."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from sublet.annexes.calls.access_point import access_point, set_up, stop
from sublet.annexes.pilots.ground import Ground
from sublet.annexes.pilots.tokens import PILOT_MAY, PILOTS, POOL, Signer, new_key
from sublet.annexes.views.access_point import AccessPointView
from tests.access_points import Person
from tests.execution_points import attached

pytestmark = pytest.mark.htcondor

DESCRIPTION = """executable = /bin/hostname
output = $(Cluster).out
request_memory = 16M
request_disk = 1M
queue {count}
"""


@pytest.fixture(scope="module")
def ready(person: Person) -> Iterator[AccessPointView]:
    """The person's own, as it was set up for the site."""
    person.typed("annex", "setup", "--system", person.site.name)
    yield person.client().do(access_point())
    person.client().do(stop())


def submit(person: Person, count: int = 1) -> str:
    person.file("job.sub").write_text(DESCRIPTION.format(count=count))
    return person.condor("condor_submit", "-terse", "job.sub").partition(".")[0]


def signer(person: Person, name: str) -> Signer:
    key = person.kept("ap", "passwords.d", name)
    domain = json.loads(person.kept("ap", "ground.json").read_text())["domain"]
    return Signer(key.read_bytes(), name, domain)


def ground(person: Person) -> Ground:
    values = json.loads(person.kept("ap", "ground.json").read_text())
    return Ground(**{**values, "lease": timedelta(seconds=values["lease"])})


def pilot_token(person: Person, key: bytes | None = None) -> str:
    real = signer(person, PILOTS)
    one = Signer(key or real.key, PILOTS, real.issuer)
    return one.mint(ground(person).owner, timedelta(hours=1), datetime.now(UTC), PILOT_MAY)


def test_it_is_where_the_nodes_of_the_system_find_it(person: Person, ready: AccessPointView) -> None:
    address = person.site.facts["addresses"]["ap"]
    assert (ready.stage, ready.kind) == ("ready", "own")
    assert ready.collector.startswith(f"{address}:")
    again = person.client().do(set_up(system=person.site.name))
    assert (again.collector, again.owner, again.schedd) == (ready.collector, ready.owner, ready.schedd)
    assert "access point" in person.typed("doctor")


def test_it_listens_on_that_address_alone(person: Person, ready: AccessPointView) -> None:
    rows = [row.split() for row in person.did("ss", "-Hltunp").splitlines() if "condor" in row]
    addresses = {row[4].rpartition(":")[0] for row in rows}
    assert addresses == {person.site.facts["addresses"]["ap"]}, rows
    assert f":{ready.collector.rpartition(':')[2]}" in " ".join(row[4] for row in rows)


def test_its_secrets_are_its_owners_and_nobody_elses(person: Person, ready: AccessPointView) -> None:
    for path in (person.kept("ap", "passwords.d", POOL), person.kept("ap", "tools", "tokens.d", "owner")):
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
    rival = Person(person.site, user="rival")
    theirs = f"/home/{person.user}/{person.home}/ap/tools"
    assert rival.does("cat", f"{theirs}/tokens.d/owner").returncode != 0
    assert rival.does("condor_q", CONDOR_CONFIG=f"{theirs}.conf").returncode != 0


def test_jobs_are_queued_changed_and_removed(person: Person, ready: AccessPointView) -> None:
    cluster = submit(person, 3)
    asked = json.loads(person.condor("condor_q", "-json", cluster, "-attributes", "Owner,User,JobLeaseDuration"))
    assert [(job["User"], job["JobLeaseDuration"]) for job in asked] == [(ready.owner, 120)] * 3
    person.condor("condor_rm", "-reason", "a test", cluster)
    gone = json.loads(person.condor("condor_history", "-json", cluster, "-limit", "1"))
    assert gone[0]["RemoveReason"].startswith("a test")


WORDS = """
import asyncio, json, sys
from pathlib import Path
from sublet.platforms.htcondor import commands as jobs, slots
from sublet.annexes.pilots.access_point import read_access_point
from sublet.reach.local import LocalReach

async def main():
    tools, here = read_access_point(Path(sys.argv[1])).tools, LocalReach("here")
    more = ['My.SubletTarget = "an annex"']
    submit = jobs.to_submit(tools, "executable = /bin/true\\nqueue 3\\n", directory="/tmp", more=more)
    [(cluster, first, last)] = await here.run(submit)
    mine = jobs.ids([str(cluster)])[0]
    seen = {"span": last - first, "none": await here.run(jobs.to_edit(tools, "ClusterId == 0", {"X": "1"}))}
    seen["edited"] = await here.run(jobs.to_edit(tools, mine, {"SubletSupplier": '"a b"'}))
    seen["held"] = await here.run(jobs.to_hold(tools, jobs.ids([f"{cluster}.1"])[0], "a reason; $(x)"))
    wanted = ["ProcId", "JobStatus", "HoldReason", "SubletSupplier", "SubletTarget", "Iwd"]
    ads = await here.run(jobs.to_queue(tools, mine, wanted))
    seen["queue"] = sorted(ads, key=lambda ad: ad["ProcId"])
    seen["released"] = await here.run(jobs.to_release(tools, mine))
    seen["removed"] = [await here.run(jobs.to_remove(tools, mine, "enough")) for _ in range(2)]
    seen["history"] = await here.run(jobs.to_history(tools, mine, ["ProcId", "RemoveReason"]))
    seen["nodes"] = await here.run(slots.to_slots(tools))
    print(json.dumps(seen))

asyncio.run(main())
"""


def test_our_own_words_for_its_tools_are_understood_and_read(person: Person, ready: AccessPointView) -> None:
    seen = json.loads(person.did("python3", "-c", WORDS, f"/home/{person.user}/{person.home}"))
    assert (seen["span"], seen["none"], seen["edited"]) == (2, 0, 3)
    assert (seen["held"], seen["released"]) == (True, True)
    assert [ad["JobStatus"] for ad in seen["queue"]] == [1, 5, 1]
    assert {(ad["SubletTarget"], ad["SubletSupplier"]) for ad in seen["queue"]} == {("an annex", "a b")}
    assert {ad["Iwd"] for ad in seen["queue"]} == {"/tmp"}
    assert seen["queue"][1]["HoldReason"].startswith("a reason; $(x)")
    assert seen["removed"][0] is True
    assert [ad["RemoveReason"].partition(" (")[0] for ad in seen["history"]] == ["enough"] * 3
    assert seen["nodes"] == []


def test_a_node_behind_nat_attaches_runs_a_job_and_is_stopped_by_its_owner_alone(
    person: Person, ready: AccessPointView
) -> None:
    site, cluster = person.site, submit(person, 2)
    mine = f"ClusterId=={cluster}"
    with attached(site, "c1", "one", ready, {"pilot": pilot_token(person)}) as point:
        site.wait(lambda: not person.condor("condor_q", "-af", "ClusterId", "-constraint", mine), 60)
        assert person.file(f"{cluster}.out").read_text() == "c1\n"
        slots = person.condor("condor_status", "-af", "MyAddress", "AuthenticatedIdentity")
        assert "CCBID=" in slots
        assert ready.owner in slots
        site.wait(lambda: point.master in person.condor("condor_status", "-master", "-af", "Name"), 30)
        off = ("/usr/sbin/condor_off", "-fast", "-master", "-name", point.master)
        assert person.does(*off, CONDOR_CONFIG=ready.configuration).returncode != 0
        keep_token(person, point.owner_token)
        person.condor(*off)
        site.wait(lambda: not point.runs(), 30)
        site.wait(lambda: not person.condor("condor_status", "-af", "Name"), 30)


def keep_token(person: Person, token: str) -> None:
    """Give the owner's tools a pilot's token."""
    file = person.kept("ap", "tools", "tokens.d", "pilot-one")
    file.write_text(f"{token}\n")
    file.chmod(0o600)
    shutil.chown(file, *[file.parent.stat().st_uid] * 2)


def test_a_token_that_another_key_signed_lets_nobody_attach(person: Person, ready: AccessPointView) -> None:
    with attached(person.site, "c2", "two", ready, {"pilot": pilot_token(person, new_key())}) as point:
        said = lambda: point.log("MasterLog") + point.log("StartLog")  # noqa: E731
        person.site.wait(lambda: re.search(r"(?i)fail|denied", said()) is not None)
        assert not person.condor("condor_status", "-af", "Name")


def test_it_outlives_the_service_and_is_found_again(person: Person, ready: AccessPointView) -> None:
    before = person.did("pgrep", "-u", person.user, "-x", "condor_master")
    cluster = submit(person)
    person.kills_service()
    assert cluster in person.condor("condor_q", "-af", "ClusterId")
    client = person.starts_service()
    assert client.do(access_point()).stage == "ready"
    assert person.did("pgrep", "-u", person.user, "-x", "condor_master") == before
    person.condor("condor_rm", cluster)


def test_one_that_was_killed_is_started_again_with_its_queue(person: Person, ready: AccessPointView) -> None:
    cluster = submit(person)
    for pid in person.did("pgrep", "-u", person.user, "condor_").split():
        person.does("kill", "-9", pid)
    view = person.client().do(set_up())
    assert (view.stage, view.collector) == ("ready", ready.collector)
    assert cluster in person.condor("condor_q", "-af", "ClusterId")
    person.condor("condor_rm", cluster)


def test_one_that_was_stopped_stays_so_until_it_is_wanted(person: Person, ready: AccessPointView) -> None:
    person.typed("annex", "setup", "--stop")
    assert person.does("pgrep", "-u", person.user, "condor_").returncode == 1
    person.kills_service()
    person.starts_service()
    assert person.client().do(access_point()).stage == "stopped"
    assert person.typed("annex", "setup", "--quiet").strip() == ready.collector
