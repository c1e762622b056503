"""A cloud image, built once and kept: Debian 12 with cloud-init, Podman and JupyterLab on a disk of its own.

It is started as a distribution's is: its own kernel and initramfs, systemd, cloud-init with the config drive. The disk
has one file system and no boot loader, so its kernel and initramfs are images beside it.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from testbed.openstack.build import have_cloud_parts
from testbed.parts import bootstrap, have_part, run_words, say, workshop
from testbed.plan import Skip

SUITE = "bookworm"
SYSTEM = (
    *("linux-image-cloud-amd64", "initramfs-tools", "systemd-sysv", "systemd-resolved", "libpam-systemd", "dbus"),
    *("udev", "cloud-init", "netplan.io", "openssh-server", "python3", "iproute2", "procps", "e2fsprogs"),
    *("podman", "uidmap", "catatonit", "slirp4netns", "fuse-overlayfs", "crun", "ca-certificates"),
)
NOT_NEEDED = ("apt-daily.timer", "apt-daily-upgrade.timer", "e2scrub_all.timer", "fstrim.timer", "e2scrub_reap.service")
LOCK = Path(__file__).resolve().parents[2] / "locks" / "jupyterhub.txt"
JUPYTER = "opt/jupyter"
SIZE = "4G"
COMMAND_LINE = "root=/dev/vda rw console=ttyS0 mitigations=off"  # what the kernel is told; it is slow enough
CLOUD_INIT = """apt_preserve_sources_list: true
manage_etc_hosts: true
locale: C.UTF-8
ssh_genkeytypes: [ed25519]
"""
FILES = {
    "etc/fstab": "/dev/vda / ext4 defaults,errors=remount-ro 0 1\n",
    "etc/hostname": "debian\n",
    "etc/cloud/cloud.cfg.d/90_datasources.cfg": "datasource_list: [ConfigDrive, None]\n",
    "etc/cloud/cloud.cfg.d/01_debian_cloud.cfg": CLOUD_INIT,
    "etc/containers/registries.conf.d/here.conf": "".join(
        f'[[registry]]\nlocation = "10.205.{number}.1"\ninsecure = true\n' for number in range(1, 251)
    ),  # a test's registry has no TLS; this machine has one of these addresses (cloud.py)
    "usr/local/bin/jupyter-lab": f"#!/{JUPYTER}/bin/python3\n"
    "import sys\nfrom jupyterlab.labapp import main\nsys.exit(main())\n",
}


@dataclass(frozen=True)
class DiskParts:
    """The files that a cloud image consists of."""

    folder: Path

    @property
    def disk(self) -> Path:
        """The root file system."""
        return self.folder / "disk.qcow2"

    @property
    def kernel(self) -> Path:
        """What is started."""
        return self.folder / "kernel"

    @property
    def ramdisk(self) -> Path:
        """What finds the root file system."""
        return self.folder / "ramdisk"


def have_disk() -> DiskParts:
    """The image, built unless it is there; what it waits for is said on stderr."""
    if os.geteuid() != 0:
        raise Skip("an image of a Debian needs root")
    for program in ("mmdebstrap", "mke2fs"):
        if not shutil.which(program):
            raise Skip(f"not on this machine: {program} (scripts/system-packages installs what a site needs)")
    made_of = " ".join((SUITE, SIZE, *SYSTEM, *NOT_NEEDED, *FILES.values(), LOCK.read_text()))
    return DiskParts(have_part("OpenStack", "disk", made_of, _make_disk, "4 minutes"))


def _make_disk(place: Path) -> None:
    place.mkdir(parents=True)
    with workshop() as work:
        debian = work / "debian"
        bootstrap(SUITE, debian, SYSTEM)
        _add_jupyter(debian)
        for name, text in FILES.items():
            (debian / name).parent.mkdir(parents=True, exist_ok=True)
            (debian / name).write_text(text)
        (debian / "usr/local/bin/jupyter-lab").chmod(0o755)
        (debian / "etc/machine-id").write_text("")
        (debian / "etc/resolv.conf").unlink(missing_ok=True)
        (debian / "etc/resolv.conf").symlink_to("../run/systemd/resolve/stub-resolv.conf")
        for key in (debian / "etc/ssh").glob("ssh_host_*"):
            key.unlink()
        run_words(["chroot", str(debian), "systemctl", "mask", *NOT_NEEDED])
        shutil.copy(next((debian / "boot").glob("vmlinuz-*")), place / "kernel")
        shutil.copy(next((debian / "boot").glob("initrd.img-*")), place / "ramdisk")
        run_words(["mke2fs", "-q", "-t", "ext4", "-d", str(debian), str(work / "disk.raw"), SIZE])
        _compress(have_cloud_parts().box, work / "disk.raw", place / "disk.qcow2")


def _add_jupyter(debian: Path) -> None:
    """JupyterLab in an environment of its own, for the Python that the image has."""
    python = (debian / "usr/bin/python3").readlink().name
    run_words(["chroot", str(debian), "/usr/bin/python3", "-m", "venv", "--without-pip", f"/{JUPYTER}"])
    uv = Path(sys.executable).with_name("uv")
    version = re.sub(r"^python", "", python)
    options = ["--quiet", "--require-hashes", "--no-deps", "--only-binary", ":all:", "--python-version", version]
    target = debian / JUPYTER
    run_words(
        [str(uv), "pip", "install", *options, "--python", sys.executable, "--prefix", str(target), "-r", str(LOCK)]
    )
    shutil.rmtree(target / "bin" / "__pycache__", ignore_errors=True)
    run_words(["chroot", str(debian), f"/{JUPYTER}/bin/python3", "-m", "compileall", "-q", f"/{JUPYTER}/lib"])


def _compress(box: Path, raw: Path, target: Path) -> None:
    """The disk as qcow2, by the box's own program."""
    loader = next(box.glob("usr/lib*/ld-linux-x86-64.so.2"))
    libraries = f"{box}/usr/lib/x86_64-linux-gnu"
    words = [str(loader), "--library-path", libraries, str(box / "usr/bin/qemu-img"), "convert", "-c", "-m", "2"]
    run_words([*words, "-O", "qcow2", "-o", "compression_type=zstd", str(raw), str(target)])


def main() -> int:
    """Build what is not there, and say on stderr what is waited for."""
    try:
        print(have_disk().folder, file=sys.stderr)
    except Skip as reason:
        say(f"no image here: {reason}")
        return 77
    return 0


if __name__ == "__main__":
    os.umask(0o022)
    sys.exit(main())
