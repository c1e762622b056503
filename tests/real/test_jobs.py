"""HTCondor jobs on a real annex: submitted, marked, moved, explained; job sets and DAGs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sublet.annexes.calls import annexes
from tests.access_points import Person
from tests.real import images
from tests.real.corpus import Corpus
from tests.real.shared_inputs import (
    serving_files,
    share_addresses,
    share_directories_and_programs,
    share_registry_images,
)
from tests.real.workers import NAME, SMALL, Worker
from tests.sites import Site

pytestmark = [pytest.mark.htcondor, pytest.mark.slurm]

SWEEP = f"""executable = /bin/sh
arguments = "-c 'echo $(n) $(word) $HELLO'"
getenv = HELLO
output = sweep.$(n).out
{SMALL}
queue n,word from (
1 one
2 two words
)
"""
PLAIN = f"executable = /bin/hostname\noutput = plain.$(Cluster).out\n{SMALL}queue\n"
SLEEP = f"executable = /bin/sleep\narguments = 600\n{SMALL}queue\n"
SET = f"""name = MySet
iterator = table file,foo {{
  in put.txt,0   # the first
  b.txt,1
}}
job x=foo other.sub
job {{
  executable = /bin/echo
  arguments = inline $(file) $(foo)
  output = inline.$(foo).out
  {SMALL}
}}
"""
OTHER = f"executable = /bin/echo\narguments = other $(x) $(file)\noutput = other.$(x).out\n{SMALL}queue 7\n"
NODE = f"executable = /bin/hostname\noutput = $(JOB).out\n{SMALL}queue\n"
INLINE = f"executable = /bin/hostname\noutput = B.out\n{SMALL}"
DAG = f"JOB A node.sub\nJOB B {{\n{INLINE}}}\nSUBDAG EXTERNAL C inner.dag\nSPLICE D splice.dag\nPARENT A CHILD B C D\n"
IMAGE = f"""universe = container
container_image = tool.sif
executable = look.sh
transfer_input_files = big.dat, small.dat
output = look.$(Cluster).$(Process).out
{SMALL.replace("16M", "64M").replace("transfer_executable = false", "")}
queue 4
"""
LOOK = "#!/bin/sh\ncat /app/doc\nls -l big.dat small.dat | wc -l\n"
READS_BIG = f"""executable = /bin/sh
arguments = "-c 'sleep {{seconds}}; head -c 3 model.dat'"
transfer_input_files = model.dat
output = big.$(Cluster).out
{SMALL}{{more}}
queue
"""
FACTORY = PLAIN.replace("queue", "max_idle = 2\nqueue 6").replace("$(Cluster)", "$(Cluster).$(Process)")


def test_jobs_go_where_they_are_sent_marked_and_moved(worker: Worker) -> None:
    sweep = worker.submits(worker.has("sweep.sub", SWEEP), HELLO="hello")
    plain = worker.condor("condor_submit", "-terse", worker.has("plain.sub", PLAIN)).partition(".")[0]
    later = worker.submits("plain.sub", "later", "-batch-name", "for later")
    greedy = worker.submits("plain.sub", NAME, "request_cpus=64")
    picky = worker.submits(worker.has("picky.sub", f"requirements = TARGET.Colour =?= 5\n{PLAIN}"))
    worker.waits_for(f"{sweep}.1")
    worker.waits_for(f"{sweep}.0")
    said = [(worker.place / f"sweep.{n}.out").read_text() for n in (1, 2)]
    assert said == ["1 one hello\n", "2 two words hello\n"]
    assert "names no annex" in worker.explained(plain)
    assert "later has no nodes" in worker.explained(later)
    assert "64 cores; no node of runner has more" in worker.explained(greedy)
    assert "requires: TARGET.Colour is 5" in worker.explained(picky)
    listed = {job["id"]: job for job in json.loads(worker.types("job", "list", "--json"))["items"]}
    assert {listed[f"{id}.0"]["annex"] for id in (greedy, picky)} == {NAME}
    assert (listed[f"{later}.0"]["annex"], listed[f"{later}.0"]["name"]) == ("later", "for later")
    assert (listed[f"{plain}.0"]["annex"], listed[f"{plain}.0"]["state"]) == ("", "idle")
    wrong = worker.person.types("job", "mark", later, "--annex", NAME)
    assert wrong.returncode == 1
    assert "sublet job move" in wrong.stderr
    worker.types("job", "mark", plain, "--annex", NAME)
    worker.types("job", "move", f"{later}.0", "--annex", NAME)
    worker.types("job", "unmark", greedy, picky)
    for job in (plain, later):
        worker.waits_for(job)
    assert "names no annex" in worker.explained(greedy)
    kept = json.loads(worker.condor("condor_history", plain, "-limit", "1", "-json"))[0]
    assert "SubletTarget" in kept["Requirements"]
    assert kept["JobLeaseDuration"] == 120
    assert worker.types("job", "remove", greedy, f"{picky}.0") == "2 jobs are no more.\n"
    for job in (greedy, picky):
        worker.waits_for(job, "removed")
    gone = worker.person.types("job", "remove", greedy)
    assert (gone.returncode, "sublet job list" in gone.stderr) == (1, True)


def test_a_job_that_runs_is_moved_at_once_if_that_is_said(worker: Worker) -> None:
    job = worker.submits(worker.has("sleep.sub", SLEEP))
    worker.waits_for(job, "running")
    worker.submits("sleep.sub", "elsewhere")
    worker.types("job", "move", job, "--annex", "elsewhere")
    assert "It runs on" in worker.explained(job)
    worker.types("job", "unmark", job, "--now")
    worker.waits_for(job, "idle")
    worker.types("job", "mark", job, "--annex", NAME)
    worker.waits_for(job, "running")
    worker.types("job", "remove", job)
    worker.waits_for(job, "removed")
    worker.condor("condor_rm", "-all")


def test_only_the_owner_has_jobs(worker: Worker) -> None:
    person = worker.person
    other = person.does("sublet", "job", "submit", "work/plain.sub", "--annex", NAME, SUBLET_URL="http://127.0.0.1:9")
    assert other.returncode == 1
    assert "the machine of their access point" in other.stderr
    assert "can't be read" in person.types("job", "submit", "nothing.sub", "--annex", NAME).stderr
    worker.has("bad.sub", "this is nothing\n")
    bad = person.does("env", "-C", "work", "sublet", "job", "submit", "bad.sub", "--annex", NAME)
    assert bad.returncode == 1
    assert "condor_submit ended with code 1" in bad.stderr
    assert "There is no job 99999" in person.types("job", "mark", "99999", "--annex", NAME).stderr


def test_a_job_set_is_one_cluster_for_each_of_its_jobs(worker: Worker) -> None:
    worker.has("other.sub", OTHER)
    made = json.loads(worker.types("job", "submit", worker.has("my.set", SET), "--annex", NAME, "--json"))
    assert (made["jobset"], made["jobs"], len(made["clusters"])) == ("MySet", 4, 2)
    for cluster in made["clusters"]:
        for number in (0, 1):
            worker.waits_for(f"{cluster}.{number}")
    said = [(worker.place / f"{name}.{foo}.out").read_text() for name in ("other", "inline") for foo in (0, 1)]
    assert said == ["other 0 in put.txt\n", "other 1 b.txt\n", "inline in put.txt 0\n", "inline b.txt 1\n"]
    kept = worker.condor("condor_history", "-constraint", 'JobSetName == "MySet"', "-af", "LastRemoteHost")
    assert len(kept.split()) == 4
    assert all(host.endswith("@annex") for host in kept.split())
    worker.has("half.set", SET.replace("/bin/echo", "/bin/echo\nnonsense"))
    half = worker.person.does("env", "-C", "work", "sublet", "job", "submit", "half.set", "--annex", NAME)
    assert half.returncode == 1
    left = worker.condor("condor_q", "-constraint", 'JobSetName == "MySet" && JobStatus != 3', "-af", "ClusterId")
    assert not left.split()


def test_every_node_splice_and_sub_dag_of_a_dag_goes_to_the_annex(worker: Worker) -> None:
    worker.has("node.sub", NODE)
    worker.has("inner.dag", "JOB X node.sub\n")
    worker.has("splice.dag", "JOB Y node.sub\n")
    made = worker.types(
        *("dag", "submit", worker.has("main.dag", DAG), "--annex", NAME, "--json"),
        _CONDOR_DAGMAN_USER_LOG_SCAN_INTERVAL="1",
    )
    cluster = json.loads(made)["cluster"]
    shown = json.loads(worker.types("dag", "list", "--json"))["items"]
    assert [(one["id"], one["annex"]) for one in shown] == [(str(cluster), NAME)]
    done = worker.place / "main.dag.metrics"
    worker.person.site.wait(done.exists, 90)
    assert json.loads(done.read_text())["exitcode"] == 0
    hosts = worker.condor("condor_history", "-constraint", "DAGNodeName =!= undefined", "-af", "LastRemoteHost")
    ran = [host for host in hosts.split() if host != "undefined"]
    assert [host.endswith("@annex") for host in ran] == [True] * 4, hosts
    assert all((worker.place / f"{name}.out").exists() for name in ("A", "B", "X", "D+Y"))


def test_a_provisioner_leases_nodes_for_a_dag_and_gives_them_back(worker: Worker) -> None:
    person, often = worker.person, {"_CONDOR_DAGMAN_USER_LOG_SCAN_INTERVAL": "1"}
    details = ("--system", person.site.name, "--nodes", "1", "--cores", "1", "--memory", "512MiB", "--lifetime", "10m")
    worker.has("node.sub", NODE)
    worker.has("lease.sub", worker.types("dag", "provisioner", "ondemand", *details))
    worker.has("leased.dag", "PROVISIONER lease lease.sub\nJOB L node.sub\nFINAL F node.sub\n")
    worker.types("dag", "submit", "leased.dag", "--annex", "ondemand", **often)
    done = worker.place / "leased.dag.metrics"
    person.site.wait(done.exists, 90)
    assert json.loads(done.read_text())["exitcode"] == 0
    said = (worker.place / "ondemand.provisioner.err").read_text()
    lines = [line for line in said.splitlines() if "ondemand#1" in line]
    assert lines[:2] == ["ondemand#1 is asked for.", "ondemand#1 is up."]
    assert "is given back when DAG" in lines[2], "the FINAL node runs there too"
    hosts = worker.condor("condor_history", "-constraint", 'DAGNodeName == "F"', "-af", "LastRemoteHost")
    assert hosts.strip().endswith("@annex")
    person.site.wait(lambda: not worker.leased("ondemand"), 30)
    last = worker.place / "ondemand.give-back.err"
    person.site.wait(lambda: "ondemand#1 is given back." in last.read_text())


@pytest.mark.soak
def test_a_dag_with_a_service_node_goes_on_after_it_was_held_and_gives_its_nodes_back(worker: Worker) -> None:
    """HTCondor takes up to five minutes to start DAGMan again, which ends a DAG with a PROVISIONER then."""
    person, often = worker.person, {"_CONDOR_DAGMAN_USER_LOG_SCAN_INTERVAL": "1"}
    details = ("--system", person.site.name, "--nodes", "1", "--cores", "1", "--memory", "512MiB", "--lifetime", "20m")
    worker.has("node.sub", NODE)
    worker.has("serve.sub", worker.types("dag", "provisioner", "served", "--service", *details))
    worker.has("served.dag", "SERVICE lease serve.sub\nJOB A node.sub\nJOB B node.sub\nFINAL F node.sub\n")
    made = worker.types("dag", "submit", "served.dag", "--annex", "served", "--json", "--", "-maxjobs", "1", **often)
    id = str(json.loads(made)["cluster"])
    person.site.wait(lambda: worker.leased("served"), 60)
    worker.condor("condor_hold", id)
    worker.condor("condor_release", id)
    done = worker.place / "served.dag.metrics"
    person.site.wait(done.exists, 480)
    assert json.loads(done.read_text())["exitcode"] == 0
    hosts = worker.condor(
        "condor_history", "-constraint", f"DAGManJobId == {id} && JobUniverse == 5", "-af", "DAGNodeName"
    )
    assert sorted(hosts.split()) == ["A", "B", "F"]
    person.site.wait(lambda: not worker.leased("served"), 60)


@pytest.mark.soak
def test_a_dag_whose_lease_ends_before_it_fails_and_says_why(worker: Worker) -> None:
    person, often = worker.person, {"_CONDOR_DAGMAN_USER_LOG_SCAN_INTERVAL": "1"}
    details = ("--system", person.site.name, "--nodes", "1", "--cores", "1", "--memory", "512MiB", "--lifetime", "10m")
    worker.has("sleep.sub", SLEEP)
    worker.has("lease.sub", worker.types("dag", "provisioner", "brief", *details))
    worker.has("brief.dag", "PROVISIONER lease lease.sub\nJOB S sleep.sub\nFINAL F sleep.sub\n")
    worker.types("dag", "submit", "brief.dag", "--annex", "brief", **often)
    running = ("condor_q", "-constraint", 'DAGNodeName == "S" && JobStatus == 2', "-af", "ClusterId")
    person.site.wait(lambda: bool(worker.condor(*running).split()), 60)
    person.typed("annex", "shutdown", "brief")
    done = worker.place / "brief.dag.metrics"
    person.site.wait(done.exists, 60)
    assert json.loads(done.read_text())["exitcode"] != 0
    assert (worker.place / "brief.dag.rescue001").exists()
    said = (worker.place / "brief.provisioner.err").read_text()
    assert "error: brief#1 ended before the DAG did: researcher shut it down" in said


@pytest.mark.soak
def test_a_provisioner_that_is_removed_gives_back_its_lease_and_one_without_a_login_fails_its_dag(
    worker: Worker,
) -> None:
    person, often = worker.person, {"_CONDOR_DAGMAN_USER_LOG_SCAN_INTERVAL": "1"}
    details = ("--system", person.site.name, "--nodes", "1", "--cores", "1", "--memory", "512MiB", "--lifetime", "10m")
    worker.has("sleep.sub", SLEEP)
    worker.has("lease.sub", worker.types("dag", "provisioner", "taken", *details))
    worker.has("long.dag", "PROVISIONER lease lease.sub\nJOB S sleep.sub\n")
    made = json.loads(worker.types("dag", "submit", "long.dag", "--annex", "taken", "--json", **often))
    id = str(made["cluster"])
    person.site.wait(lambda: "2 queued" in worker.types("dag", "status", id), 60)
    worker.types("dag", "remove", id)
    person.site.wait(lambda: not worker.leased("taken"), 60)
    person.typed("system", "logout", person.site.name)
    worker.has("outside.dag", "PROVISIONER lease lease.sub\nJOB S sleep.sub\n")
    made = json.loads(worker.types("dag", "submit", "outside.dag", "--annex", "taken", "--json", **often))
    said = worker.place / "taken.provisioner.err"
    person.site.wait(lambda: said.exists() and "sublet system login" in said.read_text(), 60)
    outside = str(made["cluster"])
    person.site.wait(lambda: "with exit code 1" in worker.types("dag", "status", outside), 60)
    assert person.signs_in() == 0


def test_submit_files_as_people_write_them_run_as_anywhere(worker: Worker) -> None:
    corpus = Corpus(worker.person, NAME, worker.person.condor)
    corpus.submit()
    corpus.check()


def kept(site: Site) -> list[str]:
    """What the site keeps for many."""
    return sorted(path.name for path in Path(site.facts["home"]).glob("researcher/.sublet/kept/*"))


def build_image(worker: Worker) -> None:
    """`tool.sif` in the directory of the jobs, unless it is there."""
    if not (worker.place / "tool.sif").exists():
        images.docker_archive(worker.place / "tool.tar", Entrypoint=[])
        worker.runs("apptainer", "--silent", "build", "tool.sif", "docker-archive:tool.tar")


@pytest.mark.engines
def test_an_image_and_a_large_input_cross_once_for_jobs_before_and_after_the_nodes(worker: Worker) -> None:
    person, site = worker.person, worker.person.site
    already, told = set(kept(site)), person.kept("logs", "service.log").read_text().count('"input.kept"')
    build_image(worker)
    (worker.place / "big.dat").write_bytes(b"x" * (17 << 20))
    (worker.place / worker.has("look.sh", LOOK)).chmod(0o755)
    worker.has("small.dat", "small")
    before = worker.submits(worker.has("look.sub", IMAGE), "pictures")
    details = ("--nodes", "1", "--cores", "4", "--memory", "1GiB", "--lifetime", "20m", "--idle", "20m")
    person.typed("annex", "create", "pictures", "--system", site.name, *details, "--yes", "--wait")
    after = worker.submits("look.sub", "pictures")
    otherwise = worker.condor("condor_submit", "-terse", "look.sub").partition(".")[0]
    worker.types("job", "mark", otherwise, "--annex", "pictures")
    clusters = (before, after, otherwise)
    of_all = " || ".join(f"ClusterId == {cluster}" for cluster in clusters)
    said = ("TransferInputStats.CedarSizeBytesTotal", "TransferInputStats.FILESizeBytesTotal", "ExitCode")
    ended: list[str] = []

    def all_ended() -> bool:
        ended[:] = worker.condor("condor_history", "-constraint", of_all, "-af", *said).splitlines()
        return len(ended) == 12

    site.wait(all_ended, 90)
    assert {int(line.split()[0]) < 1000 for line in ended} == {True}, ended
    assert {line.partition(" ")[2] for line in ended} == {f"{17 << 20} 0"}
    outputs = [worker.place / f"look.{cluster}.{n}.out" for cluster in clusters for n in range(4)]
    assert {path.read_text() for path in outputs} == {"made for tests\n2\n"}
    assert len(set(kept(site)) - already) == 2
    log = person.kept("logs", "service.log").read_text()
    assert log.count('"input.kept"') - told == 2
    share_directories_and_programs(worker)
    share_addresses(worker)
    share_registry_images(worker)
    lease = person.client().do(annexes.annex("pictures")).leases[0]
    person.kills_service()  # as if the power went off, and the lease ended meanwhile
    site.on("ctl", "scancel", f"--name={lease.session}")
    person.starts_service()
    addresses = {name for name in kept(site) if name.startswith("data-")}  # these stay for later jobs and sessions
    assert len(addresses) == 1
    site.wait(lambda: set(kept(site)) <= already | addresses, 90)


def test_a_job_factory_is_marked_moved_and_removed_with_the_jobs_that_it_has_yet_to_make(worker: Worker) -> None:
    again = worker.submits(worker.has("factory.sub", FACTORY), "nowhere")
    made = worker.condor("condor_submit", "-terse", "factory.sub").partition(".")[0]
    worker.types("job", "mark", made, "--annex", "nowhere")
    worker.types("job", "move", made, "--annex", NAME)
    ran = ("condor_history", made, "-af", "LastRemoteHost", "JobLeaseDuration")
    worker.person.site.wait(lambda: len(worker.condor(*ran).splitlines()) == 6, 60)
    assert all(line.endswith("@annex 120") for line in worker.condor(*ran).splitlines())
    worker.types("job", "remove", again)
    left = ("condor_q", "-factory", "-constraint", f"ClusterId == {again}", "-af", "ClusterId")
    worker.person.site.wait(lambda: not worker.condor(*left).split(), 30)


def test_a_job_never_runs_with_a_copy_of_an_input_that_was_rebuilt(worker: Worker) -> None:
    person, site, big = worker.person, worker.person.site, worker.place / "model.dat"
    big.write_bytes(b"old" * (6 << 20))
    held = worker.submits(worker.has("held.sub", READS_BIG.format(seconds=0, more="hold = true\nrequirements = true")))
    idle = worker.submits(worker.has("idle.sub", READS_BIG.format(seconds=5, more="+Go = false\nrequirements = MY.Go")))

    def are_ready() -> bool:
        said = worker.condor("condor_q", held, idle, "-af", "SubletReady")
        return all(line.strip() not in ("", "undefined") for line in said.splitlines())

    site.wait(are_ready, 30)
    big.write_bytes(b"new" * (6 << 20))
    worker.condor("condor_release", held)  # at once: nobody had time to look
    worker.waits_for(held)
    assert (worker.place / f"big.{held}.out").read_text() == "new"
    stats = ("TransferInputStats.CedarSizeBytesTotal", "TransferInputStats.FILESizeBytesTotal")
    sent, copied = worker.condor("condor_history", held, "-limit", "1", "-af", *stats).split()
    assert (int(sent) < 1000, int(copied)) == (True, 18 << 20), "it is shared still"

    site.wait(are_ready, 30)
    service = json.loads(person.kept("run", "service.json").read_text())["pid"]
    person.did("kill", "-STOP", str(service))
    try:
        big.write_bytes(b"two" * (6 << 20))
        worker.condor("condor_qedit", idle, "Go", "true")
        site.wait(lambda: worker.condor("condor_q", idle, "-af", "JobStatus").strip() == "2", 30)
    finally:
        person.did("kill", "-CONT", str(service))
    worker.waits_for(idle)
    assert (worker.place / f"big.{idle}.out").read_text() == "two", "it started with an old copy, and was taken back"


def test_a_guest_runs_containers_on_a_shared_annex_and_nothing_else(worker: Worker) -> None:
    person = worker.person
    token = person.typed("token", "--person", "bob", "--quiet").strip()
    url = json.loads(person.kept("run", "service.json").read_text())["url"]
    there = {"SUBLET_URL": url, "SUBLET_TOKEN": token}
    bob = Person(person.site, "nothing", "rival")
    place = f"annex-{NAME}"
    build_image(worker)
    assert "Nothing is shared with you" in bob.types("run", "--", "id", **there).stdout
    told = person.types("annex", "share", NAME, "bob", "--yes").stderr
    assert "as your own account, in containers only" in told
    assert place in bob.typed("platform", "list", **there)
    command = bob.types("run", "--platform", place, "--", "id", **there)
    assert command.returncode == 1
    assert "shared with you for containers only" in command.stdout
    with serving_files(person, "work") as files:
        wanted = ("run", "--platform", place, "--memory", "128MiB", "--time", "2m", "--image", f"{files}/tool.sif")
        inside = bob.types(*wanted, "--", "sh", "-c", "cat /app/doc; ls /home; id -u", **there)
    assert inside.returncode == 0, inside.stdout + inside.stderr
    assert inside.stdout.startswith("made for tests\n")
    assert "researcher" not in inside.stdout
    record = worker.condor("condor_history", "-constraint", 'SubletGuest == "bob"', "-af", "SubletGuest", "Owner")
    assert record.split() == ["bob", "researcher"]
    assert "OperatorsOnly" not in bob.types("job", "list", **there).stdout
    assert bob.types("annex", "create", "mine", "--yes", **there).returncode == 1
    person.typed("annex", "unshare", NAME, "bob")
    assert "Nothing is shared with you" in bob.types("run", "--", "id", **there).stdout
    assert "annex.unshared" in person.typed("annex", "history", NAME, "--events")
