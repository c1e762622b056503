"""Images and containers of a test alone: a store of Podman's that is gone afterwards, with all that it mounted."""

from __future__ import annotations

import hashlib
import os
import resource
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from sublet.kinds.inside.container_runner import choose_runtime
from tests.engines.environments import find_cache

PROCESSES = 1024
PLATFORMS = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64", "any")
BUILT_FOR = ("--python-version", "3.11", "--implementation", "cp", "--abi", "cp311", "--abi", "abi3", "--abi", "none")


@dataclass(frozen=True)
class ImageStore:
    """Podman, with a store of its own."""

    place: Path

    def does(self, *words: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
        """Run one of its commands."""
        own = ["--root", self.place / "images", "--runroot", self.place / "run", "--runtime", choose_runtime()[0]]
        argv = ["podman", *own, "--cgroup-manager", "cgroupfs", "--events-backend", "none", *words]
        return subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=600)

    def did(self, *words: str | Path, stdin: str = "") -> str:
        """What one prints that has to succeed."""
        done = self.does(*words, stdin=stdin)
        assert done.returncode == 0, f"{words}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout

    def start(self, name: str, image: str, *options: str) -> None:
        """Start a container without a network, as far as this machine lets one be limited."""
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        limits = ("--ulimit", f"nofile={files}:{files}", "--ulimit", f"nproc={PROCESSES}:{PROCESSES}")
        apart = ("--pull=never", "--network=none", "--no-healthcheck", *limits)
        self.did("run", "--detach", "--name", name, *apart, *options, image)

    def import_directory(self, directory: Path, name: str) -> None:
        """Make an image of what is in a directory."""
        archive = self.place / "base.tar"
        apart = [f"--exclude=./{name}/*" for name in ("proc", "sys", "dev")]
        subprocess.run(["tar", "-C", directory, *apart, "-cf", archive, "."], check=True)
        self.did("import", "--quiet", archive, name)
        archive.unlink()


@contextmanager
def open_store(place: Path) -> Iterator[ImageStore]:
    """A store while this lasts; containers that are left are stopped."""
    if os.geteuid() != 0 or not shutil.which("podman") or not choose_runtime()[0]:
        pytest.skip("images are built here by root, with Podman and runc or crun (scripts/system-packages)")
    store = ImageStore(place)
    try:
        yield store
    finally:
        store.does("rm", "--all", "--force", "--time", "10", "--volumes")
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for mount in sorted((mount for mount in mounts if mount.startswith(f"{place}/")), reverse=True):
            subprocess.run(["umount", "-l", mount], check=False)
        shutil.rmtree(place, ignore_errors=True)


def have_wheels(lock: Path) -> Path:
    """The wheels of a lock for Debian's Python, fetched once; what can't be fetched is said aloud."""
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
    place = find_cache() / "engines" / f"wheels-{digest}"
    if place.is_dir():
        return place
    unfinished = place.with_suffix(f".{os.getpid()}")
    environment = unfinished / "pip"
    venv.create(environment, with_pip=True)
    words = [environment / "bin" / "python", "-m", "pip", "download", "--quiet", "--require-hashes", "--no-deps"]
    words += ["--only-binary=:all:", *BUILT_FOR, *(f"--platform={name}" for name in PLATFORMS)]
    done = subprocess.run([*words, "-d", unfinished / "wheels", "-r", lock], capture_output=True, text=True)
    if done.returncode:
        shutil.rmtree(unfinished)
        pytest.skip(f"the wheels of {lock.name} can't be fetched here: {done.stderr.strip()[-300:]}")
    (unfinished / "wheels").rename(place)
    shutil.rmtree(unfinished)
    return place


def build_wheel(root: Path, into: Path) -> None:
    """Sublet as a package."""
    words = [Path(sys.executable).with_name("uv"), "build", "--quiet", "--wheel", "--no-build-isolation"]
    done = subprocess.run([*words, "--python", sys.executable, "--out-dir", into, root], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
