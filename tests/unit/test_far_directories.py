"""What is run from directories on a cluster or a node is not run from those that others could change."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sublet.annexes.split.agent import SpoolAgent
from sublet.client.pulling import PulledRequest, Pulling
from sublet.kernel.errors import UnsafeDirectory, UnsafeSite
from sublet.platforms.batch.scripts import read_script, script
from sublet.platforms.slurm.commands import PACKAGE
from sublet.platforms.slurm.scheduler import SLURM
from sublet.reach.port import Outcome

RIVAL = 54321
SHELLS = (("dash",), ("bash", "--posix"), ("busybox", "sh"))
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to another user")


def run(place: Path, shell: tuple[str, ...], *words: str, **more: Any) -> subprocess.CompletedProcess[str]:
    """A script of ours, in a shell, where stat is no program of GNU's."""
    (tools := place / "tools").mkdir(exist_ok=True)
    (tools / "stat").write_text("#!/bin/sh\nexit 64\n")
    (tools / "stat").chmod(0o755)
    name, *arguments = words
    argv = (*shell, *script(name, *arguments, package=PACKAGE if name == "submit" else "")[1:])
    environment = {"PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(place)}
    return subprocess.run(argv, capture_output=True, text=True, env=environment, check=False, **more)


@pytest.fixture(params=SHELLS, ids=lambda words: words[0])
def shell(request: pytest.FixtureRequest) -> tuple[str, ...]:
    found: tuple[str, ...] = request.param
    if subprocess.run((*found, "-c", ":"), check=False).returncode:
        pytest.skip(f"there is no {found[0]}")
    return found


def test_what_is_made_is_for_its_owner_alone_and_can_be_used_again(tmp_path: Path, shell: tuple[str, ...]) -> None:
    for _ in range(2):
        done = run(tmp_path, shell, "root", "far/a place")
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{tmp_path}/far/a place\n", "")
    for name in ("", "sessions", "incoming"):
        assert (tmp_path / "far/a place" / name).stat().st_mode & 0o777 == 0o700
    assert run(tmp_path, shell, "incoming", f"{tmp_path}/far/a place", "key", "me").returncode == 0
    assert run(tmp_path, shell, "keep", f"{tmp_path}/far/a place", "sha256-1", "key", "me").stdout == "missing\n"


@as_root
@pytest.mark.parametrize("name", [".", "sessions", "incoming", "kept", "trash", "t"])
def test_a_directory_that_a_rival_made_first_is_refused(tmp_path: Path, shell: tuple[str, ...], name: str) -> None:
    (place := tmp_path / "far" / name).mkdir(parents=True, exist_ok=True)
    (tmp_path / "far").chmod(0o700)
    os.chown(place, RIVAL, RIVAL)
    place.chmod(0o777)
    done = run(tmp_path, shell, "root", "far")
    assert (done.returncode, done.stdout) == (77, "")
    assert done.stderr == f"{place} belongs to user {RIVAL}\n"


@pytest.mark.parametrize("name", [".", "sessions", "incoming", "kept", "trash", "t"])
def test_a_directory_that_others_can_write_is_refused_with_what_to_do(
    tmp_path: Path, shell: tuple[str, ...], name: str
) -> None:
    (place := tmp_path / "far" / name).mkdir(parents=True, exist_ok=True)
    place.chmod(0o757)
    done = run(tmp_path, shell, "root", "far")
    assert (done.returncode, done.stderr) == (77, f"others can write in {place} (chmod go-w {place})\n")
    place.chmod(0o755)
    assert run(tmp_path, shell, "root", "far").returncode == 0


@as_root
def test_a_group_may_write_only_if_it_is_the_users_own(tmp_path: Path, shell: tuple[str, ...]) -> None:
    (place := tmp_path / "far").mkdir(mode=0o700)
    place.chmod(0o2775)
    assert run(tmp_path, shell, "root", "far").returncode == 0  # root's own group is called root
    os.chown(place, 0, pwd.getpwnam("nobody").pw_gid)
    place.chmod(0o2775)
    assert run(tmp_path, shell, "root", "far").returncode == 77


@as_root
def test_a_link_of_ours_is_followed_and_what_it_leads_to_is_looked_at(tmp_path: Path, shell: tuple[str, ...]) -> None:
    (tmp_path / "far").mkdir(mode=0o700)
    (large := tmp_path / "large").mkdir(mode=0o700)
    (tmp_path / "far/sessions").symlink_to(large)
    assert run(tmp_path, shell, "root", "far").returncode == 0
    os.chown(large, RIVAL, RIVAL)
    assert run(tmp_path, shell, "root", "far").returncode == 77


def test_below_what_everyone_can_rename_nothing_is_made_but_below_a_sticky_one(
    tmp_path: Path, shell: tuple[str, ...]
) -> None:
    (scratch := tmp_path / "scratch").mkdir()
    scratch.chmod(0o777)
    done = run(tmp_path, shell, "root", "scratch/me")
    assert (done.returncode, done.stdout) == (77, "")
    assert done.stderr == f"everyone can write in {scratch}, which has no sticky bit\n"
    scratch.chmod(0o1777)
    assert run(tmp_path, shell, "root", "scratch/me").returncode == 0


@as_root
@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("submit", "ROOT", "key", "--time=1"), "sessions"),
        (("submit", "ROOT", "key", "--time=1"), "."),
        (("incoming", "ROOT", "key", "me"), "incoming"),
        (("keep", "ROOT", "sha256-1", "", "me"), "kept"),
        (("keep", "ROOT", "sha256-1", "key", "me"), "incoming"),
    ],
)
def test_what_was_swapped_since_is_noticed_when_it_is_used(
    tmp_path: Path, shell: tuple[str, ...], words: tuple[str, ...], name: str
) -> None:
    (root := tmp_path / "far").mkdir(mode=0o700)
    (root / name).mkdir(exist_ok=True)
    os.chown(root / name, RIVAL, RIVAL)
    (sbatch := tmp_path / "tools" / "sbatch").parent.mkdir()
    sbatch.write_text(f"#!/bin/sh\ntouch {tmp_path}/submitted\necho 12\n")
    sbatch.chmod(0o755)
    done = run(tmp_path, shell, *(str(root) if word == "ROOT" else word for word in words), input="")
    assert (done.returncode, f"belongs to user {RIVAL}" in done.stderr) == (77, True)
    assert not (tmp_path / "submitted").exists()
    assert not list((root / name).glob("*key*"))


