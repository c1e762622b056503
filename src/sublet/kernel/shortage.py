"""Shortages of file descriptors, processes or memory: temporary states of this machine, not errors of the caller."""

from __future__ import annotations

import errno

SHORT = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EAGAIN})  # EAGAIN: from fork
MOST_CAUSES = 20  # a chain of exceptions can be circular


def is_shortage(error: BaseException | None) -> bool:
    """Whether this exception itself, not its cause, means that the machine is short of a resource."""
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in SHORT)


def find_shortage(error: BaseException) -> str:
    """Return the system's message about a shortage that caused the exception; empty if there was none.

    The whole chain of causes is searched, since the shortage may have been wrapped in other exceptions.
    """
    at: BaseException | None = error
    for _ in range(MOST_CAUSES):
        if at is None:
            break
        if is_shortage(at):
            return (at.strerror if isinstance(at, OSError) else "") or "Cannot allocate memory"
        at = at.__cause__ or at.__context__
    return ""
