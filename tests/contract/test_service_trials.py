"""An author tries an app on their own service; nobody names code by hand, and a gateway runs nothing unreviewed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from sublet.apps.model.tree import TreeFile, archive_of
from sublet.booking.model.phases import Phase
from sublet.booking.model.session import OfferSet
from sublet.kernel.errors import BadManifest, BadTree, OwnAppsOnly
from sublet.service import Service
from tests.contract.services import ME, ask, over, serving
from tests.real import images
from tests.real.notebooks import notebook
from tests.registries import registry

pytestmark = pytest.mark.anyio
MANIFEST = b"""\
name: flood
image: busybox
stages:
  execution: {run: [sh, main.sh], each: once}
  post: {script: "test $param_years != 4"}
parameters: {years: {type: integer, minimum: 0, maximum: 5, default: 1}}
"""
CODE = TreeFile(
    "main.sh", b'cat params.json; echo "$param_years" > $result_folder/years; touch x || echo "read-only"\n'
)


def app(manifest: bytes = MANIFEST) -> bytes:
    return archive_of([TreeFile("sublet.yaml", manifest), CODE])


async def asked(service: Service, executable: dict[str, Any], **more: Any) -> OfferSet:
    document = json.dumps({"executable": executable, **more}).encode()
    return await service.asking.ask(ME, await service.asking.read(document, "application/json", ME))


async def test_an_app_runs_in_its_image_with_its_parameters_and_its_end_names_the_stage(tmp_path: Path) -> None:
    if not shutil.which("podman") or not images.made_busybox():
        pytest.skip("podman or busybox-static is not installed")
    digest = images.docker_archive(tmp_path / "busybox.tar")
    named = {"busybox": {"location": f"docker-archive:{tmp_path}/busybox.tar", "digest": digest}}
    async with serving(tmp_path / "home", platforms={"here": {"kind": "local"}}, images=named) as service:
        trial = await service.apps.trials.try_app(app())
        for years, phase in ((0, Phase.COMPLETED), (4, Phase.FAILED)):
            offers = await ask(service, run=None, app=trial.name, parameters={"years": years}, time="5m")
            assert offers.offers, offers.reasons
            session = await service.sessions.accept(offers.offers[0].id, ME)
            session = await over(service, session.id)
            assert session.phase is phase, session.end
        assert session.end
        assert session.end.detail == "the stage post failed"
        place = service.settings.home / "platforms" / "here" / "sessions" / session.id
        assert (place / "work" / "result" / "years").read_text() == "4\n"
        assert (place / "stdout").read_text() == '{"years": 4}read-only\n'


async def test_an_image_that_wants_a_login_is_brought_by_the_service(tmp_path: Path) -> None:
    if not shutil.which("podman") or not images.made_busybox():
        pytest.skip("podman or busybox-static is not installed")
    images.oci_archive(tmp_path / "box.tar", Entrypoint=[])
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "secret").chmod(0o600)
    with registry(token="t", login="me:secret") as private:
        private.push("me/box", "1", tmp_path / "box.tar")
        login = {private.address: {"user": "me", "password_file": tmp_path / "secret"}}
        platforms = {"here": {"kind": "local"}}
        async with serving(tmp_path / "home", platforms=platforms, registries=login) as service:
            location = f"{private.address}/me/box:1"
            offers = await ask(service, run=["sh", "-c", "echo $FROM_IMAGE"], image=location, time="5m")
            assert offers.offers, offers.reasons
            ended = await over(service, (await service.sessions.accept(offers.offers[0].id, ME)).id, seconds=60)
            place = service.settings.home / "platforms" / "here" / "sessions" / ended.id
            assert ended.phase is Phase.COMPLETED, (ended.end, (place / "stderr").read_text())
            assert (place / "stdout").read_text() == "yes\n"


async def test_what_is_wrong_with_an_app_or_its_parameters_is_said_before_anything_runs(tmp_path: Path) -> None:
    named = {"busybox": "ghcr.io/ada/busybox:1@sha256:" + "a" * 64}
    async with serving(tmp_path, images=named) as service:
        with pytest.raises(BadManifest, match=r"sublet.yaml:2: error: there is no image other"):
            await service.apps.trials.try_app(app(MANIFEST.replace(b"busybox", b"other")))
        with pytest.raises(BadTree):
            await service.apps.trials.try_app(b"no archive" * 100)
        trial = await service.apps.trials.try_app(app())
        refused = await ask(service, run=None, app=trial.name, parameters={"years": 6})
        assert refused.result == "NO"
        assert (refused.reasons[0].field, refused.reasons[0].nearest) == ("executable.parameters.years", "5")
        assert (await ask(service, run=None, app=trial.name)).result == "YES"
        gone = await ask(service, run=None, app="trial:" + "0" * 64)
        assert "not here any more" in gone.reasons[0].message
        unknown = await ask(service, run=None, app="summa")
        assert "no app summa" in unknown.reasons[0].message


async def test_code_without_a_manifest_is_tried_as_a_maintainer_of_its_kind_would_run_it(tmp_path: Path) -> None:
    program = TreeFile("main.py", b"open('made', 'w').write(open('params.json').read())\n")
    both = archive_of([program, TreeFile("a.ipynb", json.dumps(notebook("1")).encode())])
    async with serving(tmp_path, platforms={"here": {"kind": "local"}}) as service:
        with pytest.raises(BadManifest, match="--kind"):
            await service.apps.trials.try_app(both)
        assert (await service.apps.trials.try_app(both, kind="jupyter")).manifest.notebook == "a.ipynb"
        trial = await service.apps.trials.try_app(both, kind="python")
        offers = await ask(service, run=None, app=trial.name, parameters={"years": 0}, time="5m")
        session = await service.sessions.accept(offers.offers[0].id, ME)
        assert (await over(service, session.id)).phase is Phase.COMPLETED
        place = service.settings.home / "platforms" / "here" / "sessions" / session.id
        assert (place / "work" / "job" / "made").read_text() == '{"years": 0}'


async def test_nobody_names_code_from_outside(tmp_path: Path) -> None:
    named = {"busybox": "ghcr.io/ada/busybox:1@sha256:" + "a" * 64}
    async with serving(tmp_path, images=named) as service:
        trial = await service.apps.trials.try_app(app())
        tree = trial.name.removeprefix("trial:")
        pinned = {"kind": "app", "app": "x", "pinned": {"tree": tree, "manifest": {}}}
        assert (await asked(service, pinned)).reasons[0].field == "executable.pinned"
        command = {"kind": "command", "argv": ["true"]}
        code = {"meta": {"name": "code"}, "location": f"app:{tree}"}
        for kind in ("app-tree", "simple-data-resource"):
            refused = await asked(service, command, data=[{"kind": kind, **code}])
            assert refused.result == "NO"
            assert refused.reasons[0].field.startswith("data[code]")
        notebook = await asked(service, {"kind": "jupyter-notebook", "location": f"app:{tree}"})
        assert notebook.result == "NO"
        assert "app: addresses" in notebook.reasons[0].message


async def test_a_gateway_runs_no_code_that_nobody_has_reviewed(tmp_path: Path) -> None:
    async with serving(tmp_path, mode="gateway") as service:
        with pytest.raises(OwnAppsOnly):
            await service.apps.trials.try_app(app())
        refused = await ask(service, run=None, app="trial:" + "0" * 64)
        assert refused.result == "NO"
