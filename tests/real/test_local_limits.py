"""On this machine, a session gets what was booked for it, and no more."""

import os
import stat
import urllib.request
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.job import Job, JobState, Mount, Program, State
from sublet.booking.model.session import EndKind
from sublet.booking.model.shape import Amounts, Shape
from sublet.kernel.errors import NotFound, PlatformRefused
from sublet.platforms import machine
from sublet.platforms.conformance_trial import ConformanceTrial
from sublet.platforms.local.platform import Local
from sublet.platforms.port import Results

pytestmark = pytest.mark.anyio
MIB = 1 << 20
EATS = "import time; b = bytearray(160 << 20); print(len(b)); time.sleep(30)"
CHILD_EATS = f"import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', {EATS!r}]) != 0)"


class Here(ConformanceTrial):
    """A trial that can say more of its jobs, and read what they printed."""

    async def run(
        self, *argv: str, memory: int = 64 * MIB, cores: int = 1, mounts: tuple[Mount, ...] = (), **program: Any
    ) -> str:
        job = Job(
            Program(argv, **program),
            Amounts(Shape(cores, memory)),
            (),
            datetime.now(UTC) + timedelta(minutes=1),
            timedelta(0),
            mounts=mounts,
        )
        return await self.platform.submit(job, self.key())

    async def printed(self, stream: Any = "stdout") -> str:
        return (await self.platform.output(self.keys[-1], stream, 0, 10_000)).decode()


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Here]:
    platform = Local(name="here", grace=timedelta(seconds=1))
    await platform.open(tmp_path)
    trial = Here(platform)
    yield trial
    await trial.clean()


@pytest.mark.parametrize("groups", [True, False], ids=["cgroup", "watch"])
@pytest.mark.parametrize("program", [EATS, CHILD_EATS], ids=["itself", "its child"])
async def test_more_memory_than_booked_is_out_of_memory(groups: bool, program: str, tmp_path: Path) -> None:
    if groups and "cgroup" not in machine.memory_note(True):
        pytest.skip("this machine lets us make no control group")
    platform = Local(name="here", cgroups=groups)
    await platform.open(tmp_path)
    trial = Here(platform)
    state = await trial.wait_for_end(await trial.run("python3", "-c", program, memory=96 * MIB))
    assert state.end
    assert state.end.kind is EndKind.OUT_OF_MEMORY
    assert state.end.usage
    assert state.end.usage.peak_memory > 40 * MIB
    await trial.clean()


async def test_memory_that_was_refused_is_out_of_memory_too(tmp_path: Path) -> None:
    platform = Local(name="here", cgroups=False)
    await platform.open(tmp_path)
    trial = Here(platform)
    state = await trial.wait_for_end(await trial.run("python3", "-c", "bytearray(1 << 40)", memory=96 * MIB))
    assert state.end
    assert (state.end.kind, state.end.code) == (EndKind.OUT_OF_MEMORY, 1)
    assert state.end.detail == "it had 96 MiB, and it said: MemoryError"
    await trial.clean()


async def test_as_much_memory_as_booked_is_fine(here: Here) -> None:
    state = await here.wait_for_end(await here.run("python3", "-c", "print(len(bytearray(40 << 20)))", memory=96 * MIB))
    assert state.end
    assert state.end.code == 0
    assert state.end.usage
    assert state.end.usage.peak_memory > 40 * MIB
    assert state.end.usage.wall > 0


FORKS = """
import os, time
for _ in range(200):
    try:
        if not os.fork():
            time.sleep(300)
    except OSError as error:
        print(error.strerror)
        break
"""


async def test_a_session_has_no_more_processes_than_it_may(tmp_path: Path) -> None:
    if "cgroup" not in machine.memory_note(True):
        pytest.skip("this machine lets us make no control group")
    platform = Local(name="here", processes=50, grace=timedelta(seconds=1))
    await platform.open(tmp_path)
    trial = Here(platform)
    state = await trial.wait_for_end(await trial.run("python3", "-c", FORKS, memory=256 * MIB))
    assert state.end
    assert await trial.printed() == "Resource temporarily unavailable\n"
    assert "more than 50 processes" in state.end.detail
    await trial.clean()