def test_the_error_says_what_can_be_done() -> None:
    error = SLURM.failures("far").explain(Outcome(77, b"", b"/scratch/x/sessions belongs to eve\n"))
    assert isinstance(error, UnsafeSite)
    assert str(error).splitlines()[0] == (
        "The directory for sessions on far can't be trusted: /scratch/x/sessions belongs to eve."
    )
    assert "set another `directory` for far" in error.advice


def test_a_nodes_disk_on_which_everyone_can_rename_is_not_used(tmp_path: Path, shell: tuple[str, ...]) -> None:
    for mode, code in ((0o777, 1), (0o1777, 0), (0o755, 0), (0o770, 0)):
        tmp_path.chmod(mode)
        done = subprocess.run(
            (*shell, "-c", read_script("life") + '\nsheltered "$1"', "sh", str(tmp_path)), check=False
        )
        assert (mode, done.returncode) == (mode, code)
    assert subprocess.run((*shell, "-c", read_script("life") + "\nsheltered /nowhere"), check=False).returncode == 1


@as_root
def test_an_agent_uses_no_spool_of_someone_elses(tmp_path: Path) -> None:
    (spool := tmp_path / "spool").mkdir(mode=0o700)
    os.chown(spool, RIVAL, RIVAL)
    with open(os.devnull, "wb") as channel, pytest.raises(PermissionError, match="belongs to someone else"):
        SpoolAgent(str(spool), "n", 1.0, channel).begin()


def test_a_lease_is_not_unpacked_where_others_can_change_it(tmp_path: Path) -> None:
    (place := tmp_path / "leases").mkdir()
    place.chmod(0o777)
    (invitation := tmp_path / "invitation").write_text("site=s\nurls=https://127.0.0.1:9\npin=p\ntoken=t\n")
    with pytest.raises(UnsafeDirectory, match="everyone can write in"):
        Pulling(str(invitation)).start(PulledRequest("r", 1, 1, 1, 0, 1), str(place))
    assert not list(place.iterdir())


def test_a_place_for_data_is_made_though_others_clean_up_what_is_empty(tmp_path: Path, shell: tuple[str, ...]) -> None:
    root = tmp_path / "far"
    cleaning = f'while [ ! -e stop ]; do rmdir "{root}/incoming" "{root}" 2>/dev/null; sleep 0.003; done'
    with subprocess.Popen(["sh", "-c", cleaning], cwd=tmp_path):
        try:
            for number in range(60):
                done = run(tmp_path, shell, "incoming", str(root), f"key{number}", "me")
                assert done.returncode == 0, done.stderr
                shutil.rmtree(root / "incoming" / f"key{number}")
        finally:
            (tmp_path / "stop").touch()
