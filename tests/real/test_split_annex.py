"""An annex at a site whose nodes reach nothing: pilots in two halves, joined by the one login, in life and death."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from sublet.booking.calls.results import results
from tests.access_points import at_ap
from tests.passages import passage
from tests.real import images
from tests.real.corpus import Corpus
from tests.real.far_away import NODES, FarAway, left_on
from tests.real.shared_inputs import serving_files
from tests.real.workers import SMALL
from tests.registries import registry
from tests.serving import eventually
from tests.sites import HASTY, running

pytestmark = [pytest.mark.htcondor, pytest.mark.slurm]

SITE = ("--base", "box", "--ap", "--nodes", "4", *HASTY)  # no --nat: its nodes have no way out
LIFE = ("--cores", "8", "--lifetime", "30m", "--idle", "20m", "--yes")
AWAY = "/usr/bin/python3.away"
ENVIRONMENTS = "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep ^CONDOR_CONFIG= | sort -u"


@pytest.fixture(scope="module")
def far(swept: None) -> Iterator[FarAway]:
    """An annex of two nodes, and two others that can't be."""
    with running(*SITE) as site, at_ap(site, "sublet") as person:
        before = left_on(site)
        person.starts_service()
        assert person.signs_in() == 0, person.said
        wanted = ("--system", site.name, "--queue", "compute", *LIFE)
        person.typed("annex", "create", "far", *wanted, "--nodes", "2", "--wait")
        for node in NODES[2:]:
            site.on(node, "mv", "/usr/bin/python3", AWAY)
        person.typed("annex", "create", "bare", *wanted, "--nodes", "1")
        other = ("--queue", "shared", "--cores", "2")
        person.typed("annex", "create", "deaf", *wanted, *other, "--nodes", "1", "--carry", "direct")
        found = FarAway(person, "far")
        site.wait(found.offered)
        yield found
        person.types("annex", "shutdown", "far")
        site.wait(lambda: not site.on("ctl", "squeue", "--noheader").strip(), 60)
        try:
            eventually(lambda: not set(left_on(site)) - set(before), "a clean site", 60)
        except AssertionError as error:
            raise AssertionError(f"{error}: {sorted(set(left_on(site)) - set(before))}") from None
        site.wait(lambda: not person.did("sh", "-c", 'ls "$SUBLET_HOME"/splits').split(), 60)
        assert "condor_startd" not in person.did("ps", "-eo", "comm")
        person.types("annex", "setup", "--stop")


@pytest.fixture
def whole_nodes(far: FarAway) -> None:
    """All nodes can be leased: those without Python get it back when the lease that should miss it has ended."""
    far.site.wait(lambda: FarAway(far.person, "bare").status() is None, 60)
    for node in NODES[2:]:
        far.site.on(node, "sh", "-c", f"test ! -e {AWAY} || mv {AWAY} /usr/bin/python3")


def test_its_nodes_reach_nothing_and_it_is_an_annex_like_any_other(far: FarAway) -> None:
    site = far.site
    assert "default" not in site.on("c1", "ip", "route")
    address = site.facts["addresses"]["ap"]
    assert "unreachable" in site.on("c1", "sh", "-c", f"ip route get {address} 2>&1; exit 0")
    lease = far.lease()
    assert (lease["state"], [node["state"] for node in lease["nodes"]]) == ("up", ["up", "up"])
    assert [node["node"] for node in lease["nodes"]] == ["c1", "c2"]
    cores = int(site.on("ctl", "scontrol", "show", "node", "c1").split("CPUTot=")[1].split()[0])
    assert [node["cores"] for node in lease["nodes"]] == [cores, cores]
    assert json.loads(far.person.kept("pilots", "carry.json").read_text()) == {site.name: "spool"}
    log = far.person.kept("logs", "service.log").read_text()
    assert {"over the login" in line for line in log.splitlines() if "split.started" in line} == {True}
    mine, theirs = (site.on(f"researcher@{where}", "id", "-u") for where in ("ap", "c1"))
    assert mine != theirs, "no user has the same number on both sides"


