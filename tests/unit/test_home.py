"""Where the state is, and who serves it."""

from __future__ import annotations

import grp
import json
import os
import pwd
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from sublet.kernel import safe_paths
from sublet.kernel.errors import BadSecretKey, UnsafeHome
from sublet.kernel.home import Home, find_danger, sublet_home
from sublet.kernel.secret_key import read_or_make_key
from sublet.kernel.serving import process_start, read_serving, record_serving


def test_the_home_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SUBLET_HOME", str(tmp_path / "mine"))
    assert sublet_home().root == str(tmp_path / "mine")
    monkeypatch.delenv("SUBLET_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert sublet_home().root == str(tmp_path / "data" / "sublet")
    monkeypatch.delenv("XDG_DATA_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert sublet_home().socket == str(tmp_path / ".local/share/sublet/run/sublet.sock")


@pytest.mark.parametrize(
    ("settings", "log"),
    [
        ('[logs]\nfile = "mine.log"\n', "{}/mine.log"),
        ('[logs]\nfile = "/var/log/sublet.log"\n', "/var/log/sublet.log"),
        ("[logs]\nkeep = 3\n", "{}/logs/service.log"),
        ("logs = 7\n", "{}/logs/service.log"),
        ("not TOML", "{}/logs/service.log"),
    ],
)
def test_the_log_is_named_where_the_settings_put_it(tmp_path: Path, settings: str, log: str) -> None:
    (tmp_path / "sublet.toml").write_text(settings)
    assert Home(str(tmp_path)).find_log() == log.format(tmp_path)


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


def test_a_home_below_what_someone_else_owns_is_refused(tmp_path: Path) -> None:
    (theirs := tmp_path / "theirs").mkdir()
    (home := theirs / "home").mkdir(mode=0o700)
    assert find_danger(str(home)) == ""
    of_a_rival(theirs)
    assert find_danger(str(home)) == f"{theirs}, on the way to it, belongs to user 54321"
    assert find_danger(str(theirs / "not there yet")) == f"{theirs}, on the way to it, belongs to user 54321"
    with pytest.raises(UnsafeHome, match="on the way to it"):
        Home(str(home)).make()


def test_a_home_whose_service_replaces_a_file_at_that_moment_is_safe(tmp_path: Path) -> None:
    over = threading.Event()

    def replace_often() -> None:
        while not over.is_set():
            for number in range(50):
                (tmp_path / f"record.{number}").touch()
            for number in range(50):
                (tmp_path / f"record.{number}").replace(tmp_path / "record")

    service = threading.Thread(target=replace_often)
    service.start()
    try:
        assert {find_danger(str(tmp_path)) for _ in range(300)} == {""}
    finally:
        over.set()
        service.join()


def test_a_home_below_what_nobody_owns_is_refused(tmp_path: Path) -> None:
    (parent := tmp_path / "parent").mkdir()
    nobody = pwd.getpwnam("nobody").pw_uid
    os.chown(of_a_rival(parent), nobody, -1)
    assert find_danger(str(parent / "home")) == f"{parent}, on the way to it, belongs to nobody"


def test_a_home_below_what_a_group_can_write_is_refused_unless_only_we_are_in_it(tmp_path: Path) -> None:
    (project := tmp_path / "project").mkdir()
    (project / "home").mkdir(mode=0o700)
    os.chown(of_a_rival(project), 0, pwd.getpwnam("nobody").pw_gid)  # which is nobody's own group
    project.chmod(0o2775)
    group = grp.getgrgid(project.stat().st_gid).gr_name
    assert find_danger(str(project / "home")) == f"the group {group} can write in {project} (chmod g-w {project})"
    project.chmod(0o3775)
    assert find_danger(str(project / "home")) == "", "the sticky bit keeps everyone to their own"
    os.chown(project, 0, 54321)  # nobody knows who is in it
    project.chmod(0o2775)
    assert find_danger(str(project / "home")) == f"the group 54321 can write in {project} (chmod g-w {project})"
    os.chown(project, 0, 0)
    project.chmod(0o2775)
    assert find_danger(str(project / "home")) == ""


def test_an_entry_in_an_access_control_list_counts_as_another_who_can_write(tmp_path: Path) -> None:
    (listed := tmp_path / "listed").mkdir(mode=0o700)
    entries = [(0x01, 7, -1), (0x02, 7, 54321), (0x04, 0, -1), (0x10, 7, -1), (0x20, 0, -1)]  # u::rwx u:54321:rwx …
    words = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    try:
        os.setxattr(listed, "system.posix_acl_access", words)
    except OSError:
        pytest.skip("this file system has no access control lists")
    assert find_danger(str(listed / "home")).startswith("the group ")
    assert find_danger(str(listed)).startswith("others can write there")


@pytest.mark.parametrize(("other", "is_refused"), [(7, True), (5, False)])
def test_a_home_whose_default_access_control_list_lets_others_write_what_is_made_there_is_refused(
    tmp_path: Path, other: int, is_refused: bool
) -> None:
    entries = [(1, 7, -1), (2, 7, os.geteuid()), (2, other, 54321), (4, 0, -1), (16, 7, -1), (32, 0, -1)]
    (home := tmp_path / "home").mkdir(mode=0o700)
    packed = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry[:2], entry[2] % 2**32) for entry in entries)
    try:
        os.setxattr(home, "system.posix_acl_default", packed)
    except OSError:
        pytest.skip("this file system has no access control lists")
    assert ("others could write what is made there" in find_danger(str(home))) == is_refused


