"""Sessions of every kind on an annex: real pilots behind NAT, real HTCondor, the service of an ordinary user."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from sublet.annexes.calls.jobs import jobs
from sublet.booking.calls.platforms import check
from sublet.booking.calls.results import results
from sublet.client import Session
from tests.access_points import Person
from tests.passages import passage
from tests.real import images
from tests.real.notebooks import bring_papermill, write_notebook
from tests.registries import registry

pytestmark = [pytest.mark.htcondor, pytest.mark.slurm, pytest.mark.engines]

WHERE = "annex-work"
# The schedd, whose id is printed, and then the shadows, which may end by themselves meanwhile.
KILL = """
for pid in $(pgrep -u researcher -x condor_schedd); do kill -9 "$pid" && echo "$pid"; done
for pid in $(pgrep -u researcher -x condor_shadow); do kill -9 "$pid" || :; done
"""
DIRECT = """\
executable = /bin/true
transfer_executable = False
request_memory = 16M
request_disk = 1M
queue
"""


@pytest.fixture(scope="module")
def annex(person: Person) -> Iterator[str]:
    """An annex of one node, as a platform."""
    bring_papermill(
        person.site, *(name for name in person.site.facts["machines"] if name.startswith("c") and name != "ctl")
    )
    words = ("--system", person.site.name, "--queue", "compute", "--nodes", "1", "--lifetime", "30m", "--idle", "20m")
    person.typed("annex", "create", "work", *words, "--yes", "--wait")
    person.site.wait(lambda: WHERE in names(person))
    yield WHERE
    person.types("annex", "shutdown", "work")
    person.types("annex", "setup", "--stop")


@pytest.fixture(autouse=True)
def nothing_runs_on(person: Person) -> Iterator[None]:
    """What a test that failed left running is stopped before the next one needs the nodes."""
    yield
    for session in person.client().sessions(platform=WHERE, active=True):
        if session.phase != "RELEASING":
            session.cancel()
        session.wait(60)


def names(person: Person) -> set[str]:
    """The platforms that have nodes."""
    return {platform.name for platform in person.client().platforms() if platform.nodes}


def run(person: Person, **wishes: Any) -> Session:
    """Take the offer of the annex."""
    offers = person.client().ask(**({"platform": WHERE, "time": "5m", "memory": "64MiB"} | wishes))
    assert offers.result == "YES", offers.reasons
    return offers[0].accept()


def runs(person: Person, session: Session) -> None:
    """Wait until it runs."""
    person.site.wait(lambda: session.refresh().phase == "RUNNING", 60)


def test_an_annex_keeps_every_promise_of_a_platform(person: Person, annex: str) -> None:
    findings = person.client().do(check(annex)).items
    assert [f"{one.rule} {one.detail}" for one in findings if not one.ok] == []
    assert len(findings) >= 13


def test_one_ask_offers_the_annex_beside_everything_else(person: Person, annex: str) -> None:
    offers = person.client().ask(run=["true"], time="5m")
    found = {offer.platform: offer for offer in offers}
    assert {"here", person.site.name, annex} <= found.keys()
    assert found[annex].view.terms.kind == "predicted"
    (reason,) = person.client().ask(run=["true"], time="5h", platform=annex).reasons
    assert reason.field == "schedule.requested.duration"
    assert "The annex work is there for" in reason.message


def test_commands_containers_and_bags_run_as_jobs(person: Person, annex: str) -> None:
    images.docker_archive(person.file("image.tar"), Entrypoint=None)
    person.file("brought.txt").write_text("brought")
    data = [f"file:///home/{person.user}/brought.txt"]
    odd = 'it\'s $(x) "odd"\n✓'
    command = run(
        person, run=["sh", "-c", 'cat brought.txt; printf "%s" "$1" >odd; mkdir -p a/b; exit 3', "sh", odd], data=data
    )
    archive = f"file:///home/{person.user}/image.tar"
    contained = run(
        person, image=archive, memory="512MiB", run=["sh", "-c", "echo contained; ls /home; echo left >left"]
    )
    tasks = {"grid": {"x": list(range(12))}, "template": ["sh", "-c", "echo task {x}; test {x} != 7"], "parts": 2}
    bag = run(person, bag=tasks)

    command.wait(120)
    assert (command.view.end.kind, command.view.end.code) == ("exited", 3)
    assert "".join(command.logs()) == "brought"
    assert command.result("odd").text() == odd
    left = person.client().do(results(command.id))
    assert ([file.path for file in left.items], left.folders) == (["odd"], ("a/b",)), "what was brought is no result"
    contained.wait(120)
    assert (contained.phase, "".join(contained.logs())) == ("COMPLETED", "contained\n"), contained.view.end
    assert contained.result("left").text() == "left\n"
    mine = ("-constraint", f'SubletSession == "{contained.id}"', "-af", "TransferInputStats.CedarSizeBytesTotal")
    assert int(person.condor("condor_history", *mine)) < person.file("image.tar").stat().st_size, "it was kept there"
    assert "preparing the image" not in "".join(contained.logs(stream="stderr")), "it was made there before"
    bag.wait(120)
    lines = [json.loads(line) for line in bag.result("tasks.jsonl").text().splitlines()]
    assert sorted((line["task"], line["code"]) for line in lines) == [(x, int(x == 7)) for x in range(12)]
    assert {line["part"] for line in lines} == {0, 1}
    assert bag.view.end.code == 1
    assert "11 succeeded, 1 failed" in "".join(bag.logs())


def test_an_image_of_a_registry_is_streamed_past_the_service_once_for_all_sessions(person: Person, annex: str) -> None:
    images.oci_archive(person.file("shop.tar"), Entrypoint=[], Env=["PATH=/bin", "FROM=shop"])
    with registry() as shop, passage(person.site, "ap", shop.server_port):
        shop.push("tools/annex", "1", person.file("shop.tar"))
        for _ in range(2):
            session = run(
                person, image=f"{shop.address}/tools/annex:1", memory="512MiB", run=["sh", "-c", "echo from $FROM"]
            )
            session.wait(180)
            assert "".join(session.logs()) == "from shop\n", session.view.end
            assert "preparing the image" not in "".join(session.logs(stream="stderr")), "it was made there before"
        assert shop.fetched() == 2, "its configuration and its layer, once"
    size = person.file("shop.tar").stat().st_size
    mine = ("-constraint", f'SubletSession == "{session.id}"', "-af", "TransferInputStats.CedarSizeBytesTotal")
    assert int(person.condor("condor_history", *mine)) < size, "it does not travel with the job"
    assert not list(person.kept("images").glob("kept/*/content")), "the service's disk has none"
    assert not list(person.kept("platforms", annex, "sessions", session.id).glob("shared/*"))


def test_a_notebook_runs_as_a_job(person: Person, annex: str) -> None:
    (tools,) = (platform.tools for platform in person.client().platforms() if platform.name == annex)
    if "papermill" not in tools:
        pytest.skip("papermill can't be had for the Python of the site")
    write_notebook(person.file("book.ipynb"), "n = 1", "print(n * 6)", "open('made.txt', 'w').write('made')")
    book = run(person, notebook=f"file:///home/{person.user}/book.ipynb", parameters={"n": 7}, memory="512MiB")
    book.wait(120)
    assert book.phase == "COMPLETED", "".join((*book.logs(), *book.logs(stream="stderr")))
    assert "42" in "".join(book.logs())
    assert book.result("made.txt").text() == "made"


def test_a_service_that_dies_after_it_submitted_finds_the_job_again(person: Person, annex: str) -> None:
    person.typed("down")
    person.starts_service(SUBLET_CRASH_AT="submit.after")
    session = run(person, run=["sh", "-c", "echo once; sleep 1"])
    socket = person.kept("run", "service.json")
    pid = json.loads(socket.read_text())["pid"]
    person.site.wait(lambda: not person.runs(pid), 60)
    person.starts_service()
    again = person.client().session(session.id).wait(120)
    assert (again.phase, "".join(again.logs())) == ("COMPLETED", "once\n")
    constraint = f'SubletSession == "{session.id}"'
    assert person.condor("condor_history", "-constraint", constraint, "-af", "NumJobStarts").split() == ["1"]
    assert person.condor("condor_q", "-constraint", constraint, "-af", "ClusterId").split() == []


# An HTCondor whose condor_submit submits, and then can't say so.
MUTE = """
mkdir -p mute/sbin mute/bin && ln -sfn /usr/lib mute/lib && ln -sfn /usr/libexec mute/libexec
ln -sf /usr/bin/condor_* mute/bin/ && ln -sf /usr/sbin/condor_* mute/sbin/
rm mute/bin/condor_submit && cat >mute/bin/condor_submit <<'END' && chmod 700 mute/bin/condor_submit
#!/bin/sh
/usr/bin/condor_submit "$@" >/dev/null
echo "connection closed" >&2
exit 1
END
"""
CUT_OFF = """
import asyncio, json, sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from sublet.booking.model.job import Job, Program
from sublet.booking.model.shape import Amounts, Shape
from sublet.errors import SubletError
from sublet.platforms.htcondor.platform import HTCondor

