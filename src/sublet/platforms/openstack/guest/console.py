"""A virtual machine's console, which others write to as well, and which a login may hang up."""

from __future__ import annotations

import errno
import json
import os
import termios
import time

from sublet.platforms.openstack.guest.sealed import write_line


class SealedConsole:
    """The console, for writing sealed pieces."""

    def __init__(self, secret: bytes, path: str) -> None:
        """Open the console."""
        self.secret, self.path = secret, path
        self.file = self.open()

    def open(self) -> int:
        """Open the console's device."""
        return os.open(self.path, os.O_WRONLY | os.O_NOCTTY)

    def write(self, label: str, content: bytes) -> None:
        """Write a piece; reopen a console that a getty has hung up."""
        line = write_line(self.secret, label, content)
        try:
            self.write_bytes(line)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            os.close(self.file)
            self.file = self.open()
            self.write_bytes(line)

    def write_bytes(self, rest: bytes) -> None:
        """Write all bytes."""
        while rest:
            rest = rest[os.write(self.file, rest) :]

    def drain(self) -> None:
        """Wait until all is written: the kernel's buffer is lost when the machine goes off."""
        termios.tcdrain(self.file)
        time.sleep(1)

    def tell(self, label: str, value: object) -> None:
        """Write a piece of JSON."""
        self.write(label, json.dumps(value).encode())
