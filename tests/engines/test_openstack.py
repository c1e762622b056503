"""A real OpenStack, whose virtual machines run, keeps the promises of every platform and tells ends as they were."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import anyio
import httpx
import pytest

from sublet.booking.model.job import Job, JobState, State
from sublet.booking.model.session import EndKind
from sublet.booking.model.shape import Amounts, Shape
from sublet.kernel.errors import LoginNeeded, PlatformRefused
from sublet.platforms.conformance import Rule, rules_for, try_rule
from sublet.platforms.conformance_trial import ConformanceTrial
from sublet.platforms.openstack.platform import OpenStack
from tests.engines.openstack_cloud import Project

pytestmark = [pytest.mark.anyio, pytest.mark.soak]
PATIENCE = 300.0  # seconds: machines are emulated
GREEDY = "x = [str(number).encode() * (4 << 20) for number in range(500)]"  # in steps, or it is refused at once
HUSH = "the-password-of-a-database"


@pytest.fixture
async def platform(project: Project, tmp_path: Path) -> AsyncIterator[OpenStack]:
    made = project.platform()
    await made.open(tmp_path / "home")
    yield made
    await made.close()


@pytest.fixture
async def trial(platform: OpenStack) -> AsyncIterator[ConformanceTrial]:
    made = ConformanceTrial(platform, PATIENCE)
    yield made
    await made.clean()


@pytest.mark.parametrize("rule", rules_for(OpenStack(name="sky", image="guest")), ids=lambda rule: rule.__name__)
async def test_openstack_keeps_the_rule(platform: OpenStack, project: Project, rule: Rule) -> None:
    finding = await try_rule(platform, rule, PATIENCE)
    assert finding.ok, f"{finding.rule} {finding.detail}"
    assert await project.list_names() == []


async def end_of(trial: ConformanceTrial, job: Job) -> JobState:
    return await trial.wait_for_end(await trial.platform.submit(job, trial.key()))


async def is_running(trial: ConformanceTrial, job: str) -> None:
    async def runs() -> bool:
        return (await trial.state(job)).state is State.RUNNING

    await trial.until("its start", runs)


async def test_memory_signals_and_what_was_used_are_told(trial: ConformanceTrial) -> None:
    state = await end_of(trial, trial.job("sh", "-c", f"python3 -c '{GREEDY}'; exit 5", seconds=600))
    assert state.end is not None
    assert (state.end.kind, state.end.code) == (EndKind.OUT_OF_MEMORY, 5)
    work = "import os; sum(range(500_000)); os.kill(os.getpid(), 10)"
    state = await end_of(trial, trial.job("python3", "-c", work))
    assert state.end is not None
    assert (state.end.kind, state.end.signal) == (EndKind.SIGNALLED, 10)
    assert state.end.usage is not None
    assert state.end.usage.cpu > 0
    assert state.end.usage.peak_memory > 1 << 20


async def test_what_no_host_has_room_for_says_so_in_novas_words(project: Project, tmp_path: Path) -> None:
    platform = project.platform(flavors=("huge",))
    await platform.open(tmp_path / "home")
    trial = ConformanceTrial(platform, PATIENCE)
    try:
        state = await end_of(trial, trial.job("true"))
        assert state.end is not None
        assert state.end.kind is EndKind.NOT_STARTED
        assert "No valid host was found" in state.end.detail
    finally:
        await trial.clean()
        await platform.close()


async def test_someone_without_rights_gets_novas_own_words(project: Project, tmp_path: Path) -> None:
    bob = project.platform("bob")
    await bob.open(tmp_path / "home")
    try:
        trial = ConformanceTrial(bob, PATIENCE)
        with pytest.raises(PlatformRefused, match=r"Policy doesn't allow os_compute_api:.* to be performed"):
            await trial.submit("true")
        assert await trial.platform.find(trial.keys[-1]) is None
    finally:
        await bob.close()
    file = project.cloud.write_config(tmp_path / "wrong.yaml", "alice", password="wrong")
    wrong = OpenStack(name="sky", clouds_file=str(file), image="guest")
    await wrong.open(tmp_path / "wrong")
    with pytest.raises(LoginNeeded, match="The request you have made requires authentication"):
        await wrong.survey()
    await wrong.close()


async def test_a_server_that_someone_deletes_was_cancelled_elsewhere(trial: ConformanceTrial, project: Project) -> None:
    job = await trial.submit("sleep", "300")
    await is_running(trial, job)
    compute = project.compute()
    await compute.delete_server(trial.platform.find_own_id(job))
    await compute.calls.close()
    state = await trial.wait_for_end(job)
    assert state.end is not None
    assert (state.end.kind, state.end.by[:20]) == (EndKind.CANCELLED, "someone at the cloud")


async def test_results_that_no_console_keeps_come_back_whole_and_nobody_reads_along(
    trial: ConformanceTrial, project: Project
) -> None:
    script = f"head -c 150000 /dev/urandom >big; sha256sum big; echo {HUSH}; echo $PASSWORD >seen; sleep 3"
    plain = trial.job("sh", "-c", script, seconds=600)
    environment = {**plain.program.environment, "PASSWORD": HUSH}
    job = await trial.platform.submit(
        replace(plain, program=replace(plain.program, environment=environment)), trial.key()
    )
    id, compute, shown = trial.platform.find_own_id(job), project.compute(), ""

    async def is_printed() -> bool:
        nonlocal shown
        await trial.state(job)
        shown = await compute.read_console(id) or shown
        return HUSH.encode() in await trial.platform.output(job, "stdout", 0, 1000)

    await trial.until("what it prints", is_printed)
    server = await compute.calls.get("compute", f"/servers/{id}")
    assert "#sublet stdout:0:" in shown
    assert HUSH not in shown
    assert HUSH not in str(server)
    await compute.calls.close()
    state = await trial.wait_for_end(job)
    assert state.end is not None
    assert (state.end.kind, state.end.code) == (EndKind.EXITED, 0)
    told = (await trial.platform.output(job, "stdout", 0, 64)).decode()
    big = b"".join([piece async for piece in trial.platform.read(job, "big")])

    assert (len(big), hashlib.sha256(big).hexdigest()) == (150000, told)


KILLED = """
import asyncio, os, signal, sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from sublet.booking.model.job import Job, Program
from sublet.booking.model.shape import Amounts, Shape
from sublet.platforms.openstack.api import CloudCalls
from sublet.platforms.openstack.platform import OpenStack

