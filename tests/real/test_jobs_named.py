"""Submit descriptions and DAGs that name an annex by a line, submitted by HTCondor's own tools; and DAGs that move."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.real.workers import NAME, SMALL, Worker

pytestmark = [pytest.mark.htcondor, pytest.mark.slurm, pytest.mark.engines]

LINE = f'executable = /bin/hostname\noutput = named.$(Cluster).$(Process).out\nMY.AnnexName = "$(annex)"\n{SMALL}'
NODE = f'executable = /bin/hostname\noutput = $(JOB).out\n+TargetAnnexName = "$(annex:{NAME})"\n{SMALL}queue\n'
BARE = f"executable = /bin/hostname\noutput = $(JOB).out\n{SMALL}queue\n"
STEP = f"executable = /bin/sh\narguments = \"-c 'sleep $(seconds)'\"\n{SMALL}queue\n"
PEGASUS = Path(__file__).resolve().parent.parent / "recorded" / "pegasus"
OFTEN = {"_CONDOR_DAGMAN_USER_LOG_SCAN_INTERVAL": "1"}


def submit_dag(worker: Worker, name: str, text: str) -> str:
    """Hand a DAG to HTCondor's own tool; its cluster."""
    said = worker.runs("condor_submit_dag", worker.has(name, text), CONDOR_CONFIG=worker.person.owned, **OFTEN)
    return said.rpartition("submitted to cluster ")[2].partition(".")[0]


def said_of(worker: Worker, constraint: str, *attributes: str, tool: str = "condor_history") -> list[list[str]]:
    """What HTCondor says of jobs."""
    lines = worker.condor(tool, "-constraint", constraint, "-af", *attributes).splitlines()
    return [shlex.split(line) for line in lines]


def test_a_line_in_a_submit_description_names_the_annex(worker: Worker) -> None:
    many = LINE.replace("$(annex)", NAME) + "max_idle = 2\nqueue 5\n"
    here = worker.condor("condor_submit", "-terse", worker.has("named.sub", many)).partition(".")[0]
    each = LINE + f"queue annex in ({NAME}, not-there-yet)\n"
    mixed = worker.condor("condor_submit", "-terse", worker.has("mixed.sub", each)).partition(".")[0]
    unquoted = LINE.replace('"$(annex)"', NAME) + "queue\n"
    wrong = worker.condor("condor_submit", "-terse", worker.has("wrong.sub", unquoted)).partition(".")[0]
    site = worker.person.site
    ended = f"(ClusterId == {here} || ClusterId == {mixed}) && JobStatus == 4"
    site.wait(lambda: len(said_of(worker, ended, "ClusterId")) == 6, 90)
    ran = said_of(worker, ended, "LastRemoteHost", "JobLeaseDuration")
    assert all(host.endswith("@annex") and lease == "120" for host, lease in ran), ran
    assert "not-there-yet has no nodes" in worker.explained(f"{mixed}.1")
    worker.waits_for(wrong, "held")
    assert f'Write the name of the annex in quotes: MY.AnnexName = "{NAME}"' in worker.explained(wrong)
    worker.condor("condor_qedit", wrong, "AnnexName", f'"{NAME}"')
    worker.condor("condor_release", wrong)
    worker.waits_for(wrong)
    worker.types("job", "unmark", f"{mixed}.1")
    worker.condor("condor_qedit", f"{mixed}.1", "Later", "true")  # the queue is looked at again
    assert "names no annex" in worker.explained(f"{mixed}.1"), "what was done by hand counts"
    worker.types("job", "mark", f"{mixed}.1", "--annex", NAME)
    worker.waits_for(f"{mixed}.1")


def test_a_dag_names_annexes_in_vars_in_its_nodes_files_and_for_all_its_nodes(worker: Worker) -> None:
    worker.has("lined.sub", NODE)
    worker.has("bare.sub", BARE)
    worker.has("below.dag", "JOB Z bare.sub\n")
    text = f"""SET_JOB_ATTR AnnexName = "{NAME}"
JOB P lined.sub
JOB Q lined.sub
VARS Q annex="elsewhere-still"
JOB R bare.sub
SUBDAG EXTERNAL S below.dag
PARENT P CHILD R S
"""
    cluster = submit_dag(worker, "named.dag", text)
    site = worker.person.site
    for node in ("P", "R", "Z"):
        site.wait((worker.place / f"{node}.out").exists, 90)
        ended = f'DAGNodeName == "{node}" && JobUniverse == 5'
        site.wait(lambda ended=ended: bool(said_of(worker, ended, "ClusterId")), 30)
        assert [host.endswith("@annex") for [host] in said_of(worker, ended, "LastRemoteHost")] == [True], node
    [[waiting]] = said_of(worker, f'DAGManJobId == {cluster} && DAGNodeName == "Q"', "ClusterId", tool="condor_q")
    assert "elsewhere-still has no nodes" in worker.explained(waiting)
    worker.types("dag", "remove", cluster)
    site.wait(lambda: not said_of(worker, f"DAGManJobId == {cluster}", "ClusterId", tool="condor_q"), 60)


