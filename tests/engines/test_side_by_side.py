"""One ask shows offers of five kinds of platform side by side, all of them real."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.contract.services import ask, serving
from tests.engines.gridengine_server import serve_gridengine
from tests.engines.jupyter_servers import serve_jupyter
from tests.engines.kubernetes_cluster import Namespace
from tests.engines.machines import PERSON, EngineMachine
from tests.real.notebooks import NEEDED, closure, offer_papermill, write_notebook
from tests.sites import Site

pytestmark = [pytest.mark.anyio, pytest.mark.engines, pytest.mark.slurm]
QUICK = {"poll": "1s", "look": "1s", "patience": "2s", "calls": 1000}


def put_papermill(machine: EngineMachine) -> None:
    """Install papermill on a machine, out of what is installed here, by its own Python."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as packed:
        for part in closure(NEEDED):
            for file in part.files or ():
                if ".." not in file.parts and (source := Path(str(file.locate()))).is_file():
                    packed.add(source, f"opt/jupyter/{file}", recursive=False)
    words = ["nsenter", "-t", str(machine.pid), "-m", "-r", "-w", "tar", "-x", "-C", "/"]
    subprocess.run(words, input=buffer.getvalue(), check=True, env={"PATH": "/usr/bin:/bin"})
    code = "import sys\nsys.path.insert(0, '/opt/jupyter')\nfrom papermill.__main__ import papermill\npapermill()\n"
    machine.run("sh", "-c", "cat >/usr/local/bin/papermill", stdin=f"#!/usr/bin/python3\n{code}")
    machine.run("sh", "-c", "cat >/usr/lib/python3/dist-packages/jupyter.pth", stdin="/opt/jupyter\n")
    machine.run("chmod", "755", "/usr/local/bin/papermill")


async def test_one_ask_is_offered_by_five_kinds_of_platform(
    tmp_path: Path, new_site: Callable[..., Site], namespace: Namespace, jupyter_image: str
) -> None:
    book = write_notebook(tmp_path / "a.ipynb", "n = 1", "print(n * 6)")
    site = new_site()
    known = {"UserKnownHostsFile": site.facts["known_hosts"], "HostKeyAlias": site.name}
    with serve_gridengine(tmp_path / "machine") as grid, serve_jupyter(tmp_path / "server") as server:
        put_papermill(grid)
        token = tmp_path / "token"
        token.write_text(server.token)
        token.chmod(0o600)
        platforms = {
            "here": {"kind": "local", "cores": 2, "memory": "4GiB"},
            "centre": {
                "kind": "slurm",
                "host": site.host,
                "user": "service",
                "key": str(site.key),
                "ssh": known,
                "queue": "compute",
                "path": [offer_papermill(site)],
                **QUICK,
            },
            "grid": {
                "kind": "gridengine",
                "host": grid.address,
                "user": PERSON,
                "key": str(grid.key),
                "ssh": grid.ssh,
                **QUICK,
            },
            "group": {"kind": "jupyter", "url": server.url, "memory": "2GiB", "token_file": str(token)},
            "cloud": {"kind": "kubernetes", **namespace.settings()},
        }
        images = {"images": {"jupyter": jupyter_image}, "standard_images": {"notebook": "jupyter"}}
        async with serving(tmp_path / "home", platforms=platforms, answer_within="60s", **images) as service:
            short = {"run": None, "notebook": f"file://{book}", "parameters": {"n": 7}, "time": "5m"}
            offerset = await ask(service, **short, memory="512MiB")
            assert {offer.offer.platform for offer in offerset.offers} == set(platforms), offerset.reasons
