"""On this machine, every end is told as it was, whatever died meanwhile."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sublet.booking.model.job import Job, Program, State
from sublet.booking.model.session import EndKind
from sublet.booking.model.shape import Amounts, Shape
from sublet.kernel.errors import DiskFull, PlatformRefused
from sublet.platforms.conformance_trial import ConformanceTrial
from sublet.platforms.local import launch
from sublet.platforms.local.platform import Local
from sublet.platforms.local.shim.processes import boot_id, descendants, start_time, still
from sublet.platforms.port import Results
from sublet.platforms.sessiondir import SessionDir

pytestmark = pytest.mark.anyio
MIB = 1 << 20


class Here(ConformanceTrial):
    """A trial on this machine that can also look into its directories."""

    platform: Local

    def __init__(self, platform: Local, home: Path) -> None:
        super().__init__(platform)
        self.home = home

    def session(self, key: str = "") -> SessionDir:
        return SessionDir("here", self.home, key or self.keys[-1])

    async def text(self, name: str) -> str:
        """A file in the working directory, once it has been written."""
        path = self.session().work / name

        async def written() -> bool:
            return path.exists() and path.read_text().endswith("\n")

        await self.until(name, written)
        return path.read_text().strip()

    async def gone(self, pid: int) -> None:
        async def is_gone() -> bool:
            return start_time(pid) is None

        await self.until(f"the end of process {pid}", is_gone)


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Here]:
    platform = Local(name="here", grace=timedelta(seconds=1), output_limit=10_000)
    await platform.open(tmp_path)
    trial = Here(platform, tmp_path)
    yield trial
    await trial.clean()


async def test_a_signal_is_told_by_its_number(here: Here) -> None:
    state = await here.wait_for_end(await here.submit("sh", "-c", "kill -SEGV $$"))
    assert state.end
    assert (state.end.kind, state.end.signal, state.end.code) == (EndKind.SIGNALLED, signal.SIGSEGV, None)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup does
    try:
        job = await here.submit("sh", "-c", "kill -HUP $$; echo ignored")
    finally:
        signal.signal(signal.SIGHUP, before)
    state = await here.wait_for_end(job)
    assert state.end
    assert (state.end.kind, state.end.signal) == (EndKind.SIGNALLED, signal.SIGHUP)


async def test_a_pause_stops_every_process_and_a_cancel_stops_what_is_paused(here: Here) -> None:
    job = await here.submit("sh", "-c", "setsid sleep 300 & echo $! >pid; sleep 300")
    pids = [int(await here.text("pid"))]
    assert await here.platform.pause(job) == "stopped on its node; its time runs on"
    pids += descendants(here.session().shim.pid)
    assert len(pids) > 2
    assert all(still(pid) for pid in pids)
    assert await here.platform.resume(job) == "continued on its node"
    assert not any(still(pid) for pid in pids)
    await here.platform.pause(job)
    await here.platform.cancel([job], "ann")
    state = await here.wait_for_end(job)
    assert state.end
    assert (state.end.kind, state.end.by) == (EndKind.CANCELLED, "ann")
    with pytest.raises(PlatformRefused, match="over"):
        await here.platform.pause(job)


async def test_a_file_that_may_not_be_run_was_not_started(here: Here) -> None:
    program = Program(("./plain.txt",), files={"plain.txt": b"no program"})
    job = Job(program, Amounts(Shape(1, 64 * MIB)), (), datetime.now(UTC) + timedelta(minutes=1), timedelta(0))
    state = await here.wait_for_end(await here.platform.submit(job, here.key()))
    assert state.end
    assert state.end.kind is EndKind.NOT_STARTED
    assert state.end.detail == "./plain.txt: Permission denied"


async def test_at_the_end_of_the_time_work_can_be_saved(here: Here) -> None:
    script = "trap 'echo saved >saved; exit 0' TERM; echo ready >ready; while :; do sleep 0.05; done"
    state = await here.wait_for_end(await here.submit("sh", "-c", script, seconds=3))
    assert state.end
    assert state.end.kind is EndKind.TIMEOUT
    assert await here.text("saved") == "saved"


async def test_what_ignores_the_end_of_its_time_is_killed(here: Here) -> None:
    script = "trap '' TERM; echo ready >ready; while :; do sleep 0.05; done"
    state = await here.wait_for_end(await here.submit("sh", "-c", script, seconds=4))
    assert state.end
    assert await here.text("ready") == "ready"
    assert (state.end.kind, state.end.signal) == (EndKind.TIMEOUT, signal.SIGKILL)


async def test_it_is_warned_before_the_end_of_its_time(here: Here) -> None:
    job = here.job(
        "sh", "-c", 'while ! [ -s "$SUBLET_WARNING" ]; do sleep 0.05; done; cat "$SUBLET_WARNING"', seconds=4
    )
    soon = Job(job.program, job.amounts, job.nodes, job.until, warn=timedelta(hours=1))
    state = await here.wait_for_end(await here.platform.submit(soon, here.key()))
    assert state.end
    assert state.end.code == 0
    said = await here.platform.output(here.keys[-1], "stderr", 0, 1000)
    assert said == f"sublet: this session ends at {job.until.astimezone():%H:%M:%S %Z on %Y-%m-%d}\n".encode()
    assert await here.platform.output(here.keys[-1], "stdout", 0, 1000) == f"{job.until:%Y-%m-%dT%H:%M:%SZ}".encode()


async def test_what_comes_too_late_to_start_says_so(here: Here) -> None:
    state = await here.wait_for_end(await here.submit("touch", "ran", seconds=-1))
    assert state.end
    assert state.end.kind is EndKind.WINDOW_PASSED
    assert await here.platform.results(here.keys[-1]) == Results()


async def test_what_the_main_process_leaves_running_is_stopped(here: Here) -> None:
    job = await here.submit("sh", "-c", "setsid sleep 300 & echo $! >pid; exit 5")
    state = await here.wait_for_end(job)
    assert state.end
    assert state.end.code == 5
    assert "left running" in state.end.detail
    await here.gone(int(await here.text("pid")))


async def test_a_cancel_before_the_start_keeps_it_from_ever_starting(here: Here) -> None:
    key = here.key()
    await here.platform.place(key)
    await here.platform.cancel([key], "somebody")
    assert await here.platform.submit(here.job("touch", "ran"), key) == key
    state = await here.wait_for_end(key)
    assert state.end
    assert (state.end.kind, state.end.by) == (EndKind.CANCELLED, "somebody")
    assert await here.platform.results(key) == Results()


@pytest.mark.parametrize("groups", [True, False], ids=["cgroup", "watch"])
async def test_when_the_shim_is_killed_nothing_runs_on_and_nobody_guesses(here: Here, groups: bool) -> None:
    here.platform.cgroups = groups
    job = await here.submit("sh", "-c", "(setsid sleep 300 & echo $! >pid); echo $$ >main; exec sleep 300")
    pids = [int(await here.text("pid")), int(await here.text("main"))]
    record = here.session().root / "ran" / "group"
    folders = [Path(line) for line in record.read_text().splitlines()] if record.exists() else []
    shim = here.session().shim
    assert shim
    os.kill(shim.pid, signal.SIGKILL)
    await here.gone(shim.pid)
    state = await here.wait_for_end(job)
    assert state.end
    assert state.end.kind is EndKind.UNKNOWN
    assert "was killed" in state.end.detail
    for pid in pids:
        await here.gone(pid)
    assert not any(folder.exists() for folder in folders)
    assert not here.session().running.exists(), "its cores are free"


def is_there(path: str) -> bool:
    return os.path.lexists(path)


MANAGER = """
import multiprocessing, os, stat, tempfile
with multiprocessing.Manager() as manager:
    print(manager.list([1]))