def test_a_dag_as_pegasus_writes_it_runs_on_the_annex_that_a_profile_names(worker: Worker) -> None:
    for file in PEGASUS.iterdir():
        here = f"/home/{worker.person.user}/work"
        worker.has(file.name, file.read_text().replace("HERE", here).replace("ANNEX", NAME))
        (worker.place / file.name).chmod(0o755)
    worker.has("f.a", "hello\n")
    own = f"executable={worker.runs('realpath', 'pegasus-dagman').strip()}"
    words = ("-append", own, "-append", '+pegasus_site="local"', "-MaxPre", "1")
    said = worker.runs("condor_submit_dag", *words, "diamond-0.dag", CONDOR_CONFIG=worker.person.owned, **OFTEN)
    cluster = said.rpartition("submitted to cluster ")[2].partition(".")[0]
    assert f"DAG    {cluster} (diamond-0.dag)" in worker.types("dag", "status", cluster)
    worker.person.site.wait((worker.place / "diamond-0.dag.metrics").exists, 90)
    assert json.loads((worker.place / "diamond-0.dag.metrics").read_text())["exitcode"] == 0
    assert (worker.place / "scratch/f.b").read_text() == "HELLO\n"
    nodes = dict(said_of(worker, f"DAGManJobId == {cluster}", "DAGNodeName", "LastRemoteHost"))
    assert nodes["preprocess_ID0000001"].endswith("@annex")
    assert nodes["create_dir_diamond_0_local"] == "undefined", "it runs beside the queue"


def test_a_dag_that_runs_is_moved_with_the_nodes_that_it_submits_later(worker: Worker) -> None:
    worker.has("step.sub", STEP)
    worker.has("inner-step.dag", 'JOB W step.sub\nVARS W seconds="0"\n')
    text = """JOB U step.sub
VARS U seconds="600"
JOB V step.sub
VARS V seconds="0"
SUBDAG EXTERNAL W inner-step.dag
PARENT U CHILD V W
"""
    worker.has("moving.dag", text)
    made = worker.types("dag", "submit", "moving.dag", "--annex", "from-here", "--json", **OFTEN)
    cluster, site = str(json.loads(made)["cluster"]), worker.person.site
    first = f'DAGManJobId == {cluster} && DAGNodeName == "U"'
    site.wait(lambda: bool(said_of(worker, first, "ClusterId", tool="condor_q")), 60)
    refused = worker.person.types("job", "mark", cluster, "--annex", NAME)
    assert (refused.returncode, "sublet job move" in refused.stderr) == (1, True)
    told = worker.types("job", "move", cluster, "--annex", NAME)
    assert told == f"1 job is for {NAME} now.\nNodes that DAG {cluster} will submit later are for {NAME} too.\n"
    assert f"annex  {NAME}" in worker.types("dag", "status", cluster)
    [[running]] = said_of(worker, first, "ClusterId", tool="condor_q")
    worker.waits_for(running, "running")
    worker.condor("condor_qedit", running, "Arguments", '"-c true"')
    worker.condor("condor_vacate_job", "-fast", running)
    done = worker.place / "moving.dag.metrics"
    site.wait(done.exists, 120)
    assert json.loads(done.read_text())["exitcode"] == 0
    hosts = said_of(worker, '(DAGNodeName == "V" || DAGNodeName == "W") && JobUniverse == 5', "LastRemoteHost")
    assert [host.endswith("@annex") for [host] in hosts] == [True, True]


def test_a_job_that_no_annex_runs_is_listed_explained_and_removed(worker: Worker) -> None:
    """It was submitted otherwise, and HTCondor took it."""
    parallel = f"universe = parallel\nmachine_count = 2\n{LINE}queue\n".replace("$(annex)", NAME)
    cluster = worker.condor("condor_submit", "-terse", worker.has("parallel.sub", parallel)).partition(".")[0]
    assert f"{cluster}.0" in worker.types("job", "list")
    assert "Jobs of universe parallel don't run on an annex" in worker.explained(cluster)
    refused = worker.person.types("job", "mark", cluster, "--annex", NAME)
    assert (refused.returncode, "Jobs of universe parallel don't run" in refused.stderr) == (1, True)
    worker.has("parallel.dag", "JOB A parallel.sub\n")
    refused = worker.person.types("dag", "submit", "work/parallel.dag", "--annex", NAME, "--", "-usedagdir")
    assert (refused.returncode, "A in the DAG" in refused.stderr) == (2, True)
    worker.types("job", "remove", cluster)
    worker.person.site.wait(lambda: not said_of(worker, f"ClusterId == {cluster}", "ClusterId", tool="condor_q"), 30)
    assert "It was removed" in worker.explained(cluster)
