"""Why a job that waits does not run, and what is changed in jobs that are marked."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from sublet.annexes.jobs import names_in
from sublet.annexes.model.annex import Annex, Details, Lease
from sublet.annexes.model.inputs import WAITS_FOR
from sublet.annexes.model.jobs import Looked, NodeRoom, QueuedJob, explain
from sublet.annexes.model.lease_state import AnnexState, LeaseState
from sublet.annexes.pilots.queue import read_jobs, read_unmet, runs_on
from sublet.annexes.pilots.submitting import KEPT_TO, environment_for
from sublet.annexes.views.jobs_convert import job_view
from sublet.reach.port import Outcome

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
GIB = 1 << 30
JOB = QueuedJob("12.0", "idle", "sweep", annex="a", cores=2, memory=GIB, disk=GIB)
NODE = NodeRoom(8, 8, 4 * GIB, 4 * GIB, 9 * GIB, 9 * GIB, 0, 0, ends=NOW + timedelta(hours=1))
ANNEX = Annex("a", "ann", "example", NOW)
UP = AnnexState(ANNEX, (LeaseState(Lease("l", "a", 1, Details(), NOW), "up"),))
QUEUED = AnnexState(ANNEX, (LeaseState(Lease("l", "a", 1, Details(), NOW), "queued", "Resources"),))


@pytest.mark.parametrize(
    ("job", "looked", "why"),
    [
        (replace(JOB, annex=""), Looked(None), "It names no annex, and none is open"),
        (replace(JOB, annex=""), Looked(None, ["wide"]), "open to all your jobs: wide"),
        (JOB, Looked(None), "not yours, or is no more"),
        (JOB, Looked(replace(UP, leases=())), "example has no nodes"),
        (JOB, Looked(QUEUED), "example#1 is queued: Resources."),
        (JOB, Looked(replace(UP, trouble="it is away")), "can't be told: it is away"),
        (replace(JOB, cores=9), Looked(UP, nodes=[NODE]), "9 cores; no node of example has more than 8 cores"),
        (replace(JOB, memory=5 * GIB), Looked(UP, nodes=[NODE]), "5GiB of memory; no node"),
        (replace(JOB, gpus=1), Looked(UP, nodes=[NODE]), "1 gpus; no node"),
        (
            replace(JOB, time=timedelta(hours=2)),
            Looked(UP, nodes=[NODE]),
            "run for 2 h; the last node of example ends in 1 h",
        ),
        (JOB, Looked(UP, nodes=[NODE], bringing=True), "is being copied to example"),
        (JOB, Looked(UP, nodes=[NODE], unmet=["TARGET.Foo is 5"]), "requires: TARGET.Foo is 5"),
        (JOB, Looked(UP, nodes=[replace(NODE, free_cores=1)]), "2 cores; 1 cores are free"),
        (JOB, Looked(UP, nodes=[NODE]), "it starts within seconds"),
        (JOB, Looked(UP, nodes=[NODE], exclusive=True), "The access point says ANNEX_JOBS_EXCLUSIVELY"),
        (replace(JOB, since=NOW - timedelta(minutes=9)), Looked(UP, nodes=[NODE]), "but it has waited for 9 min"),
        (replace(JOB, since=NOW - timedelta(minutes=1)), Looked(UP, nodes=[NODE]), "it starts within seconds"),
        (replace(JOB, universe="java"), Looked(UP, nodes=[NODE]), "Jobs of universe java don't run on an annex"),
        (replace(JOB, universe="java", annex=""), Looked(None), "Jobs of universe java don't run on an annex"),
        (replace(JOB, in_place=True), Looked(UP, nodes=[NODE]), "It says should_transfer_files = NO"),
        (replace(JOB, in_place=True), Looked(replace(UP, leases=())), "no node of example shares a file system"),
        (replace(JOB, in_place=True, annex=""), Looked(None, ["wide"]), "no node of wide shares a file system"),
        (replace(JOB, in_place=True, annex=""), Looked(None), "It names no annex, and none is open"),
        (replace(JOB, limits="matlab:2"), Looked(UP, nodes=[NODE]), "It says concurrency_limits = matlab:2"),
        (replace(JOB, state="held", why="No space"), Looked(None), "It is held: No space"),
        (replace(JOB, state="running", node="c1"), Looked(None), "It runs on c1."),
        (replace(JOB, state="completed", code=3), Looked(None), "exit code 3"),
    ],
)
def test_each_reason_is_said(job: QueuedJob, looked: Looked, why: str) -> None:
    assert why in " ".join(explain(job, looked, NOW).sentences)


def test_a_job_that_comes_back_again_and_again_says_why() -> None:
    """As with an image that can't be run: HTCondor starts the job anew each time, and never holds it."""
    ad = {"ClusterId": 12, "ProcId": 0, "JobStatus": 1, "Cmd": "/a", "SubletTarget": "a"}
    [job] = read_jobs([{**ad, "NumVacates": 6, "VacateReason": "Singularity test failed: no image"}])
    looked = Looked(UP, nodes=[NODE])
    came = "It came back from a node to the queue 6 times, the last time because: Singularity test failed: no image"
    assert explain(job, looked, NOW).sentences[-1] == came
    assert came in explain(replace(job, state="running", node="c1"), looked, NOW).sentences
    once = explain(replace(job, returns=1), looked, NOW).sentences[-1]
    assert "to the queue once, the last time" not in once
    assert "to the queue once, because: Singularity" in once
    assert came not in explain(replace(job, state="held", why="No space"), looked, NOW).sentences
    shown = job_view(job, {"a": "example"})
    assert (shown.id, shown.annex, shown.state) == ("12.0", "example", "idle")


