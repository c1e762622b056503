"""The location of HTCondor's programs: the distribution's, an unpacked release, or one that Sublet fetched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sublet.kernel.errors import NoHTCondor

MASTER, BROKER = "condor_master", "condor_shared_port"  # the master daemon, and one of the daemons behind it
NEEDED = (
    *("condor_submit", "condor_q", "condor_history", "condor_rm", "condor_hold", "condor_release", "condor_qedit"),
    *("condor_status", "condor_off", "condor_advertise", "condor_token_fetch", "condor_config_val", "condor_ping"),
)
_SYSTEM = ("/usr/sbin", "/usr/local/sbin", "/opt/condor/sbin")  # often not on the PATH of an ordinary user
_LIBEXEC = ("libexec/condor", "libexec", "lib/condor/libexec")
_LIB = ("lib/condor", "lib64/condor", "lib", "lib64")


@dataclass(frozen=True)
class Release:
    """One HTCondor installation on this machine."""

    bin: Path
    sbin: Path
    lib: Path
    libexec: Path

    @property
    def places(self) -> dict[str, str]:
        """The configuration settings that name its directories."""
        return {
            "RELEASE_DIR": str(self.bin.parent),
            "BIN": str(self.bin),
            "SBIN": str(self.sbin),
            "LIB": str(self.lib),
            "LIBEXEC": str(self.libexec),
            "SHARE": str(self.bin.parent / "share/condor"),
        }

    def program(self, name: str) -> str:
        """Return the path of one of its programs; releases differ in where those for administrators are."""
        return str(next((place / name for place in (self.bin, self.sbin) if (place / name).exists()), self.bin / name))


def find_release(fetched: Path) -> Release:
    """Return the HTCondor to use: on the PATH, or else the one that Sublet fetched.

    Raise NoHTCondor if there is none.
    """
    searched = [*os.environ.get("PATH", os.defpath).split(os.pathsep), *_SYSTEM]
    for sbin in (*_masters(searched), *_masters([str(fetched / "sbin")])):
        release = release_at(sbin)
        if release is not None:
            return release
    raise NoHTCondor()


def release_at(sbin: Path) -> Release | None:
    """Return the HTCondor whose master is in a directory, or None if it is incomplete."""
    for root in (sbin.parent, sbin.resolve().parent):
        lib = next((root / place for place in _LIB if (root / place).is_dir()), None)
        libexec = next((root / place for place in _LIBEXEC if (root / place / BROKER).exists()), None)
        if lib and libexec and not missing(root):
            return Release(root / "bin", root / "sbin", lib, libexec)
    return None


def missing(root: Path) -> list[str]:
    """Return the names of missing programs."""
    return [name for name in NEEDED if not any(os.access(root / place / name, os.X_OK) for place in ("bin", "sbin"))]


def _masters(directories: Iterable[str]) -> list[Path]:
    programs = (shutil.which(MASTER, path=directory) for directory in directories if directory)
    return list(dict.fromkeys(Path(program).parent for program in programs if program))
