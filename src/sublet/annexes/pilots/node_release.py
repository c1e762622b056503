"""Which release of HTCondor a compute node can run, by its architecture and C library."""

from __future__ import annotations

import re

from sublet.annexes.pilots.fetching import release_url
from sublet.kernel.errors import ReleaseRefused

# The AlmaLinux versions of HTCondor's releases; each release runs with its C library or a newer one.
_MADE_ON = (((2, 39), "10"), ((2, 34), "9"), ((2, 28), "8"))
_LIBC = re.compile(r"glibc (\d+)\.(\d+)")
_ARCH = re.compile(r"[a-z0-9_]{1,20}")


def node_release(template: str, arch: str, libc: str) -> str:
    """Return the address of the newest release that a node can run; raise ReleaseRefused if there is none."""
    if not _ARCH.fullmatch(arch):
        raise ReleaseRefused(why=f"{arch!r} is no architecture that is known")
    match = _LIBC.fullmatch(libc)
    version = (int(match[1]), int(match[2])) if match else (0, 0)
    made_on = next((name for oldest, name in _MADE_ON if version >= oldest), "")
    if "{system}" in template and not made_on:
        raise ReleaseRefused(why=f"no release is made for nodes with {libc or 'a C library that is not known'}")
    return release_url(template, {"ID": "almalinux", "VERSION_ID": made_on}, arch)