def test_what_the_tools_are_told_keeps_what_the_configuration_says() -> None:
    told = environment_for(
        "a", "ann@x", timedelta(minutes=2), {"SUBMIT_ATTRS": "Project", "APPEND_REQUIREMENTS": "Good"}
    )
    assert told["_CONDOR_SUBMIT_ATTRS"] == "Project SubletTarget SubletSupplier"
    assert told["_CONDOR_APPEND_REQ_VANILLA"] == f"(Good) && {KEPT_TO}"
    assert (told["_CONDOR_SubletTarget"], told["_CONDOR_JOB_DEFAULT_LEASE_DURATION"]) == ('"a"', "120")


def test_amounts_that_are_expressions_are_not_taken_for_numbers() -> None:
    [job] = read_jobs(
        [{"ClusterId": 1, "ProcId": 0, "JobStatus": 1, "RequestMemory": "/Expr(ImageSize)/", "RequestCpus": 2}]
    )
    assert (job.memory, job.cores, job.state) == (None, 2, "idle")


def test_a_job_whose_files_are_not_transferred_is_known() -> None:
    said = ("NO", "IF_NEEDED", "YES", None)
    ads = [{"ClusterId": 1, "ProcId": n, "ShouldTransferFiles": word} for n, word in enumerate(said)]
    assert [job.in_place for job in read_jobs(ads)] == [True, False, False, False]


def test_conditions_that_match_nothing_are_found_in_the_analysis() -> None:
    said = (
        "Step   Matched  Condition\n----- --------- ---------\n[0]           0  TARGET.Foo is 5\n[5]           1  ok\n"
    )
    assert read_unmet(Outcome(0, said.encode(), b"")) == ["TARGET.Foo is 5"]


def test_alternatives_of_which_none_matches_are_one_condition_and_those_that_match_are_none() -> None:
    said = (
        "[0]           0  TARGET.A is 5\n[1]           0  TARGET.B is 6\n[2]           0  [0] || [1]\n"
        "[3]           0  TARGET.C is 7\n[4]           2  TARGET.D is 8\n[5]           2  [3] || [4]\n"
        "[8]           0  TARGET.HasDocker\n[9]           2  split(TARGET.CondorVersion)[8]\n"
        "[6]     not now  time() > 9\n[7]      always  MY.E ?: 0\n"
    )
    assert read_unmet(Outcome(0, said.encode(), b"")) == [
        "TARGET.A is 5 || TARGET.B is 6",
        "TARGET.HasDocker",
    ]


def test_what_keeps_a_job_waiting_for_shared_inputs_is_none_of_its_own_requirements() -> None:
    """HTCondor's analysis has a line for each part of it that no node matches at present, as most don't."""
    ours = [
        "MY.ContainerImage isnt undefined",
        "MY.SubletKept isnt undefined",
        "time() - (TARGET.DaemonStartTime ?: 0) > 300",
    ]
    assert [condition for condition in [*ours, "TARGET.HasDocker"] if not names_in(condition) & WAITS_FOR] == [
        "TARGET.HasDocker"
    ]


def test_the_jobs_of_pilots_are_known_by_the_slots_that_they_run_on() -> None:
    clause = runs_on(["l1-0@annex", "l1-1@annex"])
    assert clause.endswith('stringListMember(split(RemoteHost ?: "", "@")[1], "l1-0,l1-1") =?= true')
    assert clause.startswith("(JobStatus == 2 || JobStatus == 6 || JobStatus == 7) && ")
