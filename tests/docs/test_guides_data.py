"""The guide to data, with a real object store and a real WebDAV server."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.guides import run_guide
from tests.storage_servers import serve_s3, serve_webdav

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "data.md"
BIN = Path(sys.executable).parent


@pytest.mark.parametrize("guide", ["data"])
def test_the_guide_to_data_shows_what_its_commands_say(guide: str, tmp_path: Path) -> None:
    here = tmp_path / "here"
    (here / "store" / "results" / "raw").mkdir(parents=True)
    (here / "store" / "results" / "raw" / "in.txt").write_text("hello\n")
    (here / "share").mkdir()
    with serve_s3(here / "store") as store, serve_webdav(here / "share") as share:
        (here / "secret-key").write_text(f"{store.credential.secret}\n")
        (here / "password").write_text(f"{share.credential.secret}\n")
        environment = {
            "SUBLET_HOME": str(tmp_path / "home"),
            "HOME": str(here),
            "PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin",
            "COLUMNS": "100",
            "TZ": "UTC",
            "S3_SERVER": f"http://{store.address}",
            "ACCESS_KEY": store.credential.user,
            "DAV": f"dav://{share.address}",
        }
        try:
            differences = run_guide(GUIDE, here, environment)
        finally:
            subprocess.run([str(BIN / "sublet"), "down"], env=environment, capture_output=True, timeout=60)
    assert not differences, "\n\n".join(differences)