def test_sessions_and_jobs_of_every_kind_run_there(far: FarAway) -> None:
    person, scratch = far.person, Path(far.site.facts["scratch"])
    images.docker_archive(person.file("image.tar"), Entrypoint=None)
    person.file("brought.txt").write_text("brought")
    odd = 'it\'s $(x) "odd"\n✓'
    command = far.asks(
        run=["sh", "-c", 'cat brought.txt; hostname >&2; printf "%s" "$1" >odd; mkdir -p a/b; exit 3', "sh", odd],
        data=[f"file:///home/{person.user}/brought.txt"],
    )
    image = f"file:///home/{person.user}/image.tar"
    contained = far.asks(image=image, run=["sh", "-c", "echo contained; ls /home"], memory="512MiB")
    tasks = {"grid": {"x": list(range(12))}, "template": ["sh", "-c", "echo task {x}; test {x} != 7"], "parts": 2}
    bag = far.asks(bag=tasks)
    shutil.copy(person.file("image.tar"), scratch / "image.tar")
    made = ("pull", "--disable-cache", "/scratch/image.sif", "docker-archive:/scratch/image.tar")
    far.site.on("login", "apptainer", "--silent", *made)
    shutil.copy(scratch / "image.sif", person.file("image.sif"))
    own = {"universe": "container", "container_image": "image.sif", "output": "own.out", "request_memory": "512M"}
    scratch_is_sandbox = 'echo own >"$TMPDIR/kept"; test "$_CONDOR_SCRATCH_DIR/kept" -ef kept; cat kept; exit 4'
    cluster = far.submits(f"set -e; test ! -e /usr/bin/python3; {scratch_is_sandbox}", **own)
    run_registry_image(far)
    command.wait(120)
    assert (command.view.end.kind, command.view.end.code) == ("exited", 3)
    assert "".join(command.logs()) == "brought"
    assert "".join(command.logs(stream="stderr")).strip() in ("c1", "c2")
    assert command.result("odd").text() == odd
    assert person.client().do(results(command.id)).folders == ("a/b",), "a folder with nothing in it comes home too"
    contained.wait(120)
    assert (contained.phase, "".join(contained.logs())) == ("COMPLETED", "contained\n"), contained.view.end
    mine = ("-constraint", f'SubletSession == "{contained.id}"', "-af", "TransferInputStats.CedarSizeBytesTotal")
    assert int(far.condor("condor_history", *mine)) < person.file("image.tar").stat().st_size, "it was kept there"
    assert "preparing the image" not in "".join(contained.logs(stream="stderr")), "it was made there before"
    bag.wait(120)
    lines = [json.loads(line) for line in bag.result("tasks.jsonl").text().splitlines()]
    assert sorted((line["task"], line["code"]) for line in lines) == [(x, int(x == 7)) for x in range(12)]
    far.site.wait(lambda: not far.states(cluster), 60)
    assert person.file("own.out").read_text() == "own\n"
    said = far.condor("condor_history", cluster, "-af", "ExitCode", "RemoteWallClockTime > 0", "NumJobStarts")
    assert said.split() == ["4", "true", "1"]
    person.file("private.key").write_text("secret")
    odd_ones = "ln -s /etc/hostname host; mkfifo pipe"
    listed = f"ls -A; echo threads $OMP_NUM_THREADS; mkdir results; echo 1 > results/table; {odd_ones}"
    simple = far.submits(listed, output="plain.out", request_cpus="2", transfer_output_files="results")
    far.site.wait(lambda: not far.states(simple), 60)
    printed = person.file("plain.out").read_text()
    assert "threads 2\n" in printed
    assert "private.key" not in printed, "nothing but what the job names leaves the directory of its submit file"
    assert (person.file("results") / "table").read_text() == "1\n"
    person.did("mkdir", "web")
    person.file("web", "cube.dat").write_bytes(b"y" * 3_000_000)
    with serving_files(person, "web") as address:
        share_inputs(far, f"{address}/cube.dat")
    asked = person.file("web.log").read_text()
    kept = [line for line in person.kept("logs", "service.log").read_text().splitlines() if "job-address" in line]
    assert asked.count("GET /cube.dat") == 1, "\n".join(("for two jobs:", asked, *kept))


