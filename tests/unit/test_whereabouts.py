"""Where a service may live."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sublet.kernel.whereabouts import Facts, filesystem_of, objections, probe

LAPTOP = Facts(home="/home/ada/sublet", filesystem="ext4", hostname="laptop", slurm=False, slurmd=False, in_job=False)
LOGIN = replace(LAPTOP, hostname="login03.cluster", slurm=True)

MOUNTS = [
    "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw",
    "30 22 0:40 / /home rw,relatime - nfs4 server:/home rw",
    "31 30 8:2 / /home/ada/my\\040disk rw - xfs /dev/sdb1 rw",
    "32 22 0:50 / /home2 rw - tmpfs tmpfs rw",
]


def test_a_laptop_is_a_good_place() -> None:
    assert objections(LAPTOP) == []


@pytest.mark.parametrize(
    "kind", ["nfs", "nfs4", "lustre", "gpfs", "beegfs", "cifs", "ceph", "fuse.sshfs", "fuse.glusterfs"]
)
def test_a_network_home_is_refused_with_another_place_to_go(kind: str) -> None:
    (found,) = objections(replace(LAPTOP, filesystem=kind))
    assert kind in found.why
    assert "/home/ada/sublet" in found.why
    assert "SUBLET_HOME" in found.advice


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "fuse.fuse-overlayfs", "fuseblk"])
def test_a_local_file_system_is_good(kind: str) -> None:
    assert objections(replace(LAPTOP, filesystem=kind)) == []


@pytest.mark.parametrize(
    "name", ["login", "login03.cluster", "dt-login02", "frontera-login1", "ln5", "uan01", "submit.hpc"]
)
def test_a_login_node_is_refused(name: str) -> None:
    (found,) = objections(replace(LOGIN, hostname=name))
    assert name in found.why
    assert "--anyway" in found.advice


@pytest.mark.parametrize("name", ["node17", "gpu-a3", "workstation", "headroom", "logins-lab", "submitted"])
def test_another_machine_of_a_cluster_is_no_login_node(name: str) -> None:
    assert objections(replace(LOGIN, hostname=name)) == []


def test_where_jobs_run_is_no_login_node_whatever_its_name() -> None:
    assert objections(replace(LOGIN, slurmd=True)) == []
    assert objections(replace(LOGIN, in_job=True)) == []
    assert objections(replace(LOGIN, slurm=False)) == []


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/x", "ext4"),
        ("/home", "nfs4"),
        ("/home/ada/x", "nfs4"),
        ("/home/ada/my disk/x", "xfs"),
        ("/home2/x", "tmpfs"),
    ],
)
def test_a_path_is_on_the_innermost_mount_around_it(path: str, kind: str) -> None:
    assert filesystem_of(path, MOUNTS) == kind


def test_this_machine_can_be_looked_at() -> None:
    assert probe("/").filesystem != "unknown"
