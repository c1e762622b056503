"""What the operating system says, as what a platform says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from errno import EDQUOT, ENOSPC

from sublet.kernel.errors import DiskFull, PlatformUnreachable


@contextmanager
def translate_os_errors(platform: str) -> Iterator[None]:
    """Raise a full disk, or something that may pass, in the words of a platform."""
    try:
        yield
    except OSError as error:
        kind = DiskFull if error.errno in (ENOSPC, EDQUOT) else PlatformUnreachable
        raise kind(platform=platform, why=str(error)) from error
