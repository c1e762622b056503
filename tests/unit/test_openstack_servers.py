"""A session on OpenStack is one server, whatever answers get lost, and what it tells is what its machine told."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest

from sublet.booking.model.gpu_sorts import GpuSort
from sublet.booking.model.job import Job, JobState, Program, State
from sublet.booking.model.request import Compute, Data, Executable, Range, Request
from sublet.booking.model.scheduler import SchedulerOptions
from sublet.booking.model.session import EndKind
from sublet.booking.model.shape import Amounts, Shape
from sublet.kernel.errors import PlatformRefused, PlatformUnreachable
from sublet.platforms.openstack import servers as module
from sublet.platforms.openstack.access import CloudAccess
from sublet.platforms.openstack.api import CloudCalls
from sublet.platforms.openstack.platform import OpenStack
from tests.nova_played import AUTH, PlayedNova, refuse

pytestmark = pytest.mark.anyio
MIB = 1 << 20
SECRET = "the-password-of-a-database"


@pytest.fixture
def nova(monkeypatch: pytest.MonkeyPatch) -> PlayedNova:
    monkeypatch.setattr(module, "SETTLED", 0.0)
    monkeypatch.setattr(module, "LISTENED", 0.0)
    return PlayedNova()


async def open_platform(nova: PlayedNova, home: Path) -> OpenStack:
    made = OpenStack(name="cloud", image="guest", network="none")
    await made.open(home)
    calls = CloudCalls("cloud", CloudAccess(AUTH, {}, "here"), httpx2.MockTransport(nova.handle))
    made._servers = made._serve(calls)
    return made


@pytest.fixture
async def platform(nova: PlayedNova, tmp_path: Path) -> AsyncIterator[OpenStack]:
    made = await open_platform(nova, tmp_path)
    yield made
    await made.close()


def job_of(*argv: str, seconds: float = 60, files: dict[str, bytes] | None = None) -> Job:
    program = Program(argv or ("true",), {"DATABASE_PASSWORD": SECRET}, files or {})
    until = datetime.now(UTC) + timedelta(seconds=seconds)
    return Job(program, Amounts(Shape(1, 128 * MIB)), (), until, timedelta(0))


async def state_of(platform: OpenStack, key: str = "one") -> JobState:
    return (await platform.ask([key]))[key]


def left(**files: bytes) -> bytes:
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb") as packed, tarfile.open(fileobj=packed, mode="w|") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name.replace("__", "/"))
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def end_with(**more: object) -> dict[str, object]:
    return {"code": 0, "why": "", "killed": 0, "wall": 2.0, "cpu": 1.0, "peak": 5 * MIB, "pieces": 0, **more}


async def test_a_session_is_one_server_that_tells_its_output_its_end_and_what_it_left(
    platform: OpenStack, nova: PlayedNova
) -> None:
    await platform.submit(job_of(), "one")
    assert await platform.submit(job_of(), "one") == "one"
    assert (await state_of(platform)).state is State.QUEUED
    nova.server["status"] = "ACTIVE"
    assert (await state_of(platform)).condition == "its virtual machine is starting"
    nova.print("began", {"at": datetime.now(UTC).timestamp()})
    nova.print("stdout:0:6", b"hello\n")
    assert (await state_of(platform)).state is State.RUNNING
    assert await platform.output("one", "stdout", 0, 100) == b"hello\n"
    archive = left(stdout=b"hello\nworld\n", work__a__b=b"content")
    nova.print("left:0", archive[:40])
    nova.print("end", end_with(code=3, pieces=2))
    assert (await state_of(platform)).condition == "it has ended, and what it left is being fetched"
    nova.print("left:1", archive[40:])
    end = (await state_of(platform)).end
    assert end is not None
    assert (end.kind, end.code, end.usage and end.usage.cpu) == (EndKind.EXITED, 3, 1.0)
    assert await platform.output("one", "stdout", 0, 100) == b"hello\nworld\n"
    assert [(file.path, file.size) for file in (await platform.results("one")).files] == [("a/b", 7)]
    await state_of(platform)
    assert (nova.servers, nova.keys) == ({}, set())
    await platform.clean("one")
    assert (await state_of(platform)).state is State.UNKNOWN
    assert platform._servers
    assert not len(platform._servers._locks), "nothing of it is remembered"


async def test_no_secret_stands_in_user_data_or_metadata(platform: OpenStack, nova: PlayedNova) -> None:
    await platform.submit(job_of(files={"secret.txt": SECRET.encode() * 50}), "one")
    shown = {name: value for name, value in nova.server.items() if name != "adminPass"}
    assert SECRET not in nova.user_data
    assert SECRET not in str(shown)
    assert nova.server["adminPass"] not in nova.user_data + str(shown)
    assert nova.server["config_drive"] is True


async def test_what_is_too_large_for_user_data_is_refused_with_its_size(platform: OpenStack, nova: PlayedNova) -> None:
    noise = bytes(range(256)) * 4
    files = {f"{number}.bin": bytes((byte * number + number) % 256 for byte in noise) for number in range(400)}
    with pytest.raises(PlatformRefused, match=r"its files are \d+ bytes packed, and user data has room for \d+"):
        await platform.submit(job_of(files=files), "one")
    assert nova.servers == {}


@pytest.mark.parametrize("loses", ["before", "after"])
async def test_an_answer_that_was_lost_leaves_one_server_after_a_restart(
    nova: PlayedNova, tmp_path: Path, loses: str
) -> None:
    first = await open_platform(nova, tmp_path)
    nova.loses = loses
    with pytest.raises(PlatformUnreachable):
        await first.submit(job_of(), "one")
    nova.loses = ""
    lost = sorted(nova.keys)
    second = await open_platform(nova, tmp_path)
    assert await second.find("one") == ("one" if loses == "after" else None)
    assert await second.submit(job_of(), "one") == "one"
    assert len(nova.servers) == 1
    if loses == "before":  # a call that comes late names a key that is no more
        late = dict(nova.server) | {"key_name": lost[0]}
        assert nova.create(late).status_code == 400
    await second.cancel(["one"], "marie")
    assert (await state_of(second)).end.by == "marie"  # type: ignore[union-attr]
    assert (nova.servers, nova.keys) == ({}, set())


async def test_of_two_servers_of_one_session_the_other_is_deleted(platform: OpenStack, nova: PlayedNova) -> None:
    await platform.submit(job_of(), "one")
    own = nova.server["id"]
    nova.servers["vm-0"] = dict(nova.server) | {"id": "vm-0"}
    await state_of(platform)
    assert list(nova.servers) == [own]


async def test_what_nova_refuses_is_told_in_its_words_and_leaves_nothing(platform: OpenStack, nova: PlayedNova) -> None:
    await platform.survey()
    words = "Quota exceeded for cores: Requested 1, but already used 8 of 8 cores"
    nova.before = lambda method, path: (
        refuse(403, "forbidden", words) if (method, path) == ("POST", "/compute/servers") else None
    )
    with pytest.raises(PlatformRefused, match=words):
        await platform.submit(job_of(), "one")
    assert (nova.keys, await platform.find("one")) == (set(), None)


async def test_a_server_in_error_ends_with_novas_words(platform: OpenStack, nova: PlayedNova) -> None:
    await platform.submit(job_of(), "one")
    nova.server.update(status="ERROR", fault={"message": "No valid host was found. "})
    end = (await state_of(platform)).end
    assert end is not None
    assert (end.kind, end.detail) == (EndKind.NOT_STARTED, "No valid host was found.")
    assert nova.servers == {}


async def test_a_server_that_someone_deletes_was_cancelled_elsewhere(platform: OpenStack, nova: PlayedNova) -> None:
    await platform.submit(job_of(), "one")
    nova.server["status"] = "ACTIVE"
    nova.print("began", {"at": datetime.now(UTC).timestamp()})
    await state_of(platform)
    nova.servers.clear()
    end = (await state_of(platform)).end
    assert end is not None
    assert (end.kind, end.detail) == (EndKind.CANCELLED, "its virtual machine was deleted")
    assert end.by.startswith("someone at the cloud itself")


async def test_what_could_not_be_opened_or_went_off_without_a_word_says_so(
    platform: OpenStack, nova: PlayedNova
) -> None:
    await platform.submit(job_of(), "one")
    nova.server["status"] = "ACTIVE"
    nova.consoles[nova.server["id"]] = "Linux version 6.1\r\n#sublet-plain no-secret\r\n"
    end = (await state_of(platform)).end
    assert end is not None
    assert end.kind is EndKind.NOT_STARTED
    assert "has no admin_pass" in end.detail
    await platform.submit(job_of(), "two")
    nova.server["status"] = "ACTIVE"
    nova.print("began", {"at": datetime.now(UTC).timestamp()})
    await state_of(platform, "two")
    nova.server["status"] = "SHUTOFF"
    nova.consoles[nova.server["id"]] += "Kernel panic - not syncing: Out of memory\r\n"
    end = (await state_of(platform, "two")).end
    assert end is not None
    assert end.kind is EndKind.NODE_LOST
    assert end.detail.endswith("its console shows last: Kernel panic - not syncing: Out of memory")


async def test_a_machine_without_a_sign_of_life_is_lost(
    platform: OpenStack, nova: PlayedNova, monkeypatch: pytest.MonkeyPatch
) -> None:
    await platform.submit(job_of(), "one")
    nova.server["status"] = "ACTIVE"
    nova.print("began", {"at": datetime.now(UTC).timestamp()})
    nova.print("beat:1", {"at": 0})
    assert (await state_of(platform)).state is State.RUNNING
    monkeypatch.setattr(module, "SILENCE", -1.0)
    monkeypatch.setattr(module, "LISTENED", 60.0)
    end = (await state_of(platform)).end
    assert end is not None
    assert end.kind is EndKind.NODE_LOST


async def test_the_end_of_the_time_presses_the_power_button_once(platform: OpenStack, nova: PlayedNova) -> None:
    await platform.submit(job_of(seconds=1), "one")
    nova.server["status"] = "ACTIVE"
    nova.print("began", {"at": datetime.now(UTC).timestamp() - 5})
    pressed: list[str] = []
    act = nova.act

    def note(id: str, body: dict[str, object]) -> httpx2.Response:
        pressed.extend(body)
        return act(id, body)

    nova.act = note  # type: ignore[method-assign]
    for _ in range(3):
        assert (await state_of(platform)).state is State.RUNNING
    assert pressed.count("os-stop") == 1
    nova.print("end", end_with(code=-15, why="button"))
    end = (await state_of(platform)).end
    assert end is not None
    assert end.kind is EndKind.TIMEOUT


async def test_what_is_deleted_in_vain_is_deleted_again(platform: OpenStack, nova: PlayedNova) -> None:
    await platform.submit(job_of(), "one")
    nova.refuses_delete = True
    await platform.cancel(["one"], "marie")
    nova.server.update(status="ERROR", fault={"message": "no"})
    assert (await state_of(platform)).state is State.ENDED
    assert len(nova.servers) == 1
    assert await platform.list_left() == ["one"]
    nova.refuses_delete = False
    await platform.ask([])
    assert nova.servers == {}


async def test_a_session_is_extended_within_what_its_machine_allows(platform: OpenStack, nova: PlayedNova) -> None:
    await platform.submit(job_of(), "one")
    await platform.extend("one", datetime.now(UTC) + timedelta(hours=2))
    with pytest.raises(PlatformRefused, match="turns itself off at"):
        await platform.extend("one", datetime.now(UTC) + timedelta(days=2))


def ask_for(cores: int = 1, memory: int = 128 * MIB, kind: str = "command") -> Request:
    compute = Compute(cores=Range(cores, cores), memory=Range(memory, memory))
    return Request(executable=Executable(kind), compute=compute, duration=timedelta(hours=1))


async def test_offers_follow_the_quota_and_the_flavors(platform: OpenStack, nova: PlayedNova) -> None:
    now = datetime.now(UTC)
    first = await platform.offers(ask_for(), ["sh"], now)
    assert first.reasons == ()
    offer = first.offers[0]
    assert "as tiny (1 cores, 320 MiB" in offer.why
    assert offer.start - now < timedelta(minutes=2)
    reasons = (await platform.offers(ask_for(16), ["sh"], now)).reasons
    assert reasons[0].message == "cloud gives at most 4 cores on a node, and 16 were asked for."
    nova.limits |= {"totalInstancesUsed": 3}
    platform.expire_survey()
    later = (await platform.offers(ask_for(), ["sh"], now)).offers[0]
    assert "when others have left the quota room" in later.why
    assert later.start - now > timedelta(minutes=30)
    refused = platform.unfit(ask_for(kind="interactive"))
    assert "nobody can connect to it" in refused[0].message


async def test_features_and_types_of_gpu_choose_a_flavor_or_are_a_no_that_names_them(platform: OpenStack) -> None:
    now, request = datetime.now(UTC), ask_for()
    assert {"types of GPU: gpu-a100", "features of nodes: CUSTOM_DRIVER_550, CUSTOM_SSD"} <= {
        *(await platform.survey()).notes
    }
    gpus = replace(request.compute, gpus=Range(1, 1))
    for compute, asked in (
        (gpus, SchedulerOptions(gpu_type="gpu-a100")),
        (gpus, SchedulerOptions(constraint="CUSTOM_SSD|CUSTOM_NVME")),
    ):
        (offer,) = (await platform.offers(replace(request, compute=compute, scheduler=asked), ["sh"], now)).offers
        assert "as gpus (4 cores" in offer.why
        assert offer.gpu_sorts == (GpuSort("gpu-a100", "550"),)
    for asked, why in (
        (SchedulerOptions(gpu_type="h100"), "cloud has no GPUs of the type h100; it has: gpu-a100."),
        (
            SchedulerOptions(constraint="fast"),
            "cloud has no node with the feature fast; it has: CUSTOM_DRIVER_550, CUSTOM_SSD.",
        ),
    ):
        answer = await platform.offers(replace(request, compute=gpus, scheduler=asked), ["sh"], now)
        assert [reason.message for reason in answer.reasons] == [why]
    assert [platform.can_take(name) for name in ("constraint", "gpu_type", "licenses")] == [True, True, False]
    (refused,) = platform.unfit(replace(request, scheduler=SchedulerOptions(constraint="(a|b)&c")))
    assert refused.field == "constraint"


def test_files_that_user_data_can_never_hold_are_a_no_before_anything_is_accepted() -> None:
    platform = OpenStack(name="cloud", image="guest")
    asked = replace(ask_for(), data=(Data("cube", "simple-data-resource", size=1 << 30), Data("notes", "x", size=10)))
    (refused,) = platform.unfit(asked)
    assert (refused.field, refused.wanted) == ("data", "1073741834B")
    assert "about 30 kB" in refused.message
    assert platform.unfit(replace(asked, data=asked.data[1:])) == []


async def test_what_a_lost_service_left_is_found_by_its_name(
    platform: OpenStack, nova: PlayedNova, tmp_path: Path
) -> None:
    await platform.submit(job_of(), "one")
    nova.keys.add(f"sublet-{platform._owner}-aaaabbbbccccdddd-1")
    assert await platform.list_left() == ["one", "aaaabbbbccccdddd"]
    await platform.clean("aaaabbbbccccdddd")
    assert await platform.list_left() == ["one"]
    assert await platform.list_left(timedelta(hours=1)) == []
