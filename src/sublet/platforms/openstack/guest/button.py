"""The power button of a virtual machine, which Nova presses to stop one."""

from __future__ import annotations

import glob
import os
import select
import signal
import struct
import subprocess
import time
from collections.abc import Iterator

EVENT = struct.Struct("llHHi")
POWER = (1, 116, 1)  # of an event: a key, the power key, pressed


class PowerButton:
    """The power button that Nova presses to stop a machine."""

    def __init__(self) -> None:
        """Set up; the devices are looked for later."""
        self.files: list[int] = []
        self.is_told = False
        self.look_again = 0.0
        self.inhibit()
        signal.signal(signal.SIGTERM, self.note)

    def note(self, number: int, frame: object) -> None:
        """Note that the system is going down."""
        self.is_told = True

    def inhibit(self) -> None:
        """Ask systemd not to power off at once."""
        words = ["systemd-inhibit", "--what=handle-power-key:shutdown", "--mode=block", "--who=sublet", "--why=session"]
        try:
            subprocess.Popen([*words, "sleep", "infinity"], stderr=subprocess.DEVNULL)
        except OSError:
            return

    def wait(self, seconds: float) -> bool:
        """Whether the button was pressed, after waiting this long."""
        if not self.files and time.monotonic() >= self.look_again:
            self.look_again = time.monotonic() + 1
            self.files = list(open_buttons())
        try:
            ready = select.select(self.files, [], [], seconds)[0]
        except InterruptedError:
            ready = []
        for file in ready:
            events = os.read(file, EVENT.size * 16)
            for start in range(0, len(events) - EVENT.size + 1, EVENT.size):
                if EVENT.unpack_from(events, start)[2:] == POWER:
                    self.is_told = True
        return self.is_told


def open_buttons() -> Iterator[int]:
    """Yield the open devices of power buttons."""
    for folder in glob.glob("/sys/class/input/event*"):
        try:
            with open(folder + "/device/name") as file:
                name = file.read()
            if "Power Button" in name:
                yield os.open("/dev/input/" + os.path.basename(folder), os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            continue
