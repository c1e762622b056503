"""A split annex under load: 1,000 short jobs and 64 slots through one bridge. `python -m benchmarks.split [JOBS]`.

One site, whose nodes could reach the access point, so that the direct way stands beside: the same jobs, one at a time.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.access_points import Person, at_ap
from tests.real.far_away import FarAway
from tests.sites import CANNOT, Site, control, succeed

from benchmarks.row import Row, write_table
from benchmarks.sites import NoSite
from benchmarks.size import WHOLE, Size

NAME = "a split annex beside a direct one: 1,000 short jobs and 64 slots through one bridge"
JOBS = 1_000
ALONE = 12  # jobs that are given one at a time, to each annex in turn
NODES, CORES = 2, 32
IDLE = 20.0  # seconds that a bridge is watched which waits
LONGEST = 1_200.0  # seconds that all of them may take
MIB = 1 << 20
Usage = dict[str, list[float]]  # kind of process → how many, bytes, seconds
# The processes of the bridge: shared pages of memory count in part, and time with that of children that have ended.
LOOK = """
import glob, json, os
found = {}
tick = os.sysconf("SC_CLK_TCK")
for place in glob.glob("/proc/[0-9]*"):
    try:
        words = open(place + "/cmdline", "rb").read().replace(b"\\0", b" ").decode()
        stat = open(place + "/stat").read().rpartition(")")[2].split()
        memory = [line for line in open(place + "/smaps_rollup") if line.startswith("Pss:")][0].split()[1]
    except (OSError, IndexError):
        continue
    env = ""
    try:
        env = open(place + "/environ", "rb").read().decode(errors="replace")
    except OSError:
        pass
    on_bridge = "/splits/" in words or "/splits/" in env
    name = words.split(" ")[0].rpartition("/")[2]
    kind = ("relay" if "split.relay" in words else "near half" if "near_half" in words else
            name if on_bridge and name.startswith("condor_") else "")
    if kind:
        one = found.setdefault(kind, [0, 0, 0.0])
        one[0] += 1
        one[1] += int(memory) * 1024
        one[2] += sum(map(int, stat[11:15])) / tick
