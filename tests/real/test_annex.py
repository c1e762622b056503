"""An annex from beginning to end: real HTCondor on a real Slurm site with a second factor, its nodes behind NAT."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from sublet.annexes.model.annex import SLOT_LEASE
from sublet.annexes.views.annexes import LeaseView
from tests.access_points import at_ap
from tests.real.annexes import Leaser
from tests.serving import eventually
from tests.sites import HASTY, Site, running

pytestmark = [pytest.mark.htcondor, pytest.mark.slurm]

TIME = ("--lifetime", "20m", "--idle", "15m")
WHOLE = ("--queue", "compute", "--nodes", "2", "--cores", "8", *TIME)
PART = ("--queue", "shared", "--nodes", "1", "--cores", "2", "--memory", "512MiB", *TIME)
FACTORS = ["assword:", "erification code:"]


def up(lease: LeaseView) -> bool:
    return [node.state for node in lease.nodes] == ["up"] * (lease.details.nodes or 1)


def ended(lease: LeaseView) -> bool:
    return lease.state == "ended"


@pytest.fixture(scope="module")
def leaser(ap_site: Site) -> Iterator[Leaser]:
    """Someone who has an account on the site, and has not signed in."""
    with at_ap(ap_site, "annexes") as person:
        yield Leaser(person)
        person.types("annex", "setup", "--stop")


@pytest.fixture(scope="module")
def example(leaser: Leaser) -> str:
    """An annex of two nodes, made with one second factor and no jobs queued."""
    code, asked, said = leaser.creates("example", *WHOLE, "--wait")
    assert code == 0, said
    assert [one for one in asked if one in FACTORS] == FACTORS
    return "example"


def test_one_second_factor_makes_an_annex_that_takes_jobs(leaser: Leaser, example: str) -> None:
    lease = leaser.lease("example#1")
    assert (lease.state, lease.queue, [node.state for node in lease.nodes]) == ("up", "compute", ["up", "up"])
    assert {node.cores for node in lease.nodes} == {8}
    cluster = leaser.submits(example, "hostname; sleep 2", 4)
    eventually(lambda: sum(node.busy for node in leaser.lease("example#1").nodes) == 4, "cores that are busy", 60)
    eventually(lambda: len([one for one in leaser.printed(cluster) if one]) == 4, "all jobs' ends", 60)
    assert {one.strip() for one in leaser.printed(cluster)} <= {node.node for node in lease.nodes}
    view = leaser.looks(example)
    assert view.jobs is not None
    assert "jobs that name it" in leaser.typed("status", example)
    assert json.loads(leaser.typed("status", "--json"))["items"][0]["name"] == example
    [cost] = [lease.cost for lease in view.leases]
    assert cost is not None
    assert 0 < cost.node_hours < 0.67


def test_more_comes_under_the_same_name_without_another_login(leaser: Leaser, example: str) -> None:
    again = leaser.types("create", example, "--yes")
    assert (again.returncode, "example#1" in again.stderr) == (1, True)
    assert leaser.typed("add", example, *PART, "--yes", "--wait", "--quiet") == "example#2\n"
    [node] = leaser.lease("example#2").nodes
    assert (node.cores, node.memory) == (2, 512 << 20)  # of a node that others share, no more than was asked for
    assert [one.name for one in leaser.looks(example).leases] == ["example#1", "example#2"]


def test_what_waits_says_why_and_can_be_taken_back(leaser: Leaser, example: str) -> None:
    assert leaser.typed("add", example, *WHOLE, "--yes", "--quiet") == "example#3\n"
    waits = leaser.waits("example#3", lambda lease: lease.state == "queued" and bool(lease.why), "a reason", 60)
    assert waits.p50 is not None
    assert leaser.typed("cancel", "example#3").startswith("example#3 ")
    leaser.waits("example#3", ended, "its end")
    assert waits.session not in leaser.jobs()
    running = leaser.types("cancel", "example#2")
    assert (running.returncode, "sublet annex shutdown example#2" in running.stderr) == (1, True)


def test_one_lease_ends_and_the_others_stay(leaser: Leaser, example: str) -> None:
    second = leaser.lease("example#2").id
    stubborn = "trap : TERM; while sleep 1; do :; done"
    cluster = leaser.submits(example, stubborn, 2, f'TARGET.{SLOT_LEASE} == "{second}"')
    states = ("condor_q", cluster, "-af", "JobStatus")
    eventually(lambda: leaser.condor(*states).split() == ["2", "2"], "jobs that run, or have just begun", 60)
    assert leaser.typed("shutdown", "example#2").startswith("example#2 ")
    leaser.waits("example#2", ended, "its end")
    eventually(
        lambda: leaser.condor(*states).split() == ["1", "1"], "the jobs, waiting before their leases are over", 60
    )
    leaser.condor("condor_rm", cluster)
    assert up(leaser.lease("example#1"))


def test_an_annex_is_renamed_opened_and_cloned_while_it_runs(leaser: Leaser, example: str) -> None:
    assert leaser.typed("rename", example, "other") == "example is called other now.\n"
    assert leaser.typed("open", "other") == "other runs all your jobs.\n"
    cluster = leaser.submits("", "hostname")
    eventually(lambda: any(leaser.printed(cluster)), "the end of a job that names no annex", 60)
    assert leaser.typed("close", "other") == "other runs only your jobs that name it.\n"
    plan = json.loads(leaser.typed("clone", "other#1", "copy", "--dry-run", "--json"))
    assert (plan["details"]["nodes"], plan["lease"]) == (2, "copy#1")
    leaser.typed("rename", "other", example)


def test_a_killed_service_finds_its_leases_again(leaser: Leaser, example: str) -> None:
    leaser.person.kills_service()
    leaser.person.starts_service(SUBLET_CRASH_AT="submit.after")
    assert up(leaser.waits("example#1", up, "both nodes"))
    leaser.types("add", example, *PART, "--yes")  # the service dies when Slurm has it; the command may start it again
    leaser.person.starts_service()
    found = leaser.waits("example#4", up, "the lease that was being made")
    assert list(leaser.jobs()).count(found.session) == 1


def test_a_lease_shrinks_and_its_other_nodes_go_on(leaser: Leaser, example: str) -> None:
    first, second = (node.node for node in leaser.lease("example#1").nodes)
    assert leaser.typed("shutdown", "example#1", "--node", "1") == "Given back of example#1: 1.\n"
    left = leaser.lease("example#1")
    assert [(node.node, node.state, node.why) for node in left.nodes] == [
        (first, "up", ""),
        (second, "ended", "it was given back"),
    ]
    assert leaser.site.on("ctl", "squeue", "-ah", f"--name={left.session}", "-o", "%N").split() == [first]
    cluster = leaser.submits(example, "hostname", 1, f'TARGET.{SLOT_LEASE} == "{left.id}"')
    eventually(lambda: leaser.printed(cluster) == [f"{first}\n"], "a job on the node that stays", 60)


def test_after_the_end_nothing_of_it_is_left(leaser: Leaser, example: str) -> None:
    names = [lease.name for lease in leaser.looks(example).leases]
    assert [line.split()[0] for line in leaser.typed("shutdown", example).splitlines()] == names
    for name in names:
        leaser.waits(name, ended, "its end")
    eventually(lambda: not leaser.left("c1", "c2", "c3", "c4"), "leaving nothing", 60)
    assert leaser.jobs() == {}
    past = leaser.typed("history", example)
    assert past.count("ended") >= 4
    assert "pilot: 0 on" in leaser.typed("logs", "example#1")
    assert "MasterLog" in leaser.typed("logs", "example#1", "--htcondor")
    assert not leaser.looks(example).leases


@pytest.fixture(scope="module")
def hasty(swept: None) -> Iterator[Leaser]:
    """Someone at a site of their own, which may be broken."""
    with running("--base", "box", "--ap", "--nat", "--nodes", "4", *HASTY) as site, at_ap(site, "annexes") as person:
        person.kept("sublet.toml").write_text('[annex]\njob_lease = "6s"\n')
        person.starts_service()
        assert person.signs_in() == 0, person.said
        yield Leaser(person)
        person.types("annex", "setup", "--stop")


@pytest.mark.engines
def test_dead_nodes_are_shown_dead_their_jobs_wait_again_and_a_lease_without_any_is_given_back(hasty: Leaser) -> None:
    """One loses power, the EP of another is killed, and the network of a third is silent."""
    assert hasty.typed("create", "lost", *WHOLE, "--yes", "--wait", "--quiet") == "lost#1\n"
    assert hasty.typed("add", "lost", *PART, "--yes", "--wait", "--quiet") == "lost#2\n"
    lost, killed = (node.node for node in hasty.lease("lost#1").nodes)
    [silent] = (node.node for node in hasty.lease("lost#2").nodes)
    slots = [f"{hasty.lease(lease).id}-{number}@" for lease, number in (("lost#1", 0), ("lost#1", 1), ("lost#2", 0))]
    jobs = [hasty.submits("lost", "sleep 600", 1, f'regexp("{slot}", TARGET.Name)') for slot in slots]
    eventually(lambda: all(map(hasty.runs, jobs)), "all jobs", 60)
    hasty.site.crash(lost)  # where the batch script runs: the job would never end by itself
    hasty.site.pull_cable(silent)
    dead = hasty.waits("lost#1", lambda lease: lease.nodes[0].state == "dead", "a dead node", 30)
    assert (dead.state, dead.nodes[1].state) == ("up", "up")
    assert dead.nodes[0].why.startswith("it has not reported for ")
    unheard = hasty.waits("lost#2", lambda lease: lease.nodes[0].state == "dead", "a silent node", 30)
    assert unheard.nodes[0].why.startswith("it has not reported for ")
    hasty.site.on(killed, "sh", "-c", "kill -9 $(pgrep -u researcher -x 'condor_(master|startd)')")
    gone = hasty.waits("lost#1", ended, "the end of a lease without nodes", 120)
    assert "HTCondor ended by itself (137)" in gone.nodes[1].why
    assert "its nodes no longer report" in gone.why or "went away" in gone.why, gone.why
    eventually(lambda: all(map(hasty.idles, jobs[:2])), "the jobs, waiting again", 90)
    hasty.waits("lost#2", ended, "the end of the other", 120)
    assert hasty.jobs() == {}
    eventually(lambda: hasty.idles(jobs[2]), "the job of the silent node, waiting again", 240)
    hasty.site.put_cable(silent)
    hasty.condor("condor_rm", *jobs)
