"""Signing in to Globus by a code, and results that Globus sends from a system itself."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from sublet.booking.model.request import Data
from sublet.data.globus_sign_in import GlobusVisit
from sublet.data.model.credentials import Credential, CredentialKind
from sublet.data.sent_tasks import SentTasks, send_by_service
from sublet.kernel.errors import BadRequest, DataNotSent
from sublet.movers.globus import GlobusMover
from sublet.movers.port import SIMPLE, Policy
from sublet.service import Service
from tests.contract.services import ME, serving
from tests.globus_server import TOKEN, GlobusDouble, serve_globus

pytestmark = pytest.mark.anyio
CLIENT = "3f6c1f9a-0000-4000-8000-000000000001"


@pytest.fixture
def globus() -> Iterator[GlobusDouble]:
    with serve_globus() as server:
        yield server


@asynccontextmanager
async def service_of(globus: GlobusDouble, home: Path, **settings: str) -> AsyncIterator[Service]:
    server = f"http://{globus.address}"
    async with serving(home, globus_transfer=server, globus_auth=server, **settings) as service:
        yield service


async def test_a_person_signs_in_by_a_code_and_what_is_kept_opens_collections(
    globus: GlobusDouble, tmp_path: Path
) -> None:
    (tmp_path / "archive").mkdir()
    (tmp_path / "archive" / "cube.bin").write_bytes(b"x" * 1000)
    location = f"globus://{globus.add(tmp_path / 'archive')}/cube.bin"
    async with service_of(globus, tmp_path / "home", globus_client=CLIENT) as service:
        visit = service.globus_sign_in.begin(ME, "globus://")
        assert visit.verifier not in visit.address, "only its hash is shown"
        code = globus.sign_in(visit.address)
        kept = await service.globus_sign_in.finish(ME, "globus://", visit, f" {code}\n")
        assert (kept.credential.kind, kept.credential.user) == (CredentialKind.TOKEN, CLIENT)
        assert "a-refresh-token" not in kept.credential.secret, "it is sealed"
        with pytest.raises(BadRequest, match="Globus did not take the code"):
            await service.globus_sign_in.finish(ME, "globus://", visit, code)
        movers = service.movers.with_credentials(await service.credentials.open(ME.name))
        mover = movers.choose(Data("cube", SIMPLE, location))
        assert isinstance(mover, GlobusMover)
        assert (await mover.links(Data("cube", SIMPLE, location))).size == 1000


async def test_a_code_is_worth_nothing_to_whoever_has_not_begun_the_sign_in(
    globus: GlobusDouble, tmp_path: Path
) -> None:
    async with service_of(globus, tmp_path / "home") as service:
        with pytest.raises(BadRequest, match="no app of Globus"):
            service.globus_sign_in.begin(ME, "globus://")
        with pytest.raises(BadRequest, match="is no address of Globus"):
            service.globus_sign_in.begin(ME, "https://example.org", CLIENT)
        collection = f"globus://{globus.add(tmp_path)}"
        visit = service.globus_sign_in.begin(ME, collection, CLIENT)
        code = globus.sign_in(visit.address)
        assert globus.codes[code]["scope"].endswith(f"/scopes/{collection.removeprefix('globus://')}/data_access]")
        assert globus.codes[code]["access_type"] == "offline", "else there is no refresh token"
        stolen = GlobusVisit("", CLIENT, "another-verifier")
        with pytest.raises(BadRequest, match="Globus did not take the code"):
            await service.globus_sign_in.finish(ME, collection, stolen, code)
        assert await service.credentials.list(ME) == []


def mover_of(globus: GlobusDouble) -> GlobusMover:
    server = f"http://{globus.address}"
    kept = Credential("globus://", CredentialKind.TOKEN, secret=TOKEN)
    return GlobusMover(Policy(globus_transfer=server, globus_auth=server, credentials=[kept]), pause=0.01)


def results_of(globus: GlobusDouble, tmp_path: Path) -> list[tuple[str, str]]:
    for name in ("system", "archive"):
        (tmp_path / name).mkdir(exist_ok=True)
    source, target = globus.add(tmp_path / "system"), globus.add(tmp_path / "archive")
    for name in ("a.txt", "b.txt"):
        (tmp_path / "system" / name).write_text(name)
    return [(f"globus://{source}/{name}", f"globus://{target}/run1/{name}") for name in ("a.txt", "b.txt")]


def ignore(done: int, total: int | None) -> None:
    """Nobody looks."""


async def test_results_are_sent_by_one_transfer_that_is_submitted_once_and_have_their_names_when_all_are_whole(
    globus: GlobusDouble, tmp_path: Path
) -> None:
    moves, tasks = results_of(globus, tmp_path), SentTasks(tmp_path / "home", "session-1")
    globus.lose_answers, globus.is_held = 1, True
    sending = asyncio.create_task(send_by_service(tasks, mover_of(globus), moves, 10, ignore))
    while not globus.tasks:  # noqa: ASYNC110 (it is a thread that has them)
        await asyncio.sleep(0.02)
    sending.cancel()  # the service is killed
    await asyncio.gather(sending, return_exceptions=True)
    assert not (tmp_path / "archive" / "run1").exists()
    globus.is_held = False
    for _ in range(2):  # also if it is killed once more, after all was renamed
        await send_by_service(SentTasks(tmp_path / "home", "session-1"), mover_of(globus), moves, 10, ignore)
    assert len(globus.tasks) == 1
    assert sorted(os.listdir(tmp_path / "archive" / "run1")) == ["a.txt", "b.txt"]


async def test_a_transfer_of_results_that_fails_is_told_and_tried_anew_later(
    globus: GlobusDouble, tmp_path: Path
) -> None:
    moves, tasks = results_of(globus, tmp_path), SentTasks(tmp_path / "home", "session-1")
    globus.outcome = {"nice_status": "PERMISSION_DENIED"}
    with pytest.raises(DataNotSent, match="permission was denied"):
        await send_by_service(tasks, mover_of(globus), moves, 10, ignore)
    assert [task.status for task in globus.tasks.values()] == ["FAILED"], "it does not go on behind our back"
    globus.outcome = {}
    await send_by_service(tasks, mover_of(globus), moves, 10, ignore)
    assert len(globus.tasks) == 2
    assert sorted(os.listdir(tmp_path / "archive" / "run1")) == ["a.txt", "b.txt"]
