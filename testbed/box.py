"""A base with newer software than this machine's: Slurm 26.05, Apptainer and HTCondor 25, built once and kept."""

import fcntl
import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from testbed.plan import SiteError, Skip

CACHE = Path(os.environ.get("SUBLET_TESTBED_CACHE", "/var/cache/sublet-testbed"))
SUITE = "sid"
PACKAGES = (
    *("slurmctld", "slurmd", "slurm-client", "slurmdbd", "mariadb-server", "munge"),
    *("openssh-server", "openssh-client", "libpam-google-authenticator", "rsync"),
    *("apptainer", "squashfuse", "fuse3", "squashfs-tools", "condor"),
    *("mount", "iproute2", "procps", "tzdata", "python3", "curl", "busybox-static"),
)
OPTIONS = (
    '--aptopt=Acquire::Check-Valid-Until "false"',
    '--aptopt=Acquire::Languages "none"',
    '--aptopt=APT::Install-Recommends "false"',
    "--dpkgopt=path-exclude=/usr/share/man/*",
    "--dpkgopt=path-exclude=/usr/share/doc/*",
    "--dpkgopt=path-exclude=/usr/share/locale/*",
    "--dpkgopt=force-unsafe-io",
)


def box() -> Path:
    """Where the box is, or is going to be; another list of packages makes another box."""
    return CACHE / f"box-{hashlib.sha256(' '.join((SUITE, *PACKAGES)).encode()).hexdigest()[:12]}"


def find_base(word: str) -> str:
    """The directory that the word of `--base` means."""
    if word != "box":
        return str(Path(word).resolve())
    if not box().is_dir():
        raise Skip("the box is not built; `testbed/site box` builds it in a few minutes")
    return str(box())


def build_box() -> Path:
    """Build the box from the mirror that this machine's apt uses, unless it is there."""
    if os.geteuid() != 0:
        raise Skip("building the box needs root")
    if not shutil.which("mmdebstrap"):
        raise Skip("not on this machine: mmdebstrap (scripts/system-packages installs what a site needs)")
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not box().is_dir():
            unfinished = box().with_suffix(".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            words = ["mmdebstrap", "--variant=apt", "--mode=root", *OPTIONS, f"--include={','.join(PACKAGES)}"]
            done = subprocess.run([*words, SUITE, unfinished, mirror()], capture_output=True, text=True)
            if done.returncode:
                shutil.rmtree(unfinished, ignore_errors=True)
                raise SiteError("the box could not be built:\n" + "\n".join(done.stderr.splitlines()[-10:]))
            unfinished.rename(box())
    return box()


def mirror() -> str:
    """Where this machine's apt gets Debian from."""
    words = ["apt-get", "indextargets", "--format", "$(SITE)", "Created-By: Packages", "Origin: Debian"]
    done = subprocess.run(words, capture_output=True, text=True)
    sites = [site for site in done.stdout.split() if "security" not in site]
    if not sites:
        raise Skip("the box needs a Debian mirror, and apt knows none")
    return sites[0]