print(json.dumps(found))
"""


def main() -> None:
    """Measure and print."""
    size = Size(int(sys.argv[1]) / JOBS) if len(sys.argv) > 1 else WHOLE
    print(write_table(run(size)), flush=True)


def run(size: Size = WHOLE) -> list[Row]:
    """On a site of the testbed, which is started for this."""
    try:
        with site() as started:
            return measured(started, size)
    except NoSite as why:
        return [Row("not measured", str(why))]


@contextmanager
def site() -> Iterator[Site]:
    """Nodes for both ways."""
    name = f"bench{os.getpid()}"
    options = ("--base", "box", "--ap", "--nat", "--nodes", str(NODES + 2), "--cpus", str(CORES), "--memory", "16000")
    started = control("up", name, *options, "--owner", str(os.getpid()))
    if started.returncode == CANNOT:
        raise NoSite(started.stderr.strip().removeprefix("SKIP: "))
    try:
        succeed(started)
        yield Site(name, json.loads(succeed(control("status", name, "--json"))))
    finally:
        succeed(control("down", name))


def measured(site: Site, size: Size) -> list[Row]:
    """All of it."""
    with at_ap(site, "sublet") as person:
        person.starts_service()
        assert person.signs_in() == 0, person.said
        wanted = (
            "--system",
            site.name,
            "--queue",
            "compute",
            "--cores",
            str(CORES),
            "--lifetime",
            "1h",
            "--idle",
            "50m",
        )
        for name, nodes, carry in (("near", 1, "direct"), ("far", NODES, "spool")):
            person.typed("annex", "create", name, *wanted, "--nodes", str(nodes), "--carry", carry, "--yes", "--wait")
        near, far = FarAway(person, "near"), FarAway(person, "far")
        for annex in (near, far):
            site.wait(annex.offered, 60)
        alone = [(ends(near), ends(far)) for _ in range(size.of(ALONE))]
        before = look(person)
        watched = max(1.0, IDLE * min(size.share, 1.0))
        time.sleep(watched)
        idle = look(person)
        rows = alone_rows(alone) + idle_rows(before, idle, watched) + many_rows(far, size.of(JOBS), idle)
        for name in ("near", "far"):
            person.typed("annex", "shutdown", name)
        person.types("annex", "setup", "--stop")
    return rows


def look(person: Person) -> Usage:
    """What there is of the bridge: kind of process → how many, bytes, seconds."""
    found: Usage = json.loads(person.did("python3", "-c", LOOK))
    return found


def ends(annex: FarAway) -> float:
    """The seconds from the submission of one job to its end."""
    log = annex.person.file("alone.log")
    log.unlink(missing_ok=True)
    annex.describes("exit 0", 1, log="alone.log")
    begin = time.monotonic()
    annex.submitted()
    while "\n005 (" not in log.read_text():
        assert time.monotonic() - begin < 120, "the job never ended"
        time.sleep(0.005)
    return time.monotonic() - begin


def alone_rows(pairs: list[tuple[float, float]]) -> list[Row]:
    """One job at a time, beside the direct way."""
    direct, split = (statistics.median(column) for column in zip(*pairs, strict=True))
    return [
        Row("one job from its submission to its end, direct", f"{direct:.2f} s"),
        Row("the same, split", f"{split:.2f} s"),
        Row("added for each job", f"{split - direct:.2f} s"),
    ]


def idle_rows(before: Usage, idle: Usage, seconds: float) -> list[Row]:
    """A bridge that waits."""
    daemons = [kind for kind in idle if kind.startswith("condor_")]
    spent = sum(idle[kind][2] - before[kind][2] for kind in daemons) / NODES / seconds
    relay = (idle["relay"][2] - before["relay"][2]) / seconds
    processes, memory = (sum(idle[kind][which] for kind in daemons) / NODES for which in (0, 1))
    return [
        Row("a bridge that waits, for each node: processes", f"{processes:.0f}"),
        Row("a bridge that waits, for each node: memory", f"{memory / MIB:.0f} MiB"),
        Row("a bridge that waits, for each node: time of a processor", f"{spent * 1000:.1f} ms a second"),
        Row("the relay of a lease: memory", f"{idle['relay'][1] / MIB:.0f} MiB"),
        Row("the relay of a lease that waits: time of a processor", f"{relay * 1000:.1f} ms a second"),
    ]


def many_rows(far: FarAway, count: int, before: Usage) -> list[Row]:
    """All jobs at once: how fast, how many files, how much memory and time of the bridge."""
    spool = Path(far.site.facts["home"]) / "researcher/.sublet/sessions" / far.lease()["session"] / "spool"
    carried = over_the_network(far.person)
    cluster = far.submits("exit 0", count, log="many.log")
    begin = time.monotonic()
    files, slots, memory, after = 0, 0, 0.0, before
    while far.states(cluster):
        assert time.monotonic() - begin < LONGEST, f"{len(far.states(cluster))} jobs are left"
        files = max(files, sum(1 for file in spool.rglob("*") if file.is_file()))
        now = look(far.person)
        running = int(now.get("near half", [0, 0, 0])[0])
        if running > slots:
            slots = running
            jobs = sum(now[kind][1] for kind in ("near half", "condor_starter") if kind in now)
            memory = jobs / running
        after = now
    took = time.monotonic() - begin
    said = far.condor("condor_history", cluster, "-af", "ExitCode", "NumJobStarts").split("\n")
    assert sum(line == "0 1" for line in said) == count, "every job ran once"
    spent = sum(one[2] for one in after.values()) - sum(one[2] for one in before.values())
    return [
        Row(f"{count:,} jobs that do nothing, {NODES * CORES} slots", f"{took:.0f} s, {count / took:.1f} a second"),
        Row("of which ran twice, or were lost", "none"),
        Row("most jobs of the bridge at once", f"{slots}"),
        Row("memory of the bridge for each job that runs", f"{memory / MIB:.0f} MiB"),
        Row("time of the bridge's processors for each job", f"{spent / count * 1000:.0f} ms"),
        Row("most files in the spool at once", f"{files}"),
        Row(
            "bytes over the login for each job, both ways",
            f"{(over_the_network(far.person) - carried) / count / 1024:.0f} KiB",
        ),
    ]


def over_the_network(person: Person) -> int:
    """The bytes that `ap` has received from the site and sent to it; little else than the login is there."""
    [line] = [line for line in person.did("cat", "/proc/net/dev").splitlines() if line.strip().startswith("eth0:")]
    numbers = line.partition(":")[2].split()
    return int(numbers[0]) + int(numbers[8])


if __name__ == "__main__":
    try:
        main()
    except subprocess.SubprocessError as error:
        raise SystemExit(str(error)) from error
