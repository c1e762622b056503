"""A generic image runs approved repositories that are nothing but a notebook: in a real container, as reviewed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sublet.booking.model.phases import Phase
from sublet.doors.cybergis.roadmap import read_seed
from sublet.people.model.person import Person
from tests.contract.services import allow, over, serving
from tests.git_server import git_server
from tests.real.container_tools import find_tools
from tests.real.jupyter_image import jupyter_archive
from tests.real.notebooks import notebook

pytestmark = pytest.mark.anyio
ANN, BOB = Person("ann@example.org"), Person("bob@example.org")
REVIEWER = Person("rae@example.org", reviewer=True)
LOOK = "import json, os\nprint('found', years, label, json.load(open('params.json')), os.getcwd())"
WRITE = "open('made.txt', 'w').write(open('data/rain.txt').read() * years)"


async def test_an_approved_notebook_runs_in_its_maintainers_image_and_leaves_itself_executed(tmp_path: Path) -> None:
    find_tools("podman")
    digest = jupyter_archive(tmp_path / "jupyter.tar")
    maintainer = {"image": f"docker-archive:{tmp_path}/jupyter.tar", "digest": digest, "kind": "jupyter"}
    (tmp_path / "rain.txt").write_text("much ")
    with git_server(tmp_path / "git") as server:
        code = server.repository("ann/flood")
        code.commit({"flood.ipynb": json.dumps(notebook("years = 1\nlabel = ''", LOOK, WRITE))}, "Begin")
        settings = {
            "mode": "gateway",
            "apps": {"private": [f"{server.url}/*"]},
            "maintainers": {"cybergisx": maintainer},
            "platforms": {"here": {"kind": "local"}},
            "file_roots": [tmp_path],
        }
        async with serving(tmp_path / "home", **settings) as service:
            version = await service.apps.proposing.propose(ANN, code.url, maintainer="cybergisx")
            assert (version.name, version.digest) == ("flood@1", digest)
            await service.apps.reviewing.approve("flood@1", REVIEWER, version.tree)
            for noun in ("system", "app"):
                await allow(service, BOB.name, noun=noun)
            odd = "'\"; import os #\n😀"
            seed = {"maintainer": "cybergisx", "hpc": "here", "file": code.url, "app": {"years": 2, "label": odd}}
            data = {"data_file": f"file://{tmp_path}/rain.txt"}
            session, _ = await service.apps.runs.start_app(BOB, read_seed(seed | data))
            ended = await over(service, session.id, BOB, 120)
            place = service.settings.home / "platforms" / "here" / "sessions" / session.id
            out, err = ((place / stream).read_text() for stream in ("stdout", "stderr"))
            assert ended.phase is Phase.COMPLETED, (ended.end, err)
            assert f"found 2 {odd} {{'years': 2, 'label': {odd!r}}} /job" in out
            found = await service.output.results(session.id, BOB)
            left = [file.path for file in found.files]
    assert {"result/executed.ipynb", "job/made.txt", "job/flood.ipynb"} <= set(left)
    assert found.folders == (), "places that data was mounted on are no results"
    assert (place / "work" / "job" / "made.txt").read_text() == "much much "
    executed = json.loads((place / "work" / "result" / "executed.ipynb").read_text())
    assert any("injected-parameters" in cell["metadata"].get("tags", ()) for cell in executed["cells"])
    assert any("found 2" in str(cell["outputs"]) for cell in executed["cells"])
