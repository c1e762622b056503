"""Where a cloud's machines have addresses, files of any size go by ssh, and people connect to what listens there.

Nova and Neutron are played; the machine is an sshd on this one's loopback, and the test does what a guest does.
"""

from __future__ import annotations

import gzip
import hashlib
import http.server
import io
import os
import tarfile
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import httpx
import httpx2
import pytest
from pydantic import ValidationError

from sublet.booking.model.job import Job, JobState, Program, State
from sublet.booking.model.request import Compute, Data, Executable, Range, Request
from sublet.booking.model.session import EndKind
from sublet.booking.model.shape import Amounts, Shape
from sublet.kinds.compose import COMPOSE
from sublet.kinds.container import PARTS
from sublet.kinds.travel import pack
from sublet.platforms.openstack import door, servers
from sublet.platforms.openstack.access import CloudAccess
from sublet.platforms.openstack.api import CloudCalls
from sublet.platforms.openstack.platform import OpenStack
from sublet.platforms.openstack.userdata import UserDataTooLarge, write_user_data
from tests.nova_played import AUTH, PlayedNova
from tests.sshd import Sshd, needs_sshd, sshd

pytestmark = [pytest.mark.anyio, needs_sshd]
MIB = 1 << 20
OTHER = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPUq0iEcNlT3XVtZpZ9L9xVnTNzIeqwJH4tYl0wVY3lC"
USED = {"why": "", "killed": 0, "wall": 2.0, "cpu": 1.0, "peak": 5 * MIB}


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Sshd]:
    allowed = tmp_path / "sshd" / "allowed"
    with sshd(tmp_path / "sshd", AuthorizedKeysFile=str(allowed)) as started:
        yield started


@pytest.fixture
async def platform(machine: Sshd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OpenStack]:
    monkeypatch.setattr(servers, "LISTENED", 0.0)
    monkeypatch.setattr(door, "DOOR", str(machine.home))
    monkeypatch.setattr(door, "DOOR_NAME", machine.user)
    address = {"address": "floating", "floating_network": "public", "ssh_port": machine.port}
    made = OpenStack.model_validate({"name": "cloud", "image": "guest", **address})
    await made.open(tmp_path / "home")
    yield made
    await made.close()


@pytest.fixture
def nova(platform: OpenStack) -> PlayedNova:
    played = PlayedNova()
    calls = CloudCalls("cloud", CloudAccess(AUTH, {}, "here"), httpx2.MockTransport(played.handle))
    platform._servers = platform._serve(calls)
    return played


def job_of(connects: str = "", files: dict[str, bytes] | None = None) -> Job:
    program = Program(("true",), files=files or {}, connects=connects)
    until = datetime.now(UTC) + timedelta(minutes=5)
    return Job(program, Amounts(Shape(1, 128 * MIB)), (), until, timedelta(0))


async def start(platform: OpenStack, nova: PlayedNova, machine: Sshd, job: Job, host_key: str = "") -> Path:
    """Submit it, and have its machine up with its door open; the session's directory here."""
    await platform.submit(job, "one")
    root = await platform.place("one")
    assert root is not None
    (machine.directory / "allowed").write_text((root / "door_key.pub").read_text())
    nova.server["status"] = "ACTIVE"
    own = " ".join((machine.directory / "host_key.pub").read_text().split()[:2])
    nova.print("door", {"host_key": host_key or own, "port": machine.port})
    return root


async def state_of(platform: OpenStack) -> JobState:
    return (await platform.ask(["one"]))["one"]


async def ask_until(platform: OpenStack, state: State, words: str = "") -> JobState:
    with anyio.fail_after(60):
        while True:
            now = await state_of(platform)
            if now.state is state and words in now.condition:
                return now
            await anyio.sleep(0.05)  # between two looks, until the deadline


