"""A bag on a real site is one job array: told as one, stopped as one, and honest about each of its parts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from sublet.booking.model.job import State
from sublet.booking.model.session import EndKind
from sublet.client import Client
from sublet.platforms.slurm.platform import Slurm
from tests.real.clusters import Cluster, a_bag, ended, logged_in, small, tasks_of, until
from tests.real.researchers import Researcher, at
from tests.serving import eventually
from tests.sites import Site

ONCE = 'mkdir -p seen && mkdir "seen/$1" && sleep 0.02 && echo "point $1" && [ "$1" != 500 ] || exit 3'


@pytest.fixture(scope="module")
def cluster(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    home = tmp_path_factory.mktemp("h")
    with logged_in(site, home):
        yield Cluster(site, home)


@pytest.fixture
async def slurm(cluster: Cluster) -> AsyncIterator[Slurm]:
    platform = await cluster.open("parts", queue="shared")
    yield platform
    for key in await platform.list_left():
        await platform.clean(key)
    assert await platform.list_left() == []
    await platform.close()


def key() -> str:
    return f"test-{uuid4()}"


def arrays(site: Site, name: str) -> set[str]:
    """The ids under which Slurm was given something of this name."""
    return set(site.on("ctl", "squeue", "-h", "-t", "all", "-o", "%F", f"--name={name}").split())


def sublet_left(site: Site) -> list[str]:
    return [path.name for path in (Path(site.facts["home"]) / "researcher/.sublet/sessions").glob("*")]


@pytest.fixture(scope="module")
def researcher(tmp_path_factory: pytest.TempPathFactory, site: Site) -> Iterator[Researcher]:
    with at(site, tmp_path_factory.mktemp("parts") / "home") as person:
        yield person


@pytest.mark.engines
def test_a_thousand_points_are_one_array_and_each_is_run_once_though_the_service_is_killed(
    researcher: Researcher, site: Site
) -> None:
    client: Client = researcher.serving.start()
    assert researcher.signs_in() == 0
    wishes = {"platform": site.name, "queue": "shared", "time": "4m", "memory": "64MiB"}
    bag = {"template": ["sh", "-c", ONCE, "sh", "{x}"], "grid": {"x": list(range(1000))}}
    eventually(lambda: client.ask(run=["true"], **wishes).result == "YES", "an offer", 90)
    offers = client.ask(bag=bag, **wishes)
    assert [offer.why for offer in offers] == ["earliest in shared, in 20 parts with 1 core and 4 min each"]
    session = offers[0].accept()
    seen = Path(site.facts["home"]) / "researcher/.sublet/sessions" / session.id / "work/seen"
    eventually(lambda: seen.exists() and len(list(seen.iterdir())) > 50, "some of it", 90)
    researcher.serving.kill()
    client = researcher.serving.start()
    session = client.session(session.id).wait(timeout=120)
    assert (session.phase, session.end.kind, session.exit_code) == ("FAILED", "exited", 1)
    assert {result.path for result in session.results()} == {"tasks.jsonl", "tasks.out", "tasks.err"}
    lines = [json.loads(line) for line in session.result("tasks.jsonl").text().splitlines()]
    assert sorted(line["task"] for line in lines) == list(range(1000))
    assert Counter(line["code"] for line in lines) == {0: 999, 3: 1}
    out = session.result("tasks.out").text()
    assert all(out[at : at + size] == f"point {line['task']}\n" for line in lines for at, size in [line["stdout"]])
    assert "bag: 999 succeeded, 1 failed, 0 tried again" in "".join(session.logs())
    assert len(arrays(site, session.id)) == 1, "one array, submitted once"
    session.delete()
    assert session.id not in sublet_left(site)


@pytest.mark.anyio
async def test_a_part_that_is_stopped_names_what_has_no_result_and_the_others_go_on(
    slurm: Slurm, cluster: Cluster
) -> None:
    script = '[ "$SUBLET_PART" != 1 ] || { : >stuck; exec sleep 300; }; until [ -e stuck ]; do sleep 0.1; done'
    fields = {"template": ["sh", "-c", script, "{x}"], "grid": {"x": list(range(96))}}
    job = await slurm.submit(await a_bag(slurm, name := key(), 3, seconds=240, **fields), name)
    state = await until(slurm, job, lambda state: "1 run, 2 have ended" in state.condition)
    assert state.state is State.RUNNING
    assert state.until
    (array,) = arrays(cluster.site, job)
    cluster.site.on("ctl", "scancel", f"{array}_1")
    state = await ended(slurm, job)
    assert state.end
    assert state.end.kind is EndKind.CANCELLED
    assert "not through Sublet" in state.end.by
    assert state.end.detail.startswith("part 1 of 3: cancelled by someone on the system itself")
    codes = {line["task"]: line["code"] for line in await tasks_of(slurm, job) if not line.get("interrupted")}
    claimed = sorted(set(range(96)) - {task for task, code in codes.items() if code == 0})
    assert len(claimed) == 2, "the chunk that the part had claimed"
    none = [task for task in claimed if task not in codes]  # the first one may be seen to die before its part is told
    words = {1: f"1 has no result: {none[0]}", 2: f"2 have no result: {none[0]}-{none[-1]}"}
    assert state.end.detail.endswith(words[len(none)])


@pytest.mark.anyio
async def test_parts_are_paused_and_cancelled_together(slurm: Slurm, cluster: Cluster) -> None:
    ticks = 'while :; do echo "$SUBLET_PART"; sleep 0.1; done'
    runs = await slurm.submit(small("sh", "-c", ticks, parts=8), key())  # more than the queue has cores for
    waits = await slurm.submit(small("true", parts=3, begin=datetime.now(UTC) + timedelta(hours=1)), key())
    await until(slurm, runs, lambda state: "6 run, 2 wait" in state.condition)
    await until(slurm, waits, lambda state: "3 parts 3 wait" in state.condition)
    assert await slurm.pause(waits) == "held in the queue"
    await until(slurm, waits, lambda state: state.condition.startswith("paused: held"))
    both = await slurm.pause(runs)
    assert "held in the queue" in both
    assert "stopped on its node" in both
    await until(slurm, runs, lambda state: state.condition.startswith("paused"))
    before = await slurm.output(runs, "stdout", 0, 10_000)
    assert set(before.split()) == {b"0"}, "those behind a part that runs are shown when it has ended"
    assert await slurm.output(runs, "stdout", 0, 10_000) == before
    await slurm.resume(runs)
    await until(slurm, runs, lambda state: "6 run, 2 wait" in state.condition)
    await slurm.cancel([runs, waits], "ann")
    for job in (runs, waits):
        state = await ended(slurm, job)
        assert state.end
        assert (state.end.kind, state.end.by) == (EndKind.CANCELLED, "ann")
    assert set((await slurm.output(runs, "stdout", 0, 100_000)).split()) == {b"%d" % part for part in range(6)}
    cluster.site.wait(lambda: not cluster.site.on("ctl", "squeue", "-h", f"--name={runs},{waits}").strip())
    await slurm.clean(runs)
    assert await slurm.find(runs) is None
