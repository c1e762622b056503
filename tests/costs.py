"""A pytest plugin that tells what tests cost: `scripts/test -p tests.costs`.

Seconds of waiting depend on what else the machine does; seconds of work hardly do. As root with cgroups of version 1
all that a worker starts is counted, daemons of sites too; elsewhere only children that were waited for.
"""

from __future__ import annotations

import os
import resource
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

COUNTER = Path("/sys/fs/cgroup/cpuacct")
SHOWN = 25


class Meter:
    """Counts the work of this process and of all that it starts."""

    def __init__(self) -> None:
        """Enter a group of one's own, where that can be."""
        self.group: Path | None = COUNTER / f"sublet-tests-{os.getpid()}"
        try:
            self.group.mkdir()
            (self.group / "cgroup.procs").write_text(str(os.getpid()))
        except OSError:
            self.group = None

    def seconds(self) -> float:
        """All the work so far."""
        if self.group:
            return int((self.group / "cpuacct.usage").read_text()) / 1e9
        used = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
        return sum(one.ru_utime + one.ru_stime for one in used)

    def close(self) -> None:
        """Leave the group, and take along who still runs."""
        if not self.group:
            return
        for pid in (self.group / "cgroup.procs").read_text().split():
            with suppress(OSError):
                (COUNTER / "cgroup.procs").write_text(pid)
        with suppress(OSError):
            self.group.rmdir()


class Costs:
    """Notes the work of each phase of each test, and sums it up at the end."""

    def __init__(self) -> None:
        """Nothing has run."""
        self.meter = Meter()
        self.last = self.meter.seconds()
        self.work: dict[str, float] = defaultdict(float)
        self.time: dict[str, float] = defaultdict(float)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Iterator[Any]:
        """Write on each report what its phase cost; a report carries this from a worker to the controller."""
        report = yield
        now = self.meter.seconds()
        report.work, self.last = now - self.last, now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up what reports say."""
        name = report.nodeid if report.when == "call" else f"{report.nodeid} ({report.when})"
        self.work[name] += getattr(report, "work", 0)
        self.time[name] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """The rings, the files and the tests that cost the most."""
        rings: dict[str, list[float]] = defaultdict(lambda: [0, 0])
        files: dict[str, list[float]] = defaultdict(lambda: [0, 0])
        for name, work in self.work.items():
            file = name.partition("::")[0]
            for total in (rings[file.split("/")[1]], files[file]):
                total[0] += work
                total[1] += self.time[name]
        tests = {name: [work, self.time[name]] for name, work in self.work.items()}
        for title, table, shown in (("rings", rings, 99), ("files", files, SHOWN), ("tests", tests, SHOWN)):
            terminalreporter.section(f"costliest {title}: seconds of work, seconds in all")
            for name, (work, time) in sorted(table.items(), key=lambda row: -max(row[1]))[:shown]:
                terminalreporter.write_line(f"{work:8.1f} {time:8.1f}  {name}")

    def pytest_unconfigure(self) -> None:
        """Stop counting."""
        self.meter.close()


def pytest_configure(config: pytest.Config) -> None:
    """Count from here on."""
    config.pluginmanager.register(Costs())
