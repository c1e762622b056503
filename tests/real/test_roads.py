"""Data gets to a real Slurm site by the best road that there is, once, and stays there for later sessions."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from sublet.app import open_service
from sublet.booking.model.phases import Phase
from sublet.data.model.credentials import Credential, CredentialKind
from sublet.service import Service
from tests.contract.services import ME
from tests.real.clusters import logged_in
from tests.real.staging import MIB, SUM, begin, output, over, roads, run, settings_of
from tests.sites import Site
from tests.web_source import WebSource, serve_source

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def home(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The home of a service, with an open login to the site."""
    place = tmp_path_factory.mktemp("h")
    with logged_in(site, place):
        yield place


@pytest.fixture(scope="module")
def source(site: Site) -> Iterator[WebSource]:
    """A server that this machine and the site's login host reach."""
    with serve_source(".".join([*site.host.split(".")[:3], "1"])) as server:
        yield server


@pytest.fixture
async def service(site: Site, home: Path) -> AsyncIterator[Service]:
    async with open_service(settings_of(site, home)) as opened:
        yield opened


async def test_the_system_fetches_by_itself_once_and_this_machine_keeps_nothing(
    service: Service, source: WebSource, home: Path
) -> None:
    content = os.urandom(3 * MIB)
    address = source.put("/one/cube.bin", content)
    for road in ("fetched by far", "in the cache of far"):
        session = await run(service, run=SUM, data=[address])
        assert session.phase is Phase.COMPLETED, session.end
        assert await output(service, session) == f"{hashlib.sha256(content).hexdigest()}  -\n"
        [told] = await roads(service, session)
        assert road in told, told
    assert len(source.gets("/one/cube.bin")) == 1
    assert not find_files(home, "cube.bin")


def find_files(home: Path, name: str) -> list[Path]:
    return list(home.rglob(name))


async def test_where_the_system_may_not_fetch_it_is_streamed_past_this_machine_and_changed_data_is_brought_anew(
    service: Service, source: WebSource, home: Path
) -> None:
    for content in (os.urandom(3 * MIB), os.urandom(2 * MIB)):
        address = source.put("/two/cube.bin", content, cut_at=MIB)
        for road in ("streamed from", "in the cache of shut"):
            session = await run(service, platform="shut", run=SUM, data=[address])
            assert session.phase is Phase.COMPLETED, session.end
            assert await output(service, session) == f"{hashlib.sha256(content).hexdigest()}  -\n"
            [told] = await roads(service, session)
            assert road in told, told
            assert ("may not fetch data" in told) == (road == "streamed from")
    spans = [headers.get("Range") for headers in source.gets("/two/cube.bin")]
    assert spans[::2] == [None, None]
    assert None not in spans[1::2]
    assert not find_files(home, "cube.bin")


async def test_folders_of_this_machine_are_streamed_with_many_small_and_some_large_files(
    service: Service, tmp_path: Path
) -> None:
    folder = make_folder(tmp_path / "in")
    for road in ("streamed from this machine", "in the cache of far"):
        look = "cd in; find . -type f | wc -l; cat a/*.txt | sha256sum; sha256sum <big; test -x a/run.sh"
        words = f"{look} && ! echo more 2>/dev/null >>big"
        session = await run(service, run=["sh", "-c", words], data=[{"location": str(folder), "path": "in"}])
        assert session.phase is Phase.COMPLETED, session.end
        small = hashlib.sha256("".join(map(str, sorted(range(300), key=str))).encode()).hexdigest()
        big = hashlib.sha256(b"b" * 3 * MIB).hexdigest()
        assert (await output(service, session)).split() == ["302", small, "-", big, "-"]
        [told] = await roads(service, session)
        assert road in told, told


def make_folder(folder: Path) -> Path:
    (folder / "a").mkdir(parents=True)
    for number in range(300):
        (folder / "a" / f"{number}.txt").write_text(str(number))
    (folder / "a" / "run.sh").write_text("true")
    (folder / "a" / "run.sh").chmod(0o755)
    (folder / "big").write_bytes(b"b" * 3 * MIB)
    return folder


