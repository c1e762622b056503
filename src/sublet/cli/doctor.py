"""`doctor`: checks that everything is in order here, and says what to do where it isn't."""

from __future__ import annotations

import os
import shutil
import stat
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec

from sublet.cli.command import command
from sublet.cli.doctor_database import check_database
from sublet.cli.output import Output, table
from sublet.cli.texts import size
from sublet.client.address import find_address
from sublet.client.calls.access_point import access_point
from sublet.client.calls.health import health
from sublet.client.calls.people import whoami
from sublet.client.calls.platforms import platforms
from sublet.client.link import Link
from sublet.container_network import USUAL, choose_networks, look_at_machine
from sublet.errors import BadMasterKey, SubletError
from sublet.extras import has_server
from sublet.home import Home, sublet_home
from sublet.master_key import find, read
from sublet.whereabouts import objections, on_network, probe

CONTAINERS = ("podman", "docker", "apptainer", "singularity", "ch-run")
NOTEBOOKS = ("papermill", "nbconvert", "ipykernel", "jupyterlab")
HTCONDOR = ("condor_submit", "condor_q", "condor_status", "condor_history")
LITTLE, TOO_LITTLE = 5 * 1024**3, 200 * 1024**2  # bytes of free disk


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    state: str  # ok, warn, bad
    what: str
    detail: str
    todo: str = ""


@command("doctor", "sublet doctor")
def doctor(out: Output) -> int:
    """Check this machine, your SUBLET_HOME and the service; say what to do where something is missing."""
    found = [finding for check in CHECKS for finding in check(sublet_home())]
    out.show(
        found,
        lambda: table(
            ("", "WHAT", "FOUND", "WHAT TO DO"), [(f.state, f.what, f.detail, f.todo) for f in found], fold=True
        ),
        lambda: (f"{f.state} {f.what}: {f.detail}" for f in found if f.state != "ok"),
    )
    return 1 if any(finding.state == "bad" for finding in found) else 0


def python(_: Home) -> Iterator[Finding]:
    """The Python that runs this."""
    version = ".".join(map(str, sys.version_info[:3]))
    yield Finding("ok" if sys.version_info >= (3, 11) else "bad", "Python", f"{version}, {sys.executable}")


def place(home: Home) -> Iterator[Finding]:
    """SUBLET_HOME: private, on a local disk with room, not on a login node."""
    facts = probe(home.root)
    above = home.root
    while not os.path.exists(above):
        above = os.path.dirname(above)
    if not os.access(above, os.W_OK):
        yield Finding("bad", "SUBLET_HOME", f"{home.root} can't be written", "Set SUBLET_HOME to a directory of yours.")
    elif above == home.root and stat.S_IMODE(os.stat(above).st_mode) & 0o077:
        yield Finding("warn", "SUBLET_HOME", f"others can look into {home.root}", f"chmod 700 {home.root}")
    else:
        yield Finding("ok", "SUBLET_HOME", home.root)
    against = objections(facts)
    if not on_network(facts.filesystem):
        yield Finding("ok", "file system", facts.filesystem)
    if not against:
        yield Finding("ok", "machine", f"{facts.hostname}, no login node")
    for objection in against:
        yield Finding("bad", "machine", objection.why, objection.advice)
    free = shutil.disk_usage(above).free
    state = "bad" if free < TOO_LITTLE else "warn" if free < LITTLE else "ok"
    yield Finding(
        state, "free disk", size(free), "" if state == "ok" else "Make room: sessions write below SUBLET_HOME."
    )


def settings(home: Home) -> Iterator[Finding]:
    """The settings file, if there is one."""
    try:
        with open(home.settings, "rb") as file:
            tomllib.load(file)
    except FileNotFoundError:
        yield Finding("ok", "settings", "all as they come")
    except (OSError, ValueError) as error:
        yield Finding("bad", "settings", f"{home.settings}: {error}", "See docs/reference/settings.md.")
    else:
        yield Finding("ok", "settings", home.settings)


