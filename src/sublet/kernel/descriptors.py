"""Raises this process's limit on file descriptors, while programs that it starts keep the original one."""

from __future__ import annotations

import contextlib
import resource

FILES = resource.RLIMIT_NOFILE


class _Usual:
    """The soft limit that this process had before it raised its own."""

    soft: int | None = None


def raise_limit() -> int:
    """Raise the soft limit to the hard limit; return how many descriptors this process can have now."""
    soft, hard = resource.getrlimit(FILES)
    if soft != hard:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(FILES, (hard, hard))
            _Usual.soft = soft
    return resource.getrlimit(FILES)[0]


def usual_limit() -> int:
    """Return the original soft limit, for child processes.

    Many programs can't use descriptors above 1023, or try to close every possible one when they start.
    """
    return resource.getrlimit(FILES)[0] if _Usual.soft is None else _Usual.soft


def restore_limit(pid: int | None) -> None:
    """Reset the limit of a child process that was just started to the original one."""
    if _Usual.soft is None or pid is None:
        return
    with contextlib.suppress(OSError, ValueError):  # the process may have ended already
        hard = resource.prlimit(pid, FILES)[1]
        resource.prlimit(pid, FILES, (_Usual.soft, hard))
