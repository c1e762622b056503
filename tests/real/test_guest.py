"""The whole path of a guest: signed in with two factors, everything run that can be, and nothing left behind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sublet.client import Client
from tests.real import images
from tests.real.notebooks import offer_papermill, write_notebook
from tests.real.researchers import Researcher, at
from tests.serving import eventually
from tests.sites import Site
from tests.sites import running as site_running

BOOK = {"executed.ipynb", "made.txt"}  # a page too, where nbconvert gets along with the site's Python
BAG = {"tasks.jsonl", "tasks.out"}
PLACES = ("/home", "/scratch", "/tmp", "/dev/shm")


@pytest.fixture(scope="module")
def host(swept: None) -> Iterator[Site]:
    """A site whose operator offers papermill, and whose people need two factors."""
    if not images.made_busybox():
        pytest.skip("busybox-static is not installed")
    with site_running("--nodes", "2") as site:
        offer_papermill(site)
        yield site


def everything(site: Site) -> set[str]:
    """All that is there of people's: files on every machine, and who has processes."""
    found = set()
    for machine in ("login", "c1", "c2"):
        files = site.on(machine, "find", *PLACES, "-xdev", "-mindepth", "1", check=False).splitlines()
        people = site.on(machine, "ps", "-ww", "-eo", "user:20=,args=").splitlines()
        found |= {f"{machine}: {name}" for name in files}
        found |= {f"{machine}: {line}" for line in people if line.startswith(("researcher", "20001"))}
    return found


def asked(client: Client, site: Site, **wishes: Any) -> Any:
    """A session, accepted."""
    offers = client.ask(**{"platform": site.name, "time": "3m", "memory": "64MiB", **wishes})
    assert offers, offers.reasons
    return offers[0].accept()


def run_everything(person: Researcher, client: Client, site: Site, here: Path) -> None:
    """A command, containers and a notebook; logs while they run; each end as it was; results home."""
    images.docker_archive(here / "box.tar", Entrypoint=[])
    write_notebook(here / "book.ipynb", "n = 1", "print(n * 6)", "open('made.txt', 'w').write('made')")
    image = f"file://{here}/box.tar"
    waits = "echo begun; until [ -e go ]; do sleep 0.2; done; echo left > out.txt"
    sessions = {
        "command": asked(client, site, run=["sh", "-c", waits]),
        "container": asked(client, site, image=image, run=["sh", "-c", "echo contained; echo in > in.txt; exit 7"]),
        "again": asked(client, site, image=image, run=["echo", "again"]),
        "notebook": asked(client, site, notebook=f"file://{here}/book.ipynb", parameters={"n": 7}, memory="512MiB"),
        "bag": asked(client, site, bag={"template": ["echo", "{x}"], "grid": {"x": list(range(1000))}}),
        "no program": asked(client, site, run=["/not/here"]),
        "no image": asked(client, site, image=f"file://{here}/none.tar", run=["true"]),
        "cancelled": asked(client, site, run=["sh", "-c", "echo begun; sleep 100"]),
    }
    for name in ("command", "cancelled"):
        eventually(lambda name=name: "begun" in "".join(sessions[name].logs()), f"first words of {name}", 90)  # type: ignore[misc]
    site.on("researcher@login", "touch", f".sublet/sessions/{sessions['command'].id}/work/go")
    sessions["cancelled"].cancel()
    ends = {name: session.wait(timeout=180).end for name, session in sessions.items()}
    words = "".join(sessions["notebook"].logs(stream="stderr"))
    told = {name: (end.kind, end.code) for name, end in ends.items()}
    assert told == {
        "command": ("exited", 0),
        "container": ("exited", 7),
        "again": ("exited", 0),
        "notebook": ("exited", 0),
        "bag": ("exited", 0),
        "no program": ("not-started", None),
        "no image": ("staging-failed", None),
        "cancelled": ("cancelled", None),
    }, words
    for name, files in (("command", {"go", "out.txt"}), ("container", {"in.txt"}), ("notebook", BOOK), ("bag", BAG)):
        done = person.types("result", sessions[name].id, "--out", str(here / name))
        assert done.returncode == 0, done.stderr
        assert {path.name for path in (here / name).iterdir()} >= files, words
    assert len((here / "bag" / "tasks.jsonl").read_text().splitlines()) == 1000
    assert "42" in (here / "notebook" / "executed.ipynb").read_text()
    assert "".join(sessions["container"].logs()) == "contained\n", "what it printed is here"
    for name in ("again", "no program", "no image", "cancelled"):
        assert person.types("delete", sessions[name].id).returncode == 0


@pytest.mark.soak
def test_a_guest_runs_everything_and_leaves_nothing(host: Site, tmp_path: Path) -> None:
    before = everything(host)
    with at(host, tmp_path / "home", "--path", "/scratch/software/jupyter/bin") as person:
        client = person.serving.start()
        assert person.signs_in() == 0, person.said
        eventually(lambda: client.ask(run=["true"], platform=host.name).result == "YES", "an offer", 90)
        run_everything(person, client, host, tmp_path)
        swept = person.types("platform", "sweep", host.name, "--all", "--json")
        assert swept.returncode == 0, swept.stderr
        assert len(json.loads(swept.stdout)["files"]) == 1, "the image, once for both sessions"
        person.types("system", "logout", host.name)
        host.wait(lambda: not any("sshd" in one for one in everything(host) - before), 60)
        assert everything(host) == before