def pack_left(**files: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"work/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


async def test_files_of_any_size_go_and_come_by_ssh_and_nothing_of_the_way_stays(
    platform: OpenStack, nova: PlayedNova, machine: Sshd, tmp_path: Path
) -> None:
    noise, result = os.urandom(2 * MIB), os.urandom(5 * MIB)
    root = await start(platform, nova, machine, job_of(files={"noise": noise}))
    assert "PRIVATE KEY" not in nova.user_data
    assert (root / "door_key").stat().st_mode & 0o077 == 0
    with anyio.fail_after(60):
        while not (machine.home / "in").exists():
            await state_of(platform)
            await anyio.sleep(0.05)
    with tarfile.open(machine.home / "in") as archive:
        member = archive.extractfile("work/noise")
        assert member is not None
        assert member.read() == noise
    (address,) = nova.floating.values()
    assert (address["floating_network_id"], address["description"]) == ("net-public", nova.server["name"])
    nova.print("began", {"at": datetime.now(UTC).timestamp()})
    left = pack_left(result=result)
    (machine.home / "left").write_bytes(left)
    digest = hashlib.sha256(left).hexdigest()
    nova.print("end", {**USED, "code": 0, "pieces": 0, "size": len(left), "digest": digest, "fetched": True})
    end = (await ask_until(platform, State.ENDED)).end
    assert end is not None
    assert (end.kind, end.code, end.detail) == (EndKind.EXITED, 0, "")
    assert b"".join([piece async for piece in platform.read("one", "result")]) == result
    await platform.clean("one")
    assert (nova.servers, nova.keys, nova.floating) == ({}, set(), {})
    assert list((tmp_path / "home" / "doors").iterdir()) == []


async def test_a_machine_that_shows_another_host_key_gets_nothing(
    platform: OpenStack, nova: PlayedNova, machine: Sshd
) -> None:
    await start(platform, nova, machine, job_of(files={"noise": os.urandom(MIB)}), OTHER)
    state = await ask_until(platform, State.QUEUED, "host key")
    assert state.condition.startswith("its files are being brought: ")
    assert list(machine.home.iterdir()) == []
    await platform.cancel(["one"], "marie")
    end = (await ask_until(platform, State.ENDED)).end
    assert end is not None
    assert (end.kind, end.by) == (EndKind.CANCELLED, "marie")


@pytest.fixture
def bastion(machine: Sshd, tmp_path: Path) -> Iterator[Sshd]:
    """A host that lets its user go on to the machine, and do nothing else."""
    only = {"PermitOpen": f"127.0.0.1:{machine.port}", "ForceCommand": "false", "LogLevel": "VERBOSE"}
    with sshd(tmp_path / "bastion", **only) as started:
        yield started


async def start_behind(bastion: Sshd, platform: OpenStack, nova: PlayedNova, machine: Sshd) -> None:
    place = {"bastion": f"{bastion.user}@127.0.0.1:{bastion.port}", "bastion_ssh": bastion.options}
    behind = OpenStack.model_validate({**platform.model_dump(), **place})
    servers = platform._servers
    assert servers is not None
    servers.doors.settings = behind.door_settings
    await start(platform, nova, machine, job_of(files={"noise": os.urandom(MIB)}))


async def test_a_machine_behind_a_bastion_is_reached_through_it(
    platform: OpenStack, nova: PlayedNova, machine: Sshd, bastion: Sshd
) -> None:
    await start_behind(bastion, platform, nova, machine)
    with anyio.fail_after(60):
        while not (machine.home / "in").exists():
            await state_of(platform)
            await anyio.sleep(0.05)
    assert "Accepted publickey" in (bastion.directory / "sshd.log").read_text()
    await platform.cancel(["one"], "marie")


@pytest.mark.parametrize("what", ["unknown", "changed"])
async def test_nothing_goes_through_a_bastion_whose_host_key_is_not_the_known_one(
    platform: OpenStack, nova: PlayedNova, machine: Sshd, bastion: Sshd, what: str
) -> None:
    known = bastion.directory / "known_hosts"
    other = known.read_text().split()[0] + " " + OTHER + "\n"
    known.write_text("" if what == "unknown" else other)
    before = known.read_text()
    await start_behind(bastion, platform, nova, machine)
    state = await ask_until(platform, State.QUEUED, "host key")
    assert state.condition.startswith("its files are being brought: ")
    assert (list(machine.home.iterdir()), known.read_text()) == ([], before)
    assert "Accepted" not in (bastion.directory / "sshd.log").read_text()
    await platform.cancel(["one"], "marie")


class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"a lab")

    def log_message(self, *words: object) -> None:
        pass


