"""The wheel: what an index shows of it, and the slim client that it installs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from email import message_from_bytes
from email.message import Message
from importlib.metadata import Distribution, distribution
from pathlib import Path
from zipfile import ZipFile

import pytest
from hatch_build import make_readme
from packaging.requirements import Requirement

from sublet.people.calls.people import new_token
from tests.serving import Serving

ROOT = Path(__file__).parents[2]
LARGEST = 25 << 20  # bytes of the client with all that it needs; with the server it is over 100 MB
PROGRAM = "import sys; from sublet.cli import main; sys.argv[0] = 'sublet'; main()"
EVERY_MODULE = """
import importlib, pkgutil, sublet
subjects = ("booking", "people", "access", "annexes", "apps", "notices")
layers = ("model", "views", "calls", "cli")
rooms = [f"{subject}.{layer}" for subject in subjects for layer in layers]
for package in ("cli", "client", "reach", "systems", *rooms):
    path = importlib.import_module(f"sublet.{package}").__path__
    for one in pkgutil.walk_packages(path, f"sublet.{package}."):
        if not one.name.endswith("__main__"):
            importlib.import_module(one.name)
print(sublet.__file__, sublet.Client.__name__, sublet.AsyncClient.__name__)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built out of this source."""
    return build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


def build_wheel(source: Path, to: Path) -> Path:
    """Build it as a publisher does."""
    words = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", to]
    done = subprocess.run(words, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = to.glob("*.whl")
    return built


def read_metadata(wheel: Path) -> Message:
    """What a wheel tells an index."""
    with ZipFile(wheel) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name))


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    """What it tells an index."""
    return read_metadata(wheel)


@dataclass(frozen=True)
class Slim:
    """A place with the wheel and what it requires by itself, and nothing else: as `pip install sublet` leaves it."""

    place: Path
    home: Path

    def python(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run Python without any other package; -S leaves out those of the tests."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("SUBLET_", "PYTHON"))}
        given = {**clean, "PYTHONPATH": str(self.place), "SUBLET_HOME": str(self.home), **environment}
        return subprocess.run(
            [sys.executable, "-S", *words], env=given, cwd=self.place, capture_output=True, text=True, timeout=60
        )

    def types(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Type a command of the slim client."""
        return self.python("-c", PROGRAM, *words, **environment)


@pytest.fixture(scope="module")
def slim(wheel: Path, metadata: Message, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slim]:
    """Installed without an index: what is required is copied from where the tests run, which has all of it."""
    place = tmp_path_factory.mktemp("slim")
    with ZipFile(wheel) as archive:
        archive.extractall(place)
    for name in required(metadata.get_all("requires-dist", []), set()):
        lay(distribution(name), place)
    yield Slim(place, tmp_path_factory.mktemp("home"))
    shutil.rmtree(place)


def required(lines: list[str], known: set[str]) -> set[str]:
    """The names of what these lines require here, and of what that requires."""
    for line in lines:
        wanted = Requirement(line)
        if wanted.name not in known and (wanted.marker is None or wanted.marker.evaluate({"extra": ""})):
            known.add(wanted.name)
            required(distribution(wanted.name).requires or [], known)
    return known


def lay(found: Distribution, place: Path) -> None:
    """Copy what a distribution has."""
    for file in found.files or ():
        if ".." not in file.parts and file.suffix != ".pyc":
            to = place / file
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(str(file.locate()), to)


def test_an_index_shows_no_link_or_picture_that_only_works_beside_the_source(metadata: Message) -> None:
    shown = str(metadata.get_payload())
    targets = re.findall(r"\]\(([^)]+)\)", shown)
    assert [one for one in targets if not re.match(r"https?://|#", one)] == []
    assert "pip install" in shown
    assert "From nothing to a result" in shown, "the text of a link stays"


def test_with_a_source_address_links_and_pictures_lead_there() -> None:
    text = "![A picture](docs/a.png)\n\nSee [this](docs/b.md), [that](https://example.org/) and [below](#below).\n"
    there = "https://git.example.org/sublet"
    assert make_readme(text, there) == (
        f"![A picture]({there}/raw/main/docs/a.png)\n\n"
        f"See [this]({there}/blob/main/docs/b.md), [that](https://example.org/) and [below](#below).\n"
    )
    assert make_readme(text) == "See this, [that](https://example.org/) and [below](#below).\n"


def test_the_addresses_of_a_project_are_told_once_they_are_set(tmp_path: Path) -> None:
    there = "https://git.example.org/group/sublet"
    for name in ("README.md", "hatch_build.py", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "src").symlink_to(ROOT / "src")
    project = (ROOT / "pyproject.toml").read_text()
    assert "[project.urls]" not in project, "then this test may read the project itself"
    (tmp_path / "pyproject.toml").write_text(
        f'{project}\n[project.urls]\nSource = "{there}"\nIssues = "{there}/issues"\n'
    )
    told = read_metadata(build_wheel(tmp_path, tmp_path / "built"))
    assert told.get_all("project-url") == [f"Source, {there}", f"Issues, {there}/issues"]
    text = str(told.get_payload())
    assert f"({there}/blob/main/docs/guides/first-run.md)" in text
    assert f"({there}/raw/main/docs/pictures/offers.png)" in text
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert [target for target in targets if not target.startswith(("https:", "#"))] == []


def test_every_extra_brings_something(metadata: Message) -> None:
    extras = metadata.get_all("provides-extra", [])
    assert set(extras) == {"archive", "notebook", "postgres", "server"}
    lines = metadata.get_all("requires-dist", [])
    assert all(any(f"extra == '{extra}'" in line for line in lines) for extra in extras)


def test_the_client_is_small_and_loads_without_the_server(slim: Slim) -> None:
    size = sum(file.stat().st_size for file in slim.place.rglob("*") if file.is_file())
    assert size < LARGEST, f"{size / 2**20:.0f} MiB"
    loaded = slim.python("-c", EVERY_MODULE)
    assert loaded.returncode == 0, loaded.stderr
    file, *names = loaded.stdout.split()
    assert (Path(file).parent.parent, names) == (slim.place, ["Client", "AsyncClient"])
    assert slim.types("--version").stdout.startswith("sublet ")
    assert "Ask and run" in slim.types("--help").stdout


def test_the_client_asks_a_service_that_runs_elsewhere(slim: Slim, tmp_path: Path) -> None:
    serving = Serving(tmp_path / "home", "--platform", "memory")
    client = serving.start()
    try:
        url = re.search(r"http://127[^\"]+", (tmp_path / "home/run/service.json").read_text())
        assert url
        there = {"SUBLET_URL": url[0], "SUBLET_TOKEN": client.do(new_token()).token}
        asked = slim.types("ask", "--cores", "1", "--time", "1m", "--", "true", **there)
        assert (asked.returncode, "memory" in asked.stdout) == (0, True), asked.stderr
        assert slim.types("whoami", **there).returncode == 0
    finally:
        serving.stop()


@pytest.mark.parametrize("words", [["serve"], ["ask", "--", "true"], ["up"]])
def test_what_needs_the_server_says_in_one_line_how_to_install_it(slim: Slim, words: list[str]) -> None:
    refused = slim.types(*words)
    assert refused.returncode == 1
    assert "only its client is installed here" in refused.stderr
    assert "hint: pip install 'sublet[server]'" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_doctor_says_that_no_service_can_start_here(slim: Slim) -> None:
    said = slim.types("doctor").stdout
    assert "only the client is installed" in said
    assert "starts when needed" not in said