def run_registry_image(far: FarAway) -> None:
    """A job with an image of a registry, which its node can't reach: the system has pulled it before."""
    person, lines = far.person, "executable = /bin/sh\narguments = \"-c 'echo $WORD'\"\noutput = pulled.out\n"
    far.site.on("researcher@login", "sh", "-c", "echo export APPTAINER_NOHTTPS=true >>~/.bashrc")  # no certificate here
    images.oci_archive(person.file("registry.tar"), Entrypoint=[], Env=["PATH=/bin", "WORD=pulled"])
    with registry() as shop, passage(far.site, "ap", shop.server_port), passage(far.site, "login", shop.server_port):
        shop.push("tools/far", "1", person.file("registry.tar"))
        named = f"universe = container\ncontainer_image = docker://{shop.address}/tools/far:1\n"
        person.file("pulled.sub").write_text(f"{named}{lines}{SMALL}queue\n")
        [cluster] = json.loads(person.typed("job", "submit", "pulled.sub", "--annex", far.name, "--json"))["clusters"]
        far.site.wait(lambda: not far.states(str(cluster)), 90)
        assert shop.fetched() == 2, "its configuration and its layer"
    assert person.file("pulled.out").read_text() == "pulled\n"


def share_inputs(far: FarAway, address: str) -> None:
    """A large input, a large program and what an address names cross to the system once, and jobs take copies there."""
    person = far.person
    person.file("big.dat").write_bytes(b"x" * (17 << 20))
    person.file("solver").write_bytes(b"#!/bin/sh\nwc -c <big.dat\nwc -c <cube.dat\nexit 0\n" + b"#" * (17 << 20))
    person.file("solver").chmod(0o755)
    lines = {"executable": "solver", "transfer_input_files": f"big.dat, {address}", "output": "big.$(Process).out"}
    lines |= {"request_memory": "16M", "request_disk": "80M"}
    text = "\n".join(f"{name} = {value}" for name, value in lines.items())
    person.file("big.sub").write_text(f"{text}\nqueue 2\n")
    [cluster] = json.loads(person.typed("job", "submit", "big.sub", "--annex", far.name, "--json"))["clusters"]
    ended = ("condor_history", str(cluster), "-af", "TransferInputStats.CedarSizeBytesTotal", "ExitCode")
    far.site.wait(lambda: len(far.condor(*ended).splitlines()) == 2, 120)
    assert {int(line.split()[0]) < 1000 for line in far.condor(*ended).splitlines()} == {True}, far.condor(*ended)
    assert [person.file(f"big.{n}.out").read_text() for n in range(2)] == [f"{17 << 20}\n3000000\n"] * 2


def test_submit_files_as_people_write_them_run_as_anywhere(far: FarAway) -> None:
    corpus = Corpus(far.person, far.name, far.condor)
    corpus.submit()
    corpus.check()


