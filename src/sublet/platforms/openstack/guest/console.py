"""The console of a virtual machine, which others write to as well, and which a login there may take away."""

from __future__ import annotations

import errno
import json
import os
import termios
import time

from sublet.platforms.openstack.guest.sealed import write_line


class SealedConsole:
    """The console, with sealed pieces on it."""

    def __init__(self, secret: bytes, path: str) -> None:
        """Nothing is written yet."""
        self.secret, self.path = secret, path
        self.file = self.open()

    def open(self) -> int:
        """The console's device."""
        return os.open(self.path, os.O_WRONLY | os.O_NOCTTY)

    def write(self, label: str, content: bytes) -> None:
        """Write a piece, whole; a console that a getty has hung up is opened again."""
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
        """Write all of it."""
        while rest:
            rest = rest[os.write(self.file, rest) :]

    def drain(self) -> None:
        """Wait until all of it is written: the kernel keeps some, and loses it when the machine goes off."""
        termios.tcdrain(self.file)
        time.sleep(1)

    def tell(self, label: str, value: object) -> None:
        """Write a piece of JSON."""
        self.write(label, json.dumps(value).encode())
