"""Machines with and without HTCondor: one where it has to be fetched, and one whose own access point is used."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sublet.annexes.calls.access_point import access_point, set_up
from sublet.annexes.pilots.tokens import PILOT_MAY, PILOTS, Signer
from sublet.annexes.views.access_point import AccessPointView
from tests.access_points import Person, at_ap
from tests.execution_points import attached
from tests.real.corpus import Corpus
from tests.real.leased import PACK, SERVE
from tests.sites import Site, numbers, running

pytestmark = pytest.mark.htcondor

MASTER, AWAY = "/usr/sbin/condor_master", "/usr/sbin/condor_master.away"
# As a department's administrator sets it up: root's daemons, stock security, nothing about annexes.
DEPARTMENT = """\
CONDOR_HOST = {address}
use role:get_htcondor_central_manager
use role:get_htcondor_submit
NETWORK_INTERFACE = {address}
ENABLE_IPV6 = False
NO_DNS = True
DEFAULT_DOMAIN_NAME = dept.example
UID_DOMAIN = dept.example
TRUST_DOMAIN = dept.example
ENABLE_KERNEL_TUNING = False
NEGOTIATOR_INTERVAL = 5
"""
INSTALL = """\
umask 077
mkdir -p /etc/condor/passwords.d /etc/condor/tokens.d /run/condor /run/lock/condor
chmod 755 /run/condor /run/lock/condor
chown condor: /run/condor /run/lock/condor
head -c 64 /dev/urandom | tr '\\000\\336\\255\\276\\357' 'abcde' >/etc/condor/passwords.d/POOL
condor_token_create -identity condor@dept.example >/etc/condor/tokens.d/condor
"""
START = "setsid condor_master -f >/tmp/master.out 2>&1 </dev/null & echo $! >/run/department.pid"
DETAILS = ("--nodes", "1", "--cores", "2", "--memory", "1GiB", "--lifetime", "20m", "--idle", "20m")
JOB = """\
executable = /bin/hostname
output = $(Cluster).out
request_memory = 16M
request_disk = 1M
queue
"""


@pytest.fixture(scope="module")
def bare_site(swept: None) -> Iterator[Site]:
    """A site with a machine beside it whose programs and daemons these tests change."""
    with running("--base", "box", "--ap", "--nat", "--nodes", "2") as site:
        yield site


@pytest.fixture(scope="module")
def served(bare_site: Site) -> str:
    """A release of HTCondor, made of the machine's own, and served by HTTP there; its checksum."""
    bare_site.on("ap", "sh", "-ec", f"{PACK}rm -r /srv/condor-25\n")
    bare_site.on("researcher@ap", "sh", "-c", SERVE)
    with (Path(bare_site.facts["ap_home"]) / "release.tar").open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@pytest.fixture
def release(bare_site: Site, served: str) -> Iterator[str]:
    """The checksum of a release that is served, while the machine has no HTCondor of its own."""
    bare_site.on("ap", "mv", MASTER, AWAY)
    yield served
    bare_site.on("ap", "mv", AWAY, MASTER)


def settle(person: Person, *lines: str) -> None:
    """Write settings of the section [annex]."""
    text = "".join(f"{line}\n" for line in ("[annex]", *lines))
    person.did("sh", "-ec", 'mkdir -p "$SUBLET_HOME"; printf "%s" "$1" >"$SUBLET_HOME/sublet.toml"', "sh", text)


def settle_release(person: Person, checksum: str) -> None:
    """Write the settings that say where HTCondor comes from."""
    settle(person, 'release = "http://127.0.0.1:8000/release.tar"', f'release_sha256 = "{checksum}"')


@pytest.mark.engines
def test_without_htcondor_both_ways_to_it_are_told(bare_site: Site, release: str) -> None:
    person = Person(bare_site, "without")
    refused = person.types("annex", "setup")
    assert refused.returncode == 1
    assert "There is no HTCondor on this machine" in refused.stderr
    assert "apt install condor" in refused.stderr
    assert "sublet annex setup --fetch" in refused.stderr
    assert "`release` in the section [annex]" in refused.stderr  # no release is made for a Debian without a number
    assert "sublet annex setup" in person.does("sublet", "doctor").stdout
    person.types("down")


@pytest.mark.engines
def test_a_release_with_another_checksum_is_refused_and_leaves_nothing(bare_site: Site, release: str) -> None:
    person = Person(bare_site, "wrong")
    settle_release(person, "0" * 64)
    refused = person.types("annex", "setup", "--fetch")
    assert refused.returncode == 1
    assert release in refused.stderr  # what it is, beside what it should be
    assert not [name for name in person.kept().iterdir() if "condor" in name.name]
    person.types("down")


