"""On a gateway a notebook and JupyterLab run in the operator's image, in a real container, and are offered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sublet.booking.api.connect import ConnectProxy
from sublet.booking.model.phases import Phase
from sublet.people.model.person import Person
from tests.contract.services import allow, ask, in_phase, over, reach, serving
from tests.engines.lab_visits import use_lab
from tests.real.container_tools import find_tools
from tests.real.jupyter_image import jupyter_archive
from tests.real.notebooks import write_notebook

pytestmark = [pytest.mark.anyio, pytest.mark.engines]
BOB = Person("bob@example.org")


async def test_a_gateway_offers_notebooks_and_jupyterlab_in_the_operators_image(tmp_path: Path) -> None:
    find_tools("podman")
    digest = jupyter_archive(tmp_path / "jupyter.tar", with_lab=True)
    image = {"location": f"docker-archive:{tmp_path}/jupyter.tar", "digest": digest}
    look = "import os\nprint(n, os.getcwd(), os.path.exists('/etc/shadow'))"
    path = write_notebook(tmp_path / "a.ipynb", "n = 1", look, "open('x', 'w').close()")
    settings = {"mode": "gateway", "images": {"jupyter": image}, "file_roots": [tmp_path]}
    settings |= {"standard_images": {"notebook": "jupyter", "lab": "jupyter"}, "platforms": {"here": {"kind": "local"}}}
    async with serving(tmp_path / "home", **settings) as service:
        await allow(service, BOB.name)
        for short in ({"notebook": f"file://{path}", "parameters": {"n": 7}}, {"interactive": "lab"}):
            offerset = await ask(service, BOB, run=None, time="5m", memory="1GiB", **short)
            assert [offer.offer.way for offer in offerset.offers] == ["podman"], offerset.reasons
            session = await service.sessions.accept(offerset.offers[0].id, BOB)
            if "notebook" in short:
                ended = await over(service, session.id, BOB, 120)
                place = service.settings.home / "platforms" / "here" / "sessions" / session.id
                assert ended.phase is Phase.COMPLETED, (ended.end, (place / "stderr").read_text())
                assert (place / "stdout").read_text() == "7 /work False\n"
                left = {file.path for file in (await service.output.results(session.id, BOB)).files}
                assert left >= {"executed.ipynb", "x"}
                executed = json.loads((place / "work" / "executed.ipynb").read_text())
                assert "injected-parameters" in executed["cells"][1]["metadata"]["tags"]
        await reach(service, session.id, in_phase(Phase.AVAILABLE), BOB, 120)
        await use_lab(
            ConnectProxy(service.connections, service.secrets, service.session_notices),
            session.id,
            service.secrets.of(session.id),
        )
        await service.sessions.cancel(session.id, BOB)
        assert (await over(service, session.id, BOB, 60)).phase is Phase.CANCELLED
