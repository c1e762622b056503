"""An execution point of stock HTCondor on a node of a site, made by hand as a pilot would make it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sublet.annexes.pilots.tokens import POOL, Signer, new_key
from sublet.annexes.views.access_point import AccessPointView
from sublet.platforms.htcondor.configuration import PLUGINS, STRICT, places, write_lines
from tests.sites import Site

PROGRAMS = {"RELEASE_DIR": "/usr", "LIB": "/usr/lib/condor", "LIBEXEC": "/usr/libexec/condor"}
START = """\
cd "$1" || exit
mkdir -p log spool execute lock run etc credentials
CONDOR_CONFIG="$1/ep.conf" setsid /usr/sbin/condor_master -f >out 2>&1 </dev/null &
"""


@dataclass(frozen=True)
class ExecutionPoint:
    """One that was started."""

    site: Site
    node: str
    directory: str  # on the shared file system, so that this machine sees it too
    master: str
    owner_token: str  # by which its owner, and nobody else, can stop it

    @property
    def here(self) -> Path:
        """Its directory, as this machine sees it."""
        return Path(self.site.facts["scratch"]) / Path(self.directory).name

    def log(self, name: str) -> str:
        """What a daemon has logged."""
        file = self.here / "log" / name
        return file.read_text(errors="replace") if file.exists() else ""

    def runs(self) -> bool:
        """Whether its master is alive."""
        return bool(self.site.on(f"researcher@{self.node}", "pgrep", "-x", "condor_master", check=False))


def configuration(name: str, directory: str, ready: AccessPointView, more: Mapping[str, str]) -> str:
    """That of an execution point that attaches directly, and that nobody can connect to."""
    owner = f"{ready.owner.partition('@')[0]}@{name}"
    values = {
        **PROGRAMS,
        **places(directory),
        **STRICT,
        "DAEMON_LIST": "MASTER STARTD",
        "SHARED_PORT_PORT": "0",
        "COLLECTOR_HOST": ready.collector,
        "CCB_ADDRESS": "$(COLLECTOR_HOST)",
        "TRUST_DOMAIN": name,
        "UID_DOMAIN": name,
        "DEFAULT_DOMAIN_NAME": name,
        "MASTER_NAME": f"{name}@annex",  # without an @, tools would add a domain of their own
        "STARTD_NAME": f"{name}@annex",
        "STARTER_ALLOW_RUNAS_OWNER": "False",
        "START": "True",
        "NUM_CPUS": "2",
        "RUNBENCHMARKS": "False",
        "FILETRANSFER_PLUGINS": PLUGINS,
        "MEMORY": "512",
        "STARTD_DIRECT_ATTACH_SCHEDD_NAME": ready.schedd,
        "STARTD_DIRECT_ATTACH_SCHEDD_POOL": ready.collector,
        "STARTD_DIRECT_ATTACH_INTERVAL": "1",
        "UPDATE_INTERVAL": "1",
        "MASTER_UPDATE_INTERVAL": "2",
        "ALLOW_ADMINISTRATOR": owner,
        "ALLOW_DAEMON": "condor@family",
        "ALLOW_READ": owner,
        "ALLOW_WRITE": "",
    }
    return write_lines({**values, **more}, ["SECURITY:strong", "FEATURE:PartitionableSlot"])


@contextmanager
def attached(
    site: Site, node: str, name: str, ready: AccessPointView, tokens: Mapping[str, str], **more: str
) -> Iterator[ExecutionPoint]:
    """Start one on a node, as the researcher's account there; it is gone at the end."""
    directory = f"/scratch/ep-{name}-{secrets.token_hex(3)}"
    here = Path(site.facts["scratch"]) / Path(directory).name
    for place in ("", "tokens.d", "passwords.d"):
        (here / place).mkdir(mode=0o700)
    key = new_key()
    (here / "passwords.d" / POOL).write_bytes(key)
    for file, token in tokens.items():
        (here / "tokens.d" / file).write_text(f"{token}\n")
    for secret in (*(here / "tokens.d").iterdir(), here / "passwords.d" / POOL):
        secret.chmod(0o600)
    (here / "ep.conf").write_text(configuration(name, directory, ready, more))
    site.on("login", "chown", "-R", "researcher:", directory)
    subject = f"{ready.owner.partition('@')[0]}@{name}"
    token = Signer(key, POOL, name).mint(subject, timedelta(hours=1), datetime.now(UTC))
    site.on(f"researcher@{node}", "sh", "-c", START, "sh", directory)
    point = ExecutionPoint(site, node, directory, f"{name}@annex", token)
    try:
        yield point
    finally:
        for pid in site.on(f"researcher@{node}", "pgrep", "-u", "researcher", "condor_", check=False).split():
            site.on(f"researcher@{node}", "kill", "-KILL", pid, check=False)