def test_each_link_on_the_way_counts_and_what_it_leads_through(tmp_path: Path) -> None:
    for name in ("ours", "theirs", "theirs/deep"):
        (tmp_path / name).mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("theirs/../theirs/deep")
    (tmp_path / "circle").symlink_to("circle")
    assert find_danger(str(tmp_path / "link" / "home")) == ""
    assert find_danger(str(tmp_path / "circle" / "home")) == ""  # nothing can be there
    of_a_rival(tmp_path / "theirs")
    assert find_danger(str(tmp_path / "link" / "home")).startswith(f"{tmp_path / 'theirs'}, on the way")
    (through := tmp_path / "through").symlink_to("ours")
    assert find_danger(str(through / "home")) == ""
    os.chown(through, 54321, 54321, follow_symlinks=False)
    assert find_danger(str(through / "home")) == f"{through}, on the way to it, belongs to user 54321"


def test_who_owns_what_is_above_a_users_home_directory_is_not_asked(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """They could change what the user's shell reads anyway, and the user can do nothing about it."""
    (lab := tmp_path / "lab").mkdir()
    (lab / "ada").mkdir(mode=0o700)
    of_a_rival(lab)
    monkeypatch.setattr(safe_paths, "_find_own_directory", lambda: str(lab / "ada"))
    assert find_danger(str(lab / "ada" / ".local" / "share" / "sublet")) == ""
    of_a_rival(lab / "ada")
    assert find_danger(str(lab / "ada" / "sublet")) == f"{lab / 'ada'}, on the way to it, belongs to user 54321"
    os.chown(lab / "ada", 0, 0)
    lab.chmod(0o777)
    assert find_danger(str(lab / "ada" / "sublet")) == f"everyone can write in {lab}"


# For a Python that another user can run, too.
LOOK = Path(safe_paths.__file__).read_text() + "\nimport sys; print(find_danger_above(sys.argv[1]))"


@pytest.fixture
def of_daemon() -> Iterator[Path]:
    """A directory of an ordinary user's, with a private group: `daemon` has the group `daemon`, and nobody else has."""
    if os.geteuid() != 0:
        pytest.skip("only root can be another user")
    daemon = pwd.getpwnam("daemon")
    with TemporaryDirectory(dir="/tmp") as name:
        Path(name, "home").mkdir(mode=0o700)
        for path in (name, f"{name}/home"):
            os.chown(path, daemon.pw_uid, daemon.pw_gid)
        yield Path(name)


def look_as_daemon(path: Path, *before: str) -> str:
    daemon = pwd.getpwnam("daemon")
    words = [*before, "/usr/bin/python3", "-c", LOOK, str(path)]
    who: Any = {"user": daemon.pw_uid, "group": daemon.pw_gid, "extra_groups": []}
    said = subprocess.run(words, capture_output=True, text=True, check=False, cwd="/", **who)
    if said.returncode and before:
        pytest.skip(f"no user namespace here: {said.stderr}")
    assert said.returncode == 0, said.stderr
    return said.stdout.strip()


def test_a_private_group_may_write_as_a_umask_of_002_lets_it(of_daemon: Path) -> None:
    of_daemon.chmod(0o775)
    (of_daemon / "home").chmod(0o2775)
    assert look_as_daemon(of_daemon / "home" / "sublet") == ""
    os.chown(of_daemon, -1, pwd.getpwnam("nobody").pw_gid)
    of_daemon.chmod(0o775)
    assert "can write in" in look_as_daemon(of_daemon / "home" / "sublet")


def test_in_a_user_namespace_root_outside_looks_like_nobody_and_is_trusted(of_daemon: Path) -> None:
    alone = ("unshare", "--user", "--map-current-user")
    assert look_as_daemon(of_daemon / "home" / "sublet", *alone) == ""
    os.chown(of_daemon, 0, 0)
    of_daemon.chmod(0o755)
    assert look_as_daemon(of_daemon / "home" / "sublet", *alone) == ""
    of_daemon.chmod(0o775)
    said = look_as_daemon(of_daemon / "home" / "sublet", *alone)
    assert "can write in" in said, "and nobody knows who is in its group"


def test_a_key_is_made_once_and_one_that_was_cut_off_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "key"
    key = read_or_make_key(file)
    assert (len(key), read_or_make_key(file), file.stat().st_mode & 0o777) == (32, key, 0o600)
    assert [path.name for path in tmp_path.iterdir()] == ["key"]
    file.write_bytes(b"")
    with pytest.raises(BadSecretKey, match="it has 0 bytes instead of 32"):
        read_or_make_key(file)
