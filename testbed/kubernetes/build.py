"""What a cluster is made of, built once and kept: Kubernetes from Debian's source package, a box to run it in, images.

No Debian suite has Kubernetes' servers as packages, but Debian 12's source package `kubernetes` is all of 1.20.2 with
everything that it vendors, so a Debian 11 with Go 1.15 builds it without any other network than Debian's.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from testbed.box import mirror
from testbed.kubernetes.images import make_layer, write_image
from testbed.parts import bootstrap, have_part, run_words, say, workshop
from testbed.plan import Skip

HERE = Path(__file__).resolve().parent
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")
BUILDS = ("golang-1.15-go", "gcc", "libc6-dev", "make", "jq", "rsync", "git", "patch", "xz-utils", "file")
RUNS = (
    *("etcd-server", "containerd", "runc", "containernetworking-plugins", "kubernetes-client"),
    *("iptables", "iproute2", "procps", "conntrack", "socat", "curl", "openssl", "mount", "ebtables", "ethtool"),
)
PAUSE = "#include <signal.h>\n#include <unistd.h>\nint main(void) { signal(SIGCHLD, SIG_IGN); for (;;) pause(); }\n"
APPLETS = (
    *("sh", "cat", "sleep", "head", "tail", "dd", "mkdir", "ln", "rm", "readlink", "setsid", "tar", "env", "true"),
    *("cp", "chmod", "printf", "tee", "test", "[", "seq", "date", "kill", "wc", "sha256sum", "nc", "id", "ls"),
)
ESTIMATES = {"programs": "6 minutes on two quiet cores", "box": "half a minute", "images": "20 seconds"}


@dataclass(frozen=True)
class ClusterParts:
    """Where everything is that a cluster is made of."""

    programs: Path
    box: Path
    images: Path


def have_parts() -> ClusterParts:
    """All of it, built unless it is there; what it waits for is said on stderr."""
    if os.geteuid() != 0:
        raise Skip("a cluster in namespaces needs root")
    for program in ("mmdebstrap", "ip", "nsenter", "unshare", "gcc"):
        if not shutil.which(program):
            raise Skip(f"not on this machine: {program} (scripts/system-packages installs what a site needs)")
    box = _have("box", " ".join(RUNS), lambda place: bootstrap("bookworm", place, RUNS))
    return ClusterParts(
        _have("programs", (HERE / "build.sh").read_text() + " ".join(BUILDS), _build_programs),
        box,
        _have("images", PAUSE + " ".join(APPLETS) + (HERE / "images.py").read_text(), _make_images),
    )


def _have(name: str, made_of: str, build: Callable[[Path], None]) -> Path:
    return have_part("Kubernetes", name, made_of, build, ESTIMATES[name])


def _build_programs(place: Path) -> None:
    """Build in a Debian 11 of its own, which is removed afterwards."""
    with workshop() as work:
        debian = work / "box"
        say("… a Debian 11 with Go (1 of 3)")
        bootstrap("bullseye", debian, BUILDS)
        say("… the source package (2 of 3)")
        _download_source(debian / "root")
        say("… and now its programs, with all cores at low priority (3 of 3)")
        shutil.copy(HERE / "build.sh", debian / "root" / "build.sh")
        own = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]
        script = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" bash /root/build.sh'
        run_words(["nice", "-n", "10", *own, "bash", "-c", script, str(debian)])
        place.mkdir(parents=True)
        for program in PROGRAMS:
            shutil.copy(debian / "root" / "out" / program, place / program)


def _download_source(target: Path) -> None:
    """The source package of Debian 12, by lists of its own."""
    with tempfile.TemporaryDirectory() as directory:
        apt = Path(directory)
        (apt / "lists" / "partial").mkdir(parents=True)
        (apt / "list").write_text(f"deb-src {mirror()} bookworm main\n")
        options = [f"Dir::Etc::sourcelist={apt}/list", "Dir::Etc::sourceparts=-", f"Dir::State::lists={apt}/lists"]
        words = [word for option in options for word in ("-o", option)]
        run_words(["apt-get", *words, "-qq", "update"])
        run_words(["apt-get", *words, "-qq", "source", "--download-only", "kubernetes"], cwd=target)


def _make_images(place: Path) -> None:
    """Archives that containerd imports: what holds a pod's namespaces, BusyBox, and a small Debian with Python."""
    place.mkdir(parents=True)
    with workshop() as work:
        (work / "pause.c").write_text(PAUSE)
        run_words(["gcc", "-static", "-Os", "-o", str(work / "pause"), str(work / "pause.c")])
        write_image(place / "pause.tar", "localhost/pause:1", make_layer({"pause": work / "pause"}), ["/pause"])
        bootstrap("bookworm", work / "small", ("busybox-static",), "extract")
        busybox = next(
            file for file in (work / "small").rglob("busybox") if file.is_file() and file.parent.name == "bin"
        )
        write_image(place / "busybox.tar", "localhost/busybox:1", make_layer({"bin/busybox": busybox}, APPLETS))
        bootstrap("bookworm", work / "python.tar", ("python3", "dash", "coreutils"), "extract")
        write_image(place / "python.tar", "localhost/python:3", (work / "python.tar").read_bytes())


def main() -> int:
    """Build what is not there, and say on stderr what is waited for."""
    try:
        have_parts()
    except Skip as reason:
        say(f"no Kubernetes here: {reason}")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
