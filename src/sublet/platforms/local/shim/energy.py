"""The energy that a session used, out of the counters that the kernel has of processors (RAPL).

They count the whole machine. A session is given the part of it that its processor time is of that of all processes, so
that what the machine uses while it waits is shared by those that work.
"""

from __future__ import annotations

import os

from . import clocks

EVERY = 30.0  # seconds; a counter begins anew after several minutes at the earliest
JOULES = 3_600_000  # in a kWh
BUSY = (0, 1, 2, 5, 6, 7)  # of the columns of /proc/stat: not idle, waiting for disks, or guests (counted twice)


class EnergyMeter:
    """Counts while a session runs; where nothing can be read it says nothing."""

    def __init__(self, folder: str) -> None:
        """`folder` is /sys/class/powercap."""
        counters = {zone: _read(f"{zone}/energy_uj") for zone in _list_zones(folder)}
        self._last = {zone: count for zone, count in counters.items() if count is not None}
        self._can_read = bool(self._last)
        self._used = 0  # microjoules
        self._due = clocks.steady() + EVERY
        self._busy = _read_busy() if self._can_read else 0.0

    def look(self) -> None:
        """Read the counters, now and then."""
        if self._can_read and clocks.steady() >= self._due:
            self._due = clocks.steady() + EVERY
            self._read_all()

    def share(self, cpu: float) -> dict[str, object]:
        """What so many seconds of processor time used, in kWh; nothing where it can't be measured."""
        if not self._can_read:
            return {}
        self._read_all()
        busy = max(_read_busy() - self._busy, cpu, 0.01)
        return {"energy": self._used / 1e6 * cpu / busy / JOULES, "energy_source": "measured"}

    def _read_all(self) -> None:
        for zone, last in self._last.items():
            now = _read(f"{zone}/energy_uj")
            if now is None:
                continue
            if now < last:  # it began anew
                self._used += _read(f"{zone}/max_energy_range_uj") or last
            self._used += now - last
            self._last[zone] = now


def _list_zones(folder: str) -> list[str]:
    """Whole processors, as intel-rapl:0; what they consist of is counted with them."""
    try:
        return [f"{folder}/{name}" for name in os.listdir(folder) if name.count(":") == 1]
    except OSError:
        return []


def _read(path: str) -> int | None:
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None


def _read_busy() -> float:
    """Seconds in which processors of this machine worked, since it was started."""
    with open("/proc/stat", encoding="ascii") as file:
        columns = file.readline().split()[1:]
    return sum(int(columns[column]) for column in BUSY if column < len(columns)) / os.sysconf("SC_CLK_TCK")
