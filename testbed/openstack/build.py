"""What a cloud is made of, built once and kept: a Debian sid with OpenStack, libvirt and QEMU, and a small guest.

Guests run without KVM, so theirs is small: Debian's cloud kernel, and an initramfs with BusyBox and Python, whose first
process does with user data what cloud-init does, once for each instance (`guest/init.sh`).
"""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from testbed.parts import bootstrap, have_part, run_words, say, workshop
from testbed.plan import Skip

HERE = Path(__file__).resolve().parent
BOX = (
    *("keystone", "placement-api", "glance-api", "neutron-api", "nova-api", "nova-conductor", "nova-scheduler"),
    *("nova-compute-qemu", "libvirt-daemon-system", "libvirt-clients", "qemu-system-x86", "qemu-utils"),
    *("neutron-rpc-server", "neutron-l3-agent", "iptables", "conntrack"),
    *("rabbitmq-server", "mariadb-server", "python3-pymysql", "python3-werkzeug", "genisoimage", "openssl"),
    *("iproute2", "procps", "mount", "curl", "hostname", "tzdata"),
)
GUEST = (
    "linux-image-cloud-amd64",
    "busybox-static",
    "python3",
    "python3-minimal",
    "kmod",
    "openssh-server",
)
PROGRAMS = ("usr/sbin/sshd", "usr/bin/ssh-keygen")
SUITES = {"box": "sid", "guest": "bookworm"}
MODULES = (
    "virtio_blk",
    "virtio_pci",
    "isofs",
    "cdrom",
    "sr_mod",
    "ata_piix",
    "ahci",
    "button",
    "evdev",
    "virtio_rng",
    "virtio_net",
)
USERS = (
    "root:x:0:0:root:/root:/bin/sh",
    "sshd:x:100:65534::/run/sshd:/bin/false",
    "nobody:x:65534:65534:nobody:/:/bin/false",
)
LEFT_OUT = (
    "test",
    "idlelib",
    "lib2to3",
    "ensurepip",
    "distutils",
    "pydoc_data",
    "tkinter",
    "turtledemo",
    "__pycache__",
)


@dataclass(frozen=True)
class CloudParts:
    """Where everything is that a cloud is made of."""

    box: Path
    guest: Path


def have_cloud_parts() -> CloudParts:
    """All of it, built unless it is there; what it waits for is said on stderr."""
    if os.geteuid() != 0:
        raise Skip("a cloud in namespaces needs root")
    for program in ("mmdebstrap", "ip", "nsenter", "unshare", "readelf", "busybox"):
        if not shutil.which(program):
            raise Skip(f"not on this machine: {program} (scripts/system-packages installs what a site needs)")
    box = have_part("OpenStack", "box", " ".join(BOX), _make_box, "5 minutes")
    init = (HERE / "guest" / "init.sh").read_text()
    made_of = " ".join((*GUEST, *MODULES, *LEFT_OUT, init))
    return CloudParts(box, have_part("OpenStack", "guest", made_of, _make_guest, "a minute"))


def _make_box(place: Path) -> None:
    bootstrap(SUITES["box"], place, BOX)


def _make_guest(place: Path) -> None:
    """The guest's kernel and initramfs."""
    place.mkdir(parents=True)
    with workshop() as work:
        bootstrap(SUITES["guest"], work / "debian", GUEST, "extract")
        debian, root = work / "debian", work / "root"
        kernel = next((debian / "boot").glob("vmlinuz-*"))
        shutil.copy(kernel, place / "kernel")
        _lay_out(debian, root, kernel.name.removeprefix("vmlinuz-"))
        script = 'find . | busybox cpio -o -H newc >"$0"'
        run_words(["bash", "-c", script, str(place / "ramdisk")], cwd=root)


