"""The doctor tells the truth: of platforms, the database in use, versions, and a home that can't be written."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from sublet.booking.views.health import HealthView
from sublet.booking.views.platforms import PlatformList, PlatformView
from sublet.cli.doctor.service import judge, service
from sublet.cli.doctor.settings import database, network_policies, settings
from sublet.client.versions import compare, tell_difference
from sublet.kernel.home import Home
from sublet.kernel.version import VERSION
from sublet.people.views.people import WhoView
from tests.canned import NOW, Said
from tests.cli.conftest import Serve, Type

pytestmark = pytest.mark.usefixtures("in_utc")
SEEN = NOW - timedelta(hours=3)


def platform(**changes: Any) -> PlatformView:
    return PlatformView(**{"name": "web1", "kind": "slurm", "terms": "predicted", **changes})


@pytest.mark.parametrize(
    ("changes", "state", "words", "todo"),
    [
        ({"as_of": NOW}, "ok", "slurm", ""),
        (
            {"needs_login": True, "as_of": SEEN},
            "warn",
            "nobody is signed in; what is known was seen 3 h ago",
            "login web1",
        ),
        ({"needs_login": True, "working": False, "problem": "x"}, "warn", "nobody is signed in", "login web1"),
        (
            {"working": False, "problem": "web1 did not answer within 3 s."},
            "bad",
            "did not answer",
            "platform check web1",
        ),
        ({"trouble": "this was seen at 12:00", "as_of": SEEN}, "bad", "can't be asked: this was seen at 12:00", ""),
        (
            {"name": "system web1", "kind": "broken", "working": False, "problem": "No."},
            "bad",
            "No.",
            "system edit web1",
        ),
        (
            {"working": False, "problem": "You may not use it.", "ask": "sublet access ask"},
            "ok",
            "You may",
            "access ask",
        ),
    ],
)
def test_a_platform_is_judged_as_it_is_now(changes: dict[str, Any], state: str, words: str, todo: str) -> None:
    found = judge(platform(**changes), NOW)
    assert (found.state, words in found.detail, todo in found.todo) == (state, True, True), found


def test_platforms_are_looked_at_anew(type_in: Type, canned: Serve) -> None:
    lost = platform(working=False, problem="web1 did not answer within 3 s.")
    service = canned(
        {
            "GET /health": Said(HealthView(status="ok", version=VERSION, mode="personal")),
            "GET /v1/whoami": Said(WhoView(person="ada", mode="personal")),
            "GET /v1/platforms": Said(PlatformList(items=(lost,))),
        }
    )
    typed = type_in("doctor", "-q")
    assert typed.code == 1
    assert "bad platform web1: web1 did not answer within 3 s." in typed.out
    assert any(heard.target == "/v1/platforms?anew=true" for heard in service.heard)


def test_another_version_of_the_service_is_told(type_in: Type, canned: Serve) -> None:
    canned({"GET /health": Said(HealthView(status="ok", version="0.0.9", mode="personal"))})
    assert f"version 0.0.9, {os.environ['SUBLET_URL'].removeprefix('unix://')}; this command is {VERSION}" in (
        type_in("doctor", "-q").out
    )


def test_the_version_of_the_code_is_that_of_the_package() -> None:
    assert version("sublet") == VERSION


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    found = Home(str(tmp_path))
    found.make()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(found.socket)
        yield found


def test_a_command_tells_of_another_version_once_for_each_start_of_the_service(home: Home) -> None:
    told: list[str] = []
    for _ in range(3):
        tell_difference(home, {"sublet-version": "0.0.9"}, told.append)
    one = f"note: this command is sublet {VERSION}, and your service still runs 0.0.9"
    assert told == [f"{one}; restart it: sublet down, then sublet up"]
    os.unlink(home.socket)
    with socket.socket(socket.AF_UNIX) as again:
        again.bind(home.socket)
        tell_difference(home, {"sublet-version": "0.0.9"}, told.append)
        tell_difference(home, {}, told.append)
    assert len(told) == 3
    assert "an older version" in told[2]


def test_of_the_same_version_nothing_is_told(home: Home) -> None:
    told: list[str] = []
    tell_difference(home, {"sublet-version": VERSION}, told.append)
    assert (told, compare(VERSION)) == ([], "")


def settle(tmp_path: Path, text: str) -> Home:
    home = tmp_path / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "sublet.toml").write_text(text)
    return Home(str(home))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('hold = "never"\n', "line 1: hold: "),
        ("no_such = 1\n", "line 1: no_such: there is no such setting"),
        ("\n[logs]\n# how many\nkep = 3\n", "line 4: logs.kep: there is no such setting; did you mean keep?"),
        ('[oidc.campus]\nisuer = "https://x"\n', "line 1: oidc.campus.issuer: "),
        ('[[rules]]\nfield = "x"\npattern = "y"\n[[rules]]\npattern = "y"\n', "line 4: rules.1.field: "),
        ('[throttle]\nsign_ins_per_host = "5 per m"\n', "line 2: throttle.sign_ins_per_host: "),
        (
            '[platforms.web1]\nkind = "slrum"\n',
            "sublet.toml can't be used: line 2: platforms.web1.kind: there is no slrum",
        ),
        ('[platforms.web1]\nkind = "slurm"\nport = "x"\n', "line 3: platforms.web1.port"),
        (
            '[platforms."web1"]\nkind = "slurm"\nuesr = "x"\n',
            "line 3: platforms.web1.uesr: there is no such setting; did you mean user?",
        ),
    ],
)
def test_settings_that_the_service_would_refuse_are_bad(tmp_path: Path, text: str, words: str) -> None:
    home = settle(tmp_path, text)
    [found] = settings(home)
    assert (found.state, words in found.detail) == ("bad", True), found
    assert not list(database(home)), "nothing is said of a database that nobody knows"


@pytest.mark.parametrize(("mode", "state"), [("gateway", "bad"), ("personal", "ok")])
def test_a_gateway_that_is_down_is_bad_and_a_service_that_starts_by_itself_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, state: str
) -> None:
    home = settle(tmp_path, f'mode = "{mode}"\nplatforms = {{}}\n')
    monkeypatch.setenv("SUBLET_HOME", home.root)
    monkeypatch.delenv("SUBLET_URL", raising=False)
    [found] = service(home)
    assert (found.state, "not running" in found.detail) == (state, True), found


def test_a_postgresql_that_is_not_there_is_bad_and_its_password_is_not_shown(tmp_path: Path) -> None:
    [found] = database(settle(tmp_path, 'database = "postgresql://sublet:s3cret@127.0.0.1:9/sublet"\n'))
    assert found.state == "bad"
    assert "postgresql://sublet:***@127.0.0.1:9/sublet" in found.detail
    assert "s3cret" not in str(found)


def test_the_database_may_be_another_file_than_usual(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sqlite3.connect(tmp_path / "other.db").close()
    monkeypatch.setenv("SUBLET_DATABASE", f"sqlite:///{tmp_path}/other.db")
    [found] = database(settle(tmp_path, ""))
    assert (found.state, found.detail) == ("ok", f"{tmp_path}/other.db")


def test_a_home_that_can_not_be_trusted_is_told_and_nothing_of_it_is_read(
    type_in: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home := tmp_path / "open" / "home").mkdir(mode=0o700, parents=True)
    (home / "sublet.toml").write_text("no = settings = at all")
    (tmp_path / "open").chmod(0o777)
    monkeypatch.setenv("SUBLET_HOME", str(home))
    typed = type_in("doctor", "-q")
    assert typed.code == 1
    [line] = [line for line in typed.out.splitlines() if "SUBLET_HOME" in line]
    assert line == f"bad SUBLET_HOME: SUBLET_HOME ({home}) can't be trusted: everyone can write in {tmp_path / 'open'}."
    assert "sublet.toml" not in typed.out + typed.err
    assert "mkdir -m 700 DIR" in type_in("doctor").out


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a home that is read-only")
def test_a_home_that_is_read_only_is_bad_and_no_service_is_said_to_start_there(tmp_path: Path) -> None:
    (home := tmp_path / "home").mkdir(mode=0o700)
    (home / "sublet.toml").write_text('[platforms.here]\nkind = "local"\n')
    mount = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" && shift && exec "$@"'
    words = ["unshare", "--mount", "sh", "-c", mount, "sh", home, sys.executable, "-m", "sublet", "doctor", "--json"]
    done = subprocess.run(words, env={**os.environ, "SUBLET_HOME": str(home)}, capture_output=True, text=True)
    if "permission denied" in done.stderr.lower():
        pytest.skip("nothing can be mounted here")
    found = {one["what"]: one for one in json.loads(done.stdout)}
    assert done.returncode == 1
    assert found["SUBLET_HOME"]["state"] == "bad"
    assert found["SUBLET_HOME"]["detail"] == f"{home} can't be written: Read-only file system"
    assert "set SUBLET_HOME to a directory of yours" in found["SUBLET_HOME"]["todo"]
    assert (found["service"]["state"], "can't start" in found["service"]["detail"]) == ("bad", True)
    assert found["settings"]["state"] == "ok", "what can be read is looked at all the same"
    assert [one.name for one in home.iterdir()] == ["sublet.toml"]


@pytest.mark.parametrize(
    ("text", "what", "words"),
    [
        (
            '[platforms.here]\nkind = "local"\ncontainer_network = "none"\n',
            "their network",
            "no network, as the setting",
        ),
        (
            '[platforms.here]\nkind = "local"\ncontainer_network = "host"\n',
            "their network",
            "the machine's own network, as the setting",
        ),
        (
            '[platforms.a]\nkind = "local"\ncontainer_network = "none"\n[platforms.b]\nkind = "local"\n',
            "their network on a",
            "no network, as the setting",
        ),
    ],
)
def test_the_network_of_containers_is_told_as_each_platform_has_it_set(
    text: str, what: str, words: str, type_in: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "podman").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    settle(tmp_path, text)
    [found] = [one for one in json.loads(type_in("doctor", "--json").out) if one["what"] == what]
    assert found["detail"].startswith(words)
    assert (found["state"], found["todo"]) == ("ok", ""), "it is as it was set"


def test_in_a_gateway_containers_never_get_the_machines_own_network(tmp_path: Path) -> None:
    text = 'mode = "gateway"\n[platforms.here]\nkind = "local"\ncontainer_network = "host"\n'
    assert network_policies(settle(tmp_path, text)) == {"here": "own"}
