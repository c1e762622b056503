"""The guide to engines, with a real Jupyter Server and a real JupyterHub: `make engines`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.guides import run_guide
from tests.engines.jupyter_servers import serve_hub, serve_jupyter
from tests.real.notebooks import write_notebook

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "engines.md"
BIN = Path(sys.executable).parent


@pytest.mark.engines
@pytest.mark.parametrize("guide", ["engines"])
def test_the_guide_to_engines_shows_what_its_commands_say(guide: str, tmp_path: Path) -> None:
    here = tmp_path / "here"
    here.mkdir()
    write_notebook(
        here / "area.ipynb", "radius = 1", "with open('area.txt', 'w') as file:\n    print(3 * radius**2, file=file)"
    )
    with serve_jupyter(tmp_path / "server") as server, serve_hub(tmp_path / "hub") as hub:
        (here / "server-token").write_text(server.token)
        (here / "hub-token").write_text(hub.make_token("marie"))
        environment = {
            "SUBLET_HOME": str(here / "home"),
            "HOME": str(here),
            "PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin",
            "COLUMNS": "120",
            "TZ": "UTC",
            "SERVER": server.url,
            "HUB": hub.url,
        }
        try:
            differences = run_guide(GUIDE, here, environment)
        finally:
            subprocess.run([str(BIN / "sublet"), "down"], env=environment, capture_output=True, timeout=60)
    assert not differences, "\n\n".join(differences)