async def test_the_survey_says_how_limits_are_enforced(here: Here) -> None:
    notes = " ".join((await here.platform.survey()).notes)
    assert "memory is limited by" in notes
    assert "read-only volumes are" in notes


async def test_the_survey_offers_what_the_settings_say(tmp_path: Path) -> None:
    local = Local(name="here", cores=3, memory="5GiB", gpus=2, scratch="7GiB")  # type: ignore[arg-type]
    await local.open(tmp_path)
    survey = await local.survey()
    (node,) = survey.nodes
    assert (node.cores, node.memory, node.gpus) == (3, 5 << 30, 2)
    assert survey.pools == {"scratch": 7 << 30}
    assert {"sh", "python3"} <= survey.tools.keys()


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is only one core here")
async def test_two_sessions_run_on_different_cores_and_see_only_their_own(here: Here) -> None:
    show = "import os, time; print(*os.sched_getaffinity(0), flush=True); time.sleep(30)"
    seen = []
    for _ in range(2):
        await here.run("python3", "-c", show)
        await here.until("its cores", here.printed)
        seen.append((await here.printed()).split())
    assert [len(cores) for cores in seen] == [1, 1]
    assert seen[0] != seen[1]


async def test_cores_and_gpus_are_told_and_given_to_one_at_a_time(tmp_path: Path) -> None:
    local = Local(name="here", gpus=2)
    await local.open(tmp_path)
    trial = Here(local)
    seen = set()
    for _ in range(2):
        job = Job(
            Program(("sh", "-c", "echo $CUDA_VISIBLE_DEVICES $SUBLET_GPUS $OMP_NUM_THREADS; sleep 30")),
            Amounts(Shape(1, 64 * MIB, 1)),
            (),
            datetime.now(UTC) + timedelta(minutes=1),
            timedelta(0),
        )
        await local.submit(job, trial.key())
        await trial.until("its GPUs", trial.printed)
        seen.add(await trial.printed())
    assert seen == {"0 1 1\n", "1 1 1\n"}
    await trial.clean()


