"""Whether a job's program and its input are there and can be used on this node. Sent with the far half.

HTCondor holds a job that can't be started, but behind a job wrapper its starter doesn't see that.
"""

from __future__ import annotations

import errno
import os

MISCELLANEOUS = "/proc/sys/fs/binfmt_misc"  # programs of other types that this node's kernel can execute
LONGEST = 256  # bytes of a first line that the kernel reads


class NotStartable(Exception):
    """A job that can't be started; it is held, with this reason."""


def check_program(path: str) -> None:
    """Raise NotStartable if the kernel can't execute a program."""
    code = find_obstacle(path)
    if code:
        raise NotStartable(f"Failed to execute '{os.path.basename(path)}': {describe(code, path)}")


def find_obstacle(path: str) -> int:
    """Return the error that executing a program ends with, or 0."""
    if not os.path.exists(path):
        return errno.ENOENT
    if os.path.isdir(path) or not os.access(path, os.X_OK):
        return errno.EACCES
    try:
        with open(path, "rb") as file:
            start = file.read(LONGEST)
    except OSError:
        return 0  # it may be executed without being readable
    if start.startswith(b"#!"):
        interpreter = read_interpreter(start)
        return 0 if not interpreter.startswith("/") or os.path.exists(interpreter) else errno.ENOENT
    return 0 if start.startswith(b"\x7fELF") or has_other_types() else errno.ENOEXEC


def read_interpreter(start: bytes) -> str:
    """Return the interpreter that the first line of a script names."""
    words = start.split(b"\n")[0][2:].strip(b" \t").replace(b"\t", b" ").split(b" ")
    return words[0].decode("utf-8", "surrogateescape")


def describe(code: int, path: str) -> str:
    """Describe an error, with what is missing."""
    words = os.strerror(code)
    if code == errno.ENOEXEC:
        return words + " (its first line is no #!, and it is no program of this machine)"
    if code == errno.ENOENT and os.path.exists(path):
        with open(path, "rb") as file:
            return words + " (its interpreter " + repr(read_interpreter(file.read(LONGEST))) + ")"
    return words


def has_other_types() -> bool:
    """Whether the kernel can execute more than ELF programs and scripts."""
    try:
        return bool(set(os.listdir(MISCELLANEOUS)) - {"register", "status"})
    except OSError:
        return False


def find_stdin(given: str, sandbox: str) -> str:
    """Return the path of a job's stdin; raise NotStartable if it isn't there."""
    if given in ("", "/dev/null"):
        return "/dev/null"
    for path in (os.path.join(sandbox, os.path.basename(given)), os.path.join(sandbox, given)):
        if os.path.exists(path):
            return path
    raise NotStartable(f"Failed to open '{given}' as standard input: {os.strerror(errno.ENOENT)}")
