"""What goes wrong on a real site, and is told as it was: nothing runs twice, nothing is made up, nothing is lost."""

import asyncio
import contextlib
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from sublet.app import open_service
from sublet.booking.model.job import Job, State
from sublet.booking.model.request import Compute, Executable, Range, Request
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.session import EndKind
from sublet.booking.model.shape import Shape
from sublet.kernel.errors import DiskFull, LoginNeeded, PlatformRefused, PlatformUnreachable
from sublet.kernel.settings import Settings
from sublet.platforms.slurm.platform import Slurm
from tests.contract.services import ME, ask, over, reach
from tests.real.clusters import (
    MEMORY,
    SOON,
    Cluster,
    a_bag,
    ended,
    logged_in,
    running,
    sign_in,
    small,
    ssh_options,
    until,
)
from tests.sites import Site
from tests.sites import running as site_running

pytestmark = pytest.mark.anyio
USABLE = {"idle", "mixed", "allocated", "completing"}  # states of nodes
PREEMPTING = ("--slurm", "PreemptType=preempt/qos", "--slurm", "PreemptMode=CANCEL")
OPTIONS = ("--accounts", "--cgroups", "--slurm", "MinJobAge=2", "--home-size", "60m", *PREEMPTING)
SLOW_SBATCH = """#!/bin/sh
case $* in *--test-only*) ;; *) touch ~/submitting; sleep 2 ;; esac
exec /usr/bin/sbatch "$@"
"""

LATE_SQUEUE = """#!/bin/sh
for word; do
    shift
    case $word in --jobs=*) ;; *) set -- "$@" "$word" ;; esac
done
/usr/bin/squeue "$@" | sed 's/^{ours}\\([^0-9]\\)/{other}\\1/; s/^{ours}$/{other}/'
"""


@pytest.fixture(scope="module")
def broken(swept: None) -> Iterator[Site]:
    """A site for faults: it forgets jobs after seconds, has accounting, memory limits, and a small home."""
    with site_running(*OPTIONS) as site:
        yield site


@pytest.fixture(autouse=True)
def all_nodes(broken: Site) -> Iterator[None]:
    """Each test has all nodes, whatever one before did to them, or a busy machine to their daemons; one that fails
    shows them."""

    def list_unusable() -> set[str]:
        rows = map(str.split, broken.on("ctl", "sinfo", "-h", "-N", "-o", "%N %T").splitlines())
        return {node for node, state in rows if state not in USABLE}

    for node in list_unusable():
        broken.on("ctl", "scontrol", "update", f"nodename={node}", "state=resume", check=False)
    broken.wait(lambda: not list_unusable(), 60)
    yield
    print(broken.on("ctl", "sinfo", "-N", "-o", "%N %P %T %E"), broken.on("ctl", "squeue"), sep="\n")