async def test_nothing_of_the_service_is_seen_by_a_session(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUBLET_HOME", "/secret/home")
    monkeypatch.setenv("SOME_TOKEN", "secret")
    await here.wait_for_end(await here.run("env", environment={"MINE": "a b;$(c)"}))
    seen = dict(line.split("=", 1) for line in (await here.printed()).splitlines())
    assert "secret" not in str(seen)
    assert seen["MINE"] == "a b;$(c)"
    assert seen["SUBLET_SESSION"] == here.keys[-1]
    assert seen["SUBLET_MEMORY"] == str(64 * MIB)
    assert seen["HOME"] == os.environ["HOME"]


async def test_a_contained_platform_keeps_the_accounts_home_to_itself(tmp_path: Path) -> None:
    local = Local(name="here", contained_only=True)
    await local.open(tmp_path)
    trial = Here(local)
    await trial.wait_for_end(await trial.run("sh", "-c", "echo $HOME"))
    assert await trial.printed() == f"{tmp_path}/sessions/{trial.keys[-1]}/work\n"
    assert (await local.survey()).contained_only
    await trial.clean()


async def test_only_the_owner_can_look_into_a_session(here: Here, tmp_path: Path) -> None:
    await here.wait_for_end(await here.run("true", environment={"PASSWORD": "secret"}))
    root = tmp_path / "sessions" / here.keys[-1]
    assert stat.S_IMODE(root.stat().st_mode) == 0o700
    for path in root.iterdir():
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path


async def test_read_only_data_is_there_and_can_not_be_changed(here: Here, tmp_path: Path) -> None:
    key = here.key()
    place = await here.platform.place(key)
    assert place
    (place / "data" / "cube").mkdir()
    (place / "data" / "cube" / "x").write_text("data")
    (place / "storage" / "room").mkdir(parents=True)
    script = "cat in/cube/x; echo no >in/cube/x; echo new >out/file; ls"
    job = Job(
        Program(("sh", "-c", script)),
        Amounts(Shape(1, 64 * MIB)),
        (),
        datetime.now(UTC) + timedelta(minutes=1),
        timedelta(0),
        mounts=(
            Mount("data/cube", "in/cube"),
            Mount("storage/room", "out", read_only=False),
            Mount("data/cube", "/inside/a/container"),
        ),
    )
    await here.wait_for_end(await here.platform.submit(job, key))
    assert await here.printed() == "datain\nout\n"
    assert (place / "storage" / "room" / "file").read_text() == "new\n"
    if "bind mounts" in " ".join((await here.platform.survey()).notes):
        assert "Read-only file system" in await here.printed("stderr")
        assert (place / "data" / "cube" / "x").read_text() == "data"
    assert await here.platform.results(key) == Results(), "what was brought is not a result"
    mounts = Path("/proc/mounts").read_text()  # noqa: ASYNC240
    assert str(tmp_path) not in mounts, "nothing is mounted outside the session"


async def test_a_volume_that_leads_out_of_the_session_is_refused(here: Here) -> None:
    for mount in (Mount("../other", "in"), Mount("/etc", "in"), Mount("data/x", "../in")):
        with pytest.raises(PlatformRefused, match="below"):
            await here.run("true", mounts=(mount,))


async def test_links_among_the_results_lead_nowhere(here: Here) -> None:
    await here.wait_for_end(
        await here.run("sh", "-c", "ln -s /etc/passwd link; ln -s /etc dir; mkdir sub; mkfifo pipe")
    )
    for path in ("link", "dir/passwd", "sub", "pipe", "none", "sub/../link"):
        with pytest.raises((NotFound, PlatformRefused)):
            [piece async for piece in here.platform.read(here.keys[-1], path)]


SERVES = """
import http.server, os, socket
class Here(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"hello")
http.server.HTTPServer(("127.0.0.1", int(os.environ["SUBLET_PORT"])), Here).serve_forever()
"""
LISTENS = """
import os, socket, time
with socket.socket(socket.AF_UNIX) as one:
    one.bind(os.environ["SUBLET_SOCKET"]); one.listen(); time.sleep(60)
"""


async def connected(here: Here, job: str) -> JobState:
    async def listens() -> bool:
        return (await here.state(job)).connector is not None

    await here.until("its connector", listens)
    return await here.state(job)


async def test_an_interactive_job_is_reached_where_it_says_once_it_listens(here: Here) -> None:
    await here.platform.news()
    job = await here.run("python3", "-c", SERVES, connects="uri:jupyter-lab")
    state = await connected(here, job)
    assert state.state is State.RUNNING
    assert state.connector
    assert (state.connector.kind, state.connector.status) == ("uri:jupyter-lab", "AVAILABLE")
    with urllib.request.urlopen(state.connector.location, timeout=10) as answer:  # noqa: ASYNC210
        assert answer.read() == b"hello"
    assert job in (await here.platform.news() or ()), "that it listens is news"


async def test_a_job_may_listen_on_its_unix_socket(tmp_path_factory: pytest.TempPathFactory) -> None:
    home = tmp_path_factory.mktemp("s")
    local = Local(name="here")
    await local.open(home)
    here = Here(local)
    state = await connected(here, await here.run("python3", "-c", LISTENS, connects="uri:shell"))
    assert state.connector
    path = state.connector.location.removeprefix("unix:")
    assert path.startswith(str(home / "s"))
    await here.clean()
    assert not os.path.exists(path)  # noqa: ASYNC240