def test_what_it_prints_is_seen_while_it_runs_and_what_is_stopped_leaves_nothing_running(far: FarAway) -> None:
    held = far.submits("exec tail -f /dev/null")
    session = far.runs(run=["sh", "-c", "echo $$; hostname; exec sleep 600"])
    eventually(lambda: "".join(session.logs()).count("\n") == 2, "its first lines", 60)
    pid, node = "".join(session.logs()).split()
    assert far.site.on(node, "cat", f"/proc/{pid}/comm").strip() == "sleep"
    far.site.wait(lambda: far.states(held) == ["2"] and far.processes("tail"), 60)
    evicted = far.processes("tail")
    far.condor("condor_vacate_job", held)
    session.cancel()
    far.site.wait(lambda: not evicted & far.processes("tail"), 60)
    far.site.wait(lambda: far.states(held) == ["2"] and far.processes("tail"), 60)
    far.condor("condor_hold", held)
    far.site.wait(lambda: session.refresh().phase == "CANCELLED", 60)
    far.site.wait(lambda: not far.site.on(node, "sh", "-c", f"cat /proc/{pid}/comm; exit 0").strip(), 30)
    far.site.wait(lambda: not far.processes("tail"), 30)
    assert far.states(held) == ["5"]
    far.condor("condor_rm", held)


SAVES = """if [ -e state ]; then cp state kept; exit 0; fi
trap 'echo saved >state; sleep 1; exit 3' USR1
tail -f /dev/null &
wait"""


def test_a_job_that_is_evicted_saves_what_it_wants_and_no_output_is_forgotten(far: FarAway) -> None:
    wants = {"when_to_transfer_output": "ON_SUCCESS", "success_exit_code": "4", "transfer_output_files": "made"}
    successful = far.submits("echo x >made; exit 4", **wants)
    far.site.wait(lambda: not far.states(successful), 60)
    assert person_has(far, "made") == "x\n"
    secretive = far.submits("echo x >own; chmod 000 own", output="secretive.out")
    far.site.wait(lambda: far.states(secretive) == ["5"], 60)
    assert "Permission denied" in far.condor("condor_q", secretive, "-af", "HoldReason")
    far.condor("condor_rm", secretive)
    saving = far.submits(SAVES, when_to_transfer_output="ON_EXIT_OR_EVICT", kill_sig="SIGUSR1")
    far.site.wait(lambda: far.states(saving) == ["2"] and far.processes("tail"), 60)
    far.condor("condor_vacate_job", saving)
    far.site.wait(lambda: not far.states(saving), 60)
    assert person_has(far, "kept") == "saved\n"
    assert far.condor("condor_history", saving, "-af", "NumJobStarts", "ExitCode").split() == ["2", "0"]


def test_a_lost_login_and_a_killed_relay_cost_nothing_but_time_and_status_says_so(far: FarAway) -> None:
    session = far.runs(run=["sh", "-c", "echo begun; while [ ! -e /tmp/go ]; do sleep 0.2; done; hostname"])
    eventually(lambda: "begun" in "".join(session.logs()), "its first line", 60)
    far.person.typed("system", "logout", far.site.name)
    eventually(lambda: "sublet system login" in far.lease()["why"], "a status that says so", 60)
    killed = far.relay("relay.lock")
    far.person.did("kill", "-9", killed)
    for node in ("c1", "c2"):
        far.site.on(node, "touch", "/tmp/go")
    waiting = far.asks(run=["hostname"])
    assert far.condor("condor_q", "-constraint", f'SubletSession == "{session.id}"', "-af", "JobStatus").strip() == "2"
    assert far.person.signs_in() == 0, far.person.said
    session.wait(120)
    waiting.wait(120)
    assert (session.phase, waiting.phase) == ("COMPLETED", "COMPLETED")
    assert far.relay("relay.lock") != killed
    assert far.starts(session) == ["1"]
    for node in ("c1", "c2"):
        far.site.on(node, "rm", "/tmp/go")


