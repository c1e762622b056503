"""Shows files of the cache to a session: as clones where the file system supports them, else as links or copies."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from pathlib import Path

FICLONE = 0x40049409  # ioctl that shares a file's blocks with another until one of them is changed
NO_CLONES = (errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EPERM)
NO_LINK = (errno.EXDEV, errno.EMLINK, errno.EPERM, errno.EOPNOTSUPP)
OWNER_WRITES = 0o200


def clone(source: Path, target: Path) -> bool:
    """Clone a file copy-on-write, and return whether the file system supports that."""
    with source.open("rb") as original, target.open("xb") as fresh:
        try:
            fcntl.ioctl(fresh.fileno(), FICLONE, original.fileno())
        except OSError as error:
            if error.errno not in NO_CLONES:
                raise
        else:
            return True
    target.unlink()
    return False


def copy_file(source: Path, target: Path, mode: int) -> None:
    """Copy a file, as a clone if possible."""
    if not clone(source, target):
        shutil.copyfile(source, target)
    _copy_marks(source, target, mode)


def _copy_marks(source: Path, target: Path, mode: int) -> None:
    status = source.stat()
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    target.chmod(mode)


def share_file(source: Path, target: Path, *, can_link: bool) -> None:
    """Make a read-only view of a file that can't change the source, without extra disk space if possible."""
    if clone(source, target):
        _copy_marks(source, target, source.stat().st_mode & 0o777)
        return
    try:
        if can_link:
            os.link(source, target)
            return
    except OSError as error:
        if error.errno not in NO_LINK:
            raise
    copy_file(source, target, source.stat().st_mode & 0o777)


def lay(source: Path, target: Path, *, is_writable: bool, can_link: bool) -> None:
    """Put a file or a folder of the cache at a path, replacing the result of an earlier try."""
    target.parent.mkdir(parents=True, exist_ok=True)
    aside = target.with_name(f".{target.name[:100]}.{os.urandom(4).hex()}")
    try:
        _lay(source, aside, is_writable=is_writable, can_link=can_link)
        remove(target)
        aside.rename(target)
    finally:
        remove(aside)


def _lay(source: Path, target: Path, *, is_writable: bool, can_link: bool) -> None:
    if not source.is_dir():
        _lay_file(source, target, is_writable=is_writable, can_link=can_link)
        return
    target.mkdir(mode=0o755)
    for folder, folders, names in os.walk(source):
        below = target / Path(folder).relative_to(source)
        for name in folders:
            if not _copy_link(Path(folder, name), below / name):
                (below / name).mkdir(mode=0o755)
        for name in names:
            if not _copy_link(Path(folder, name), below / name):
                _lay_file(Path(folder, name), below / name, is_writable=is_writable, can_link=can_link)


def _copy_link(source: Path, target: Path) -> bool:
    """Copy a symbolic link, which leads to something in the same folder; return whether it is one."""
    if not source.is_symlink():
        return False
    target.symlink_to(source.readlink())
    return True


def _lay_file(source: Path, target: Path, *, is_writable: bool, can_link: bool) -> None:
    if is_writable:
        copy_file(source, target, source.stat().st_mode & 0o777 | OWNER_WRITES)
    else:
        share_file(source, target, can_link=can_link)


def remove(path: Path) -> None:
    """Remove a file, or a folder with its contents, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
