"""A machine that ssh can reach, and the ssh commands that open, use and check its shared connection."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sublet.kernel.errors import PlatformRefused
from sublet.kernel.short_paths import shorten

# Sublet's own settings come first, since ssh uses the first value of each: neither a person's files nor a platform's
# options can turn off the check of host keys, or add a command, a terminal or a tunnel that a batch doesn't expect.
_ALWAYS = {
    "StrictHostKeyChecking": "ask",
    "RequestTTY": "no",
    "RemoteCommand": "none",
    "PermitLocalCommand": "no",
    "ClearAllForwardings": "yes",
    "ForwardX11": "no",
    "ForwardAgent": "no",
    "LogLevel": "INFO",  # Sublet reads ssh's message about a refusal
}
_UNLESS_SAID = {"ServerAliveInterval": "15", "ServerAliveCountMax": "3", "ConnectTimeout": "20"}


@dataclass(frozen=True)
class Target:
    """A host, user and port, and where the socket is kept; the person's ssh configuration provides the rest."""

    platform: str
    host: str  # a name, or an alias of ~/.ssh/config
    control: Path  # a directory of this user
    user: str = ""
    port: int = 0  # 0: from the ssh configuration
    options: Mapping[str, str] = field(default_factory=dict)  # as in ssh_config(5)

    def __post_init__(self) -> None:
        """Refuse a host or user that ssh would read as an option."""
        for word in (self.host, self.user):
            check_name(word)
        if not self.host:
            raise PlatformRefused("An ssh login needs the name of a host.")

    @property
    def socket(self) -> Path:
        """The path of the shared connection's socket: one for each host, user and port."""
        name = hashlib.sha256(f"{self.user}@{self.host}:{self.port}".encode()).hexdigest()[:12]
        return shorten(self.control) / name

    @property
    def record(self) -> Path:
        """The path of the file, beside the socket, that records who opened the connection."""
        return self.socket.with_suffix(".json")

    @property
    def door(self) -> Path:
        """The path of the socket of an unshared login that another process of this user holds."""
        return self.socket.with_suffix(".door")

    def to_open(self) -> tuple[str, ...]:
        """Return the command that opens a shared connection in the background."""
        return self._ssh("-M", "-S", str(self.socket), "-f", "-N", "-o", "ControlPersist=yes")

    def to_use(self, words: str) -> tuple[str, ...]:
        """Return the command that runs a command line over the shared connection.

        Its proxy command is `false`, so that ssh can't open a new connection, which would ask for another code.
        """
        own = ("-S", str(self.socket), "-o", "ControlMaster=no", "-o", "BatchMode=yes", "-o", "ProxyCommand=false")
        return (*self._ssh(*own), words)

    def to_visit(self, words: str) -> tuple[str, ...]:
        """Return the command that runs a command line over a new connection, which nothing else can share."""
        return (*self._ssh("-o", "ControlMaster=no", "-o", "ControlPath=none"), words)

    def to_check(self) -> tuple[str, ...]:
        """Return the command that checks whether the shared connection exists."""
        return self._ssh("-S", str(self.socket), "-O", "check")

    def to_tunnel(self, what: str, path: Path, far: str) -> tuple[str, ...]:
        """Return the command to `forward` or `cancel` a tunnel from a local socket, without the person's own ones."""
        return ("ssh", "-F", "none", "-S", str(self.socket), "-O", what, "-L", f"{path}:{far}", "--", self.host)

    def to_close(self) -> tuple[str, ...]:
        """Return the command that ends the shared connection and everything that uses it."""
        return self._ssh("-S", str(self.socket), "-O", "exit")

    def to_explain(self) -> tuple[str, ...]:
        """Return the command that prints the configuration that ssh would use."""
        return self._ssh("-G")

    def _ssh(self, *own: str) -> tuple[str, ...]:
        return ("ssh", "-T", *own, *self._settings(), "--", self.host)

    def _settings(self) -> Iterator[str]:
        for key, value in (*_ALWAYS.items(), *self.options.items(), *_UNLESS_SAID.items()):
            yield from ("-o", f"{key}={value}")
        if self.user:
            yield from ("-l", self.user)
        if self.port:
            yield from ("-p", str(self.port))


def check_name(word: str) -> None:
    """Refuse a host or user that ssh would read as an option."""
    if word.startswith("-") or any(c.isspace() or ord(c) < 32 for c in word):
        raise PlatformRefused(f"{word!r} can't be the name of a host or of a user.")


def private(directory: Path) -> Path:
    """Create a directory that only this user can enter; raise PlatformRefused if it belongs to someone else."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise PlatformRefused(f"{directory} belongs to someone else, so no login can be kept there.")
    if stat.S_IMODE(status.st_mode) != 0o700:
        directory.chmod(0o700)
    return directory
