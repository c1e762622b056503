"""Who an unpacked image runs as, and when Podman has to load it after all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sublet.kinds.inside.container_mounts import can_lay_over
from sublet.kinds.inside.container_unpacked import can_run_unpacked, find_owner


@pytest.fixture
def root(tmp_path: Path) -> Path:
    etc = tmp_path / "root" / "etc"
    etc.mkdir(parents=True)
    (etc / "passwd").write_text("root:x:0:0::/:/bin/sh\nann:x:1000:1001::/:/bin/sh\nodd\n")
    (etc / "group").write_text("root:x:0:\nstaff:x:50:\n")
    return tmp_path / "root"


@pytest.mark.parametrize(
    ("user", "owner"),
    [
        ("ann", "1000:1001"),
        ("1000", "1000:1001"),
        ("ann:staff", "1000:50"),
        ("ann:7", "1000:7"),
        ("1234", "1234:0"),
        ("1234:5", "1234:5"),
        ("nobody-there", ""),
        ("ann:none", ""),
    ],
)
def test_a_user_is_looked_up_in_the_image_itself(root: Path, user: str, owner: str) -> None:
    assert find_owner(str(root), user) == owner


def test_an_image_without_users_has_only_numbers_and_its_links_lead_nowhere_else(tmp_path: Path) -> None:
    assert find_owner(str(tmp_path), "ann") == ""
    assert find_owner(str(tmp_path), "3:4") == "3:4"
    (tmp_path / "etc").symlink_to("/etc")
    assert find_owner(str(tmp_path), "root:root") == "", "not the machine's own"


def test_podman_loads_what_it_can_not_run_as_it_is_unpacked(root: Path, tmp_path: Path) -> None:
    podman = tmp_path / "podman"
    about = {"root": str(root), "config": {}, "singularity": False}

    def is_run(version: str, **changes: object) -> bool:
        podman.write_text(f"#!/bin/sh\necho podman version {version}\n")
        podman.chmod(0o700)
        return can_run_unpacked(str(podman), about | changes)

    can = can_lay_over(str(root))
    assert is_run("3.0.1") == can, "as root in the image nothing more is needed"
    assert is_run("4.3.1", config={"User": "ann"}) == (can and os.geteuid() != 0), "root has no ids to keep"
    assert not is_run("4.2.9", config={"User": "ann"})
    assert not is_run("4.3.1", config={"User": "nobody-there"})
    assert is_run("3.0.1", singularity=True), "which it can't load at all"
    assert not can_lay_over(f"{root}:other")
