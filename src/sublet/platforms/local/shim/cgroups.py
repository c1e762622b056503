"""A cgroup for one job, of version 1 or 2, where this machine lets us make one."""

from __future__ import annotations

import os
import time

from .processes import send

SIGKILL = 9
LIMITS = {  # version → the file that must accept the limit, and one that should, against swap beyond it
    1: ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"),
    2: ("memory.max", "memory.swap.max"),
}


def _read(*path: str) -> str:
    try:
        with open(os.path.join(*path), encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""


def _write(value: str, *path: str) -> None:
    with open(os.path.join(*path), "w", encoding="ascii") as file:
        file.write(value)


def _put(value: str, *path: str) -> bool:
    """Write to a file if that is possible, and return whether it was."""
    try:
        _write(value, *path)
    except OSError:
        return False
    return True


def _own(controller: str) -> str:
    """Return the directory of this process's cgroup: of a controller of version 1, or ("") of version 2."""
    mine = ""
    for line in _read("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controller in controllers.split(","):
            mine = path
    for line in _read("/proc/self/mountinfo").splitlines():
        fields, _, rest = line.partition(" - ")
        root, point = fields.split()[3:5]
        kind, _, options = rest.split()[:3]
        if mine and (controller in options.split(",") if kind == "cgroup" else kind == "cgroup2" and not controller):
            inside = mine[len(root) :] if root != "/" and mine.startswith(root) else mine
            return os.path.join(point, inside.lstrip("/")).rstrip("/")
    return ""


def memory_limit() -> int | None:
    """Return the memory limit of our cgroups in bytes; None if there is none."""
    limits = [
        line.split()[1] for line in _read(_own("memory"), "memory.stat").splitlines() if "hierarchical_memory" in line
    ]
    folder = _own("")
    while folder and os.path.exists(os.path.join(folder, "cgroup.procs")):
        limits.append(_read(folder, "memory.max").strip())
        folder = os.path.dirname(folder)
    return min((int(limit) for limit in limits if limit.isdigit()), default=None)


def core_limit() -> int | None:
    """Return how many cores' worth of time our cgroup allows; None if there is no limit."""
    quota, period = [*_read(_own(""), "cpu.max").split(), "max", "max"][:2]
    if quota == "max":
        quota, period = (_read(_own("cpu"), f"cpu.cfs_{name}_us").strip() for name in ("quota", "period"))
    return -(-int(quota) // int(period)) if quota.isdigit() and period.isdigit() else None


def _parents() -> list[tuple[int, str]]:
    """Return where a cgroup might be made: in our own cgroup, or (version 2) beside it."""
    places = []
    memory, two = _own("memory"), _own("")
    if memory:
        places.append((1, memory))
    for place in (two, os.path.dirname(two)) if two else ():
        there = _read(place, "cgroup.controllers").split()
        given = _read(place, "cgroup.subtree_control").split()
        for controller in ("memory", "pids", "cpu"):
            if (
                controller in there
                and controller not in given
                and _put(f"+{controller}", place, "cgroup.subtree_control")
            ):
                given.append(controller)  # otherwise it has processes of its own, or isn't ours
        if "memory" in given:
            places.append((2, place))
    return places


class ControlGroup:
    """One job's cgroup: a directory, and in version 1 another one for each other controller."""

    def __init__(self, version: int, *folders: str) -> None:
        """Refer to a cgroup; `make` creates one."""
        self.version = version
        self.folders = folders
        self.path = folders[0]  # where its memory is counted

    def pids(self) -> list[int]:
        """Return the processes in the cgroup, and in cgroups that they made below it."""
        folders = [below for folder in self.folders for below, _, _ in os.walk(folder)]
        return list({int(pid) for folder in folders for pid in _read(folder, "cgroup.procs").split()})

    def add(self, pid: int) -> None:
        """Put a process into the cgroup, and with it everything that it starts from then on."""
        _write(str(pid), self.path, "cgroup.procs")
        for folder in self.folders[1:]:
            _put(str(pid), folder, "cgroup.procs")

    def close(self) -> None:
        """Let no new process start in the cgroup, so that stopping the others comes to an end."""
        for folder in self.folders:
            if os.path.exists(os.path.join(folder, "pids.max")):
                _put("0", folder, "pids.max")

    def count_refused(self) -> int:
        """Return how many processes couldn't be started because the cgroup had too many."""
        counts = [_read(folder, "pids.events").split() for folder in self.folders]
        return sum(int(words[1]) for words in counts if words[:1] == ["max"])

    def count_killed(self) -> int:
        """Return how many processes the kernel has killed in the cgroup because memory ran out."""
        name = "memory.oom_control" if self.version == 1 else "memory.events"
        for line in _read(self.path, name).splitlines():
            word, _, count = line.partition(" ")
            if word == "oom_kill":
                return int(count)
        return 0

    def resident(self) -> int:
        """Return the memory in use without the page cache, in bytes."""
        wanted = "total_rss" if self.version == 1 else "anon"
        for line in _read(self.path, "memory.stat").splitlines():
            word, _, size = line.partition(" ")
            if word == wanted:
                return int(size)
        return 0

    def remove(self, seconds: float = 1.0) -> bool:
        """Kill what is still in the cgroup and remove it; return False if it can't be removed in time."""
        deadline = time.monotonic() + seconds
        while any(os.path.isdir(folder) for folder in self.folders):
            send(self.pids(), SIGKILL)
            for top in self.folders:
                for folder, _, _ in os.walk(top, topdown=False):
                    try:
                        os.rmdir(folder)
                    except OSError:
                        pass  # it still has dying processes
            if time.monotonic() > deadline:
                return not any(os.path.isdir(folder) for folder in self.folders)
            time.sleep(0.005)
        return True


def make(name: str, memory: int, processes: int, cores: int) -> ControlGroup | None:
    """Make a cgroup with limits on memory, in bytes, and processes; return None where that isn't allowed.

    Its weight is that of the booked cores, so that many processes don't crowd out the machine's own.
    """
    for version, parent in _parents():
        group = ControlGroup(version, os.path.join(parent, name))
        must, should = LIMITS[version]
        try:
            os.mkdir(group.path)
            _write(str(memory), group.path, must)
        except OSError:
            group.remove(0)
            continue
        _put(str(memory if version == 1 else 0), group.path, should)  # some kernels don't count swap
        if version == 1:
            return ControlGroup(1, group.path, *_beside(name, processes, cores))
        _put(str(processes), group.path, "pids.max")
        _put(str(min(100 * max(1, cores), 10000)), group.path, "cpu.weight")
        return group
    return None


def _beside(name: str, processes: int, cores: int) -> list[str]:
    """Make the same cgroup for the other controllers of version 1, where allowed, and return their directories."""
    made = []
    for controller, file, value in (("pids", "pids.max", processes), ("cpu", "cpu.shares", 1024 * max(1, cores))):
        parent = _own(controller)
        folder = os.path.join(parent, name)
        try:
            if parent:
                os.mkdir(folder)
        except OSError:
            continue
        if parent:
            made.append(folder)
            _put(str(value), folder, file)
    return made
