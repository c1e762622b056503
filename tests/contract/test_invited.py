"""An invited site: what is asked of it lies there until it is taken, whole and once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sublet.booking.model.job import Job, JobState, Program, State
from sublet.booking.model.request import Executable, Request
from sublet.booking.model.session import EndKind
from sublet.booking.model.shape import Amounts, Shape
from sublet.client.pulling import PulledRequest, read_invitation, write_invitation
from sublet.kernel.errors import BadInvitation, PilotRefused, PlatformRefused
from sublet.platforms.invited.platform import Invited
from sublet.service import Service
from tests.contract.leases import leasing
from tests.contract.test_service_pilots import FIRST, SECOND, PlayedListener, PlayedPoint

pytestmark = pytest.mark.anyio
KEY = "6f1b2c1e-0000-4000-8000-000000000000"


def lease(count: int = 2) -> Job:
    program = Program(("sh", "start.sh"), files={"start.sh": b"true\n"})
    until = datetime.now(UTC) + timedelta(hours=1)
    return Job(program, Amounts(Shape(4, 1 << 30), count), (), until, timedelta(0))


async def state(site: Invited) -> JobState:
    return (await site.ask([KEY]))[KEY]


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Invited]:
    one = Invited(name="partner")
    await one.open(tmp_path)
    yield one
    await one.close()


async def test_only_leases_are_asked_of_an_invited_site(site: Invited) -> None:
    now = datetime.now(UTC)
    other = await site.offers(Request(Executable("command", fields={"argv": ["true"]})), ["exec"], now)
    assert [reason.field for reason in other.reasons] == ["executable.kind"]
    assert len((await site.offers(Request(Executable("pilot")), ["htcondor"], now)).offers) == 1


async def test_a_request_is_taken_once_and_again_only_by_who_has_it(site: Invited) -> None:
    for _ in range(2):
        assert await site.submit(lease(), KEY) == KEY
    (wanted,) = site.list_wanted()
    assert (wanted.key, wanted.amounts.nodes, wanted.amounts.shape) == (KEY, 2, Shape(4, 1 << 30))
    assert wanted.line.split()[:5] == [KEY, "2", "4", "1024", "0"], "memory in MiB, as sites have always read it"
    assert (await state(site)).condition == "waits for partner"
    assert site.take(KEY, "one") == site.take(KEY, "one")
    with pytest.raises(PlatformRefused, match="taken already"):
        site.take(KEY, "two")
    assert site.list_wanted() == []
    assert (await state(site)).state is State.QUEUED
    site.began(KEY)
    assert (await state(site)).state is State.RUNNING
    site.note_end(KEY, 83, "pilot: 0 on c1: too far")
    site.note_end(KEY, 0, "later")
    end = (await state(site)).end
    assert end is not None
    assert (end.kind, end.code) == (EndKind.EXITED, 83)
    assert await site.output(KEY, "stderr", 0, 100) == b"pilot: 0 on c1: too far"
    await site.clean(KEY)
    assert (await state(site)).state is State.UNKNOWN


async def test_what_is_cancelled_can_be_taken_no_more(site: Invited) -> None:
    await site.submit(lease(), KEY)
    await site.cancel([KEY], "ann")
    end = (await state(site)).end
    assert end is not None
    assert (end.kind, end.by) == (EndKind.CANCELLED, "ann")
    assert site.list_wanted() == []
    with pytest.raises(PlatformRefused, match="not any more"):
        site.take(KEY, "one")


async def invited(service: Service) -> str:
    service.annexes.access_points.point, service.annexes.pilot_plans.listener = PlayedPoint(), PlayedListener()  # type: ignore[assignment]
    return (await service.annexes.invitations.invite("partner")).token


async def test_a_site_sees_what_is_asked_of_it_alone_and_only_with_its_invitation(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        token = await invited(service)
        platform = service.platforms.by_name["partner"]
        await platform.submit(lease(), KEY)
        assert (await service.annexes.invitations.list_wanted_of_site("partner", {"token": token})).startswith(
            KEY.encode()
        )
        other = (await service.annexes.invitations.invite("other")).token
        for name, wrong in (("partner", other), ("partner", ""), ("here", token), ("nobody", token)):
            with pytest.raises(PilotRefused, match="No such site"):
                await service.annexes.invitations.list_wanted_of_site(name, {"token": wrong})
        assert await service.annexes.invitations.list_wanted_of_site("other", {"token": other}) == b""
        told = {"token": token, "request": KEY}
        assert await service.annexes.invitations.take_for_site("partner", told | {"nonce": FIRST})
        with pytest.raises(PlatformRefused):
            await service.annexes.invitations.take_for_site("partner", told | {"nonce": SECOND})
        anew = (await service.annexes.invitations.invite("partner", anew=True)).token
        with pytest.raises(PilotRefused):
            await service.annexes.invitations.end_at_site("partner", told | {"code": "0"})
        await service.annexes.invitations.end_at_site("partner", told | {"token": anew, "code": "0"})
        assert (await platform.ask([KEY]))[KEY].state is State.ENDED
        await service.annexes.invitations.withdraw("partner")
        assert "partner" not in service.platforms.by_name


async def test_a_site_may_not_have_the_name_of_another_platform(tmp_path: Path) -> None:
    async with leasing(tmp_path) as service:
        with pytest.raises(PlatformRefused, match="cluster"):
            await service.annexes.invitations.invite("cluster")


def test_amounts_are_put_into_a_sites_own_command() -> None:
    wanted = PulledRequest(KEY, 2, 8, 4096, 0, 3600)
    words = ["sbatch", "--nodes={nodes}", "--mem={memory}M", "--time={minutes}", "{other}", "{cores}{gpus}"]
    assert wanted.fill(words) == ["sbatch", "--nodes=2", "--mem=4096M", "--time=62", "{other}", "80"]


def test_an_invitation_is_read_as_it_was_written_and_nothing_else_is_one() -> None:
    text = write_invitation("partner", ["https://a:1", "https://b:1"], "pin+/=", "it's $(id)")
    assert read_invitation(text) == {
        "site": "partner",
        "urls": "https://a:1 https://b:1",
        "pin": "pin+/=",
        "token": "it's $(id)",
    }
    for wrong in ("", "site=partner\n", text.replace("token", "other"), "site='"):
        with pytest.raises(BadInvitation):
            read_invitation(wrong)
