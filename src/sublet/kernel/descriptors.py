"""How many file descriptors this process can have: as many as it may, while programs that it starts keep the usual."""

from __future__ import annotations

import contextlib
import resource

FILES = resource.RLIMIT_NOFILE


class _Usual:
    """The soft limit that this process was started with, once it has raised its own."""

    soft: int | None = None


def raise_limit() -> int:
    """Raise the soft limit to the hard one; how many descriptors this process can have now."""
    soft, hard = resource.getrlimit(FILES)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(FILES, (hard, hard))
            _Usual.soft = soft
    return resource.getrlimit(FILES)[0]


def usual_limit() -> int:
    """The soft limit for programs: many of them can't use a descriptor above 1023, or close all that there may be."""
    return resource.getrlimit(FILES)[0] if _Usual.soft is None else _Usual.soft


def restore_limit(pid: int | None) -> None:
    """Give a process that was just started the limit back that this one had."""
    if _Usual.soft is None or pid is None:
        return
    with contextlib.suppress(OSError, ValueError):  # it has ended already
        hard = resource.prlimit(pid, FILES)[1]
        resource.prlimit(pid, FILES, (_Usual.soft, hard))
