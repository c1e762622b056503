"""HTCondor for machines without it: which package or release suits a machine, and how a release is unpacked."""

from __future__ import annotations

import platform
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from sublet.kernel.errors import ReleaseRefused
from sublet.platforms.htcondor.release import MASTER, Release, release_at
from sublet.reach.port import Command, Outcome, read_printed

CHECKSUMS = "sha256sum.txt"  # beside the releases of a version
# HTCondor's names of the systems for which it is built, by their ID in /etc/os-release.
_BUILT_FOR = {
    "almalinux": "AlmaLinux",
    "rocky": "AlmaLinux",
    "rhel": "AlmaLinux",
    "centos": "AlmaLinux",
    "debian": "Debian",
    "ubuntu": "Ubuntu",
    "opensuse-leap": "openSUSE",
}
_PACKAGES = {
    "debian": "sudo apt install condor",
    "ubuntu": "sudo apt install condor",
    "fedora": "sudo dnf install condor",
    "almalinux": "sudo dnf install epel-release && sudo dnf install condor",
    "rocky": "sudo dnf install epel-release && sudo dnf install condor",
    "rhel": "sudo dnf install epel-release && sudo dnf install condor",
}
_RUNS = re.compile(r"\$CondorVersion: (\S+)")


def read_os(text: str) -> dict[str, str]:
    """Parse /etc/os-release."""
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {name.strip(): "".join(shlex.split(value)[:1]) for name, _, value in pairs}


def this_os(file: Path = Path("/etc/os-release")) -> dict[str, str]:
    """Return this machine's /etc/os-release, or nothing if it can't be read."""
    try:
        return read_os(file.read_text())
    except (OSError, ValueError):
        return {}


def package_command(system: Mapping[str, str]) -> str:
    """Return the command that installs HTCondor's package, or an empty string if no package is known."""
    return next((_PACKAGES[name] for name in _names(system) if name in _PACKAGES), "")


def release_url(template: str, system: Mapping[str, str], machine: str = "") -> str:
    """Return the address of the release for this machine, filling in `{arch}` and `{system}`."""
    if "{system}" not in template:
        return template.replace("{arch}", machine or platform.machine())
    name = next((_BUILT_FOR[name] for name in _names(system) if name in _BUILT_FOR), "")
    major = system.get("VERSION_ID", "").partition(".")[0]
    if not name or not major:
        raise ReleaseRefused(
            why=f"no release is made for {system.get('PRETTY_NAME') or 'this system'}",
            hint="Set `release` in the section [annex] of sublet.toml to one that runs here.",
        )
    return template.replace("{arch}", machine or platform.machine()).replace("{system}", f"{name}{major}")


def checksum_of(listed: str, name: str) -> str:
    """Return a file's checksum from the output of sha256sum, or an empty string."""
    for line in listed.splitlines():
        digits, _, file = line.strip().partition(" ")
        if file.strip().lstrip("*").rpartition("/")[2] == name and re.fullmatch(r"[0-9a-fA-F]{64}", digits):
            return digits.lower()
    return ""


def to_unpack(archive: str, target: str) -> Command[str]:
    """Build the command that unpacks a release into an empty directory, without its top-level directory."""
    words = ("tar", "--extract", "--file", archive, "--directory", target, "--strip-components=1", "--no-same-owner")
    return Command(words, read_printed, seconds=600)


def to_try(release: Release) -> Command[str]:
    """Build the command that checks that a release runs on this machine, and returns its version."""
    return Command(("env", "CONDOR_CONFIG=/dev/null", release.program("condor_version")), read_version)


def read_version(outcome: Outcome) -> str:
    """Parse HTCondor's version; raise ReleaseRefused if it doesn't run here."""
    match = _RUNS.search(outcome.text)
    if outcome.code or not match:
        raise ReleaseRefused(why=f"it does not run on this machine: {outcome.complaint}")
    return match[1]


def find_unpacked(place: Path) -> Release:
    """Return the release in a directory; raise ReleaseRefused if it is incomplete."""
    release = release_at(place / "sbin")
    if release is None:
        raise ReleaseRefused(why=f"there is no {MASTER} with all that it needs in it")
    return release


def _names(system: Mapping[str, str]) -> list[str]:
    return [system.get("ID", ""), *system.get("ID_LIKE", "").split()]
