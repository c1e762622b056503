"""This checkout's Sublet on the machine `ap`: its source, what it needs to run, and the command `sublet`."""

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from testbed.box import CACHE
from testbed.plan import SiteError, Skip

CHECKOUT = Path(__file__).resolve().parent.parent
LOCK, PROJECT = CHECKOUT / "locks/run.txt", CHECKOUT / "pyproject.toml"
THERE = "/opt/sublet"
COMMANDS = ("annexes.cli.create", "annexes.cli.setup", "annexes.cli.jobs", "systems.cli.logins")
LOADED = "import sublet.server.server" + "".join(f", sublet.{module}" for module in COMMANDS)
# The checkout is read-only there, and for another Python than this machine's: what it compiles is kept beside it.
PATHS = f"""\
import sys; sys.pycache_prefix = "{THERE}/compiled"
{THERE}/src
{THERE}/needed
{THERE}/metadata
"""
COMMAND = """\
#!/usr/bin/python3
import sys
from sublet.cli import main
sys.exit(main())
"""


def python_version(base: str) -> str:
    """The version of a base's Python, such as 3.14."""
    try:
        return (Path(base) / "usr/bin/python3").readlink().name.removeprefix("python")
    except OSError:
        raise Skip(f"no python3 in {base}") from None


def mounts(base: str) -> dict[Path, str]:
    """What `ap` sees of the checkout: directories here, and where they are there."""
    version = python_version(base)
    names = {
        CHECKOUT / "src": "src",
        needed(version): "needed",
        metadata(): "metadata",
        compiled(version): "compiled",
    }
    return {here: f"{THERE}/{name}" for here, name in names.items()}


def files(base: str) -> dict[str, str]:
    """What makes them a program: the command on PATH, and where Python looks for its modules."""
    return {
        "usr/local/bin/sublet": COMMAND,
        f"usr/local/lib/python{python_version(base)}/dist-packages/sublet.pth": PATHS,
    }


def install(base: str) -> None:
    """Bring what Sublet needs to run into the cache, once for each lock and Python."""
    version = python_version(base)
    CACHE.mkdir(parents=True, exist_ok=True)
    words = ["uv", "pip", "install", "--quiet", "--python-version", version]
    words += ["--python-platform", f"{platform.machine()}-manylinux_2_28", "--only-binary", ":all:"]
    with making(needed(version)) as unfinished:
        if unfinished:
            run([*words, "--require-hashes", "--no-deps", "-r", str(LOCK), "--target", str(unfinished)])
    with making(metadata()) as unfinished:
        if unfinished:
            write_metadata(unfinished)
    for here in mounts(base):
        if here.name.startswith("compiled-") and not here.is_dir():
            here.mkdir()
            here.chmod(0o1777)


def needed(version: str) -> Path:
    """Where the packages are that Sublet needs to run on a version of Python."""
    return CACHE / f"needed-{version}-{digest(LOCK.read_text())}"


def compiled(version: str) -> Path:
    """Where a version of Python keeps what it has compiled of this checkout."""
    return CACHE / f"compiled-{version}-{digest(str(CHECKOUT))}"


def compile_once(base: str, run_on_ap: Callable[[list[str]], object]) -> None:
    """Have `ap` compile what Sublet loads, once for all sites of this checkout: they start together, and each would."""
    version = python_version(base)
    place = compiled(version)
    files = sorted((CHECKOUT / "src").rglob("*.py"))
    state = digest("".join(f"{file} {file.stat().st_mtime_ns}\n" for file in files) + needed(version).name)
    with (place / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        mark = place / ".state"
        if not mark.exists() or mark.read_text() != state:
            run_on_ap(["sh", "-c", 'umask 000; exec python3 -c "$1"', "sh", LOADED])
            mark.write_text(state)


def metadata() -> Path:
    """Where the project's own metadata is: its kinds, platforms and movers are found by it."""
    return CACHE / f"metadata-{digest(PROJECT.read_text())}"


def write_metadata(place: Path) -> None:
    """Write what an installed package says of itself."""
    project = tomllib.loads(PROJECT.read_text())["project"]
    lines = [line for group, points in project["entry-points"].items() for line in (f"[{group}]", *pairs(points))]
    directory = place / f"{project['name']}-{project['version']}.dist-info"
    directory.mkdir()
    head = {"Metadata-Version": "2.4", "Name": project["name"], "Version": project["version"]}
    (directory / "METADATA").write_text("".join(f"{name}: {value}\n" for name, value in head.items()))
    (directory / "entry_points.txt").write_text("\n".join(lines) + "\n")


def pairs(points: dict[str, str]) -> list[str]:
    """Names and what they stand for, a line each."""
    return [f"{name} = {value}" for name, value in points.items()]


def digest(text: str) -> str:
    """A short name for a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@contextmanager
def making(place: Path) -> Iterator[Path | None]:
    """A directory to fill, which gets its name when that is done; None where it is there already."""
    with (CACHE / ".checkout").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if place.is_dir():
            yield None
            return
        unfinished = place.with_name(f"{place.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        yield unfinished
        unfinished.rename(place)


def run(words: list[str]) -> None:
    """Run a program of the checkout's environment, in the checkout."""
    program = CHECKOUT / ".venv/bin" / words[0]
    if not program.exists():
        raise Skip("Sublet is not set up in this checkout; `make setup` does that")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([program, *words[1:]], cwd=CHECKOUT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SiteError(f"Sublet could not be installed for the machine ap:\n{done.stderr.strip()}")
