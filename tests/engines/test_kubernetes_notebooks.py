"""Notebooks and JupyterLab as pods of a real Kubernetes: in someone's image and the platform's, and on a gateway."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.api.connect import ConnectProxy
from sublet.booking.model.phases import Phase
from sublet.people.model.person import Person
from sublet.service import Service
from tests.contract.services import ME, allow, ask, in_phase, over, reach, serving
from tests.engines.kubernetes_cluster import Namespace
from tests.engines.lab_visits import use_lab
from tests.real.notebooks import write_notebook

pytestmark = [pytest.mark.anyio, pytest.mark.engines]
BOB = Person("bob@example.org")
SIZES = {"run": None, "time": "5m", "memory": "1GiB", "platform": "lab"}
PATIENCE = 180
FILES = ("stdout", "stderr", "end.json")


async def run(service: Service, person: Person, way: str, **short: Any) -> tuple[str, Phase]:
    """Ask, accept what is offered in this way, and see it end."""
    offerset = await ask(service, person, **SIZES, **short)
    assert [offer.offer.way for offer in offerset.offers] == [way], offerset.reasons
    session = await service.sessions.accept(offerset.offers[0].id, person)
    return session.id, (await over(service, session.id, person, PATIENCE)).phase


async def read(service: Service, person: Person, id: str, stream: Any = "stdout") -> str:
    return (await service.output.output(id, person, stream)).data.decode()


async def test_a_notebook_runs_in_the_image_that_someone_names_and_leaves_what_it_does_elsewhere(
    namespace: Namespace, jupyter_image: str, tmp_path: Path
) -> None:
    book = write_notebook(tmp_path / "a.ipynb", "n = 1", "import os\nprint(n * 6)\nopen('x', 'w').close()")
    broken = write_notebook(tmp_path / "b.ipynb", "n = 1", "raise ValueError('too hot')")
    lab = {"kind": "kubernetes", **namespace.settings()}
    async with serving(tmp_path / "home", platforms={"lab": lab}) as service:
        named = {"image": jupyter_image, "parameters": {"n": 7}}
        id, phase = await run(service, ME, "kubernetes", notebook=f"file://{book}", **named)
        assert phase is Phase.COMPLETED, await read(service, ME, id, "stderr")
        assert await read(service, ME, id) == "42\n"
        left = {file.path for file in (await service.output.results(id, ME)).files}
        assert left >= {"executed.ipynb", "x"}, "a page too, where the image has templates for one"
        place = service.settings.home / "platforms" / "lab" / "sessions" / id / "work"
        cells = json.loads((place / "executed.ipynb").read_text())["cells"]
        assert "injected-parameters" in cells[1]["metadata"]["tags"]
        id, phase = await run(service, ME, "kubernetes", notebook=f"file://{broken}", image=jupyter_image)
        assert phase is Phase.FAILED
        assert "ValueError: too hot" in await read(service, ME, id, "stderr")


async def test_a_gateway_offers_notebooks_and_jupyterlab_in_the_operators_image_as_pods(
    namespace: Namespace, jupyter_image: str, tmp_path: Path
) -> None:
    book = write_notebook(tmp_path / "a.ipynb", "n = 1", "print(n * 6)")
    lab = {"kind": "kubernetes", **namespace.settings()}
    settings = {"mode": "gateway", "file_roots": [tmp_path], "platforms": {"lab": lab}}
    settings |= {"images": {"jupyter": jupyter_image}, "standard_images": {"notebook": "jupyter", "lab": "jupyter"}}
    async with serving(tmp_path / "home", **settings) as service:
        await allow(service, BOB.name)
        id, phase = await run(service, BOB, "kubernetes", notebook=f"file://{book}", parameters={"n": 7})
        assert phase is Phase.COMPLETED, await read(service, BOB, id, "stderr")
        assert await read(service, BOB, id) == "42\n"
        offerset = await ask(service, BOB, **SIZES, interactive="lab")
        assert [offer.offer.way for offer in offerset.offers] == ["kubernetes"], offerset.reasons
        session = await service.sessions.accept(offerset.offers[0].id, BOB)
        await reach(service, session.id, in_phase(Phase.AVAILABLE), BOB, PATIENCE)
        seen = namespace.cluster.kubectl("-n", namespace.name, "get", "jobs,pods,events", "-o", "json")
        assert service.secrets.of(session.id) not in seen
        await use_lab(
            ConnectProxy(service.connections, service.secrets, service.session_notices),
            session.id,
            service.secrets.of(session.id),
        )
        await service.sessions.cancel(session.id, BOB)
        assert (await over(service, session.id, BOB, PATIENCE)).phase is Phase.CANCELLED


async def test_a_platform_whose_own_image_has_papermill_runs_notebooks_in_it_also_on_a_gateway(
    namespace: Namespace, jupyter_image: str, tmp_path: Path
) -> None:
    book = write_notebook(tmp_path / "a.ipynb", "n = 1", "print(n * 6)")
    own = namespace.settings(image=jupyter_image, tools=("python3", "papermill"))
    settings = {"mode": "gateway", "file_roots": [tmp_path], "platforms": {"lab": {"kind": "kubernetes", **own}}}
    async with serving(tmp_path / "home", **settings) as service:
        await allow(service, BOB.name)
        id, phase = await run(service, BOB, "papermill", notebook=f"file://{book}", parameters={"n": 7})
        assert phase is Phase.COMPLETED, await read(service, BOB, id, "stderr")
        assert await read(service, BOB, id) == "42\n"
        refused = await ask(service, BOB, run=["true"], platform="lab", time="2m")
        assert "containers only" in refused.reasons[0].message, "a command is no container, wherever it runs"


async def test_steps_run_one_after_the_other_in_one_pod(namespace: Namespace, tmp_path: Path) -> None:
    steps = [
        {"name": "prepare", "run": ["sh", "-c", "echo 7 >x"]},
        ["python3", "-c", "print(int(open('x').read()) * 6)"],
    ]
    lab = {"kind": "kubernetes", **namespace.settings()}
    async with serving(tmp_path, platforms={"lab": lab}) as service:
        id, phase = await run(service, ME, "kubernetes", steps=steps, image="localhost/python:3")
        assert phase is Phase.COMPLETED, await read(service, ME, id, "stderr")
        assert "42" in await read(service, ME, id)
        left = {file.path for file in (await service.output.results(id, ME)).files}
        assert left == {"x", *(f"steps/{name}/{file}" for name in ("prepare", "step-2") for file in FILES)}
        failing = [["sh", "-c", "exit 3"], ["true"]]
        id, phase = await run(service, ME, "kubernetes", steps=failing, image="localhost/python:3")
        session = await service.sessions.get(id, ME)
        assert (phase, session.end and session.end.code) == (Phase.FAILED, 3)