@pytest.mark.engines
def test_a_release_is_fetched_unpacked_and_used_without_any_privilege(bare_site: Site, release: str) -> None:
    person = Person(bare_site, "right")
    settle_release(person, release)
    said = json.loads(person.typed("annex", "setup", "--fetch", "--json"))
    assert (said["stage"], said["release"]) == ("ready", f"/home/researcher/{person.home}/htcondor")
    submit = (f"{said['release']}/bin/condor_submit", "-terse", "/dev/stdin")
    words = ("sh", "-c", f'printf "executable=/bin/true\\nqueue\\n" | {" ".join(submit)}')
    assert person.did(*words, CONDOR_CONFIG=said["configuration"]).startswith("1.0")
    person.typed("annex", "setup", "--stop")
    person.types("down")


@pytest.fixture(scope="module")
def department(bare_site: Site) -> Site:
    """The machine has an access point of its own, run by root for everybody, without FEATURE:HPC_ANNEX."""
    config = DEPARTMENT.format(address=bare_site.facts["addresses"]["ap"])
    bare_site.on("ap", "sh", "-ec", 'printf "%s" "$1" >/etc/condor/config.d/10-department', "sh", config)
    bare_site.on("ap", "sh", "-ec", INSTALL)
    start_department(bare_site)
    return bare_site


def start_department(site: Site) -> None:
    site.on("ap", "sh", "-c", START)
    site.wait(
        lambda: "dept.example" in site.on("researcher@ap", "condor_status", "-schedd", "-af", "Name", check=False)
    )


def tokens(person: Person) -> dict[str, str]:
    """What a pilot of theirs is given: one token of the schedd's, one of their own collector's."""
    ground = json.loads(person.kept("ap", "ground.json").read_text())
    key = person.kept("ap", "passwords.d", PILOTS).read_bytes()
    owner = f"{person.user}@{ground['domain']}"
    mine = Signer(key, PILOTS, ground["domain"]).mint(owner, timedelta(hours=1), datetime.now(UTC), PILOT_MAY)
    words = ("condor_token_fetch", "-type", "SCHEDD", "-authz", "READ", "-authz", "WRITE", "-lifetime", "3600")
    return {"pilot": mine, "schedd": person.did(*words).strip()}


def submit(person: Person, line: str = "") -> str:
    person.did("sh", "-c", 'printf "%s" "$1" >job.sub', "sh", f"{line}\n{JOB}")
    return person.did("condor_submit", "-terse", "job.sub").partition(".")[0]


def queued(person: Person, cluster: str) -> bool:
    return bool(person.did("condor_q", "-af", "ClusterId", "-constraint", f"ClusterId=={cluster}"))


@pytest.mark.engines
def test_where_one_line_of_an_administrators_is_needed_it_is_printed_and_suffices(department: Site) -> None:
    strict = "SEC_DEFAULT_AUTHENTICATION_METHODS = FS"
    configure(department, strict)
    person, insistent = Person(department, "strict"), Person(department, "insistent")
    own = json.loads(person.typed("annex", "setup", "--json"))
    assert own["kind"] == "own"
    settle(insistent, 'use = "machine"')
    refused = insistent.types("annex", "setup")
    assert refused.returncode == 3
    line = refused.stderr.rstrip().rpartition("configuration: ")[2]
    assert line in own["note"]
    configure(department, strict, line)
    assert json.loads(insistent.typed("annex", "setup", "--json"))["kind"] == "machine"
    configure(department)
    for one in (person, insistent):
        one.typed("annex", "setup", "--stop")
        one.types("down")


def configure(site: Site, *lines: str) -> None:
    """Let the department's daemons have these lines of configuration too, from now on."""
    text = "".join(f"{line}\n" for line in lines)
    site.on("ap", "sh", "-ec", 'printf "%s" "$1" >/etc/condor/config.d/20-strict', "sh", text)
    site.on("ap", "condor_reconfig")


