"""Where Sublet keeps its state: everything is below one directory, SUBLET_HOME.

Paths are plain strings here: importing pathlib would take a tenth of the command line's start-up time.
"""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass

from sublet.kernel.errors import UnsafeHome, UnusableHome
from sublet.kernel.safe_paths import find_danger_above, is_trusted, is_writable_by_others, name_user, passes_on_writing

OTHERS_ENTER = stat.S_IXGRP | stat.S_IXOTH


@dataclass(frozen=True)
class Home:
    """The files and directories in SUBLET_HOME."""

    root: str

    @property
    def settings(self) -> str:
        """The operator's settings file."""
        return os.path.join(self.root, "sublet.toml")

    @property
    def database(self) -> str:
        """The embedded database."""
        return os.path.join(self.root, "sublet.db")

    @property
    def run(self) -> str:
        """The directory of files that exist only while a service runs."""
        return os.path.join(self.root, "run")

    @property
    def socket(self) -> str:
        """The personal service's Unix socket, which only its owner can connect to."""
        return os.path.join(self.run, "sublet.sock")

    @property
    def state(self) -> str:
        """The file that records the process that serves: pid, start, url, socket."""
        return os.path.join(self.run, "service.json")

    @property
    def port(self) -> str:
        """The file with the TCP port that the personal service used last."""
        return os.path.join(self.root, "port")

    @property
    def systems(self) -> str:
        """The directory of the person's own systems, one file each."""
        return os.path.join(self.root, "systems")

    @property
    def gateways(self) -> str:
        """The directory of tokens for gateways that the person signed in to, one file each."""
        return os.path.join(self.root, "gateways")

    @property
    def log(self) -> str:
        """The log of a service that a command started in the background."""
        return os.path.join(self.root, "logs", "service.log")

    def find_log(self) -> str:
        """Return the service's log file: the one named in its settings, or the default."""
        import tomllib  # only where something is wrong, or slow

        try:
            with open(self.settings, "rb") as file:
                logs = tomllib.load(file).get("logs")
        except (OSError, ValueError):
            return self.log
        named = logs.get("file") if isinstance(logs, dict) else None
        return os.path.join(self.root, named) if isinstance(named, str) and named else self.log

    def make(self) -> None:
        """Create the directories, accessible to their owner only; raise UnusableHome or UnsafeHome if that fails."""
        for directory in (self.root, self.run, os.path.dirname(self.log)):
            try:
                os.makedirs(directory, mode=0o700, exist_ok=True)
            except OSError as error:
                raise UnusableHome(home=self.root, why=error.strerror) from error
            if not os.access(directory, os.W_OK | os.X_OK):  # even root can't write to a read-only file system
                is_read_only = bool(os.statvfs(directory).f_flag & os.ST_RDONLY)
                raise UnusableHome(home=self.root, why=os.strerror(errno.EROFS if is_read_only else errno.EACCES))
        require_safe(self.root)


def sublet_home() -> Home:
    """Return the home that SUBLET_HOME names, or the default in the user's data directory; refuse an unsafe one."""
    data = os.environ.get("XDG_DATA_HOME") or os.path.join(os.path.expanduser("~"), ".local", "share")
    root = os.path.abspath(os.environ.get("SUBLET_HOME") or os.path.join(data, "sublet"))
    require_safe(root)
    return Home(root)


def require_safe(root: str) -> None:
    """Raise UnsafeHome if others own, can write to or can replace a home: its settings start programs."""
    why = find_danger(root)
    if why:
        raise UnsafeHome(home=root, why=why)


def find_danger(root: str) -> str:
    """Return why a home or a file directly in it is unsafe; empty if it is safe or doesn't exist yet."""
    try:
        link, home = os.lstat(root), os.stat(root)
    except OSError:
        return find_danger_above(root)
    if not stat.S_ISDIR(home.st_mode):
        return "it is no directory"
    for status in (link, home):
        if not is_trusted(status):
            return f"it belongs to {name_user(status.st_uid)}"
    if is_writable_by_others(root, home):
        return f"others can write there (chmod go-w {root})"
    if passes_on_writing(root):
        return f"others could write what is made there (setfacl -k {root})"
    return find_danger_above(root) or _find_danger_inside(root, bool(home.st_mode & OTHERS_ENTER))


def _find_danger_inside(root: str, others_enter: bool) -> str:
    with os.scandir(root) as entries:
        for entry in entries:
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:  # a temporary file of the service, which has got its name meanwhile
                continue
            if not is_trusted(status):
                return f"{entry.name} in it belongs to {name_user(status.st_uid)}"
            if others_enter and not stat.S_ISLNK(status.st_mode) and is_writable_by_others(entry.path, status):
                return f"others can write {entry.name} in it (chmod go-w {entry.path})"
    return ""