async def test_people_connect_to_what_listens_in_a_machine_and_its_end_is_ordered_by_ssh(
    platform: OpenStack, nova: PlayedNova, machine: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as lab:
        threading.Thread(target=lab.serve_forever, daemon=True).start()
        monkeypatch.setattr(door, "PORT", lab.server_port)
        await start(platform, nova, machine, job_of("uri:jupyter-lab"))
        nova.print("began", {"at": datetime.now(UTC).timestamp()})
        assert (await ask_until(platform, State.RUNNING)).connector is None
        nova.print("listens", {"port": lab.server_port})
        state = await state_of(platform)
        assert state.connector is not None, state.condition
        assert (state.connector.kind, state.connector.location[:6]) == ("uri:jupyter-lab", "unix:/")
        transport = httpx.AsyncHTTPTransport(uds=state.connector.location.removeprefix("unix:"))
        async with httpx.AsyncClient(transport=transport) as client:
            assert (await client.get("http://lab/")).text == "a lab"
        lab.shutdown()
    await platform.cancel(["one"], "marie")
    assert (machine.home / "stop").exists()
    assert not any("os-stop" in call for call in nova.calls)


def ask_for(kind: str) -> Request:
    compute = Compute(cores=Range(1, 1), memory=Range(128 * MIB, 128 * MIB))
    return Request(executable=Executable(kind), compute=compute, duration=timedelta(hours=1))


COMPOSE_FILE = """services:
  web: {image: docker.io/library/nginx, ports: ["80"]}
  db: {image: docker.io/library/redis}
"""


async def test_a_compose_file_is_offered_a_whole_machine_where_its_image_is_said_to_have_podman(
    platform: OpenStack, nova: PlayedNova
) -> None:
    executable = Executable("docker-compose", fields={"compose": COMPOSE_FILE})
    assert COMPOSE.ways(executable, (await platform.survey()).tools) == []
    with_podman = platform.model_copy(update={"tools": ("python3", "podman")})
    (way,) = COMPOSE.ways(executable, (await with_podman.survey()).tools)
    asked = replace(ask_for("docker-compose"), executable=executable)
    (offer,) = (await with_podman.offers(asked, [way.name], datetime.now(UTC))).offers
    assert "as tiny" in offer.why
    closed = OpenStack(name="cloud", image="guest", tools=("python3", "podman"), network="none")
    words = [reason.message for reason in closed.unfit(asked)]
    assert ["nobody can connect" in words[0], "can pull no image" in words[1]] == [True, True]


async def test_what_runs_containers_needs_an_address_and_that_is_said_before_anything_is_accepted(
    platform: OpenStack, nova: PlayedNova
) -> None:
    executable = Executable("docker-compose", fields={"compose": {"services": {"box": {"image": "box"}}}})
    asked = replace(ask_for("docker-compose"), executable=executable)
    closed = platform.model_copy(update={"address": "", "tools": ("python3", "podman")})
    answer = await closed.offers(asked, ["podman"], datetime.now(UTC))
    assert answer.offers == ()
    assert "its `address` is not set" in answer.reasons[0].message
    runner = gzip.compress(pack("container_job", *PARTS))
    with pytest.raises(UserDataTooLarge):
        write_user_data(b"{}", runner, b"secret")


async def test_an_offer_says_which_way_a_machine_is_reached(platform: OpenStack, nova: PlayedNova) -> None:
    asked = replace(ask_for("interactive"), data=(Data("cube", "x", size=1 << 30),))
    assert platform.unfit(asked) == []
    (offer,) = (await platform.offers(asked, ["sh"], datetime.now(UTC))).offers
    assert "reached by ssh at a floating IP" in offer.why
    assert "each virtual machine is reached by ssh at a floating IP" in (await platform.survey()).notes
    for wrong in ({"address": "floating"}, {"address": "fixed", "network": "none"}):
        with pytest.raises(ValidationError, match="needs"):
            OpenStack.model_validate({"name": "cloud", "image": "guest", **wrong})
