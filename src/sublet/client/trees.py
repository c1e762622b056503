"""The files of a local directory, as those of an app."""

from __future__ import annotations

import os
import stat

from sublet.apps.model.tree import MOST_BYTES, MOST_FILES, TreeFile
from sublet.kernel.errors import BadTree

LEFT_OUT = frozenset({".git", ".hg", ".svn", "__pycache__", ".ipynb_checkpoints"})


def files_in(directory: str) -> list[TreeFile]:
    """Return all files and links in a directory, without the directories of version control and Python's caches."""
    if not os.path.isdir(directory):
        raise BadTree(why=f"{directory} is not a directory")
    files: list[TreeFile] = []
    size = 0
    for folder, folders, names in os.walk(directory):
        folders[:] = sorted(name for name in folders if name not in LEFT_OUT)
        linked = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        for name in (*names, *linked):
            file = _file(directory, os.path.join(folder, name))
            size += len(file.content)
            files.append(file)
            if len(files) > MOST_FILES or size > MOST_BYTES:
                reason = f"{directory} has more than {MOST_FILES} files or {MOST_BYTES >> 20} MiB"
                raise BadTree(why=reason, hint="Bring large data with --data, and leave it out of the app's directory.")
    return files


def _file(directory: str, path: str) -> TreeFile:
    name = os.path.relpath(path, directory).replace(os.sep, "/")
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode):
        return TreeFile(name, link=os.readlink(path))
    if not stat.S_ISREG(status.st_mode):
        raise BadTree(why=f"{name!r} is neither a file nor a link")
    if status.st_size > MOST_BYTES:
        raise BadTree(why=f"{name!r} has more than {MOST_BYTES >> 20} MiB")
    try:
        with open(path, "rb") as file:
            return TreeFile(name, file.read(), bool(status.st_mode & stat.S_IXUSR))
    except OSError as error:
        raise BadTree(why=f"{name!r} can't be read: {error.strerror}") from error
