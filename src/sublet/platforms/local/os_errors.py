"""Translates errors of the operating system into those of platforms."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from errno import EDQUOT, ENOSPC

from sublet.kernel.errors import DiskFull, PlatformUnreachable


@contextmanager
def translate_os_errors(platform: str) -> Iterator[None]:
    """Raise OSErrors as DiskFull if the disk is full, else as PlatformUnreachable."""
    try:
        yield
    except OSError as error:
        kind = DiskFull if error.errno in (ENOSPC, EDQUOT) else PlatformUnreachable
        raise kind(platform=platform, why=str(error)) from error
