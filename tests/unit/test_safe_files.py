"""Files outside SUBLET_HOME that someone else made first, or can change, are refused: they start programs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sublet.kernel.db.engine import Database
from sublet.kernel.errors import AlreadyServed, BadSettings, BrokenStore, NotHere
from sublet.kernel.log_file import LogFile, redirect_stderr
from sublet.kernel.safe_paths import find_danger_to
from sublet.kernel.settings import Settings
from sublet.server.server import hold_lock

RIVAL = 54321


@pytest.fixture
def theirs(tmp_path: Path) -> Path:
    """A directory of a rival's in which everyone can write."""
    if os.geteuid() != 0:
        pytest.skip("only root can give a directory to another user")
    (directory := tmp_path / "open").mkdir()
    directory.chmod(0o777)
    os.chown(directory, RIVAL, RIVAL)
    return directory


def test_settings_that_someone_else_can_change_are_refused(tmp_path: Path, theirs: Path) -> None:
    (file := theirs / "sublet.toml").write_text('[platforms.x]\nkind = "slurm"\nssh.ProxyCommand = "owned"\n')
    with pytest.raises(BadSettings, match=f"everyone can write in {theirs}"):
        Settings.load(tmp_path, file)
    (ours := tmp_path / "ours.toml").write_text("")
    Settings.load(tmp_path, ours)
    ours.chmod(0o666)
    with pytest.raises(BadSettings, match="others can write it"):
        Settings.load(tmp_path, ours)


@pytest.mark.parametrize("exists", [False, True])
def test_a_database_where_someone_else_can_put_another_is_refused(theirs: Path, exists: bool) -> None:
    file = theirs / "sublet.db"
    if exists:
        file.touch()
    with pytest.raises(BrokenStore, match="not safe to use: everyone can write in"):
        Database(f"sqlite:///{file}")
    assert file.exists() == exists


def test_a_file_that_someone_made_first_where_everyone_may_is_refused(theirs: Path) -> None:
    os.chown(theirs, 0, 0)
    theirs.chmod(0o1777)
    (file := theirs / "sublet.db").touch(0o600)
    assert find_danger_to(str(file)) == ""
    os.chown(file, RIVAL, RIVAL)
    assert find_danger_to(str(file)) == f"it belongs to user {RIVAL}"


@pytest.mark.parametrize("is_link", [False, True])
def test_a_log_is_not_written_to_what_someone_else_left_there(theirs: Path, tmp_path: Path, is_link: bool) -> None:
    (file := tmp_path / "ours").write_text("precious")
    if is_link:
        (name := theirs / "service.log").symlink_to(file)
        os.chown(name, RIVAL, RIVAL, follow_symlinks=False)
    else:
        os.chown(name := file, RIVAL, RIVAL)
    with pytest.raises(NotHere, match=f"it belongs to user {RIVAL}"), redirect_stderr(LogFile(name, 0, 0)):
        pass
    assert file.read_text() == "precious"


def test_a_device_is_nobodys_and_may_be_written_by_everyone() -> None:
    assert find_danger_to("/dev/null") == ""


def test_a_socket_where_someone_else_could_put_another_is_refused_before_its_lock_is_touched(
    tmp_path: Path, theirs: Path
) -> None:
    (precious := tmp_path / "precious").write_text("kept")
    (theirs / "s.sock.lock").symlink_to(precious)
    with (
        pytest.raises(NotHere, match=f"would not be safe: everyone can write in {theirs}"),
        hold_lock(f"{theirs}/s.sock"),
    ):
        pass
    os.chown(theirs, 0, 0)
    theirs.chmod(0o1777)  # as /tmp: nobody can replace what is there, but what is there already may be anyone's
    os.chown(theirs / "s.sock.lock", RIVAL, RIVAL, follow_symlinks=False)
    with pytest.raises(NotHere, match=f"s.sock.lock belongs to user {RIVAL}"), hold_lock(f"{theirs}/s.sock"):
        pass
    assert precious.read_text() == "kept"
    with hold_lock(f"{theirs}/other.sock"), pytest.raises(AlreadyServed), hold_lock(f"{theirs}/other.sock"):
        pass
