"""The energy that a session used, from the kernel's counters of processors (RAPL).

They count the whole machine. A session gets a share in proportion to its processor time among all processes, so that
the energy of idle times is shared by those that work.
"""

from __future__ import annotations

import os

from . import clocks

EVERY = 30.0  # seconds; a counter wraps around after several minutes at the earliest
JOULES = 3_600_000  # in a kWh
BUSY = (0, 1, 2, 5, 6, 7)  # columns of /proc/stat: not idle, waiting for disks, or guests (counted twice)


class EnergyMeter:
    """Counts energy while a session runs; it reports nothing where the counters can't be read."""

    def __init__(self, folder: str) -> None:
        """Start counting; `folder` is /sys/class/powercap."""
        counters = {zone: _read(f"{zone}/energy_uj") for zone in _list_zones(folder)}
        self._last = {zone: count for zone, count in counters.items() if count is not None}
        self._can_read = bool(self._last)
        self._used = 0  # microjoules
        self._due = clocks.steady() + EVERY
        self._busy = _read_busy() if self._can_read else 0.0

    def look(self) -> None:
        """Read the counters every half minute."""
        if self._can_read and clocks.steady() >= self._due:
            self._due = clocks.steady() + EVERY
            self._read_all()

    def share(self, cpu: float) -> dict[str, object]:
        """Return the energy for this many seconds of processor time, in kWh; empty if it can't be measured."""
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
            if now < last:  # it wrapped around
                self._used += _read(f"{zone}/max_energy_range_uj") or last
            self._used += now - last
            self._last[zone] = now


def _list_zones(folder: str) -> list[str]:
    """Return the zones of whole processors, as intel-rapl:0, which include their parts."""
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
    """Return the busy seconds of this machine's processors since boot."""
    with open("/proc/stat", encoding="ascii") as file:
        columns = file.readline().split()[1:]
    return sum(int(columns[column]) for column in BUSY if column < len(columns)) / os.sysconf("SC_CLK_TCK")
