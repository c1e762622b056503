"""What a cluster is made of, built once and kept: Kubernetes from Debian's source package, a box to run it in, images.

No Debian suite has Kubernetes' servers as packages, but Debian 12's source package `kubernetes` is all of 1.20.2 with
everything that it vendors, so a Debian 11 with Go 1.15 builds it without any other network than Debian's.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from testbed.box import CACHE, OPTIONS, mirror
from testbed.kubernetes.images import make_layer, write_image
from testbed.plan import SiteError, Skip

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
    box = _have("box", " ".join(RUNS), lambda place: _bootstrap("bookworm", place, RUNS))
    return ClusterParts(
        _have("programs", (HERE / "build.sh").read_text() + " ".join(BUILDS), _build_programs),
        box,
        _have("images", PAUSE + " ".join(APPLETS) + (HERE / "images.py").read_text(), _make_images),
    )


def _have(name: str, made_of: str, build: Callable[[Path], None]) -> Path:
    """A directory that is made once for all, under a lock, and appears only when it is whole."""
    place = CACHE / "engines" / f"kubernetes-{name}-{hashlib.sha256(made_of.encode()).hexdigest()[:12]}"
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_suffix(".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not place.is_dir():
            _say(f"building the {name} of Kubernetes, which takes {ESTIMATES[name]} …")
            unfinished = place.with_suffix(".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            began = time.monotonic()
            build(unfinished)
            unfinished.rename(place)
            _say(f"built the {name} of Kubernetes in {time.monotonic() - began:.0f} s")
    return place


def _say(words: str) -> None:
    print(f"testbed: {words}", file=sys.stderr, flush=True)


def _run(words: Sequence[str], cwd: Path | None = None) -> str:
    done = subprocess.run(words, capture_output=True, text=True, cwd=cwd)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-10:])
        raise SiteError(f"{words[0]} failed:\n{tail}")
    return done.stdout


def _bootstrap(suite: str, place: Path, packages: Sequence[str], variant: str = "apt") -> None:
    options = [f"--variant={variant}", "--mode=root", *OPTIONS, f"--include={','.join(packages)}"]
    _run(["mmdebstrap", *options, suite, str(place), mirror()])


def _build_programs(place: Path) -> None:
    """Build in a Debian 11 of its own, which is removed afterwards."""
    with _workshop() as workshop:
        _say("… a Debian 11 with Go (1 of 3)")
        _bootstrap("bullseye", workshop, BUILDS)
        _say("… the source package (2 of 3)")
        _download_source(workshop / "root")
        _say("… and now its programs, with all cores at low priority (3 of 3)")
        shutil.copy(HERE / "build.sh", workshop / "root" / "build.sh")
        own = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]
        script = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" bash /root/build.sh'
        _run(["nice", "-n", "10", *own, "bash", "-c", script, str(workshop)])
        place.mkdir(parents=True)
        for program in PROGRAMS:
            shutil.copy(workshop / "root" / "out" / program, place / program)


@contextmanager
def _workshop() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=CACHE / "engines", prefix="workshop-") as directory:
        yield Path(directory) / "box"


def _download_source(target: Path) -> None:
    """The source package of Debian 12, by lists of its own."""
    with tempfile.TemporaryDirectory() as directory:
        apt = Path(directory)
        (apt / "lists" / "partial").mkdir(parents=True)
        (apt / "list").write_text(f"deb-src {mirror()} bookworm main\n")
        options = [f"Dir::Etc::sourcelist={apt}/list", "Dir::Etc::sourceparts=-", f"Dir::State::lists={apt}/lists"]
        words = [word for option in options for word in ("-o", option)]
        _run(["apt-get", *words, "-qq", "update"])
        _run(["apt-get", *words, "-qq", "source", "--download-only", "kubernetes"], cwd=target)


def _make_images(place: Path) -> None:
    """Archives that containerd imports: what holds a pod's namespaces, BusyBox, and a small Debian with Python."""
    place.mkdir(parents=True)
    with tempfile.TemporaryDirectory(dir=CACHE / "engines", prefix="workshop-") as directory:
        work = Path(directory)
        (work / "pause.c").write_text(PAUSE)
        _run(["gcc", "-static", "-Os", "-o", str(work / "pause"), str(work / "pause.c")])
        write_image(place / "pause.tar", "localhost/pause:1", make_layer({"pause": work / "pause"}), ["/pause"])
        _bootstrap("bookworm", work / "small", ("busybox-static",), "extract")
        busybox = next(
            file for file in (work / "small").rglob("busybox") if file.is_file() and file.parent.name == "bin"
        )
        write_image(place / "busybox.tar", "localhost/busybox:1", make_layer({"bin/busybox": busybox}, APPLETS))
        _bootstrap("bookworm", work / "python.tar", ("python3", "dash", "coreutils"), "extract")
        write_image(place / "python.tar", "localhost/python:3", (work / "python.tar").read_bytes())


def main() -> int:
    """Build what is not there, and say on stderr what is waited for."""
    try:
        have_parts()
    except Skip as reason:
        _say(f"no Kubernetes here: {reason}")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