def master_key(home: Home) -> Iterator[Finding]:
    """The key that seals stored secrets, if one is set."""
    try:
        with open(home.settings, "rb") as file:
            said = str(tomllib.load(file).get("master_key", ""))
    except (OSError, ValueError):
        said = ""
    found = find(said)
    if not found:
        return
    try:
        keys = read(found, home.root)
    except BadMasterKey as error:
        yield Finding("bad", "master key", error.message, error.advice)
    else:
        yield Finding("ok", "master key", f"{found}, {keys[0].id}")


def database(home: Home) -> Iterator[Finding]:
    """The database, if there is one."""
    state, found, todo = check_database(home)
    yield Finding(state, "database", found, todo)


def service(_: Home) -> Iterator[Finding]:
    """The service, its platforms, and who one is to it; it isn't started for this."""
    address = find_address()
    link = Link(replace(address, home=None))
    try:
        found = link.do(health())
    except SubletError as error:
        if address.home and not has_server():
            yield Finding("warn", "service", "only the client is installed", "pip install 'sublet[server]'")
        elif address.home:
            yield Finding("ok", "service", "not running; it starts by itself")
        else:
            yield Finding("bad", "service", error.message, error.advice)
        return
    yield Finding("ok", "service", f"{found.mode}, version {found.version}, {address.text}")
    if found.problem:
        yield Finding("bad", "service", found.problem, "It tries again by itself, once that is put right.")
    try:
        yield Finding("ok", "you are", link.do(whoami()).person)
        for platform in link.do(platforms()).items:
            state = "ok" if platform.working or platform.ask else "bad"
            said = platform.kind if platform.working else platform.problem
            yield Finding(state, f"platform {platform.name}", said, platform.ask)
            yield from (Finding("ok", f"on {platform.name}", note) for note in platform.notes)
    except SubletError as error:
        yield Finding("bad", "service", error.message, error.advice)


def tools(_: Home) -> Iterator[Finding]:
    """What containers and notebooks need."""
    containers = [name for name in CONTAINERS if shutil.which(name)]
    todo = "" if containers else "To run images, install podman or apptainer."
    yield Finding("ok" if containers else "warn", "containers", ", ".join(containers) or "no tool for them", todo)
    if "podman" in containers:
        network = choose_networks("podman", USUAL, False, look_at_machine())[0]
        yield Finding("warn" if network.is_none else "ok", "their network", network.words, network.remedy)
    missing = [name for name in NOTEBOOKS if find_spec(name) is None]
    if missing:
        yield Finding("warn", "notebooks", f"without {', '.join(missing)}", "pip install 'sublet[notebook]'")
    else:
        yield Finding("ok", "notebooks", ", ".join(NOTEBOOKS))


def htcondor(home: Home) -> Iterator[Finding]:
    """What annexes need: HTCondor, and an access point that runs if there is one."""
    fetched = os.path.join(home.root, "htcondor", "sbin")
    places = (os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/local/sbin", "/opt/condor/sbin", fetched)
    master = shutil.which("condor_master", path=os.pathsep.join(places))
    if master is None:
        yield Finding("warn", "HTCondor", "not here", "For annexes: sublet annex setup")
        return
    root = os.path.dirname(os.path.dirname(master))
    beside = os.pathsep.join(os.path.join(root, place) for place in ("bin", "sbin"))
    missing = [name for name in HTCONDOR if not shutil.which(name, path=beside)]
    if missing:
        todo = "Install all of its package, or for annexes: sublet annex setup --fetch"
        yield Finding("warn", "HTCondor", f"{root}, without {', '.join(missing)}", todo)
        return
    yield Finding("ok", "HTCondor", root)
    if not shutil.which("openssl"):
        yield Finding(
            "warn", "openssl", "not here", "Pilots ask over HTTPS: install openssl, which makes the key for it."
        )
    try:
        view = Link(replace(find_address(), home=None)).do(access_point())
    except SubletError:
        return  # no service runs, or it is for many
    state = {"failed": "bad", "absent": "warn"}.get(view.stage, "ok")
    yield Finding(state, "access point", view.problem or f"{view.stage} {view.collector}".strip(), view.hint)


CHECKS: tuple[Callable[[Home], Iterator[Finding]], ...] = (
    *(python, place, settings, master_key, database, service, tools, htcondor),
)
