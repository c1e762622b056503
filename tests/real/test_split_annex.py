"""An annex at a site whose nodes reach nothing: pilots in two halves, joined by the one login, in life and death."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sublet.client import Session
from tests.access_points import Person, at_ap
from tests.real import images
from tests.serving import eventually
from tests.sites import HASTY, Site, running

NAME, WHERE = "far", "annex-far"
SITE = ("--base", "box", "--ap", "--nodes", "4", *HASTY)  # no --nat: its nodes have no way out
LIFE = ("--lifetime", "30m", "--idle", "20m")


@pytest.fixture(scope="module")
def person(swept: None) -> Iterator[Person]:
    """Someone at `ap` who is signed in, and has an annex of two nodes."""
    with running(*SITE) as site, at_ap(site, "sublet") as one:
        before = left_on(site)
        one.starts_service()
        assert one.signs_in() == 0, one.said
        one.typed("system", "probe", site.name, "--save")
        wanted = ("--system", site.name, "--queue", "compute", "--nodes", "2", *LIFE)
        one.typed("annex", "create", NAME, *wanted, "--yes", "--wait")
        site.wait(lambda: WHERE in names(one))
        yield one
        one.types("annex", "shutdown", NAME)
        site.wait(lambda: not site.on("ctl", "squeue", "--noheader").strip(), 60)
        eventually(
            lambda: not set(left_on(site)) - set(before), f"a clean site: {set(left_on(site)) - set(before)}", 60
        )
        site.wait(lambda: not one.did("sh", "-c", 'ls "$SUBLET_HOME"/splits').split(), 60)
        assert "condor_startd" not in one.did("ps", "-eo", "comm")
        one.types("annex", "setup", "--stop")


ON_LOGIN = "find /home/researcher /scratch /tmp /var/tmp -user researcher 2>/dev/null; exit 0"
ON_NODE = "find /tmp /var/tmp -user researcher; ps -u researcher -o comm=; exit 0"


def left_on(site: Site) -> list[str]:
    """What there is of the person on the site: files, processes, jobs."""
    found = [f"login {line}" for line in site.on("login", "sh", "-c", ON_LOGIN).splitlines()]
    for node in ("c1", "c2", "c3", "c4"):
        found += [f"{node} {line}" for line in site.on(node, "sh", "-c", ON_NODE, check=False).splitlines()]
    lost = "c1 /tmp/sublet-pilot."  # a node that loses its power keeps its disk; the next pilot there sweeps it
    return [line for line in found if ("/.sublet" not in line or "/sessions/" in line) and not line.startswith(lost)]


def names(person: Person) -> set[str]:
    return {platform.name for platform in person.client().platforms() if platform.nodes}


def status(person: Person) -> dict[str, Any]:
    lease: dict[str, Any] = json.loads(person.typed("annex", "status", NAME, "--json"))["leases"][0]
    return lease


def ask(person: Person, **wishes: Any) -> Session:
    offers = person.client().ask(**({"platform": WHERE, "time": "5m", "memory": "64MiB"} | wishes))
    assert offers.result == "YES", offers.reasons
    return offers[0].accept()


def runs(person: Person, session: Session) -> None:
    person.site.wait(lambda: session.refresh().phase == "RUNNING", 60)


def condor(person: Person, *words: str) -> str:
    return person.did(*words, CONDOR_CONFIG=f"/home/{person.user}/{person.home}/ap/tools.conf")


def job(person: Person, session: Session, attribute: str) -> str:
    """What the queue says of a session's job."""
    words = ("-constraint", f'SubletSession == "{session.id}"', "-af", attribute)
    return condor(person, "condor_q", *words).strip()


def test_its_nodes_reach_nothing_and_it_is_an_annex_like_any_other(person: Person) -> None:
    site = person.site
    assert "default" not in site.on("c1", "ip", "route")
    address = site.facts["addresses"]["ap"]
    assert "unreachable" in site.on("c1", "sh", "-c", f"ip route get {address} 2>&1; exit 0")
    lease = status(person)
    assert (lease["state"], [node["state"] for node in lease["nodes"]]) == ("up", ["up", "up"])
    assert [node["node"] for node in lease["nodes"]] == ["c1", "c2"]
    cores = int(site.on("ctl", "scontrol", "show", "node", "c1").split("CPUTot=")[1].split()[0])
    assert [node["cores"] for node in lease["nodes"]] == [cores, cores]


def test_sessions_of_every_kind_run_there(person: Person) -> None:
    images.docker_archive(person.file("image.tar"), Entrypoint=None)
    person.file("brought.txt").write_text("brought")
    odd = 'it\'s $(x) "odd"\n✓'
    command = ask(
        person,
        run=["sh", "-c", 'cat data/*/brought.txt; hostname >&2; printf "%s" "$1" >odd; exit 3', "sh", odd],
        data=[f"file:///home/{person.user}/brought.txt"],
    )
    image = f"file:///home/{person.user}/image.tar"
    contained = ask(person, image=image, run=["sh", "-c", "echo contained; ls /home"], memory="512MiB")
    tasks = {"grid": {"x": list(range(12))}, "template": ["sh", "-c", "echo task {x}; test {x} != 7"], "parts": 2}
    bag = ask(person, bag=tasks)
    command.wait(120)
    assert (command.view.end.kind, command.view.end.code) == ("exited", 3)
    assert "".join(command.logs()) == "brought"
    assert "".join(command.logs(stream="stderr")).strip() in ("c1", "c2")
    assert command.result("odd").text() == odd
    contained.wait(120)
    assert (contained.phase, "".join(contained.logs())) == ("COMPLETED", "contained\n"), contained.view.end
    bag.wait(120)
    lines = [json.loads(line) for line in bag.result("tasks.jsonl").text().splitlines()]
    assert sorted((line["task"], line["code"]) for line in lines) == [(x, int(x == 7)) for x in range(12)]


