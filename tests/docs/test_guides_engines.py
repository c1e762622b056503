"""The guide to engines, with a real Slurm, Jupyter Server, JupyterHub and Kubernetes: `make engines`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from testbed.kubernetes.cluster import Cluster

from tests.docs.guides import run_guide
from tests.engines.jupyter_servers import serve_hub, serve_jupyter
from tests.engines.kubernetes_cluster import HELPER, Namespace
from tests.real.notebooks import offer_papermill, write_notebook
from tests.sites import Site

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "engines.md"
BIN = Path(sys.executable).parent
CELLS = ("radius = 1", "with open('area.txt', 'w') as file:\n    print(3 * radius**2, file=file)")


def describe(site: Site) -> dict[str, str]:
    """What the guide calls the facts of a Slurm site, which has papermill."""
    offer_papermill(site)
    return {"SITE": site.host, "KEY": str(site.key), "KNOWN": site.facts["known_hosts"], "NAME": site.name}


def admit(namespace: Namespace, cluster: Cluster) -> dict[str, str]:
    """What the guide calls the facts of a namespace, whose nodes have the usual helper."""
    cluster.tag_image("localhost/busybox:1", HELPER)
    return {"KUBE": str(cluster.write_config(namespace.folder / "kube", "alice", namespace.name))}


@pytest.mark.engines
@pytest.mark.slurm
@pytest.mark.parametrize("guide", ["engines"])
def test_the_guide_to_engines_shows_what_its_commands_say(
    guide: str,
    tmp_path: Path,
    new_site: Callable[..., Site],
    namespace: Namespace,
    cluster: Cluster,
    jupyter_image: str,
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    write_notebook(here / "area.ipynb", *CELLS)
    known = {"IMAGE": jupyter_image, **describe(new_site()), **admit(namespace, cluster)}
    with serve_jupyter(tmp_path / "server") as server, serve_hub(tmp_path / "hub") as hub:
        (here / "server-token").write_text(server.token)
        (here / "hub-token").write_text(hub.make_token("marie"))
        environment = {
            "SUBLET_HOME": str(here / "home"),
            "HOME": str(here),
            "PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin",
            "COLUMNS": "120",
            "TZ": "UTC",
            "SUBLET_POLL": "1s",  # a reader has more time than a test
            "SUBLET_ANSWER_WITHIN": "30s",
            "SERVER": server.url,
            "HUB": hub.url,
            **known,
        }
        try:
            differences = run_guide(GUIDE, here, environment)
        finally:
            subprocess.run([str(BIN / "sublet"), "down"], env=environment, capture_output=True, timeout=60)
    assert not differences, "\n\n".join(differences)
