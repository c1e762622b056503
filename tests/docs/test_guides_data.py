"""The guides to data, with a real object store and a real WebDAV server; one of them on a real cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.guides import run_guide
from tests.docs.test_guides import at_a_site
from tests.sites import Site
from tests.storage_servers import StorageServer, serve_s3, serve_webdav

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
BIN = Path(sys.executable).parent


def type_guide(
    guide: str, top: Path, store: StorageServer, share: StorageServer, more: dict[str, str] | None = None
) -> list[str]:
    """Type a guide beside two servers; what differs."""
    here = top / "here"
    (here / "secret-key").write_text(f"{store.credential.secret}\n")
    (here / "password").write_text(f"{share.credential.secret}\n")
    environment = {
        "SUBLET_HOME": str(top / "home"),
        "HOME": str(here),
        "PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin",
        "COLUMNS": "100",
        "TZ": "UTC",
        "S3_SERVER": f"http://{store.address}",
        "ACCESS_KEY": store.credential.user,
        "DAV": f"dav://{share.address}",
        **(more or {}),
    }
    systems = top / "home" / "systems" if more else None
    try:
        return run_guide(GUIDES / f"{guide}.md", here, environment, systems=systems)
    finally:
        subprocess.run([str(BIN / "sublet"), "down"], env=environment, capture_output=True, timeout=60)


@pytest.mark.engines
@pytest.mark.parametrize("guide", ["data"])
def test_the_guide_to_data_shows_what_its_commands_say(guide: str, tmp_path: Path) -> None:
    here = tmp_path / "here"
    (here / "store" / "results" / "raw").mkdir(parents=True)
    (here / "store" / "results" / "raw" / "in.txt").write_text("hello\n")
    (here / "share").mkdir()
    with serve_s3(here / "store") as store, serve_webdav(here / "share") as share:
        differences = type_guide(guide, tmp_path, store, share)
    assert not differences, "\n\n".join(differences)


@pytest.mark.engines
@pytest.mark.parametrize("guide", ["data-on-a-cluster"])
def test_the_guide_to_data_on_a_cluster_shows_what_its_commands_say(guide: str, tmp_path: Path, site: Site) -> None:
    here = tmp_path / "here"
    (here / "store" / "results" / "raw").mkdir(parents=True)
    (here / "store" / "results" / "raw" / "in.bin").write_bytes(os.urandom(3_000_000))
    (here / "share" / "team").mkdir(parents=True)
    host = site.facts["here"]
    with serve_s3(here / "store", host) as store, serve_webdav(here / "share", host) as share:
        differences = type_guide(guide, tmp_path, store, share, at_a_site(site, tmp_path))
    assert not differences, "\n\n".join(differences)