def test_the_machines_own_access_point_needs_no_administrator_and_runs_the_owners_jobs_alone(department: Site) -> None:
    rival = Person(department, user="rival")
    with at_ap(department, "guest") as person:
        person.typed("annex", "setup", "--system", department.name)
        ready: AccessPointView = person.client().do(access_point())
        assert (ready.kind, ready.owner) == ("machine", "researcher@dept.example")
        assert ready.configuration == ""
        line = 'MY.AnnexName = "mine"'
        not_named, named = submit(rival, line), submit(person, line)
        department.wait(lambda: "SubletTarget" in person.did("condor_q", named, "-af:r", "Requirements"), 60)
        assert "SubletTarget" not in rival.did("condor_q", not_named, "-af:r", "Requirements"), "only one's own jobs"
        for one, cluster in ((person, named), (rival, not_named)):
            one.did("condor_rm", cluster)
        theirs, mine = submit(rival), submit(person)
        with attached(department, "c1", "guest", ready, tokens(person)):
            department.wait(lambda: not queued(person, mine), 60)
            assert person.file(f"{mine}.out").read_text() == "c1\n"
            assert queued(rival, theirs)

            pid = department.on("ap", "cat", "/run/department.pid").strip()
            department.on("ap", "kill", "-QUIT", pid)
            department.wait(lambda: department.on("ap", "pgrep", "-u", "condor", "condor_", check=False) == "")
            start_department(department)
            person.client().do(set_up())
            again = submit(person)
            department.wait(lambda: not queued(person, again), 60)
            assert person.file(f"{again}.out").read_text() == "c1\n"
            assert queued(rival, theirs)
        assert rival.did("condor_q", "-af", "NumJobStarts", "-constraint", f"ClusterId=={theirs}").strip() == "0"
        person.typed("annex", "setup", "--stop")
        assert person.did("condor_q", "-af", "ClusterId") == ""


@pytest.fixture
def guest(department: Site) -> Iterator[Person]:
    """Someone at the department's machine who has an annex, beside somebody else who has none."""
    with at_ap(department, f"annexed{next(numbers)}") as person:
        assert person.signs_in() == 0, person.said
        wanted = ("--system", department.name, "--queue", "shared", *DETAILS)  # the queue of c2
        person.typed("annex", "create", "dept", *wanted, "--yes", "--wait")
        assert person.client().do(access_point()).kind == "machine"
        yield person
        person.types("annex", "shutdown", "dept")  # which may have ended by itself
        person.typed("annex", "setup", "--stop")


USAGE = "condor_userprio -l -all -allusers | sed -n 's/^\\(Name\\|AccumulatedUsage\\|ResourcesUsed\\)[0-9]* = //p'"


@pytest.mark.slurm
def test_submit_files_of_one_of_two_users_run_on_their_annex_and_nobody_is_charged(guest: Person) -> None:
    rival = Person(guest.site, user="rival")
    theirs = submit(rival)
    corpus = Corpus(guest, "dept", guest.did)
    corpus.submit()
    corpus.check()
    assert rival.did("condor_q", "-af", "NumJobStarts", "-constraint", f"ClusterId=={theirs}").strip() == "0"
    rival.did("condor_rm", theirs)
    used = [line for line in guest.did("sh", "-c", USAGE).splitlines() if not line.startswith('"')]
    assert {float(line) for line in used} <= {0.0}, "no negotiator has seen these jobs"


@pytest.mark.soak
@pytest.mark.slurm
def test_the_job_of_a_node_that_is_lost_waits_again_when_its_lease_is_over(guest: Person) -> None:
    """The department's schedd is set up as HTCondor is: by itself it would notice after more than six minutes."""
    guest.typed("annex", "add", "dept", "--queue", "compute", *DETAILS, "--yes", "--wait")  # the queue of c1
    silent, crashed = submit_to_node(guest, "c1"), submit_to_node(guest, "c2")
    jobs = ("condor_q", silent, crashed, "-af", "ClusterId", "JobStatus", "JobLeaseDuration")
    told = "time() - JobCurrentStartExecutingDate > 20"  # each has told of itself by then
    guest.site.wait(lambda: guest.did(*jobs[:3], "-af", told).split() == ["true", "true"], 90)
    assert guest.did(*jobs).splitlines() == [f"{silent} 2 120", f"{crashed} 2 120"]
    guest.site.pull_cable("c1")
    guest.site.crash("c2")
    began, after = time.monotonic(), dict[str, float]()

    def are_back() -> bool:
        for cluster, state, _ in map(str.split, guest.did(*jobs).splitlines()):
            if state == "1":
                after.setdefault(cluster, time.monotonic() - began)
        return len(after) == 2

    guest.site.wait(are_back, 300)
    guest.site.put_cable("c1")
    guest.site.boot("c2")
    guest.did("condor_rm", silent, crashed)
    print(f"the job of a silent node waited again after {after[silent]:.0f} s, of a crashed one {after[crashed]:.0f} s")
    assert all(60 <= seconds <= 180 for seconds in after.values()), "two minutes from when its node was last heard of"


def submit_to_node(person: Person, node: str) -> str:
    """Submit a job for their annex that runs for long, on one node; its cluster."""
    lines = ("executable = /bin/sleep", "arguments = 900", "transfer_executable = false")
    person.file("lost.sub").write_text("\n".join((*lines, f'requirements = regexp("^{node}[.]", Machine)', "queue\n")))
    [cluster] = json.loads(person.typed("job", "submit", "lost.sub", "--annex", "dept", "--json"))["clusters"]
    return str(cluster)