@pytest.fixture(scope="module")
def cluster(broken: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    home = tmp_path_factory.mktemp("h")
    with logged_in(broken, home):
        yield Cluster(broken, home)


def key() -> str:
    return f"test-{uuid4()}"


def jobs_named(site: Site, name: str) -> list[str]:
    """All jobs that Slurm ever had under this name."""
    return site.on("ctl", "sacct", "-X", "-n", "-P", "-S", "now-1days", "-o", "jobid", f"--name={name}").split()


def save_as_running(site: Site, name: str) -> None:
    """Wait until the controller has saved that this job runs: one that crashes before starts it again after its boot,
    and the node, which still has it, is drained ("Duplicate jobid")."""
    number = site.on("ctl", "squeue", "-h", "-o", "%A", f"--name={name}").strip()
    mark = f"running-{name}"
    site.on("ctl", "scontrol", "update", f"JobId={number}", f"AdminComment={mark}")
    site.wait(lambda: bool(site.on("ctl", "grep", "-l", mark, "/var/spool/slurmctld/job_state", check=False)))


async def end(slurm: Slurm, job: str) -> tuple[EndKind, int | None, str]:
    state = await ended(slurm, job)
    assert state.end
    return state.end.kind, state.end.code, state.end.by


async def test_a_job_that_took_too_much_memory_is_out_of_memory(cluster: Cluster) -> None:
    slurm = await cluster.open(queue="shared")
    script = "x = bytearray(300 << 20); print(len(x))"
    job = await slurm.submit(small("python3", "-c", script, shape=Shape(1, 64 << 20)), key())
    assert (await end(slurm, job))[0] is EndKind.OUT_OF_MEMORY
    await slurm.clean(job)


async def test_each_end_is_told_as_it_was(cluster: Cluster) -> None:
    """Side by side, because Slurm takes its time to notice and to forget."""
    async with asyncio.TaskGroup() as group:
        for fault in (power_is_lost, the_limit_is_reached, the_job_is_forgotten):
            group.create_task(fault(cluster))


async def power_is_lost(cluster: Cluster) -> None:
    """Under a job, and under one part of two."""
    slurm = await cluster.open("power")
    job = await slurm.submit(small("sleep", "200", seconds=240), key())
    await running(slurm, job)
    bag = await slurm.submit(await two_parts(slurm, name := key()), name)
    await until(slurm, bag, lambda state: "of 2 parts 2 run" in state.condition)
    work = Path(cluster.site.facts["home"]) / "researcher/.sublet/sessions" / bag / "work"
    await asyncio.to_thread(cluster.site.wait, lambda: (work / "begun.0").exists() and (work / "begun.1").exists())
    rows = cluster.site.on("ctl", "squeue", "-h", "-o", "%K %N", f"--name={job},{bag}").splitlines()
    nodes = {part: node for part, node in map(str.split, rows) if part != "0"}
    for node in nodes.values():
        cluster.site.crash(node)
    (work / "go").touch()
    assert (await end(slurm, job))[0] is EndKind.NODE_LOST
    state = await ended(slurm, bag)
    assert state.end
    assert state.end.kind is EndKind.NODE_LOST
    assert state.end.detail.startswith("part 1 of 2: node-lost")
    assert re.search(r"38 succeeded, 0 failed, 0 tried again; 2 have no result: (0-1|2-3)$", state.end.detail)
    for node in nodes.values():
        cluster.site.boot(node)
    await slurm.clean(job)
    await slurm.clean(bag)


async def two_parts(slurm: Slurm, name: str) -> Job:
    """A bag whose parts have a node each; the first tasks wait for a word, the second part's for ever."""
    script = ": >begun.$SUBLET_PART; until [ -e go ]; do sleep 0.1; done; [ $SUBLET_PART = 0 ] || sleep 200"
    made = await a_bag(slurm, name, 2, seconds=240, tasks=[["sh", "-c", script]] * 40)
    return replace(made, scheduler=SchedulerOptions(queue="compute"))


async def the_limit_is_reached(cluster: Cluster) -> None:
    slurm = await cluster.open("limit", queue="shared")
    job = await slurm.submit(small("sleep", "100", seconds=120), key())
    await running(slurm, job)
    number = cluster.site.on("ctl", "squeue", "-h", "-o", "%A", f"--name={job}").strip()
    cluster.site.on("ctl", "scontrol", "update", f"JobId={number}", "EndTime=now+1")
    assert (await end(slurm, job))[0] is EndKind.TIMEOUT
    await slurm.clean(job)


async def the_job_is_forgotten(cluster: Cluster) -> None:
    """Its own record tells, and accounting says who stopped what was stopped."""
    first = await cluster.open("forgets", queue="shared")
    programs = (("sh", "-c", "exit 4"), ("no-such-program",), ("sleep", "100"))
    jobs = [await first.submit(small(*program), key()) for program in programs]
    await running(first, jobs[2])
    await first.close()  # and nobody looks any more
    cluster.site.on("ctl", "scancel", f"--name={jobs[2]}")

    def forgotten() -> bool:
        return not cluster.site.on("ctl", "squeue", "-h", "-t", "all", f"--name={','.join(jobs)}").strip()

    await asyncio.to_thread(cluster.site.wait, forgotten)
    second = await cluster.open("forgets", queue="shared")
    assert await end(second, jobs[0]) == (EndKind.EXITED, 4, "")
    assert (await end(second, jobs[1]))[0] is EndKind.NOT_STARTED
    assert await end(second, jobs[2]) == (EndKind.CANCELLED, None, "uid 0 on the system itself")
    for job in jobs:
        await second.clean(job)


async def test_a_job_whose_node_is_given_to_another_is_preempted(cluster: Cluster) -> None:
    slurm = await cluster.open()
    job = await slurm.submit(small("sleep", "200", seconds=240), key())
    await running(slurm, job)
    cluster.site.on("ctl", "sacctmgr", "-iQ", "modify", "qos", "short", "set", "preempt=normal")
    node = cluster.site.on("ctl", "squeue", "-h", "-o", "%N", f"--name={job}").strip()
    words = ("--partition=debug", "--qos=short", "--exclusive", f"--nodelist={node}", "--output=/dev/null")
    cluster.site.on("researcher@login", "sbatch", *words, "--wrap=true")
    state = await ended(slurm, job)
    assert state.end
    assert (state.end.kind, state.end.by) == (EndKind.PREEMPTED, "")
    assert state.end.detail == "Slurm gave its nodes to a job of higher priority"
    await slurm.clean(job)


async def test_a_full_disk_refuses_a_job_and_still_has_room_for_an_end(cluster: Cluster) -> None:
    slurm = await cluster.open(queue="shared")
    await slurm.survey()
    script = "until [ -e go ]; do sleep 0.1; done; head -c 80000000 /dev/zero >fill; exit 5"
    job = await slurm.submit(small("sh", "-c", script), key())
    await running(slurm, job)
    home = Path(cluster.site.facts["home"]) / "researcher"
    (home / ".sublet/sessions" / job / "work/go").touch()
    assert (await end(slurm, job))[:2] == (EndKind.EXITED, 5)
    name = key()
    with pytest.raises(DiskFull):
        await slurm.submit(small("true", files={"big": bytes(1 << 20)}), name)
    await slurm.clean(job)
    assert await slurm.find(name) is None
    assert await end(slurm, await slurm.submit(small("true"), name)) == (EndKind.EXITED, 0, "")
    await slurm.clean(name)


async def test_a_controller_that_is_away_is_waited_for(cluster: Cluster) -> None:
    slurm = await cluster.open(queue="shared")
    job = await slurm.submit(small("sh", "-c", "until [ -e go ]; do sleep 0.1; done; exit 6"), key())
    await running(slurm, job)
    await asyncio.to_thread(save_as_running, cluster.site, job)
    cluster.site.crash("ctl")
    (Path(cluster.site.facts["home"]) / "researcher/.sublet/sessions" / job / "work/go").touch()
    with pytest.raises(PlatformUnreachable):
        await slurm.submit(small("true"), key())
    cluster.site.boot("ctl")

    async def told() -> tuple[EndKind, int | None, str]:
        while True:
            try:
                return await end(slurm, job)
            except PlatformUnreachable:
                await asyncio.sleep(0.2)

    async with asyncio.timeout(60):
        assert await told() == (EndKind.EXITED, 6, "")
    await slurm.clean(job)


async def test_an_answer_that_was_lost_is_found_and_the_job_is_one_job(
    broken: Site, tmp_path_factory: pytest.TempPathFactory
) -> None:
    home = Path(broken.facts["home"]) / "researcher"
    (home / "sbatch").write_text(SLOW_SBATCH)
    (home / "sbatch").chmod(0o755)
    (home / ".bashrc").write_text("PATH=$HOME:$PATH\n")
    name = key()
    place = tmp_path_factory.mktemp("h")
    login = await sign_in(broken, place)
    slurm = await Cluster(broken, place).open(queue="shared")
    submitting = asyncio.create_task(slurm.submit(small("sh", "-c", "echo ran >>ran.txt; exit 7"), name))
    await asyncio.to_thread(broken.wait, lambda: submitting.done() or (home / "submitting").exists())
    await login.close()  # the connection is cut while sbatch works
    with pytest.raises((PlatformUnreachable, LoginNeeded)):
        await submitting
    (home / ".bashrc").unlink()
    login = await sign_in(broken, place)
    slurm = await Cluster(broken, place).open(queue="shared")
    assert await slurm.find(name) == name
    assert await slurm.submit(small("sh", "-c", "echo ran >>ran.txt; exit 7"), name) == name
    assert await end(slurm, name) == (EndKind.EXITED, 7, "")
    assert b"".join([part async for part in slurm.read(name, "ran.txt")]) == b"ran\n"
    await asyncio.to_thread(broken.wait, lambda: len(jobs_named(broken, name)) == 1)
    await slurm.clean(name)
    await login.close()


async def test_a_claim_without_a_job_is_unknown_and_is_not_submitted_again(cluster: Cluster) -> None:
    slurm = await cluster.open(queue="shared")
    name = key()
    cluster.site.on("researcher@login", "mkdir", "-p", f".sublet/sessions/{name}")  # as a crash leaves it
    assert await slurm.find(name) == name
    state = await until(slurm, name, lambda state: bool(state.condition))
    assert state.state is State.UNKNOWN
    assert "no record" in state.condition
    assert await slurm.submit(small("true"), name) == name
    assert jobs_named(cluster.site, name) == []
    await slurm.clean(name)


async def test_a_queue_that_is_a_qos_runs_where_the_site_chooses(cluster: Cluster) -> None:
    slurm = await cluster.open(queue="quick", queues={"quick": {"qos": "short"}})
    wanted = Request(Executable("command"), Compute(memory=Range(MEMORY, MEMORY)), duration=timedelta(minutes=1))
    answer = await slurm.offers(wanted, ["exec"], datetime.now(UTC))
    assert [(offer.queue, offer.why) for offer in answer.offers] == [("quick", "earliest in quick")]
    job = await slurm.submit(small("true", queue="quick"), key())
    said = cluster.site.on("ctl", "squeue", "-h", "-t", "all", "-o", "%q %P", f"--name={job}")
    assert said.split() == ["short", "compute"]
    assert await end(slurm, job) == (EndKind.EXITED, 0, "")
    await slurm.clean(job)


async def test_a_number_that_slurm_gave_again_to_another_job_is_left_alone(cluster: Cluster) -> None:
    """As a controller leaves it that lost its last seconds: our record has a number, and another job has it now."""
    site, slurm = cluster.site, await cluster.open(queue="shared")
    name = key()
    job = await slurm.submit(small("sleep", "300", seconds=120), name)
    await running(slurm, job)
    sleeper = ("sbatch", "--parsable", "--partition=shared", "--mem=16", "--time=5", "--output=/dev/null", "--wrap")
    other = site.on("researcher@login", *sleeper, "sleep 300").strip()
    place = Path(site.facts["home"]) / f"researcher/.sublet/sessions/{name}"
    ours = (place / "id").read_text().strip()
    for record in (place / "id", place / "ran/id"):
        record.write_text(f"{other}\n")

    def shown(number: str, *fields: str) -> list[str]:
        words = site.on("ctl", "scontrol", "show", "job", "--oneliner", number).split()
        return [word for word in words if word.partition("=")[0] in fields]

    await asyncio.to_thread(site.wait, lambda: shown(other, "JobState") == ["JobState=RUNNING"])
    before = shown(other, "TimeLimit", "NodeList", "JobState")
    await slurm.pause(job)
    await slurm.resume(job)
    with pytest.raises(PlatformRefused, match=f"ermission denied for job {ours}\n"):  # which users get: of ours
        await slurm.extend(job, datetime.now(UTC) + timedelta(minutes=30))
    await slurm.give_back(job, ["elsewhere"])  # keeps all nodes that it has, of the job that has its name
    await slurm.cancel([job], "ann")
    assert (await end(slurm, job))[0] is EndKind.CANCELLED
    await asyncio.to_thread(site.wait, lambda: shown(ours, "JobState") != ["JobState=RUNNING"])
    assert shown(other, "TimeLimit", "NodeList", "JobState") == before
    site.on("researcher@login", "scancel", other)
    await slurm.clean(job)


async def test_a_number_that_is_given_again_between_a_look_and_an_act_is_left_alone(
    broken: Site, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """The queue's answer is from before the controller lost its last seconds: the number is a neighbour's by now."""
    home, name = Path(broken.facts["home"]) / "researcher", key()
    login = await sign_in(broken, place := tmp_path_factory.mktemp("h"))
    slurm = await Cluster(broken, place).open(queue="shared")
    job = await slurm.submit(small("sleep", "300", seconds=120), name)
    await running(slurm, job)
    await asyncio.to_thread(broken.wait, (home / f".sublet/sessions/{name}/ran/id").exists)  # its script has begun
    ours = (home / f".sublet/sessions/{name}/id").read_text().strip()
    sleeper = ("sbatch", "--parsable", "--partition=shared", "--mem=16", "--time=5", "--output=/dev/null", "--wrap")
    other = broken.on("researcher@login", *sleeper, "sleep 300").strip()
    for record in ("id", "ran/id"):
        (home / f".sublet/sessions/{name}/{record}").write_text(f"{other}\n")
    await login.close()
    (home / "squeue").write_text(LATE_SQUEUE.format(ours=ours, other=other))
    (home / "squeue").chmod(0o755)
    (home / ".bashrc").write_text("PATH=$HOME:$PATH\n")
    try:
        login = await sign_in(broken, place)
        slurm = await Cluster(broken, place).open(queue="shared")

        def shown() -> list[str]:
            fields = ("JobState", "TimeLimit", "NodeList", "Priority")
            words = broken.on("ctl", "scontrol", "show", "job", "--oneliner", other).split()
            return [word for word in words if word.partition("=")[0] in fields]

        await asyncio.to_thread(broken.wait, lambda: "JobState=RUNNING" in shown())
        before = shown()
        for act in (
            lambda: slurm.pause(job),
            lambda: slurm.resume(job),
            lambda: slurm.extend(job, datetime.now(UTC) + timedelta(minutes=30)),
            lambda: slurm.give_back(job, ["elsewhere"]),
            lambda: slurm.cancel([job], "ann"),
        ):
            with contextlib.suppress(PlatformRefused):  # of ours, whose limit users can't raise
                await act()
            assert shown() == before
        assert (await end(slurm, job))[0] is EndKind.CANCELLED
    finally:
        (home / ".bashrc").unlink()
        (home / "squeue").unlink()
        broken.on("researcher@login", "scancel", other)
    await slurm.clean(job)
    await login.close()


async def test_a_job_that_a_controller_forgot_while_it_waited_ends_as_never_started(cluster: Cluster) -> None:
    """It lost its state; accounting still says that the job waits, and always will. Last: its numbers begin anew."""
    site = cluster.site
    quick = {"poll": 0.3, "look": 0.1, "patience": 1, "calls": 100}
    far = {"kind": "slurm", "host": site.host, "user": "researcher", "ssh": ssh_options(site), **quick}
    settings = Settings.load(cluster.home, platforms={"far": far}, poll="PT0.3S", lost_after="2s")
    async with open_service(settings) as service:
        made = await ask(service, run=["true"], platform="far", queue="debug", time="1m", memory="64MiB")
        site.on("ctl", "scontrol", "update", "PartitionName=debug", "State=DOWN")  # jobs come in, and none begins
        id = (await service.sessions.accept(made.offers[0].id, ME)).id
        await reach(service, id, lambda session: "Slurm job" in session.condition, seconds=SOON)
        site.on("ctl", "sh", "-c", "kill -STOP $(cat /run/slurmctld.pid) && rm -rf /var/spool/slurmctld/*")
        site.crash("ctl")
        site.boot("ctl")
        session = await over(service, id, seconds=SOON)
    assert session.end
    assert (session.end.kind, session.started) == (EndKind.NOT_STARTED, None)
    assert session.end.detail.startswith("It never ran: far lost it while it waited in the queue")
    assert (await (await cluster.open()).ask([id]))[id].state is State.ENDED  # it can't begin any more
