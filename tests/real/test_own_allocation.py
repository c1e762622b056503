"""A researcher's own allocation: added, signed in to with a second factor once, and from then on a platform."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sublet.client import Client
from sublet.kernel.errors import SubletError
from tests.real.researchers import Researcher, at
from tests.serving import eventually
from tests.sites import Site


@pytest.fixture(scope="module")
def researcher(tmp_path_factory: pytest.TempPathFactory, site: Site) -> Iterator[Researcher]:
    site.on("login", "sh", "-c", "mkdir -p /etc/sublet && echo sessions 50 >/etc/sublet/site")
    try:
        with at(site, tmp_path_factory.mktemp("own") / "home") as person:
            yield person
    finally:
        site.on("login", "rm", "-r", "/etc/sublet")


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


def test_what_the_site_asks_of_its_guests_is_shown(researcher: Researcher, site: Site) -> None:
    shown = researcher.types("system", "show", site.name).stdout
    assert "the site's settings: at most 50 of your sessions wait or run at once" in shown


def test_nothing_stays_there_once_the_results_are_home(
    researcher: Researcher, client: Client, site: Site, tmp_path: Path
) -> None:
    words = ("--platform", site.name, "--time", "2m", "--memory", "64MiB", "--out", str(tmp_path / "out"))
    done = researcher.types("run", *words, "--json", "--", "sh", "-c", "echo said; echo left > out.txt")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "out.txt").read_text() == "left\n"
    session = client.session(json.loads(done.stdout)["id"])
    assert site.on("researcher@login", "ls", f".sublet/sessions/{session.id}", check=False) == ""
    assert "".join(session.logs()) == "said\n"
    refused = researcher.types("result", session.id)
    assert f"no longer on {site.name}" in refused.stderr


def test_a_sweep_removes_what_this_service_left_and_nothing_else(researcher: Researcher, site: Site) -> None:
    owner = (researcher.serving.home / "platforms" / site.name / "owner").read_text()
    for place, whose in (("sessions/lost", owner), ("incoming/half", owner), ("sessions/others", "another")):
        script = 'mkdir -p ".sublet/$1" && echo "$2" >".sublet/$1/owner"'
        site.on("researcher@login", "sh", "-c", script, "sh", place, whose)
    swept = json.loads(researcher.types("platform", "sweep", site.name, "--json").stdout)
    assert sorted(swept["sessions"]) == ["half", "lost"]
    assert "others" in site.on("researcher@login", "ls", ".sublet/sessions").split()
    site.on("researcher@login", "rm", "-r", ".sublet/sessions/others")


def test_the_end_is_told_as_it_was(client: Client, site: Site) -> None:
    session = ran(client, site, run=["sh", "-c", "exit 7"])
    assert (session.phase, session.end.kind, session.exit_code) == ("FAILED", "exited", 7)


def test_words_names_and_paths_arrive_as_they_are_or_are_refused_and_none_is_run(
    researcher: Researcher, client: Client, site: Site, tmp_path: Path
) -> None:
    odd = '-rf ;$(touch ran) `touch ran` it\'s "ünï" %j\nline'
    line = odd.replace("\n", " ")  # a name is one line
    words = ["a b", "", "*", "\\", "-n", "~", odd]
    source = tmp_path / odd
    source.write_text("from here\n")
    script = 'printf "%s\\0" "$@" "$ODD"; cat "in/$ODD/"*; printf left >"./$ODD"; ls "$HOME/ran" ran'
    session = ran(
        client,
        site,
        name=line,
        run=["sh", "-c", script, "sh", *words],
        env={"ODD": odd},
        data=[{"name": line, "location": source.as_uri(), "path": f"in/{odd}"}],
    )
    assert "".join(session.logs()).split("\0") == [*words, odd, "from here\n"]
    assert session.name == line
    assert session.result(odd).text() == "left"
    assert session.exit_code == 2  # of ls: nothing was run
    for field in ("name", "queue", "qos", "project", "platform"):
        assert refused(client, **{"platform": site.name, field: odd}), field
    assert "can't be called" in researcher.types("system", "add", "--host", site.host, "--", odd).stderr
    for option in ("--user", "--project", "--constraint", "--queue", "--host"):
        added = researcher.types("system", "add", "odd", "--host", site.host, option, odd)
        assert added.returncode, option
        assert "Traceback" not in added.stderr


def refused(client: Client, **wish: str) -> bool:
    try:
        return client.ask(run=["true"], **wish).result == "NO"
    except SubletError:
        return True


def test_a_service_that_is_killed_finds_its_jobs_again_and_their_logs_go_on(
    researcher: Researcher, client: Client, site: Site
) -> None:
    wish = {"platform": site.name, "queue": "debug", "time": "2m", "memory": "64MiB"}
    script = "echo one; until [ -e go ]; do sleep 0.1; done; echo two; exit 5"
    session = client.ask(run=["sh", "-c", script], **wish)[0].accept()
    eventually(lambda: session.refresh().phase == "RUNNING", "a session that runs", 90)
    researcher.serving.kill()
    site.on("researcher@login", "touch", f".sublet/sessions/{session.id}/work/go")
    researcher.serving.start()
    over = client.session(session.id).wait(timeout=90)
    assert (over.phase, over.exit_code) == ("FAILED", 5)
    assert "".join(over.logs()) == "one\ntwo\n"
    assert site.on("ctl", "squeue", "-h", "-t", "all", "-o", "%j").split().count(session.id) <= 1


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
