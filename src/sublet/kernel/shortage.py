"""Running out of file descriptors, processes or memory: a condition of this machine that passes, nobody's mistake."""

from __future__ import annotations

import errno

SHORT = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.EAGAIN})  # EAGAIN: as fork says it
MOST_CAUSES = 20  # a chain of exceptions can be a circle


def is_shortage(error: BaseException | None) -> bool:
    """Whether this very exception says that the machine has too little of something at the moment."""
    return isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno in SHORT)


def find_shortage(error: BaseException) -> str:
    """What the machine was short of, in its own words, if that is behind an exception; else nothing.

    Whoever raised it may have put it into other words: the exceptions that led to it are looked through too.
    """
    at: BaseException | None = error
    for _ in range(MOST_CAUSES):
        if at is None:
            break
        if is_shortage(at):
            return (at.strerror if isinstance(at, OSError) else "") or "Cannot allocate memory"
        at = at.__cause__ or at.__context__
    return ""
