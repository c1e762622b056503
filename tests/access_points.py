"""Someone at the machine `ap` beside a site, as an ordinary user: with Sublet, HTCondor, and an account on the site."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from testbed.machines import clean_environment

from sublet.client import Client
from tests.real.researchers import answer_prompts
from tests.real.terminal import Terminal
from tests.sites import Site, look_often, running

SITE = ("--base", "box", "--ap", "--nat", "--nodes", "4")  # nodes connect outward through NAT, and nobody inward


class Person:
    """Types commands on `ap`; each `home` is a Sublet of its own."""

    def __init__(self, site: Site, home: str = "sublet", user: str = "researcher") -> None:
        """Nothing is started yet."""
        self.site, self.home, self.user = site, home, user

    @property
    def place(self) -> str:
        """Their home directory, as this machine sees it."""
        return str(Path(self.site.facts["ap_home"]) / self.user)

    def file(self, *parts: str) -> Path:
        """A file of theirs, as this machine sees it."""
        return Path(self.place, *parts)

    def kept(self, *parts: str) -> Path:
        """A file below their SUBLET_HOME, as this machine sees it."""
        return self.file(self.home, *parts)

    def words(self, *argv: str, how: str = "-c") -> list[str]:
        """The command, on this machine, that runs another one as them on `ap`."""
        return self.site.entering(f"{self.user}@ap", *self.with_home(*argv), how=how)

    def with_home(self, *argv: str) -> list[str]:
        """A command that knows which Sublet is theirs."""
        return ["env", f"SUBLET_HOME=/home/{self.user}/{self.home}", *argv]

    def does(self, *argv: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run a program, with these variables set."""
        given = (f"{name}={value}" for name, value in more.items())
        return self.site.does(f"{self.user}@ap", *self.with_home(*given, *argv))

    def did(self, *argv: str, **more: str) -> str:
        """What a program prints that has to succeed."""
        done = self.does(*argv, **more)
        assert done.returncode == 0, f"{' '.join(argv)}: {done.returncode}: {done.stdout}{done.stderr}"
        return done.stdout

    @property
    def owned(self) -> str:
        """The configuration of the tools of their access point."""
        return f"/home/{self.user}/{self.home}/ap/tools.conf"

    def condor(self, *words: str) -> str:
        """What one of HTCondor's own tools says, as they use it."""
        return self.did(*words, CONDOR_CONFIG=self.owned)

    def types(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        """What a command line of Sublet says."""
        return self.does("sublet", *words, **more)

    def typed(self, *words: str, **more: str) -> str:
        """What a command line of Sublet prints that has to succeed."""
        return self.did("sublet", *words, **more)

    def terminal(self, *words: str) -> Terminal:
        """A command line of Sublet in a terminal."""
        return Terminal(self.words("sublet", *words, how="--session-command"), clean_environment())

    def adds_system(self) -> None:
        """Make the site one of their systems."""
        known = (
            "--ssh",
            f"UserKnownHostsFile=/home/{self.user}/.ssh/known_hosts",
            "--ssh",
            f"HostKeyAlias={self.site.name}",
        )
        self.typed(
            "system", "add", self.site.name, "--host", self.site.facts["host_from_ap"], "--user", "researcher", *known
        )
        look_often(self.kept("systems"))

    def signs_in(self, password: str | None = None, code: str | None = None) -> int:
        """Sign in to the site with both factors; the exit code."""
        with self.terminal("system", "login", self.site.name) as terminal:
            self.asked = answer_prompts(terminal, self.site, password, code)
            ended = terminal.ends()
            self.said = terminal.seen
            return ended

    def starts_service(self, **more: str) -> Client:
        """Start their service and give a client of it."""
        self.typed("up", **more)
        return self.client()

    def client(self) -> Client:
        """A client of their service, which has to run."""
        return Client(socket=self.kept("run", "sublet.sock"))

    def kills_service(self) -> None:
        """Pull its plug."""
        service = json.loads(self.kept("run", "service.json").read_text())
        self.did("kill", "-9", str(service["pid"]))
        self.site.wait(lambda: not self.runs(service["pid"]))

    def runs(self, pid: int) -> bool:
        """Whether a process of theirs is alive."""
        return self.does("sh", "-c", 'kill -0 "$1"', "sh", str(pid)).returncode == 0

    def leaves(self) -> None:
        """Sign out and stop the service."""
        self.types("system", "logout", self.site.name)
        self.types("down")


@contextmanager
def at_ap(site: Site, home: str) -> Iterator[Person]:
    """Someone who has added the site but not signed in yet, with a Sublet of their own; nothing is left open."""
    person = Person(site, home)
    person.adds_system()
    try:
        yield person
    finally:
        person.leaves()


@pytest.fixture(scope="session")
def ap_site(swept: None) -> Iterator[Site]:
    """One site with `ap` for all tests of this worker; each uses a home of its own."""
    with running(*SITE) as site:
        yield site


@pytest.fixture(scope="session")
def person(ap_site: Site) -> Iterator[Person]:
    """Someone at `ap` who has signed in, shared by the tests of this worker."""
    with at_ap(ap_site, "sublet") as one:
        one.kept("sublet.toml").write_text("private_data = true\n")  # the only addresses that there are here
        one.starts_service()
        assert one.signs_in() == 0, one.said
        yield one