async def main():
    values = json.loads(Path(sys.argv[1]).read_text()) | {"programs": ""}
    values.pop("kind")
    platform = HTCondor(name="cut", **values)
    await platform.open(Path("cut").absolute())
    until = datetime.now(UTC) + timedelta(minutes=1)
    job = Job(Program(("sh", "-c", "echo once; sleep 2")), Amounts(Shape(1, 64 << 20)), (), until, timedelta(0))
    try:
        print(await platform.find(sys.argv[2]), await platform.submit(job, sys.argv[2]))
    except SubletError as error:
        print(error.code)

asyncio.run(main())
"""


def test_an_answer_that_was_lost_is_found_and_the_job_is_one_job(person: Person, annex: str) -> None:
    key = f"cut-{uuid4()}"
    settings = f"/home/{person.user}/{person.home}/platforms/{annex}/platform.json"
    person.did("sh", "-c", MUTE)
    mute = f"/home/{person.user}/mute/sbin:/usr/local/bin:/usr/bin:/bin"
    words = ("python3", "-c", CUT_OFF, settings, key)
    assert person.did(*words, PATH=mute).split() == ["platform-unreachable"]
    assert person.did(*words).split() == [key, key], "found before it is submitted again"
    constraint = f'SubletSession == "{key}"'
    person.site.wait(lambda: person.file("cut", "sessions", key, "stdout").read_text() == "once\n", 60)
    person.site.wait(lambda: not person.condor("condor_q", "-constraint", constraint, "-af", "ClusterId").split(), 60)
    assert len(person.condor("condor_history", "-constraint", constraint, "-af", "ClusterId").split()) == 1


def test_what_is_stopped_brings_back_what_it_had(person: Person, annex: str) -> None:
    session = run(person, run=["sh", "-c", "echo half >half; echo began; sleep 300"])
    person.site.wait(lambda: "".join(session.logs()) == "began\n", 60)
    assert session.pause().startswith("stopped")
    assert session.resume().startswith("continued")
    session.cancel()
    session.wait(60)
    assert (session.phase, session.view.end.by) == ("CANCELLED", "researcher")
    assert session.result("half").text() == "half\n"


def test_a_session_outlives_its_access_point(person: Person, annex: str) -> None:
    session = run(person, run=["sh", "-c", "for x in 1 2 3 4 5 6 7 8; do echo $x; sleep 1; done"])
    person.site.wait(lambda: "".join(session.logs()) == "1\n2\n", 60)
    assert person.did("sh", "-c", KILL).split(), "the schedd was there"
    session.wait(120)
    assert (session.phase, "".join(session.logs())) == ("COMPLETED", "".join(f"{x}\n" for x in range(1, 9)))


def test_a_busy_annex_is_offered_when_what_runs_ends(person: Person, annex: str) -> None:
    ((node,),) = (platform.nodes for platform in person.client().platforms() if platform.name == annex)
    busy = run(person, run=["sleep", "300"], cores=node.cores, time="6m")
    runs(person, busy)
    (offer,) = person.client().ask(run=["true"], platform=annex, time="1m", memory="64MiB")
    wait = (offer.view.start - busy.refresh().view.started).total_seconds()
    assert 350 < wait < 370
    busy.cancel()


def test_an_annex_that_is_closed_to_jobs_is_booked(person: Person, annex: str) -> None:
    (offer,) = person.client().ask(run=["true"], platform=annex, time="1m", memory="64MiB")
    assert offer.view.terms.kind == "predicted"
    assert "at booked times" in person.typed("annex", "close", "work", "--to-jobs")
    ((node,),) = (platform.nodes for platform in person.client().platforms() if platform.name == annex)
    whole = run(person, run=["sh", "-c", "echo whole; sleep 2"], cores=node.cores, time="1m")
    assert (whole.view.terms.kind, whole.view.nodes) == ("booked", (node.name,))
    later = run(person, run=["echo", "later"], cores=node.cores, time="1m")
    assert later.view.start >= whole.view.until
    whole.wait(90)
    assert (whole.phase, "".join(whole.logs())) == ("COMPLETED", "whole\n"), whole.view.end
    person.file("direct.sub").write_text(DIRECT)
    person.typed("job", "submit", f"/home/{person.user}/direct.sub", "--annex", "work")
    later.wait(120)  # what ran before it ended early, and it named no time of its own
    assert (later.phase, "".join(later.logs())) == ("COMPLETED", "later\n"), later.view.end
    (direct,) = json.loads(person.typed("job", "list", "--json"))["items"]
    assert direct["state"] == "idle"
    assert "closed to jobs" in person.typed("job", "explain", direct["id"])
    person.typed("annex", "close", "work")
    person.site.wait(lambda: not person.client().do(jobs()).items, 60)


def test_when_the_annex_ends_its_sessions_say_so_and_their_results_stay(person: Person, annex: str) -> None:
    before = run(person, run=["sh", "-c", "echo kept >kept"]).wait(60)
    session = run(person, run=["sh", "-c", "echo began; sleep 300"])
    runs(person, session)
    person.typed("annex", "shutdown", "work")
    session.wait(60)
    assert session.view.end.kind == "node-lost"
    assert "not started again" in session.view.end.detail
    assert "".join(session.logs()) == "began\n"
    assert before.result("kept").text() == "kept\n"
    person.site.wait(lambda: annex not in {offer.platform for offer in person.client().ask(run=["true"], time="1m")})
    (reason,) = person.client().ask(run=["true"], platform=annex, time="1m").reasons
    assert "has no node now" in reason.message
