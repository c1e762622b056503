"""Places on a gateway, in real containers: an app reads its mount, and scratch is each person's own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sublet.apps.run_requests import AppWish
from sublet.booking.model.phases import Phase
from sublet.data.model.places import USUAL_KEEP, DeclaredPlace, PlaceKind
from sublet.kernel.errors import NoOffers
from sublet.people.model.person import Person
from sublet.service import Service
from tests.contract.services import OPERATOR, allow, ask, over, serving
from tests.git_server import git_server
from tests.real import images
from tests.real.container_tools import find_tools

pytestmark = pytest.mark.anyio
ANN, BOB = Person("ann@example.org"), Person("bob@example.org")
REVIEWER = Person("rae@example.org", reviewer=True)
MAIN = """cat /compute_shared/dem.txt
(echo x >/compute_shared/new) 2>/dev/null || echo refused
ls /scratch
echo $user_id >>/scratch/seen
cat $SUBLET_PLACE_SCRATCH/seen
ls SOMEWHERE 2>/dev/null || echo nothing else
"""
MANIFEST = {
    "name": "flood",
    "container": "box",
    "execution_stage": "sh /job/executable/main.sh",
    "mount": ["/compute_shared"],
    "supported_hpc": ["here"],
}


async def run(service: Service, person: Person) -> str:
    session, _ = await service.apps.runs.start_app(person, AppWish(app="flood", hpc="here", places=["scratch"]))
    ended = await over(service, session.id, person, 120)
    directory = service.settings.home / "platforms" / "here" / "sessions" / session.id
    assert ended.phase is Phase.COMPLETED, (ended.end, (directory / "stderr").read_text())
    return (directory / "stdout").read_text()


async def declare(service: Service, name: str, kind: PlaceKind, path: str) -> None:
    writable = kind is PlaceKind.SCRATCH
    place = DeclaredPlace(name, "here", kind, path, f"/{name}", writable, USUAL_KEEP, (), "", service.now(), "")
    await service.places.add(OPERATOR, place)


async def test_on_a_gateway_people_see_their_own_scratch_alone_and_shared_data_is_only_read(tmp_path: Path) -> None:
    find_tools("podman")
    if not images.made_busybox():
        pytest.skip("busybox-static is not installed")
    digest = images.docker_archive(tmp_path / "box.tar", Entrypoint=[])
    (tmp_path / "ref").mkdir()
    (tmp_path / "ref" / "dem.txt").write_text("heights\n")
    with git_server(tmp_path / "git") as server:
        code = server.repository("ann/flood")
        main = MAIN.replace("SOMEWHERE", f"{tmp_path}/home")
        code.commit({"manifest.json": json.dumps(MANIFEST), "main.sh": main}, "Begin")
        settings = {
            "mode": "gateway",
            "apps": {"private": [f"{server.url}/*"]},
            "images": {"box": {"location": f"docker-archive:{tmp_path}/box.tar", "digest": digest}},
            "platforms": {"here": {"kind": "local"}},
        }
        async with serving(tmp_path / "home", **settings) as service:
            missing = await service.apps.proposing.propose(ANN, code.url)
            assert any("sublet place add compute_shared" in finding for finding in missing.findings), missing.findings
            await service.apps.reviewing.approve("flood@1", REVIEWER, missing.tree)
            for noun in ("system", "app", "place"):
                await allow(service, "*@example.org", noun=noun)
            await declare(service, "scratch", PlaceKind.SCRATCH, "")
            with pytest.raises(NoOffers, match="here has no place compute_shared; it has: scratch"):
                await run(service, ANN)
            await declare(service, "compute_shared", PlaceKind.REFERENCE, f"{tmp_path}/ref")
            seen = [await run(service, person) for person in (ANN, ANN, BOB)]
            command = await ask(service, BOB, run=["sh", "-c", "ls"], places=["scratch"])
    each = "heights\nrefused\n{}nothing else\n"
    assert seen == [
        each.format(f"{ANN.name}\n"),
        each.format(f"seen\n{ANN.name}\n{ANN.name}\n"),
        each.format(f"{BOB.name}\n"),
    ]
    assert "a gateway runs containers only" in command.reasons[0].message
    assert [file.name for file in (tmp_path / "ref").iterdir()] == ["dem.txt"]
    assert len(list((tmp_path / "home" / "platforms" / "here" / "places").iterdir())) == 2
