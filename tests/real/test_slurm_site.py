"""Slurm on a real site: the contract of every platform, honest ends, and values that stay data."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from sublet.booking.model.job import Mount, State
from sublet.booking.model.offer import Predicted
from sublet.booking.model.request import Compute, Executable, Range, Request, Window
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.session import EndKind
from sublet.booking.model.shape import Shape
from sublet.kernel.errors import LoginNeeded, NotFound, PlatformRefused, QueueFull
from sublet.platforms.conformance import PROMISES, WITH_PROCESSES, Rule, RuleFinding, try_rule
from sublet.platforms.port import Results
from sublet.platforms.slurm.platform import Slurm
from tests.real.clusters import Cluster, a_bag, ended, logged_in, running, small, tasks_of, until
from tests.sites import Site
from tests.sites import running as site_running

pytestmark = pytest.mark.anyio
GIB = 1 << 30
RULES = PROMISES + WITH_PROCESSES
ODD = ["a b", 'it\'s "quoted"', "two\nlines", ";$(rm -rf $HOME) `id` && x", "-n", "--", "grüße ✓", "\\ * ? [a]", ""]


@pytest.fixture(scope="module")
def cluster(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    home = tmp_path_factory.mktemp("h")
    with logged_in(site, home):
        yield Cluster(site, home)


@pytest.fixture(scope="module")
def newer(swept: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    home = tmp_path_factory.mktemp("h")
    with site_running("--base", "box") as site, logged_in(site, home):
        yield Cluster(site, home)


@pytest.fixture
async def slurm(cluster: Cluster) -> AsyncIterator[Slurm]:
    platform = await cluster.open()
    yield platform
    for key in await platform.list_left():
        await until(platform, key, lambda state: state.state not in (State.QUEUED, State.RUNNING))
        await platform.clean(key)
        assert await platform.find(key) is None
    assert await platform.list_left() == []
    await platform.close()


def key() -> str:
    return f"test-{uuid4()}"


async def output(slurm: Slurm, key: str) -> str:
    return (await slurm.output(key, "stdout", 0, 100_000)).decode()


@pytest.fixture(scope="module")
def findings(cluster: Cluster) -> dict[Rule, RuleFinding]:
    """What every rule found; they are tried side by side, because each waits most of its time."""

    async def tried() -> list[RuleFinding]:
        slurm = await cluster.open("rules")
        found = await asyncio.gather(*(try_rule(slurm, rule) for rule in RULES))
        left = await slurm.list_left()
        await slurm.close()
        assert left == [] or not all(finding.ok for finding in found)  # one that failed may have left its job
        return found

    return dict(zip(RULES, asyncio.run(tried()), strict=True))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_slurm_keeps_the_rule(findings: dict[Rule, RuleFinding], rule: Rule) -> None:
    finding = findings[rule]
    assert finding.ok, f"{finding.rule} {finding.detail}"


async def test_the_newest_slurm_keeps_all_rules(newer: Cluster) -> None:
    slurm = await newer.open()
    findings = await asyncio.gather(*(try_rule(slurm, rule) for rule in RULES))
    assert [f"{finding.rule} {finding.detail}" for finding in findings if not finding.ok] == []
    offers = (
        await slurm.offers(Request(Executable("command"), duration=timedelta(minutes=2)), ["sh"], datetime.now(UTC))
    ).offers
    assert [offer.queue for offer in offers] == ["debug"]
    await slurm.close()


async def test_the_newest_slurm_runs_a_bag_in_parts(newer: Cluster) -> None:
    slurm = await newer.open(queue="shared")
    fields = {"template": ["sh", "-c", "[ {x} != 7 ]"], "grid": {"x": list(range(40))}}
    job = await slurm.submit(await a_bag(slurm, name := key(), 3, **fields), name)
    state = await ended(slurm, job)
    assert state.end
    assert (state.end.kind, state.end.code, state.end.detail) == (EndKind.EXITED, 1, "")
    assert {line["task"]: line["code"] for line in await tasks_of(slurm, job)} == {x: int(x == 7) for x in range(40)}
    await slurm.clean(job)
    await slurm.close()


async def test_words_files_and_variables_arrive_as_they_are(slurm: Slurm) -> None:
    script = 'for word; do printf "<%s>" "$word"; done; printf "[%s]" "$ODD"; cat "odd names/$2"'
    files = {f"odd names/{ODD[1]}": b"\x00\xff content", "run it": f"#!/bin/sh\n{script}\n".encode()}
    job = await slurm.submit(small("./run it", *ODD, environment={"ODD": ODD[2] + ODD[3]}, files=files), key())
    state = await ended(slurm, job)
    assert state.end
    assert (state.end.kind, state.end.code) == (EndKind.EXITED, 0), await slurm.output(job, "stderr", 0, 1000)
    wanted = "".join(f"<{word}>" for word in ODD) + f"[{ODD[2]}{ODD[3]}]"
    assert await slurm.output(job, "stdout", 0, 10_000) == wanted.encode() + b"\x00\xff content"
    assert {file.path for file in (await slurm.results(job)).files} == set(files)
    assert b"".join([part async for part in slurm.read(job, f"odd names/{ODD[1]}")]) == b"\x00\xff content"


async def test_data_is_sent_and_seen_where_it_was_asked_for(slurm: Slurm) -> None:
    name = key()
    place = await slurm.place(name)
    assert place
    (place / "data" / "cube").mkdir()
    (place / "data" / "cube" / "big").write_bytes(os.urandom(3_000_000))
    script = (
        'wc -c <in/cube/big; ls "$SUBLET_DATA"; echo x >in/cube/big || echo kept; echo $SUBLET_CORES $SUBLET_SESSION'
    )
    job = small("sh", "-c", script, mounts=(Mount("data/cube", "in/cube"),))
    seen: list[tuple[int, int | None]] = []
    await slurm.carry(name, lambda done, total: seen.append((done, total)))
    assert seen[-1] == (3_000_000, 3_000_000), "how far it is can be told"
    await slurm.submit(job, name)
    await ended(slurm, name)
    assert (await output(slurm, name)).split() == ["3000000", "cube", "kept", "1", name]
    assert not place.exists(), "what was sent is not kept here"
    assert await slurm.results(name) == Results()


async def test_files_are_laid_out_in_the_working_directory_and_only_what_changed_is_a_result(slurm: Slurm) -> None:
    name = key()
    place = await slurm.place(name)
    assert place
    files = {
        "sim.py": "import helper; open('out.txt', 'w').write(helper.WORD); open('log', 'a').write('x')\n",
        "helper.py": "WORD = 'tick'\n",
        "log": "",
        "run.sh": "#!/bin/sh\nPYTHONDONTWRITEBYTECODE=1 exec python3 sim.py\n",
        "sub/a b\nc": "odd",
    }
    for path, text in files.items():
        (place / "work" / path).parent.mkdir(exist_ok=True)
        (place / "work" / path).write_text(text)
    (place / "work" / "run.sh").chmod(0o755)
    await slurm.submit(small("./run.sh"), name)
    state = await ended(slurm, name)
    assert state.end
    assert state.end.code == 0, await slurm.output(name, "stderr", 0, 1000)
    assert sorted(file.path for file in (await slurm.results(name)).files) == ["log", "out.txt"]


async def test_a_signal_and_what_was_used_are_told(slurm: Slurm) -> None:
    job = await slurm.submit(small("sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; kill -9 $$"), key())
    state = await ended(slurm, job)
    assert state.end
    assert (state.end.kind, state.end.signal) == (EndKind.SIGNALLED, 9)
    assert state.end.usage
    assert state.end.usage.cpu > 0
    assert state.started
    assert state.ended
    assert state.started <= state.ended


async def test_a_cancel_behind_our_back_is_someone_elses(slurm: Slurm, cluster: Cluster) -> None:
    jobs = [await slurm.submit(small("sleep", "50"), key()) for _ in range(2)]
    held = await slurm.submit(small("true", begin=datetime.now(UTC) + timedelta(hours=1)), key())
    for job in jobs:
        await running(slurm, job)
    cluster.site.on("researcher@login", "scancel", "--me")
    for job in (*jobs, held):
        state = await ended(slurm, job)
        assert state.end
        assert state.end.kind is EndKind.CANCELLED
        assert "not through Sublet" in state.end.by


async def test_a_queue_is_told_with_its_reason_and_a_pause_holds_a_job_there(slurm: Slurm) -> None:
    job = await slurm.submit(small("true", begin=datetime.now(UTC) + timedelta(hours=1)), key())
    state = await until(slurm, job, lambda state: "BeginTime" in state.condition)
    assert state.state is State.QUEUED
    assert await slurm.pause(job) == "held in the queue"
    await until(slurm, job, lambda state: state.condition.startswith("paused: held in the queue, as Slurm job"))
    assert await slurm.resume(job) == "released in the queue"
    await until(slurm, job, lambda state: "BeginTime" in state.condition)
    with pytest.raises(PlatformRefused, match="still runs"):
        await slurm.clean(job)
    await slurm.cancel([job], "ann")
    state = await ended(slurm, job)
    assert state.end
    assert (state.end.by, state.end.detail) == ("ann", "it had not started")
    with pytest.raises(PlatformRefused, match="over"):
        await slurm.pause(job)


async def test_what_runs_is_paused_by_stopping_it_and_can_still_be_cancelled(slurm: Slurm) -> None:
    job = await slurm.submit(small("sleep", "50"), key())
    await running(slurm, job)
    assert await slurm.pause(job) == "stopped on its node; its time runs on"
    await until(slurm, job, lambda state: state.condition == "paused: stopped on its node; its time runs on")
    assert await slurm.resume(job) == "continued on its node"
    await until(slurm, job, lambda state: not state.condition)
    await slurm.pause(job)
    await slurm.cancel([job], "ann")
    state = await ended(slurm, job)
    assert state.end
    assert (state.end.kind, state.end.by) == (EndKind.CANCELLED, "ann")


async def test_a_program_is_warned_before_its_end_and_a_stubborn_one_is_stopped(slurm: Slurm) -> None:
    script = (
        'trap "" TERM; until [ -e "$SUBLET_WARNING" ]; do sleep 0.1; done; echo warned; while :; do sleep 0.1; done'
    )
    job = await slurm.submit(small("sh", "-c", script, seconds=6, warn=timedelta(seconds=3)), key())
    await until(slurm, job, lambda state: "ends soon" in state.condition)
    state = await ended(slurm, job)
    assert state.end
    assert state.end.kind is EndKind.TIMEOUT
    assert await output(slurm, job) == "warned\n"
    assert b"this session ends at" in await slurm.output(job, "stderr", 0, 1000)


async def test_several_nodes_are_one_job_and_leave_nothing_on_any_of_them(slurm: Slurm, cluster: Cluster) -> None:
    step = 'hostname; : >"$TMPDIR/$(hostname)"'
    script = f'srun --ntasks-per-node=1 sh -c \'{step}\'; echo $SUBLET_NODES; ls "$TMPDIR"; echo "$TMPDIR"'
    name = await slurm.submit(small("sh", "-c", script, queue="compute", count=2), key())
    await ended(slurm, name)
    first, second, count, *there, place = (await output(slurm, name)).split()
    nodes = sorted([first, second])
    assert (len(set(nodes)), count, sorted(there)) == (2, "2", nodes), await slurm.output(name, "stderr", 0, 1000)
    assert "/t/sublet-" in place, "a short path, where all of them see it"
    assert not cluster.site.on("login", "find", place, "-maxdepth", "0", check=False)


async def test_a_nodes_own_disk_is_used_as_long_as_it_runs(slurm: Slurm, cluster: Cluster) -> None:
    told = await cluster.open("told", scratch="/dev/shm")
    manager = "import multiprocessing; multiprocessing.Manager()"
    script = f'hostname; python3 -c "{manager}" && echo "$TMPDIR"'
    for platform, place in ((slurm, "/tmp/sublet."), (told, "/dev/shm/sublet.")):
        name = await platform.submit(small("sh", "-c", script), key())
        await ended(platform, name)
        node, used = (await output(platform, name)).split()
        assert used.startswith(place)
        assert len(used) <= 40
        assert not cluster.site.on(node, "find", used, "-maxdepth", "0", check=False)
        await platform.clean(name)
    await told.close()


async def test_a_time_beyond_slurms_limit_is_refused_in_its_words(slurm: Slurm) -> None:
    job = await slurm.submit(small("sleep", "50"), key())
    await running(slurm, job)
    with pytest.raises(PlatformRefused, match="denied"):
        await slurm.extend(job, datetime.now(UTC) + timedelta(hours=1))
    await slurm.cancel([job], "ann")


async def test_what_slurm_refuses_leaves_nothing_and_says_why(cluster: Cluster) -> None:
    slurm = await cluster.open("strict", project="nobody-pays", queue="debug", reservation="none-such")
    name = key()
    with pytest.raises(PlatformRefused, match="reservation"):
        await slurm.submit(small("true"), name)
    assert await slurm.find(name) is None
    await slurm.close()


async def test_no_result_leads_out_of_the_working_directory(slurm: Slurm) -> None:
    job = await slurm.submit(small("sh", "-c", "ln -s /etc/passwd link; ln -s /etc dir; echo x >file"), key())
    await ended(slurm, job)
    for path in ("link", "dir/passwd", "missing"):
        with pytest.raises(NotFound):
            [part async for part in slurm.read(job, path)]
    with pytest.raises(PlatformRefused):
        [part async for part in slurm.read(job, "../program")]


async def test_offers_are_slurms_own_plan_in_each_queue_that_fits(cluster: Cluster) -> None:
    slurm = await cluster.open("all", queue="")
    now = datetime.now(UTC)
    compute = Compute(cores=Range(2, 2), memory=Range(GIB, GIB))
    request = Request(Executable("command"), compute, duration=timedelta(minutes=4))
    answer = await slurm.offers(request, ["sh"], now)
    assert {offer.queue for offer in answer.offers} == {"compute", "shared", "debug", "gpu"}
    assert all(isinstance(offer.terms, Predicted) and offer.terms.samples == 0 for offer in answer.offers)
    assert all(offer.shape == Shape(2, GIB) and offer.start >= now for offer in answer.offers)
    later = Window(now + timedelta(hours=5), now + timedelta(hours=6))
    (first, *_) = (await slurm.offers(Request(Executable("command"), compute, windows=(later,)), ["sh"], now)).offers
    assert later.start <= first.start < first.latest_start < later.end
    assert first.begin == later.start
    evening = Window(now + timedelta(hours=9), now + timedelta(hours=10))
    both = replace(request, windows=(evening, later), scheduler=SchedulerOptions(queue="compute"))
    offers = (await slurm.offers(both, ["sh"], now)).offers
    assert [offer.begin for offer in offers] == [later.start, evening.start]
    assert evening.start <= offers[1].start < offers[1].latest_start < evening.end
    await slurm.close()


async def test_what_is_asked_of_the_scheduler_is_what_slurm_has_of_the_job(slurm: Slurm, cluster: Cluster) -> None:
    now, far = datetime.now(UTC), ("AvailableFeatures=fast", "ActiveFeatures=fast")
    cluster.site.on("ctl", "scontrol", "update", "NodeName=c2", *far)
    free = ("comment=for class", "contiguous")
    asked = SchedulerOptions("debug", "", "", "fast", 100, "", "matlab:2", exclusive=True, mail="end", options=free)
    request = Request(Executable("command"), Compute(), duration=timedelta(minutes=2), scheduler=asked)
    assert not slurm.unfit(request)
    assert (await slurm.offers(request, ["sh"], now)).offers
    none = await slurm.offers(replace(request, scheduler=replace(asked, constraint="slow")), ["sh"], now)
    assert not none.offers, "no node has such a feature"
    job = await slurm.submit(small("sleep", "20", scheduler=asked), key())
    await running(slurm, job)
    shown = cluster.site.on("ctl", "scontrol", "show", "job", slurm.find_own_id(job))
    for word in ("Nice=100", "Features=fast", "Licenses=matlab:2", "OverSubscribe=NO", "Contiguous=1", "NodeList=c2"):
        assert word in shown, shown
    assert f"session={job}" in shown
    assert "for class" in shown, "its own comment stands behind Sublet's"
    await slurm.cancel([job], "me")


async def test_a_no_names_the_limit_of_the_queue(slurm: Slurm) -> None:
    now = datetime.now(UTC)
    for compute, duration, field, nearest in (
        (Compute(cores=Range(9, 9)), timedelta(minutes=2), "compute.cores.min", "8"),
        (Compute(nodes=Range(2, 2)), timedelta(minutes=2), "compute.nodes.min", "1"),
        (Compute(gpus=Range(1, 1)), timedelta(minutes=2), "compute.gpus.min", "0"),
        (Compute(), timedelta(hours=2), "schedule.duration", "5m"),
    ):
        answer = await slurm.offers(Request(Executable("command"), compute, duration=duration), ["sh"], now)
        assert not answer.offers
        assert (answer.reasons[0].field, answer.reasons[0].nearest) == (field, nearest)


async def test_a_reservation_of_our_own_is_booked_on_its_exact_nodes(cluster: Cluster) -> None:
    words = ("ReservationName=ours", "Users=researcher", "Nodes=c3", "StartTime=now", "Duration=10")
    cluster.site.on("ctl", "scontrol", "create", "reservation", *words)
    slurm = await cluster.open("ours", terms="booked", reservation="ours")
    assert [node.name for node in (await slurm.survey()).nodes] == ["c3"]
    job = await slurm.submit(small("hostname", nodes=("c3",)), key())
    await ended(slurm, job)
    assert await output(slurm, job) == "c3\n"
    await slurm.clean(job)
    await slurm.close()
    cluster.site.on("ctl", "scontrol", "delete", "ReservationName=ours")


async def test_a_site_can_ask_its_guests_to_be_modest(cluster: Cluster) -> None:
    lines = ["poll 1s", "sessions 1", "interactive no"]
    cluster.site.on("login", "sh", "-c", 'mkdir -p /etc/sublet && printf "%s\n" "$@" >/etc/sublet/site', "sh", *lines)
    try:
        slurm = await cluster.open("modest", fresh=0)
        notes = (await slurm.survey()).notes
        assert "the site's settings: the queue is asked for at most every 1 s" in notes
        assert "the site's settings: at most 1 of your sessions wait or run at once" in notes
        lab = Request(Executable("interactive"), duration=timedelta(minutes=2))
        assert "own settings" in (await slurm.offers(lab, ["shell"], datetime.now(UTC))).reasons[0].message
        first = await slurm.submit(small("sleep", "60"), str(uuid4()))
        with pytest.raises(QueueFull, match="no more than 1"):
            await slurm.submit(small("true"), str(uuid4()))
        await slurm.cancel([first], "ann")
        await ended(slurm, first)
        second = await slurm.submit(small("true"), str(uuid4()))
        await ended(slurm, second)
        for key in (first, second):
            await slurm.clean(key)
        await slurm.close()
    finally:
        cluster.site.on("login", "rm", "-r", "/etc/sublet")


async def test_tools_are_found_where_the_settings_say(cluster: Cluster) -> None:
    script = (
        "mkdir -p 'my tools' && cd 'my tools' && printf '#!/bin/sh\\necho found\\n' >papermill && chmod +x papermill"
    )
    cluster.site.on("researcher@login", "sh", "-c", script)
    slurm = await cluster.open("tools", path=["~/my tools"], tool_modules={"apptainer": "not/here"})
    tools = (await slurm.survey()).tools
    assert tools["papermill"] == "/home/researcher/my tools/papermill"
    assert tools["apptainer"] == "module:not/here"
    job = await slurm.submit(small("papermill"), key())
    await ended(slurm, job)
    assert await output(slurm, job) == "found\n"
    await slurm.clean(job)
    await slurm.close()
    cluster.site.on("researcher@login", "rm", "-r", "my tools")


async def test_without_a_login_the_last_survey_answers_and_says_how_old_it_is(
    slurm: Slurm, cluster: Cluster, tmp_path: Path
) -> None:
    await slurm.survey()
    kept = (cluster.home / "platforms" / "far" / "survey.json").read_text()
    elsewhere = Cluster(cluster.site, tmp_path)
    lapsed = await elsewhere.open(fresh=0)
    with pytest.raises(LoginNeeded):
        await lapsed.survey()
    (tmp_path / "platforms" / "far" / "survey.json").write_text(kept)
    lapsed = await elsewhere.open(fresh=0)
    survey = await lapsed.survey()
    assert [node.name for node in survey.nodes] == ["c1", "c2", "c3"]
    assert "sublet system login far" in survey.notes[0]
    answer = await lapsed.offers(
        Request(Executable("command"), duration=timedelta(minutes=2)), ["sh"], datetime.now(UTC)
    )
    assert "as seen on " in answer.offers[0].why
    assert lapsed.login
    assert not await lapsed.login.check(), "which the service says of its offers"
    with pytest.raises(LoginNeeded):
        await lapsed.submit(small("true"), key())
