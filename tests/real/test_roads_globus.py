"""Globus' data for sessions on a real Slurm site: moved by one transfer, and cancelled with the session that wants it.

Globus itself is the stand-in of `tests/globus_server.py`; its collection on the site is the directory of its homes.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from sublet.app import open_service
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import EndKind
from sublet.data.model.credentials import Credential, CredentialKind
from sublet.service import Service
from tests.contract.services import ME
from tests.globus_server import TOKEN, GlobusDouble, serve_globus
from tests.real.staging import MIB, SUM, begin, find_files, output, over, roads, run, settings_of
from tests.sites import Site

pytestmark = [pytest.mark.anyio, pytest.mark.engines]
CONTENT = os.urandom(MIB)


@pytest.fixture
def globus(site: Site) -> Iterator[GlobusDouble]:
    with serve_globus() as server:
        server.owner = int(site.on("login", "id", "-u", "researcher"))
        yield server


@pytest.fixture
def location(globus: GlobusDouble, tmp_path: Path) -> str:
    """A file in a collection."""
    (tmp_path / "archive").mkdir()
    (tmp_path / "archive" / "cube.bin").write_bytes(CONTENT)
    return f"globus://{globus.add(tmp_path / 'archive')}/cube.bin"


@pytest.fixture
async def service(site: Site, home: Path, globus: GlobusDouble) -> AsyncIterator[Service]:
    collection = globus.add(Path(site.facts["home"]))
    settings = settings_of(site, home, globus=collection, globus_root="/home")
    server = f"http://{globus.address}"
    changed = settings.model_copy(update={"globus_transfer": server, "globus_auth": server})
    async with open_service(changed) as opened:
        await opened.credentials.add(ME, Credential("globus://", CredentialKind.TOKEN, secret=TOKEN))
        yield opened


async def test_a_session_gets_data_from_collection_to_collection_and_the_next_has_it_there(
    service: Service, globus: GlobusDouble, location: str, site: Site, home: Path
) -> None:
    for road in ("was moved from", "in the cache of far"):
        session = await run(service, run=SUM, data=[location])
        assert session.phase is Phase.COMPLETED, session.end
        assert await output(service, session) == f"{hashlib.sha256(CONTENT).hexdigest()}  -\n"
        [told] = await roads(service, session)
        assert road in told, told
    assert len(globus.tasks) == 1
    assert not find_files(home, "cube.bin")
    assert site.on("login", "grep", "-rl", TOKEN, "/home/researcher", check=False) == ""


async def test_a_cancelled_session_cancels_its_transfer_and_a_failed_transfer_is_its_reason(
    service: Service, globus: GlobusDouble, location: str, site: Site
) -> None:
    globus.is_held = True
    session = await begin(service, run=SUM, data=[location])
    while not globus.tasks:
        await service.signals.wait(0.1)
    await service.sessions.cancel(session.id, ME)
    assert (await over(service, session.id)).phase is Phase.CANCELLED
    [task] = globus.tasks.values()
    assert task.status == "FAILED"
    assert site.on("researcher@login", "sh", "-c", "ls -d .sublet/kept/*/transfer 2>/dev/null; true") == ""
    globus.outcome = {"nice_status": "PERMISSION_DENIED"}
    ended = await run(service, run=SUM, data=[location])
    assert ended.end
    assert (ended.phase, ended.end.kind) == (Phase.FAILED, EndKind.STAGING_FAILED)
    assert "permission was denied" in ended.end.detail


async def test_results_go_from_collection_to_collection_and_pass_neither_the_login_nor_this_machine(
    service: Service, globus: GlobusDouble, tmp_path: Path, home: Path
) -> None:
    (tmp_path / "mine").mkdir()
    target = f"globus://{globus.add(tmp_path / 'mine')}/run 1/".replace(" ", "%20")
    globus.owner = None
    command = ["sh", "-c", "mkdir out; echo one >out/1.txt; echo two >'out/2 b.txt'"]
    session = await run(service, run=command, outputs=[{"path": "out/*", "to": target}])
    assert session.phase is Phase.COMPLETED, (session.end, session.condition)
    assert not session.condition, session.condition
    sent = {path.name: path.read_text() for path in (tmp_path / "mine" / "run 1").iterdir()}
    assert sent == {"1.txt": "one\n", "2 b.txt": "two\n"}
    [task] = globus.tasks.values()
    assert len(task.body["DATA"]) == 2
    assert globus.shown == [], "no web server of a collection was asked"
    events = await service.store.read(lambda tx: tx.events.after(session=session.id))
    assert any("by globus from far itself" in event.detail for event in events), [each.detail for each in events]
    assert not find_files(home, "1.txt")