def _lay_out(debian: Path, root: Path, version: str) -> None:
    for folder in ("bin", "dev", "etc", "lib64", "proc", "root", "run", "sys", "tmp", "usr/bin", "usr/lib", "var/tmp"):
        (root / folder).mkdir(parents=True)
    busybox = next(file for file in debian.rglob("busybox") if file.is_file() and file.parent.name == "bin")
    shutil.copy(busybox, root / "bin" / "busybox")
    for applet in set(run_words([str(busybox), "--list"]).split()) - {"busybox"}:
        (root / "bin" / applet).symlink_to("busybox")
    (root / "usr" / "bin" / "env").symlink_to("/bin/busybox")
    python = (debian / "usr" / "bin" / "python3").readlink().name
    shutil.copy(debian / "usr" / "bin" / python, root / "usr" / "bin" / python)
    (root / "usr" / "bin" / "python3").symlink_to(python)
    library = debian / "usr" / "lib" / python
    shutil.copytree(library, root / "usr" / "lib" / python, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_OUT))
    (root / "usr" / "sbin").mkdir()
    for program in PROGRAMS:
        shutil.copy(debian / program, root / program)
    _copy_libraries(debian, root, [f"usr/bin/{python}", f"usr/lib/{python}/lib-dynload/*.so", *PROGRAMS])
    run_words(["chroot", str(root), "/usr/bin/python3", "-m", "compileall", "-q", f"/usr/lib/{python}"])
    _copy_modules(debian, root, version)
    (root / "etc" / "passwd").write_text("".join(f"{row}\n" for row in USERS))
    (root / "etc" / "group").write_text("root:x:0:\nnogroup:x:65534:\n")
    (root / "etc" / "hostname").write_text("guest\n")
    (root / "usr" / "bin" / "poweroff").write_text("#!/bin/sh\nexec busybox poweroff -f\n")  # its init is a script
    (root / "usr" / "bin" / "poweroff").chmod(0o755)
    shutil.copy(HERE / "guest" / "init.sh", root / "init")
    (root / "init").chmod(0o755)


def _copy_libraries(debian: Path, root: Path, patterns: list[str]) -> None:
    """The shared libraries that these programs name, and those that these name."""
    waiting = [file for pattern in patterns for file in debian.glob(pattern)]
    copied: set[str] = set()
    while waiting:
        for line in run_words(["readelf", "-d", str(waiting.pop())]).splitlines():
            name = line.partition("[")[2].rstrip("]") if "(NEEDED)" in line else ""
            source = next((file for file in debian.rglob(name)), None) if name and name not in copied else None
            if source:
                copied.add(name)
                target = root / "usr" / "lib" / "x86_64-linux-gnu" / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source.resolve() if source.is_symlink() and source.exists() else source, target)
                waiting.append(target)
    (root / "lib").symlink_to("usr/lib")
    loader = next(debian.rglob("ld-linux-x86-64.so.2"))
    shutil.copy(loader.resolve() if loader.exists() else loader, root / "lib64" / "ld-linux-x86-64.so.2")


def _copy_modules(debian: Path, root: Path, version: str) -> None:
    """Those kernel modules, and what they need, in the order in which they are loaded."""
    modules = next(path for path in (debian / "usr/lib/modules", debian / "lib/modules") if path.is_dir()) / version
    run_words(["chroot", str(debian), "depmod", version])
    needed: dict[str, list[str]] = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        file, _, others = line.partition(":")
        needed[Path(file).name.partition(".ko")[0]] = [*reversed(others.split()), file]
    folder = root / "modules"
    folder.mkdir()
    order: list[str] = []
    for module in MODULES:
        for file in needed.get(module, ()):
            name = Path(file).name
            if name not in order:
                order.append(name)
                shutil.copy(modules / file, folder / name)
    (folder / "order").write_text("".join(f"{name}\n" for name in order))


def main() -> int:
    """Build what is not there, and say on stderr what is waited for."""
    try:
        have_cloud_parts()
    except Skip as reason:
        say(f"no OpenStack here: {reason}")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