def test_what_it_prints_is_seen_while_it_runs_and_a_cancel_leaves_nothing_running(person: Person) -> None:
    session = ask(person, run=["sh", "-c", "echo $$; hostname; exec sleep 600"])
    runs(person, session)
    eventually(lambda: "".join(session.logs()).count("\n") == 2, "its first lines", 60)
    pid, node = "".join(session.logs()).split()
    assert person.site.on(node, "cat", f"/proc/{pid}/comm").strip() == "sleep"
    session.cancel()
    person.site.wait(lambda: session.refresh().phase == "CANCELLED", 60)
    person.site.wait(lambda: not person.site.on(node, "sh", "-c", f"cat /proc/{pid}/comm; exit 0").strip(), 30)


def test_a_lost_login_costs_nothing_but_time_and_status_says_so(person: Person) -> None:
    session = ask(person, run=["sh", "-c", "echo begun; while [ ! -e /tmp/go ]; do sleep 0.2; done; hostname"])
    runs(person, session)
    eventually(lambda: "begun" in "".join(session.logs()), "its first line", 60)
    person.typed("system", "logout", person.site.name)
    eventually(lambda: "sublet system login" in status(person)["why"], "a status that says so", 60)
    for node in ("c1", "c2"):
        person.site.on(node, "touch", "/tmp/go")
    waiting = ask(person, run=["hostname"])
    assert job(person, session, "JobStatus") == "2"
    assert person.signs_in() == 0, person.said
    session.wait(120)
    waiting.wait(120)
    assert (session.phase, waiting.phase) == ("COMPLETED", "COMPLETED")
    assert job(person, session, "NumJobStarts") in ("", "1")
    for node in ("c1", "c2"):
        person.site.on(node, "rm", "/tmp/go")


def far_half(person: Person, node: str) -> str:
    """The process of the far half on a node."""
    look = "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline | grep -q [f]ar.py && echo ${p#/proc/}; done; exit 0"
    found = person.site.on(node, "sh", "-c", look)
    return found.split()[-1]


def description(person: Person, script: str, count: int) -> str:
    """Jobs of HTCondor's own for the annex, which may run again elsewhere."""
    found = json.loads(person.typed("annex", "status", NAME, "--json"))["id"]
    owner = json.loads(person.typed("annex", "setup", "--show", "--json"))["owner"]
    person.file("loop.sh").write_text(f"#!/bin/sh\n{script}\n")
    person.file("loop.sh").chmod(0o755)
    text = f"""executable = loop.sh
request_memory = 16M
request_disk = 1M
should_transfer_files = yes
job_lease_duration = 60
+SubletTarget = "{found}"
+SubletSupplier = "{owner}"
requirements = TARGET.SubletAnnex =?= MY.SubletTarget
log = jobs.log
queue {count}
"""
    person.file("jobs.sub").write_text(text)
    return condor(person, "condor_submit", "-terse", "jobs.sub").partition(".")[0]


def test_a_far_half_that_dies_is_withdrawn_and_its_jobs_go_elsewhere(person: Person) -> None:
    site = person.site
    cores = status(person)["nodes"][0]["cores"]
    cluster = description(person, "exec tail -f /dev/null", 2 * cores)
    states = lambda: condor(person, "condor_q", cluster, "-af", "JobStatus").split()  # noqa: E731
    site.wait(lambda: states() == ["2"] * (2 * cores), 90)
    site.on("c2", "kill", "-9", far_half(person, "c2"))
    site.wait(lambda: states().count("1") == cores, 30)
    assert states().count("2") == cores
    site.wait(lambda: [node["state"] for node in status(person)["nodes"]] == ["up", "dead"], 30)
    slots = condor(person, "condor_status", "-af", "SubletNode").split()
    assert set(slots) == {"0"}
    condor(person, "condor_rm", cluster)
    for node in ("c1", "c2"):
        site.wait(lambda: "tail" not in site.on(node, "ps", "-u", "researcher", "-o", "comm=", check=False), 30)  # noqa: B023


def test_a_node_that_is_lost_ends_with_its_lease(person: Person, tmp_path: Path) -> None:
    site = person.site
    cluster = description(person, "exec sleep 600", 1)
    site.wait(lambda: condor(person, "condor_q", cluster, "-af", "JobStatus").split() == ["2"], 60)
    site.crash("c1")
    site.wait(lambda: condor(person, "condor_q", cluster, "-af", "JobStatus").split() == ["1"], 30)
    site.wait(lambda: status_or_none(person) is None, 90)
    condor(person, "condor_rm", cluster)
    site.boot("c1")
    site.wait(lambda: not site.on("ctl", "squeue", "--noheader").strip(), 60)


def status_or_none(person: Person) -> dict[str, Any] | None:
    leases = json.loads(person.typed("annex", "status", NAME, "--json"))["leases"]
    return leases[0] if leases else None
