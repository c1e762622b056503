"""Which HTCondor suits a machine, and whether what was fetched can be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from sublet.annexes.pilots.fetching import (
    checksum_of,
    find_unpacked,
    package_command,
    read_os,
    read_version,
    release_url,
    this_os,
)
from sublet.kernel.errors import ReleaseRefused
from sublet.kernel.settings_tables import AnnexSettings
from sublet.reach.port import Outcome

ROCKY = read_os(
    'NAME="Rocky Linux"\nID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.5"\nPRETTY_NAME="Rocky 9"\n'
)
DEBIAN = read_os("# who\nID=debian\nVERSION_ID=\"12\"\nPRETTY_NAME='Debian 12'\n")
DIGEST = "ab" * 32


def test_a_release_is_named_as_upstream_names_its_systems() -> None:
    template = AnnexSettings().release
    assert release_url(template, ROCKY, "aarch64").endswith("-aarch64_AlmaLinux9-stripped.tar.gz")
    assert release_url(template, DEBIAN, "x86_64").endswith("-x86_64_Debian12-stripped.tar.gz")
    assert release_url("http://mirror/condor.tar", {}) == "http://mirror/condor.tar"


def test_a_system_that_none_is_made_for_is_told_so() -> None:
    with pytest.raises(ReleaseRefused) as told:
        release_url(AnnexSettings().release, {"ID": "nixos", "PRETTY_NAME": "NixOS 26.05"})
    assert "NixOS 26.05" in told.value.message


def test_a_package_is_named_where_there_is_one() -> None:
    assert package_command(DEBIAN) == "sudo apt install condor"
    assert "dnf" in package_command({"ID": "scientific", "ID_LIKE": "rhel fedora"})
    assert package_command({}) == ""
    assert this_os(Path("/nonexistent")) == {}


def test_a_checksum_is_found_by_the_name_of_its_file() -> None:
    listed = f"{'00' * 32}  other.tar.gz\n{DIGEST.upper()} *./condor.tar.gz\nnonsense\n"
    assert checksum_of(listed, "condor.tar.gz") == DIGEST
    assert checksum_of(listed, "third.tar.gz") == ""


def test_what_does_not_run_here_is_refused_in_its_own_words(tmp_path: Path) -> None:
    assert read_version(Outcome(0, b"$CondorVersion: 25.14.1 2026-10-16 $\n", b"")) == "25.14.1"
    with pytest.raises(ReleaseRefused) as told:
        read_version(Outcome(1, b"", b"libc.so.6: version `GLIBC_2.38' not found"))
    assert "GLIBC_2.38" in told.value.message
    with pytest.raises(ReleaseRefused):
        find_unpacked(tmp_path)
