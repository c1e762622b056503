"""A researcher's own allocation: added, signed in to with a second factor once, and from then on a platform."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sublet.client import Client
from tests.real.terminal import Terminal
from tests.serving import Serving, eventually
from tests.sites import Site

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
        (self.serving.home / "sublet.toml").write_text("")

    def types(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*SUBLET, *words], env=self.environment, text=True, capture_output=True, timeout=120)

    def signs_in(self, password: str | None = None, code: str | None = None) -> int:
        """Type what ssh asks for, and keep that in `asked`; the exit code."""
        self.asked: list[str] = []
        with Terminal([*SUBLET, "system", "login", self.site.name], self.environment) as terminal:
            while True:
                asked = terminal.reads("(yes/no", "assword:", "erification code:", "You are signed in", "error:")
                self.asked.append(asked)
                if asked == "(yes/no":
                    terminal.types("yes")
                elif asked == "assword:":
                    terminal.types(self.site.facts["password"] if password is None else password)
                elif asked == "erification code:":
                    terminal.types(self.site.fresh_code() if code is None else code)
                else:
                    code_at_end = terminal.ends()
                    self.said = terminal.seen
                    return code_at_end


@pytest.fixture(scope="module")
def researcher(tmp_path_factory: pytest.TempPathFactory, site: Site) -> Iterator[Researcher]:
    person = Researcher(tmp_path_factory.mktemp("own") / "home", site)
    known = ("--ssh", f"UserKnownHostsFile={person.serving.home}/known_hosts")
    added = person.types("system", "add", site.name, "--host", site.host, "--user", "researcher", *known)
    assert added.returncode == 0, added.stderr
    try:
        yield person
    finally:
        person.types("system", "logout", site.name)
        person.serving.stop()


@pytest.fixture(scope="module")
def client(researcher: Researcher) -> Client:
    return researcher.serving.start()


def ran(client: Client, site: Site, **wishes: Any) -> Any:
    offers = client.ask(**{"platform": site.name, "time": "2m", "memory": "64MiB", **wishes})
    assert offers, offers.reasons
    return offers[0].accept().wait(timeout=120)


def test_before_the_login_an_ask_says_that_one_is_needed(client: Client, site: Site) -> None:
    refused = client.ask(run=["hostname"], platform=site.name)
    assert refused.result == "NO"
    assert f"sublet system login {site.name}" in refused.reasons[0].nearest


def test_a_wrong_code_lets_nobody_in(researcher: Researcher) -> None:
    assert researcher.signs_in(code="000000") != 0
    assert researcher.asked[:3] == ["(yes/no", "assword:", "erification code:"], researcher.said
    assert researcher.asked[-1] == "error:"


def test_one_login_with_a_second_factor_makes_the_cluster_a_platform(
    researcher: Researcher, client: Client, site: Site
) -> None:
    assert researcher.signs_in() == 0
    eventually(lambda: client.ask(run=["true"], platform=site.name).result == "YES", "an offer", 90)
    session = ran(client, site, run=["sh", "-c", "hostname; echo $SLURM_JOB_ID >&2; echo left > out.txt"])
    assert (session.phase, session.exit_code) == ("COMPLETED", 0)
    assert "".join(session.logs()).startswith("c")
    assert session.result("out.txt").text() == "left\n"


def test_the_end_is_told_as_it_was(client: Client, site: Site) -> None:
    session = ran(client, site, run=["sh", "-c", "exit 7"])
    assert (session.phase, session.end.kind, session.exit_code) == ("FAILED", "exited", 7)


def test_words_arrive_as_they_are(client: Client, site: Site) -> None:
    words = ["a b", "it's", '"', "$(rm -rf x);", "-n", "ünï", "new\nline"]
    session = ran(client, site, run=["sh", "-c", 'printf "%s\\0" "$@"', "sh", *words])
    assert "".join(session.logs()).split("\0")[:-1] == words


def test_a_lapsed_login_holds_sessions_and_one_new_login_lets_them_go_on(
    researcher: Researcher, client: Client, site: Site
) -> None:
    offers = client.ask(run=["hostname"], platform=site.name, time="2m", memory="64MiB")
    researcher.types("system", "logout", site.name)
    session = offers[0].accept()
    eventually(lambda: "login" in session.refresh().condition, "a session that waits for a login", 60)
    assert session.phase in {"WAITING", "PREPARING"}
    assert researcher.signs_in() == 0
    assert session.wait(timeout=120).phase == "COMPLETED"


def test_a_removed_system_is_no_platform_any_more(researcher: Researcher, client: Client, site: Site) -> None:
    listed = json.loads(researcher.types("platform", "list", "--json").stdout)
    assert site.name in json.dumps(listed)
    researcher.types("system", "logout", site.name)
    assert researcher.types("system", "remove", site.name).returncode == 0
    eventually(lambda: site.name not in researcher.types("platform", "list", "--json").stdout, "its going", 20)
