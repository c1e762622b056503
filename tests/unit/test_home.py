"""Where the state is, and who serves it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sublet.errors import BadSecretKey, UnsafeHome
from sublet.home import Home, find_danger, sublet_home
from sublet.service.secret_key import read_or_make_key
from sublet.serving import process_start, read_serving, record_serving


def test_the_home_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SUBLET_HOME", str(tmp_path / "mine"))
    assert sublet_home().root == str(tmp_path / "mine")
    monkeypatch.delenv("SUBLET_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert sublet_home().root == str(tmp_path / "data" / "sublet")
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert sublet_home().socket == str(tmp_path / ".local/share/sublet/run/sublet.sock")


def test_the_home_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    home = Home(str(tmp_path / "a" / "sublet"))
    home.make()
    home.make()
    assert os.stat(home.root).st_mode & 0o777 == 0o700
    assert os.stat(home.run).st_mode & 0o777 == 0o700


def test_who_serves_is_known_while_it_lives(tmp_path: Path) -> None:
    home = Home(str(tmp_path / "sublet"))
    home.make()
    assert read_serving(home) is None
    record_serving(home, "http://127.0.0.1:8080", home.socket)
    found = read_serving(home)
    assert found is not None
    assert (found.pid, found.url, found.socket) == (os.getpid(), "http://127.0.0.1:8080", home.socket)


def test_a_pid_that_was_used_again_is_not_taken_for_the_service(tmp_path: Path) -> None:
    home = Home(str(tmp_path / "sublet"))
    home.make()
    record_serving(home, "", home.socket)
    record = json.loads(Path(home.state).read_text())
    Path(home.state).write_text(json.dumps({**record, "start": record["start"] - 1}))
    assert read_serving(home) is None
    Path(home.state).write_text("half a rec")
    assert read_serving(home) is None


def test_a_process_that_ended_but_was_not_waited_for_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert process_start(process.pid) is not None
        assert process.stdin is not None
        process.stdin.close()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert process_start(process.pid) is None


def of_a_rival(path: Path) -> Path:
    """Give something to another user."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory to another user")
    os.chown(path, 54321, 54321)
    return path


def test_a_home_that_a_rival_made_first_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (home := tmp_path / "victim-sublet").mkdir()
    (home / "sublet.toml").write_text(
        '[platforms.x]\nkind = "slurm"\nhost = "x"\nssh.ProxyCommand = "touch /tmp/owned"\n'
    )
    monkeypatch.setenv("SUBLET_HOME", str(of_a_rival(home)))
    with pytest.raises(UnsafeHome, match="it belongs to user 54321"):
        sublet_home()
    with pytest.raises(UnsafeHome):
        Home(str(home)).make()


def test_a_link_of_a_rival_is_refused_also_if_it_leads_to_what_is_ours(tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir(mode=0o700)
    (link := tmp_path / "link").symlink_to("ours")
    assert find_danger(str(link)) == ""
    if os.geteuid() == 0:
        os.chown(link, 54321, 54321, follow_symlinks=False)
        assert find_danger(str(link)) == "it belongs to user 54321"


@pytest.mark.parametrize("name", ["sublet.toml", "key", "systems", "run"])
def test_what_a_rival_left_in_a_home_is_refused(tmp_path: Path, name: str) -> None:
    (home := tmp_path / "home").mkdir(mode=0o700)
    (home / name).mkdir() if "." not in name else (home / name).touch()
    of_a_rival(home / name)
    assert find_danger(str(home)) == f"{name} in it belongs to user 54321"


@pytest.mark.parametrize(
    ("home", "file", "danger"),
    [
        (0o700, 0o666, ""),  # nobody gets that far
        (0o755, 0o644, ""),
        (0o755, 0o646, "others can write sublet.toml in it"),
        (0o702, 0o600, "others can write there"),
        (0o1777, 0o600, "others can write there"),  # each may put files into it, also settings that aren't there yet
    ],
)
def test_a_home_that_others_can_write_is_refused(tmp_path: Path, home: int, file: int, danger: str) -> None:
    (place := tmp_path / "home").mkdir()
    (place / "sublet.toml").touch()
    (place / "sublet.toml").chmod(file)
    place.chmod(home)
    assert find_danger(str(place)).startswith(danger)
    assert bool(find_danger(str(place))) is bool(danger)


def test_a_home_below_what_everyone_can_rename_is_refused_but_not_below_a_sticky_one(tmp_path: Path) -> None:
    (open_to_all := tmp_path / "open").mkdir()
    open_to_all.chmod(0o777)
    assert find_danger(str(open_to_all / "home")) == f"everyone can write in {open_to_all}"
    open_to_all.chmod(0o1777)
    assert find_danger(str(open_to_all / "home")) == ""


def test_a_key_is_made_once_and_one_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "key"
    key = read_or_make_key(file)
    assert (len(key), read_or_make_key(file), file.stat().st_mode & 0o777) == (32, key, 0o600)
    assert [path.name for path in tmp_path.iterdir()] == ["key"]
    file.write_bytes(b"")
    with pytest.raises(BadSecretKey, match="it has 0 bytes, and a key has 32"):
        read_or_make_key(file)