home, clouds, key, path, when = sys.argv[1:]
send = CloudCalls._send

async def send_or_die(self, method, address, headers, body):
    is_it = method == "POST" and address.endswith(path)
    if is_it and when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    if is_it and when == "during":
        call = asyncio.create_task(send(self, method, address, headers, body))
        await asyncio.sleep(0.1)
        os.kill(os.getpid(), signal.SIGKILL)
    answer = await send(self, method, address, headers, body)
    if is_it and when == "after":
        os.kill(os.getpid(), signal.SIGKILL)
    return answer

CloudCalls._send = send_or_die

async def main():
    platform = OpenStack(name="sky", clouds_file=clouds, image="guest", network="none", flavors=("tiny",))
    await platform.open(Path(home))
    until = datetime.now(UTC) + timedelta(seconds=60)
    job = Job(Program(("sleep", "300")), Amounts(Shape(1, 128 << 20)), (), until, timedelta(0))
    await platform.submit(job, key)

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("path", "when"),
    [
        ("/os-keypairs", "before"),
        ("/os-keypairs", "after"),
        ("/servers", "before"),
        ("/servers", "during"),
        ("/servers", "after"),
    ],
)
async def test_a_service_that_is_killed_between_two_calls_leaves_one_server_and_nothing_after_a_cancel(
    trial: ConformanceTrial, project: Project, tmp_path: Path, path: str, when: str
) -> None:
    key = trial.key()
    words = [str(tmp_path / "home"), project.settings()["clouds_file"], key, path, when]
    done = await anyio.run_process([sys.executable, "-c", KILLED, *words], check=False)
    assert done.returncode == -9, done.stderr
    await trial.platform.find(key)
    assert await trial.platform.submit(trial.job("sleep", "300"), key) == key
    names = [name for name in await project.list_names() if name.count("-") == 2]
    assert len(names) == 1
    await trial.platform.cancel([key], "marie")
    state = await trial.wait_for_end(key)
    assert state.end is not None
    assert (state.end.kind, state.end.by) == (EndKind.CANCELLED, "marie")
    await trial.platform.clean(key)
    assert await project.list_names() == []


