"""Data in Globus' collections: listed, moved by one transfer that is never submitted twice, read and sent by HTTPS."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.model.request import Data
from sublet.data.executables import Movers
from sublet.data.journeys import Journey
from sublet.data.model.credentials import Credential, CredentialKind
from sublet.data.model.roads import Road
from sublet.data.roads import Arrival, take_road
from sublet.data.tasks import stop_transfers
from sublet.kernel.errors import DataNotSent, DataNotThere, DiskFull
from sublet.movers.globus import GlobusMover
from sublet.movers.http import HttpMover
from sublet.movers.port import SIMPLE, Policy, Progress
from sublet.platforms.port import quietly
from sublet.platforms.slurm.platform import Slurm
from sublet.reach.local import LocalReach
from tests.contract.moving import content, quiet
from tests.globus_server import TOKEN, GlobusDouble, serve_globus

pytestmark = pytest.mark.anyio
BODY = bytes(range(256)) * 5000
SIGNED_IN = Credential("globus://", CredentialKind.TOKEN, secret=TOKEN)
CLIENT = Credential("globus://", CredentialKind.LOGIN, "a-client", "a-secret")


@pytest.fixture
def globus(tmp_path: Path) -> Iterator[GlobusDouble]:
    with serve_globus() as server:
        yield server


@pytest.fixture
def archive(globus: GlobusDouble, tmp_path: Path) -> str:
    """A collection with a file and a folder, which has no web server."""
    folder = tmp_path / "archive" / "survey"
    (folder / "deep").mkdir(parents=True)
    (folder / "cube.bin").write_bytes(BODY)
    (folder / "deep" / "ä b.txt").write_text("deep")
    (folder / "link").symlink_to("cube.bin")
    return globus.add(tmp_path / "archive")


def mover_of(globus: GlobusDouble, *credentials: Credential, **more: Any) -> GlobusMover:
    server = f"http://{globus.address}"
    known = credentials or (SIGNED_IN,)
    policy = Policy(public_only=False, credentials=known, globus_transfer=server, globus_auth=server, **more)
    return GlobusMover(policy, pause=0.01)


@pytest.fixture
async def slurm(globus: GlobusDouble, tmp_path: Path) -> AsyncIterator[Slurm]:
    """A system that is in a collection."""
    (tmp_path / "home").mkdir()
    (tmp_path / "scratch").mkdir()
    collection = globus.add(tmp_path / "scratch")
    directory, root = str(tmp_path / "scratch" / "far"), str(tmp_path / "scratch")
    platform = Slurm(name="far", directory=directory, globus=collection, globus_root=root)
    platform.use(LocalReach("far"))
    await platform.open(tmp_path / "home")
    yield platform
    await platform.close()


def ignore(what: str) -> Progress:
    return quietly


async def travel(slurm: Slurm, mover: GlobusMover, location: str, session: str = "s1", **more: Any) -> Arrival:
    journey = Journey(await slurm.open_cache(), "far", session, "me", ignore)
    arrival = await take_road(journey, Data("cube", SIMPLE, location, **more), mover)
    assert arrival
    return arrival


def content_of(tmp_path: Path, arrival: Arrival) -> Path:
    return tmp_path / "scratch" / "far" / "kept" / arrival.entry / "content"


def is_noted(tmp_path: Path) -> bool:
    """Whether it is written down which task moves something."""
    return any('"task": ""' not in note.read_text() for note in (tmp_path / "scratch").rglob("transfer"))


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not is_so():  # noqa: ASYNC110 - it is another process that writes
            await asyncio.sleep(0.01)


async def test_a_file_is_moved_once_from_collection_to_collection_and_then_is_in_the_cache(
    globus: GlobusDouble, slurm: Slurm, archive: str, tmp_path: Path
) -> None:
    location = f"globus://{archive}/survey/cube.bin"
    first = await travel(slurm, mover_of(globus), location)
    assert (first.taken.road, first.taken.bytes, first.taken.source) == (Road.MOVED, len(BODY), archive)
    assert content_of(tmp_path, first).read_bytes() == BODY
    second = await travel(slurm, mover_of(globus), location, "s2")
    assert (second.taken.road, second.entry) == (Road.CACHED, first.entry)
    [body] = globus.submitted()
    assert (body["source_endpoint"], body["verify_checksum"]) == (archive, True)
    assert not list((tmp_path / "scratch").rglob("transfer")) + list((tmp_path / "scratch").rglob("moved"))


async def test_a_folder_is_moved_whole_and_links_are_left_out(
    globus: GlobusDouble, slurm: Slurm, archive: str, tmp_path: Path
) -> None:
    (tmp_path / "archive" / "survey" / "link").unlink()
    arrival = await travel(slurm, mover_of(globus), f"globus://{archive}/survey/")
    place = content_of(tmp_path, arrival)
    assert {str(path.relative_to(place)) for path in place.rglob("*") if path.is_file()} == {"cube.bin", "deep/ä b.txt"}
    assert globus.submitted()[0]["DATA"][0]["recursive"] is True


async def test_a_submission_whose_answer_was_lost_is_not_made_twice(
    globus: GlobusDouble, slurm: Slurm, archive: str, tmp_path: Path
) -> None:
    globus.lose_answers, globus.busy = 1, 1
    arrival = await travel(slurm, mover_of(globus), f"globus://{archive}/survey/cube.bin")
    assert content_of(tmp_path, arrival).read_bytes() == BODY
    assert len(globus.tasks) == 1
    assert len({body["submission_id"] for method, path, body in globus.asked if path.endswith("/transfer")}) == 1


async def test_after_a_restart_the_same_transfer_is_watched_on(
    globus: GlobusDouble, slurm: Slurm, archive: str, tmp_path: Path
) -> None:
    location, globus.is_held = f"globus://{archive}/survey/cube.bin", True
    begun = asyncio.create_task(travel(slurm, mover_of(globus), location))
    await until(lambda: is_noted(tmp_path))
    begun.cancel()
    await asyncio.gather(begun, return_exceptions=True)
    globus.is_held = False
    arrival = await travel(slurm, mover_of(globus), location)
    assert arrival.taken.road is Road.MOVED
    assert content_of(tmp_path, arrival).read_bytes() == BODY
    assert len(globus.tasks) == 1


async def test_what_nobody_needs_any_more_is_cancelled_at_globus(
    globus: GlobusDouble, slurm: Slurm, archive: str, tmp_path: Path
) -> None:
    location, globus.is_held, mover = f"globus://{archive}/survey/cube.bin", True, mover_of(globus)
    begun = [asyncio.create_task(travel(slurm, mover, location, session)) for session in ("s1", "s2")]
    cache = await slurm.open_cache()
    await until(lambda: is_noted(tmp_path))
    await until(lambda: len(list((tmp_path / "scratch").rglob("users/*"))) == 2)
    for task in begun:
        task.cancel()
    await asyncio.gather(*begun, return_exceptions=True)
    assert await cache.leave("s1") == []  # another needs it
    notes = await cache.leave("s2")
    await stop_transfers(Movers([mover]), notes)
    [transfer] = globus.tasks.values()
    assert transfer.status == "FAILED"
    assert not list((tmp_path / "scratch").rglob("transfer"))


FAILURES: dict[str, tuple[dict[str, Any], str]] = {
    "given up": (
        {"status": "FAILED", "fatal_error": {"code": "CANCELED", "description": "canceled"}},
        "Globus gave up: canceled",
    ),
    "denied": ({"nice_status": "PERMISSION_DENIED", "faults": 3}, "Globus can't: permission was denied"),
    "suspended": ({"status": "INACTIVE"}, "sign in to the collection again"),
}


@pytest.mark.parametrize("fault", FAILURES)
async def test_a_transfer_that_fails_is_told_and_leaves_nothing(
    globus: GlobusDouble, slurm: Slurm, archive: str, tmp_path: Path, fault: str
) -> None:
    globus.outcome, words = FAILURES[fault]
    with pytest.raises(DataNotThere, match=words):
        await travel(slurm, mover_of(globus), f"globus://{archive}/survey/cube.bin")
    assert not list((tmp_path / "scratch").rglob("transfer")) + list((tmp_path / "scratch").rglob("claim"))


async def test_no_room_is_told_as_a_full_disk(globus: GlobusDouble, slurm: Slurm, archive: str) -> None:
    globus.outcome = {"status": "FAILED", "fatal_error": {"code": "QUOTA_EXCEEDED", "description": "quota exceeded"}}
    with pytest.raises(DiskFull, match="quota exceeded"):
        await travel(slurm, mover_of(globus), f"globus://{archive}/survey/cube.bin")


async def test_what_arrives_is_checked_by_its_checksum(globus: GlobusDouble, slurm: Slurm, archive: str) -> None:
    globus.damages, right = True, f"sha256:{hashlib.sha256(BODY).hexdigest()}"
    with pytest.raises(DataNotThere, match="its checksum is sha256:"):
        await travel(slurm, mover_of(globus), f"globus://{archive}/survey/cube.bin", checksum=right)


async def test_a_transfer_that_globus_forgot_is_submitted_anew(
    globus: GlobusDouble, slurm: Slurm, archive: str, tmp_path: Path
) -> None:
    location, globus.is_held = f"globus://{archive}/survey/cube.bin", True
    begun = asyncio.create_task(travel(slurm, mover_of(globus), location))
    await until(lambda: is_noted(tmp_path))
    globus.tasks.clear()
    globus.is_held = False
    assert (await begun).taken.road is Road.MOVED
    assert len(globus.submissions) == 2


async def test_where_the_system_has_no_collection_the_web_server_of_the_source_is_read(
    globus: GlobusDouble, slurm: Slurm, archive: str, tmp_path: Path
) -> None:
    globus.web.add(archive)
    slurm.globus = ""
    web = Credential(f"http://{globus.address}", CredentialKind.TOKEN, secret=TOKEN)
    location = f"globus://{archive}/survey/cube.bin"
    arrival = await travel(slurm, mover_of(globus, SIGNED_IN, web), location)
    assert (arrival.taken.road, arrival.taken.why) == (
        Road.THERE,
        "it has no collection of Globus in its settings (`globus`)",
    )
    assert content_of(tmp_path, arrival).read_bytes() == BODY
    assert not globus.tasks


async def test_without_collection_and_web_server_it_is_said_what_is_missing(
    globus: GlobusDouble, slurm: Slurm, archive: str
) -> None:
    slurm.globus = ""
    with pytest.raises(DataNotThere, match="has no HTTPS address"):
        await travel(slurm, mover_of(globus), f"globus://{archive}/survey/cube.bin")


@pytest.mark.parametrize("name", ["survey/cube.bin", "survey/"])
async def test_it_is_brought_here_over_https_by_a_client_of_its_own_which_gets_its_tokens(
    globus: GlobusDouble, archive: str, tmp_path: Path, name: str
) -> None:
    globus.web.add(archive)
    data = Data("cube", SIMPLE, f"globus://{archive}/{name}")
    target = tmp_path / "here"
    target.mkdir()
    mover = mover_of(globus, CLIENT)
    assert await mover.measure(data) == (len(BODY) if name.endswith("bin") else None)
    await mover.bring(data, target, quiet)
    assert (target / "cube.bin").read_bytes() == BODY
    scopes = [body["scope"][0] for _, path, body in globus.asked if path.endswith("/token")]
    assert scopes[-1].endswith(f"/scopes/{archive}/https")
    assert TOKEN not in "".join(globus.shown)


async def test_a_refresh_token_is_exchanged_and_never_shown_to_transfer(globus: GlobusDouble, archive: str) -> None:
    kept = Credential("globus://", CredentialKind.TOKEN, "a-client", "a-refresh-token")
    files = await mover_of(globus, kept).links(Data("cube", SIMPLE, f"globus://{archive}/survey/cube.bin"))
    assert files.size == len(BODY)
    assert all("a-refresh-token" not in json.dumps(body) for _, path, body in globus.asked if "/v0.10/" in path)


async def test_a_client_gets_the_consent_that_is_missing_and_a_person_is_told_to(
    globus: GlobusDouble, archive: str
) -> None:
    globus.wants_consent = f"urn:globus:auth:scope:transfer.api.globus.org:all[*https://x/scopes/{archive}/data_access]"
    data = Data("cube", SIMPLE, f"globus://{archive}/survey/cube.bin")
    with pytest.raises(DataNotThere, match=r"wants your consent for .*data_access.*sublet credential add globus://"):
        await mover_of(globus).links(data)
    assert (await mover_of(globus, CLIENT).links(data)).size == len(BODY)


REFUSALS: dict[str, tuple[Credential, str]] = {
    "expired": (
        Credential("globus://", CredentialKind.TOKEN, secret="a-stale-token"),
        r"does not take the token that is kept here \(Token is not active\).*sublet credential add globus:// --sign-in",
    ),
    "refresh": (Credential("globus://", CredentialKind.TOKEN, "a-client", "a-stale-token"), "keep a new one"),
    "client": (
        Credential("globus://", CredentialKind.LOGIN, "a-client", "a-wrong-secret"),
        "does not know this client",
    ),
    "nobody": (
        Credential("https://x.org", CredentialKind.TOKEN, secret="of-another"),
        "no token is kept here; keep one",
    ),
}


@pytest.mark.parametrize("fault", REFUSALS)
async def test_sign_ins_that_are_of_no_use_are_told_with_what_to_do(
    globus: GlobusDouble, archive: str, fault: str
) -> None:
    credential, words = REFUSALS[fault]
    with pytest.raises(DataNotThere, match=words) as caught:
        await mover_of(globus, credential).links(Data("cube", SIMPLE, f"globus://{archive}/survey/cube.bin"))
    assert credential.secret not in caught.value.message


async def test_what_is_not_there_and_what_is_a_folder_is_told(globus: GlobusDouble, archive: str) -> None:
    mover = mover_of(globus)
    for path, words in (
        ("no/such", "404 NotFound: Path not found: No such file or directory"),
        ("survey", "write a / at the end"),
    ):
        with pytest.raises(DataNotThere, match=words):
            await mover.links(Data("cube", SIMPLE, f"globus://{archive}/{path}"))
    with pytest.raises(DataNotThere, match="EndpointNotFound"):
        await mover.links(Data("cube", SIMPLE, "globus://aa752cea-8222-5bc8-acd9-555b090c0ccb/x"))


async def test_a_web_server_that_refuses_says_which_token_it_wants(
    globus: GlobusDouble, archive: str, tmp_path: Path
) -> None:
    globus.web.add(archive)
    with pytest.raises(DataNotThere, match=rf"401.*sublet credential add https://{globus.address} --token"):
        await mover_of(globus).bring(Data("cube", SIMPLE, f"globus://{archive}/survey/cube.bin"), tmp_path, quiet)


async def test_results_are_sent_over_https_into_folders_that_are_made(
    globus: GlobusDouble, archive: str, tmp_path: Path
) -> None:
    globus.web.add(archive)
    mover = mover_of(globus, CLIENT)
    for _ in range(2):  # to send the same again does no harm
        sent = await mover.push(content("deep/er/a b.csv", BODY), f"globus://{archive}/out/", quiet)
        assert sent == f"globus://{archive}/out/deep/er/a%20b.csv"
    folder = tmp_path / "archive" / "out" / "deep" / "er"
    assert [(file.name, file.read_bytes()) for file in folder.iterdir()] == [("a b.csv", BODY)]


async def test_results_are_refused_with_the_reason_where_there_is_no_web_server(
    globus: GlobusDouble, archive: str
) -> None:
    with pytest.raises(DataNotSent, match="has no HTTPS address"):
        await mover_of(globus).push(content("a.csv", b"1"), f"globus://{archive}/out/", quiet)


@pytest.mark.parametrize(
    "location", ["globus://x/y", "globus://aa752cea-8222-5bc8-acd9-555b090c0ccb", "globus:///a", "globus://go#ep1/~/x"]
)
async def test_what_is_no_address_is_refused_before_anything_is_asked(globus: GlobusDouble, location: str) -> None:
    [reason] = mover_of(globus).check(Data("cube", SIMPLE, location))
    assert "globus://aa752cea" in reason.nearest
    assert not globus.asked


async def test_a_page_of_globus_web_app_is_refused_with_the_address_that_is_meant() -> None:
    page = (
        "https://app.globus.org/file-manager?origin_id=aa752cea-8222-5bc8-acd9-555b090c0ccb&origin_path=%2F~%2Fa+b%2F"
    )
    [reason] = HttpMover(Policy()).check(Data("cube", SIMPLE, page))
    assert reason.nearest == "globus://aa752cea-8222-5bc8-acd9-555b090c0ccb/~/a%20b/"