@pytest.mark.soak
def test_a_node_that_freezes_is_withdrawn_and_delivers_nothing_when_it_wakes_up(far: FarAway) -> None:
    cluster = far.submits("while [ ! -e /tmp/thaw ]; do sleep 0.2; done; hostname", output="thaw.out")
    far.site.wait(lambda: 1 in far.running().values(), 60)
    [frozen] = [node for node, runs in far.running().items() if runs]
    [other] = {"c1", "c2"} - {frozen}
    far.site.on(frozen, "kill", "-STOP", far.far_half(frozen))
    far.site.on(frozen, "touch", "/tmp/thaw")  # so that what it runs ends while it is frozen
    far.site.wait(lambda: far.running()[other] == 1, 60)
    far.site.on(frozen, "kill", "-CONT", far.far_half(frozen))
    far.site.wait(lambda: [node["state"] for node in far.lease()["nodes"]] == ["up", "up"], 60)
    assert far.states(cluster) == ["2"]
    assert not person_has(far, "thaw.out")
    far.site.on(other, "touch", "/tmp/thaw")
    far.site.wait(lambda: not far.states(cluster), 60)
    assert person_has(far, "thaw.out") == f"{other}\n"
    for node in ("c1", "c2"):
        far.site.on(node, "rm", "/tmp/thaw")


def person_has(far: FarAway, name: str) -> str:
    """The text of a file of theirs, empty if there is none."""
    file = far.person.file(name)
    return file.read_text() if file.exists() else ""


def test_a_lease_that_can_not_be_says_why(far: FarAway) -> None:
    ends = {
        "bare": "its nodes reach nothing, and have no python3 to take jobs out of the spool with",
        "deaf": "its nodes could not reach this service: the service can't be reached: https://",
    }
    for name, why in ends.items():
        far.site.wait(lambda: FarAway(far.person, name).status() is None, 60)  # noqa: B023
        [lease] = json.loads(far.person.typed("annex", "history", name, "--json"))["annex"]["leases"]
        assert why in lease["why"]


def test_a_far_half_that_dies_and_a_node_that_is_lost_are_withdrawn_and_their_jobs_wait_again(far: FarAway) -> None:
    cluster = far.submits("exec tail -f /dev/null", 4, request_cpus="4")
    far.site.wait(lambda: far.states(cluster) == ["2"] * 4, 90)
    far.site.wait(lambda: far.running() == {"c1": 2, "c2": 2})
    far.site.on("c2", "kill", "-9", far.far_half("c2"))
    far.site.wait(lambda: far.states(cluster).count("1") == 2, 30)
    assert far.states(cluster).count("2") == 2
    far.site.wait(lambda: [node["state"] for node in far.lease()["nodes"]] == ["up", "dead"], 30)
    assert set(far.condor("condor_status", "-af", "SubletNode").split()) == {"0"}
    far.site.wait(
        lambda: far.site.on("c2", "ps", "-u", "researcher", "-o", "comm=", check=False).count("tail") == 0, 30
    )
    far.site.crash("c1")
    far.site.wait(lambda: far.states(cluster).count("1") == 4, 30)
    far.condor("condor_rm", cluster)
    far.site.boot("c1")


@pytest.mark.soak
def test_what_crashed_here_is_swept_although_the_lease_ended_meanwhile(far: FarAway, whole_nodes: None) -> None:
    person, site, last = far.person, far.site, FarAway(far.person, "last")
    person.typed("annex", "clone", "far#1", "last", "--nodes", "1", "--yes", "--wait")
    sent = Path(site.facts["home"]) / f"researcher/.sublet/sessions/{last.lease()['session']}/work/.sublet/pilot/values"
    assert "carry=spool\n" in sent.read_text(), "what was found of the system is remembered"
    master = f"splits/{last.lease()['id']}/bridge/0/condor_config"
    relay = last.relay("relay.lock")
    person.kills_service()
    person.did("kill", "-9", relay)
    assert master in person.did("sh", "-c", ENVIRONMENTS)
    site.on("ctl", "scancel", "--user", "researcher")
    site.wait(lambda: not site.on("ctl", "squeue", "--noheader").strip(), 60)
    person.starts_service()
    site.wait(lambda: master not in person.did("sh", "-c", ENVIRONMENTS), 60)
