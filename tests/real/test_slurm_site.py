"""Slurm on a real site: the contract of every platform, honest ends, and values that stay data."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from sublet.booking.model.job import Mount, State
from sublet.booking.model.request import Executable, Request
from sublet.booking.model.session import EndKind
from sublet.booking.model.shape import Shape
from sublet.kernel.errors import NotFound, PlatformRefused
from sublet.platforms.conformance import PROMISES, WITH_PROCESSES, Rule, RuleFinding, try_rule
from sublet.platforms.port import Results
from sublet.platforms.slurm.platform import Slurm
from tests.real.clusters import MEMORY, Cluster, a_bag, ended, logged_in, opening, running, small, tasks_of, until
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
    async with opening(cluster) as platform:
        yield platform


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


async def test_a_program_for_each_node_runs_on_each_and_the_first_that_fails_ends_all(slurm: Slurm) -> None:
    greet = 'echo "$SUBLET_NODE_NUMBER of $SUBLET_NODES, $(hostname), $(getent hosts "$SUBLET_FIRST_NODE" | wc -l)"; '
    fail = "[ $SUBLET_NODE_NUMBER = 0 ] && : >there && exec sleep 300; until [ -e there ]; do sleep 0.2; done; exit 3"
    names = []
    for script in (greet + "echo $OMP_NUM_THREADS", greet + fail):
        wanted = small("sh", "-c", script, queue="compute", count=2, shape=Shape(2, MEMORY))
        names.append(await slurm.submit(replace(wanted, program=replace(wanted.program, each_node=True)), key()))
    for name, code in zip(names, (0, 3), strict=True):
        state = await ended(slurm, name)
        assert state.end
        assert (state.end.kind, state.end.code) == (EndKind.EXITED, code), await slurm.output(name, "stderr", 0, 2000)
        lines = sorted((await output(slurm, name)).splitlines())
        greetings = [line.split(", ") for line in lines if " of " in line]
        assert [line[0] for line in greetings] == ["0 of 2", "1 of 2"]
        assert len({line[1] for line in greetings}) == 2
        assert [line[2] for line in greetings] == ["1", "1"], "each finds the first by its name"
        assert code or [line for line in lines if line.isdigit()] == ["2", "2"], "with all cores of its node"
        await slurm.clean(name)


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