found = os.stat(tempfile.gettempdir())
print(len(os.environ["TMPDIR"]) <= 40, oct(stat.S_IMODE(found.st_mode)), found.st_uid == os.getuid())
print(os.environ["TMPDIR"])
"""


async def test_temporary_files_have_a_short_path_of_their_own_that_goes_with_the_session(tmp_path: Path) -> None:
    home = tmp_path / ("a-home-with-a-long-name/" * 4) / "platforms" / "here"
    local = Local(name="here", cores=1)
    await local.open(home)
    here = Here(local, home)
    job = await here.submit(sys.executable, "-c", MANAGER)
    await here.wait_for_end(job)
    said = (await local.output(job, "stdout", 0, 1000)).decode().splitlines()
    assert said[:2] == ["[1]", "True 0o700 True"], await local.output(job, "stderr", 0, 3000)
    assert not is_there(said[2])

    async def is_gone() -> bool:
        return not (here.session().root / "tmp").exists()

    await here.until("the end of its temporary files", is_gone)
    await local.close()


async def test_temporary_files_go_when_shim_and_service_were_killed(here: Here) -> None:
    await here.submit("sh", "-c", 'echo x >"$TMPDIR/x"; echo "$TMPDIR" >where; exec sleep 300')
    short = await here.text("where")
    shim = here.session().shim
    assert shim
    assert is_there(f"{short}/x")
    os.kill(shim.pid, signal.SIGKILL)
    await here.gone(shim.pid)
    again = Local(name="here", cores=1)
    await again.open(here.home)
    assert not is_there(short)
    assert not (here.session().root / "tmp").exists()
    await again.close()


async def test_a_job_whose_directory_was_removed_can_still_be_stopped(here: Here) -> None:
    job = await here.submit("sh", "-c", "(trap '' TERM; setsid env -i sleep 300 & echo $! >pid); exec sleep 300")
    pid = int(await here.text("pid"))
    here.session().root.rename(here.home / "gone")
    assert (await here.platform.ask([job]))[job].state is State.UNKNOWN
    await here.platform.cancel([job], "somebody")
    await here.gone(pid)


async def test_after_a_restart_of_the_machine_the_node_was_lost(here: Here) -> None:
    key = here.key()
    await here.platform.place(key)
    ran = here.session().root / "ran"
    ran.mkdir()
    me = {"pid": os.getpid(), "start": start_time(os.getpid()), "boot": "another boot", "began": time.time()}
    (ran / "shim.json").write_text(json.dumps(me))
    state = await here.wait_for_end(key)
    assert state.end
    assert (state.end.kind, state.end.detail) == (EndKind.NODE_LOST, "the machine was restarted while it ran")


async def test_a_pid_that_now_belongs_to_another_process_is_left_alone(here: Here) -> None:
    bystander = await asyncio.create_subprocess_exec("sleep", "300")
    try:
        key = here.key()
        await here.platform.place(key)
        ran = here.session().root / "ran"
        ran.mkdir()
        other = {"pid": bystander.pid, "start": 1, "boot": boot_id(), "began": 1.0}
        (ran / "shim.json").write_text(json.dumps(other))
        await here.platform.cancel([key], "somebody")
        state = await here.wait_for_end(key)
        assert state.end
        assert state.end.kind is EndKind.UNKNOWN
        assert bystander.returncode is None
    finally:
        bystander.kill()
        await bystander.wait()


async def test_a_submit_that_died_half_way_can_be_done_again(here: Here) -> None:
    key = here.key()
    await here.platform.place(key)
    (here.home / "running" / key).write_text('{"cores": [0], "gpus": []}')
    assert await here.platform.find(key) is None
    job = await here.platform.submit(here.job("sh", "-c", "echo once"), key)
    await here.wait_for_end(job)
    assert await here.platform.output(key, "stdout", 0, 100) == b"once\n"


async def test_many_shims_of_one_job_run_it_once(here: Here) -> None:
    job = await here.submit("sh", "-c", "echo once; sleep 0.2")
    for _ in range(3):
        launch.start(here.session())
    await here.wait_for_end(job)
    assert await here.platform.output(here.keys[-1], "stdout", 0, 100) == b"once\n"


async def test_the_end_is_enforced_and_recorded_when_no_service_is_there(here: Here) -> None:
    key = here.key()
    code = f"""
        import asyncio, os
        from datetime import UTC, datetime, timedelta
        from pathlib import Path
        from sublet.booking.model.job import Job, Program
        from sublet.booking.model.shape import Amounts, Shape
        from sublet.platforms.local.platform import Local
        async def main():
            local = Local(name="here", grace=timedelta(seconds=1))
            await local.open(Path({str(here.home)!r}))
            until = datetime.now(UTC) + timedelta(seconds=1)
            amounts = Amounts(Shape(1, 1 << 27))
            await local.submit(Job(Program(("sleep", "300")), amounts, (), until, timedelta(0)), {key!r})
            os.kill(os.getpid(), 9)
        asyncio.run(main())
    """
    service = await asyncio.create_subprocess_exec(sys.executable, "-c", textwrap.dedent(code))
    assert await service.wait() == -signal.SIGKILL

    async def recorded() -> bool:
        return here.session(key).ended

    await here.until("the record", recorded)
    record = json.loads((here.session(key).root / "end.json").read_bytes())
    assert record["kind"] == "timeout"


async def test_output_beyond_the_limit_is_dropped_and_the_exit_code_stays(here: Here) -> None:
    state = await here.wait_for_end(await here.submit("sh", "-c", "yes | head -c 5000000; echo err >&2; exit 7"))
    assert state.end
    assert state.end.code == 7
    assert "dropped" in state.end.detail
    out = await here.platform.output(here.keys[-1], "stdout", 0, 1 << 20)
    assert len(out) == 10_000
    assert out.endswith(b"sublet: what it printed beyond 10000 bytes was dropped\n")
    assert await here.platform.output(here.keys[-1], "stderr", 0, 100) == b"err\n"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk to fill")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "sublet-test", tmp_path], check=True)
    yield tmp_path
    subprocess.run(["umount", "-l", tmp_path], check=True)


async def test_a_full_disk_is_told_before_while_and_at_the_end(small_disk: Path) -> None:
    local = Local(name="here")
    await local.open(small_disk)
    trial = Here(local, small_disk)
    state = await trial.wait_for_end(await trial.submit("sh", "-c", "cat /dev/zero >filled"))
    assert state.end
    assert (state.end.kind, state.end.code) == (EndKind.DISK_FULL, 1)
    assert state.end.detail == "it exited with 1, and it said: cat: write error: No space left on device"
    with pytest.raises(DiskFull, match="No space left"):
        await trial.submit("true")
    state = await trial.wait_for_end(trial.keys[0])
    assert state.state is State.ENDED
    await trial.clean()


async def test_a_name_that_is_a_path_is_refused(here: Here) -> None:
    for key in ("../x", "a/b", "", ".", "x" * 300):
        with pytest.raises(PlatformRefused):
            await here.platform.place(key)
    bad = Job(
        Program(("true",), files={"../../x": b""}), Amounts(Shape(1, 64 * MIB)), (), datetime.now(UTC), timedelta(0)
    )
    with pytest.raises(PlatformRefused, match="not below"):
        await here.platform.submit(bad, here.key())