async def test_a_late_call_is_refused_once_its_key_is_gone(trial: ConformanceTrial, project: Project) -> None:
    await trial.platform.survey()
    compute = project.compute()
    try:
        image, flavor = await compute.find_image("guest"), (await compute.list_flavors(("tiny",)))[0]
        server = {"name": "sublet-late", "imageRef": image.id, "flavorRef": flavor.id, "networks": "none"}
        with pytest.raises(PlatformRefused, match="key_name"):
            await compute.create_server({**server, "key_name": "sublet-late-1"})
        assert await compute.list_servers("sublet-late") == []
    finally:
        await compute.calls.close()


async def test_what_a_lost_service_left_is_swept_by_its_name(
    project: Project, platform: OpenStack, tmp_path: Path
) -> None:
    trial = ConformanceTrial(platform, PATIENCE)
    job = await trial.submit("sleep", "300")
    other = project.platform()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "owner").write_text((tmp_path / "home" / "owner").read_text())
    await other.open(tmp_path / "other")
    assert await other.list_left() == [job]
    await other.clean(job)
    assert await project.list_names() == []
    await other.close()
    await trial.clean()


async def test_what_is_too_large_is_refused_before_a_server_is_made(trial: ConformanceTrial, project: Project) -> None:
    job = trial.job("true")
    large = {"noise": os.urandom(60_000)}
    job = replace(job, program=replace(job.program, files=large), amounts=Amounts(Shape(1, 128 << 20)))
    with pytest.raises(PlatformRefused, match="user data has room for"):
        await trial.platform.submit(job, trial.key())
    assert await project.list_names() == []


SERVER = """
import http.server, os, sys
open("seen", "w").write(str(os.path.getsize("noise")))
open("big", "wb").write(os.urandom(6 << 20))
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b"hello from " + os.environ["USER"].encode())
http.server.HTTPServer((os.environ["SUBLET_HOST"], int(os.environ["SUBLET_PORT"])), Page).serve_forever()
"""


FIXED = {"network": "wire", "address": "fixed"}
FLOATING = {"network": "inner", "address": "floating", "floating_network": "public"}  # behind a router of Neutron's


@pytest.mark.parametrize("way", [FIXED, FLOATING], ids=lambda way: way["address"])
async def test_large_files_go_in_and_out_by_ssh_and_people_connect_to_a_machine(
    project: Project, tmp_path: Path, way: dict[str, str]
) -> None:
    platform = project.platform(**way)
    await platform.open(tmp_path / "home")
    trial = ConformanceTrial(platform, PATIENCE)
    try:
        plain = trial.job("python3", "server.py", seconds=600)
        files = {"server.py": SERVER.encode(), "noise": os.urandom(1 << 20)}
        job = replace(plain, program=replace(plain.program, files=files, connects="uri:http"))
        key = await platform.submit(job, trial.key())
        place = ""

        async def is_connected() -> bool:
            nonlocal place
            connector = (await trial.state(key)).connector
            place = connector.location if connector else ""
            return bool(connector)

        await trial.until("a connector", is_connected)
        assert len(await project.list_floating()) == (way is FLOATING)
        transport = httpx.AsyncHTTPTransport(uds=place.removeprefix("unix:"))
        async with httpx.AsyncClient(transport=transport, timeout=60) as client:
            assert (await client.get("http://lab/")).text == "hello from sublet"
        await platform.cancel([key], "marie")
        state = await trial.wait_for_end(key)
        assert state.end is not None
        assert (state.end.kind, state.end.by, state.end.detail) == (EndKind.CANCELLED, "marie", "")
        sizes = {file.path: file.size for file in (await platform.results(key)).files}
        assert sizes["big"] == 6 << 20
        assert b"".join([piece async for piece in platform.read(key, "seen")]) == b"1048576"
    finally:
        await trial.clean()
        await platform.close()
    assert await project.list_names() == []
    assert await project.list_floating() == []
