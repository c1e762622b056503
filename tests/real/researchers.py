"""Someone with an account on a cluster, as the tests of the whole path need them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.nursery import typed
from tests.real.terminal import Terminal
from tests.serving import Serving
from tests.sites import Site, look_often

SUBLET = [sys.executable, "-m", "sublet.cli"]


class Researcher:
    """Someone with an account on a cluster, a service of their own, and an ssh configuration of their own."""

    def __init__(self, home: Path, site: Site) -> None:
        home.mkdir()
        (home / ".ssh").mkdir(mode=0o700)
        self.site = site
        self.environment = {**os.environ, "SUBLET_HOME": str(home / "sublet"), "HOME": str(home), "LC_ALL": "C.UTF-8"}
        self.serving = Serving(home / "sublet", environment={"HOME": str(home)}, log=home / "log")
        self.serving.home.mkdir(mode=0o700)
        (self.serving.home / "sublet.toml").write_text('poll = "2s"\n')

    def types(self, *words: str) -> subprocess.CompletedProcess[str]:
        """What a command line says."""
        return typed(words, self.environment, timeout=120)

    def signs_in(self, password: str | None = None, code: str | None = None) -> int:
        """Type what ssh asks for, and keep that in `asked`; the exit code."""
        with Terminal([*SUBLET, "system", "login", self.site.name], self.environment) as terminal:
            self.asked = answer_prompts(terminal, self.site, password, code)
            code_at_end = terminal.ends()
            self.said = terminal.seen
            return code_at_end


def answer_prompts(
    terminal: Terminal,
    site: Site,
    password: str | None = None,
    code: str | None = None,
    ends: tuple[str, ...] = ("You are signed in", "error:"),
) -> list[str]:
    """Answer what ssh asks in a terminal, until the login is open or refused; what was asked, and that end."""
    seen: list[str] = []
    while True:
        asked = terminal.reads("(yes/no", "assword:", "erification code:", *ends)
        seen.append(asked)
        if asked == "(yes/no":
            terminal.types("yes")
        elif asked == "assword:":
            terminal.types(site.facts["password"] if password is None else password)
        elif asked == "erification code:":
            terminal.types(site.fresh_code() if code is None else code)
        else:
            return seen


@contextmanager
def at(site: Site, home: Path, *options: str) -> Iterator[Researcher]:
    """A researcher who has added the site, but not signed in yet; at the end nothing is left open."""
    person = Researcher(home, site)
    known = ("--ssh", f"UserKnownHostsFile={person.serving.home}/known_hosts")
    added = person.types("system", "add", site.name, "--host", site.host, "--user", "researcher", *known, *options)
    assert added.returncode == 0, added.stderr
    look_often(person.serving.home / "systems")
    try:
        yield person
    finally:
        person.types("system", "logout", site.name)
        person.serving.stop()