async def test_what_may_be_changed_is_a_copy_of_its_own_and_the_cache_stays_as_it_was(
    service: Service, source: WebSource
) -> None:
    address = source.put("/three/cube.bin", b"x" * MIB)
    change = ["sh", "-c", "printf changed >>in/cube.bin; wc -c <in/cube.bin"]
    data = [{"location": address, "path": "in", "writable": True}]
    for _ in range(2):
        session = await run(service, run=change, data=data)
        assert session.phase is Phase.COMPLETED, session.end
        assert await output(service, session) == f"{MIB + 7}\n"
    assert len(source.gets("/three/cube.bin")) == 1


async def test_results_of_a_session_on_the_same_system_are_linked_there_and_pass_through_nothing(
    service: Service, home: Path
) -> None:
    make = "mkdir -p out/deep; echo a >out/a.csv; echo b >out/deep/b.csv; echo no >other; printf x >one.bin"
    first = await begin(service, run=["sh", "-c", make])
    data = [
        {"location": f"session:{first.id}/out/", "path": "in"},
        {"location": f"session:{first.id}/one.bin", "path": "one.bin", "writable": True},
    ]
    work = "cat in/a.csv in/deep/b.csv; echo y >>one.bin; cat one.bin; find -L in -type f | wc -l"
    second = await run(service, run=["sh", "-c", work], data=data)
    assert second.phase is Phase.COMPLETED, second.end
    assert (await output(service, second)).split() == ["a", "b", "xy", "2"]
    assert [told.partition(" (")[0].partition(" ")[2] for told in await roads(service, second)] == [
        "was left on far by another session"
    ] * 2
    assert not find_files(home, "a.csv")
    platform = service.platforms.get("far")
    assert b"".join([piece async for piece in platform.read(first.id, "one.bin")]) == b"x"


async def test_two_sessions_that_want_one_file_at_once_have_it_fetched_once(
    service: Service, source: WebSource
) -> None:
    address = source.put("/four/cube.bin", os.urandom(2 * MIB), pace=0.05)
    begun = [await begin(service, run=SUM, data=[address]) for _ in range(2)]
    ends = [await over(service, session.id) for session in begun]
    assert [session.phase for session in ends] == [Phase.COMPLETED] * 2
    assert len(source.gets("/four/cube.bin")) == 1


async def test_secrets_are_in_no_process_list_and_no_file_and_are_not_shown_where_a_redirection_leads(
    service: Service, source: WebSource, site: Site
) -> None:
    secret = "token-that-nobody-sees"
    with serve_source(source.address.partition(":")[0]) as other:
        target = other.put("/five/cube.bin", os.urandom(MIB), pace=0.2)
        address = source.put("/five/cube.bin", b"", location=target, authorization=f"Bearer {secret}")
        place = f"http://{source.address}/five"
        await service.credentials.add(ME, Credential(place, CredentialKind.TOKEN, secret=secret))
        session = await begin(service, run=SUM, data=[address])
        seen = []
        while not other.gets("/five/cube.bin"):
            await service.signals.wait(0.1)
        while (await service.sessions.get(session.id, ME)).phase is Phase.PREPARING and len(seen) < 5:
            seen.append(await asyncio.to_thread(site.on, "login", "ps", "-ef", "ww"))
        ended = await over(service, session.id)
        assert ended.phase is Phase.COMPLETED, ended.end
        assert any("fetch." in text for text in seen)
        assert not [text for text in seen if secret in text or "/five/" in text]
        assert all("Authorization" not in headers for _, _, headers in other.asked)
    left = site.on("login", "grep", "-rl", secret, "/home/researcher", check=False)
    assert left == ""


async def test_a_cancelled_session_ends_what_is_fetched_for_it(service: Service, source: WebSource, site: Site) -> None:
    address = source.put("/six/cube.bin", os.urandom(20 * MIB), pace=0.2)
    session = await begin(service, run=SUM, data=[address])
    while not source.gets("/six/cube.bin"):
        await service.signals.wait(0.1)
    await service.sessions.cancel(session.id, ME)
    assert (await over(service, session.id)).phase is Phase.CANCELLED
    await asyncio.to_thread(site.wait, lambda: "fetch." not in site.on("login", "ps", "-ef", "ww"))
    assert source.sent < 20 * MIB
