"""A community account on a real site: imported from the seed's JSON, its key nowhere to be found, its people named."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sublet.access.model.account import fingerprint
from sublet.client import Client
from sublet.kernel.master_key import make
from sublet.kernel.ssh_keys import read_key
from tests.nursery import typed
from tests.serving import Serving
from tests.sites import Site

NAME = "keeling_community"
FOLDER = "community"


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    """A service with a master key outside its home."""
    home = tmp_path / "h"
    home.mkdir(mode=0o700)
    make(str(tmp_path / "master"))
    (home / "sublet.toml").write_text(f'master_key = "{tmp_path / "master"}"\nplatforms = {{}}\n')
    started = Serving(home)
    yield started
    started.stop()


def sublet(home: Path, *words: str) -> str:
    """Type a command."""
    done = typed(words, {**os.environ, "SUBLET_HOME": str(home)})
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def hpc_json(site: Site, place: Path) -> Path:
    """The seed's document, with the key beside it."""
    login = {"user": "service", "use_local_key": False}
    outer = {"private_key_path": "cigi-gisolve.key", "passphrase": None}
    hpc = {
        "ip": site.host,
        "port": 22,
        "is_community_account": True,
        "community_login": {**login, "external_key": outer},
        "connector": "SlurmConnector",
        "root_path": FOLDER,
    }
    place.mkdir()
    shutil.copyfile(site.key, place / "cigi-gisolve.key")
    file = place / "hpc.json"
    file.write_text(json.dumps({NAME: hpc}))
    return file


def until(what: Any, seconds: float = 60) -> Any:
    """What comes true, before a deadline."""
    deadline = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.1)  # between two looks, until the deadline
    return found


def processes() -> Iterator[tuple[str, bytes]]:
    """The arguments and the environment of all that runs on this machine; the site's nodes are on it too."""
    for process in Path("/proc").iterdir():
        for name in ("cmdline", "environ") if process.name.isdigit() else ():
            try:
                yield f"{process}/{name}", (process / name).read_bytes()
            except OSError:  # it has ended
                continue


def test_an_imported_account_runs_sessions_in_its_peoples_names_and_its_key_is_found_nowhere(
    new_site: Callable[..., Site], tmp_path: Path, serving: Serving
) -> None:
    site = new_site("--accounts", "--slurm", "TrackWCKey=yes")  # it keeps records, as centres do
    file = hpc_json(site, tmp_path / "cybergis")
    texts = (site.key.read_text(), read_key(site.key.read_text())[0])  # as it was given, and as it was sealed
    secret = [line.encode() for text in texts for line in text.splitlines()[3:-1]]  # before: what is public
    client: Client = serving.start()
    lines = Path(site.facts["known_hosts"]).read_text().splitlines()
    known = next(found for line in lines if "ed25519" in line and (found := fingerprint(line)))
    said = sublet(serving.home, "account", "import", str(file), "--fingerprint", known)
    assert "stored sealed" in said
    shutil.rmtree(file.parent)  # the key is needed no longer
    assert "is changed" in sublet(serving.home, "account", "change", NAME, "--wckey")
    assert "signed in as service" in sublet(serving.home, "account", "check", NAME)

    offers = client.ask(run=["sleep", "300"], platform=NAME, time="10m", memory="128MiB", name="long wait")
    session = offers[0].accept()
    until(lambda: client.session(session.id).phase == "RUNNING")
    queue = site.on("ctl", "squeue", "-h", "-u", "service", "-o", "%A %k")
    number, _, comment = next(line for line in queue.splitlines() if session.id in line).partition(" ")
    person = getpass.getuser()
    assert comment.startswith(f"sublet person={person} session={session.id}")
    assert f"person={person}" in site.on("ctl", "scontrol", "show", "job", number)

    script = site.on("ctl", "scontrol", "write", "batch_script", number, "-").encode()
    there = site.on("service@login", "sh", "-c", f"find {FOLDER} -type f -exec cat {{}} +").encode("utf-8", "replace")
    found = dict(processes())
    own = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert serving.log_file in own
    found |= {str(path): path.read_bytes() for path in own} | {"the job's script": script, "its files": there}
    answers = {
        words: sublet(serving.home, *words.split()).encode() for words in (f"account show {NAME} --json", "doctor")
    }
    for where, content in (found | answers).items():
        assert not any(line in content for line in secret), where
    assert not any("dump" in path.name or path.name.startswith("core") for path in own)

    session.cancel()
    until(lambda: client.session(session.id).phase == "CANCELLED")
    record = ("ctl", "sacct", "-X", "-n", "-P", "-j", number, "-o", "wckey,comment")
    until(lambda: site.on(*record).startswith(f"{person}|sublet person={person} "))
    assert person in sublet(serving.home, "usage", "--account", NAME, "--csv")
    sublet(serving.home, "account", "remove", NAME)
    assert client.session(session.id).phase == "CANCELLED"
    sockets = list(serving.home.rglob("agent-*/*"))
    serving.stop()
    assert not any(path.exists() for path in sockets)
