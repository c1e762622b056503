"""P3: a bag of short tasks through an annex with two slots, and the start of a job on an annex that waits.

A real site, a real access point and a real pilot; the tasks' rate is held against C's vfork and exec on the same node
in the same run, and stands beside what others make of it with two workers.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.access_points import Person, at_ap
from tests.sites import CANNOT, Site, control, succeed

from benchmarks.row import Row
from benchmarks.size import WHOLE, Size
from sublet.client import Client

NAME = "a bag of 10,000 short tasks through an annex with two slots; the start of a job on an annex that waits"
TASKS = 10_000
ROUNDS = 3  # Sublet and the anchor take turns
STARTS = 8
GOAL, TWICE, BESIDE = 0.35, 2.0, 1.2
PLATFORM = "annex-bench"
PEERS: Mapping[str, tuple[str, int]] = {  # package → the program that uses it, and how many tasks it is given
    "hyperqueue": ("hyperqueue_tasks", 2_000),
    "parsl": ("parsl_tasks", 500),
    "distributed": ("dask_tasks", 500),
}
DESCRIPTION = """\
executable = /bin/true
transfer_executable = false
should_transfer_files = yes
transfer_output_files = ""
log = {log}
request_cpus = 1
request_memory = 64M
My.SubletTarget = {annex}
My.SubletSupplier = {supplier}
requirements = TARGET.SubletAnnex =?= MY.SubletTarget
queue
"""


def run(size: Size = WHOLE) -> list[Row]:
    """Measure, if a site can be here."""
    name = f"bench{os.getpid()}"
    options = ("--base", "box", "--ap", "--nat", "--nodes", "1", "--cpus", "2", "--owner", str(os.getpid()))
    started = control("up", name, *options)
    if started.returncode == CANNOT:
        return [Row("not measured", started.stderr.strip().removeprefix("SKIP: "))]
    try:
        succeed(started)
        return measured(Site(name, json.loads(succeed(control("status", name, "--json")))), size)
    finally:
        succeed(control("down", name))


def measured(site: Site, size: Size) -> list[Row]:
    """All of it, on one annex of one node with two cores."""
    tasks = size.of(TASKS)
    with at_ap(site, "sublet") as person, tempfile.TemporaryDirectory(prefix="sublet-p3-") as scratch:
        client = person.starts_service()
        assert person.signs_in() == 0, person.said
        words = ("--system", site.name, "--queue", "compute", "--nodes", "1", "--lifetime", "50m", "--idle", "45m")
        person.typed("annex", "create", "bench", *words, "--yes", "--wait")
        site.wait(lambda: any(platform.nodes for platform in client.platforms() if platform.name == PLATFORM))
        anchor = compiled(Path(site.facts["scratch"]) / "anchor")
        pairs = [(bag(client, tasks), on_node(site, anchor, tasks)) for _ in range(size.of(ROUNDS))]
        rows = tasks_rows(pairs, peers(Path(scratch), anchor, size))
        rows += starts_rows(person, client, size.of(STARTS))
        person.typed("annex", "shutdown", "bench")
        person.types("annex", "setup", "--stop")
    return rows


def compiled(target: Path) -> Path:
    """The anchor, where the nodes see it."""
    subprocess.run(["cc", "-O2", "-static", "-o", target, Path(__file__).with_name("anchor.c")], check=True)
    target.chmod(0o755)
    return target


def on_node(site: Site, anchor: Path, tasks: int) -> float:
    """The anchor's tasks a second, two at a time, on the annex's node."""
    script = 'a=$(date +%s%N); "$0" "$1" 2 /bin/true; b=$(date +%s%N); echo $((b - a))'
    took = site.on("researcher@c1", "sh", "-c", script, f"/scratch/{anchor.name}", str(tasks))
    return tasks / (int(took) / 1e9)


def bag(client: Client, count: int) -> float:
    """Tasks a second from accept to the end, each with its exit code on record."""
    tasks = {"grid": {"x": list(range(count))}, "template": ["/bin/true", "{x}"], "parts": 2}
    (offer,) = client.ask(bag=tasks, platform=PLATFORM, time="20m", memory="256MiB")
    begin = time.perf_counter()
    session = offer.accept().wait(1200)
    took = time.perf_counter() - begin
    codes = [json.loads(line)["code"] for line in session.result("tasks.jsonl").text().splitlines()]
    assert codes == [0] * count, f"{len(codes)} tasks have a code"
    session.delete()
    return count / took


def tasks_rows(pairs: list[tuple[float, float]], others: Mapping[str, float]) -> list[Row]:
    """What was measured of tasks."""
    ratio = statistics.median(ours / anchor for ours, anchor in pairs)
    rows = [
        Row("C, vfork and exec, two at a time", f"{statistics.median(anchor for _, anchor in pairs):.0f} tasks/s"),
        Row("a bag on an annex ÷ C", f"{ratio:.2f}", f"≥ {GOAL}", ratio >= GOAL),
    ]
    rows += [Row(f"{name} ÷ C", f"{share:.3f}") for name, share in others.items()]
    if "hyperqueue" in others:
        times = ratio / others["hyperqueue"]
        rows.append(Row("a bag on an annex ÷ HyperQueue", f"{times:.1f} ×", f"≥ {TWICE:.0f} ×", times >= TWICE))
    return rows


def peers(scratch: Path, anchor: Path, size: Size) -> dict[str, float]:
    """What others make of the same tasks on this machine, each ÷ the anchor right after it; those that can be had.

    A small run installs nobody else's packages.
    """
    tasks = size.of(TASKS)
    runs: dict[str, Callable[[], float]] = {"xargs": lambda: timed(tasks, ["xargs", "-n1", "-P2", "/bin/true"])}
    if size.is_whole and (parallel := debian(scratch)):
        runs["GNU parallel"] = lambda: timed(500, [*parallel, "-j2", "/bin/true"])
    for package, (program, count) in PEERS.items() if size.is_whole else ():
        if python := environment(scratch / package, package):
            runs[package] = partial(ask_peer, python, program, count, scratch)
    found = {}
    for name, measure in runs.items():
        rate = measure()
        begin = time.perf_counter()
        subprocess.run([anchor, str(tasks // 2), "2", "/bin/true"], check=True)
        found[name] = rate / (tasks // 2 / (time.perf_counter() - begin))
    return found


def timed(count: int, words: list[str]) -> float:
    """The rate of a program that reads a task a line."""
    lines = "".join(f"{number}\n" for number in range(count)).encode()
    begin = time.perf_counter()
    subprocess.run(words, input=lines, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return count / (time.perf_counter() - begin)


def ask_peer(python: Path, program: str, count: int, scratch: Path) -> float:
    """The rate that a program in an environment of its own says."""
    words: list[str | Path] = [
        python,
        Path(__file__).parent / "peers" / f"{program}.py",
        str(count),
        str(scratch / "runs"),
    ]
    path = {**os.environ, "PATH": f"{python.parent}:{os.environ['PATH']}", "PYTHONPATH": ""}
    done = subprocess.run(words, env=path, capture_output=True, text=True, check=True, cwd=scratch)
    return count / float(done.stdout.split()[-1])


def environment(place: Path, package: str) -> Path | None:
    """A Python with a package from PyPI; None where it can't be had."""
    uv = Path(sys.executable).parent / "uv"
    made = subprocess.run([uv, "venv", "--quiet", place])
    python = place / "bin/python"
    got = made.returncode or subprocess.run([uv, "pip", "install", "--quiet", "--python", python, package]).returncode
    return None if got else python


def debian(scratch: Path) -> list[str] | None:
    """GNU parallel, from Debian, unpacked; None where it can't be had."""
    if there := shutil.which("parallel"):
        return [there]
    if (
        shutil.which("apt-get")
        and subprocess.run(["apt-get", "download", "-qq", "parallel"], cwd=scratch).returncode == 0
    ):
        (package,) = scratch.glob("parallel_*.deb")
        subprocess.run(["dpkg", "-x", package, scratch / "debian"], check=True)
        return [str(scratch / "debian/usr/bin/parallel")]
    return None


def starts_rows(person: Person, client: Client, starts: int) -> list[Row]:
    """How soon a job runs on an annex that waits: a session from accept on, and a job from condor_submit on."""
    plain, ours = [], []
    with plain_jobs(person) as submit:
        for _ in range(starts):
            plain.append(submit())
            ours.append(session_start(person, client))
    by_hand, session = statistics.median(plain), statistics.median(ours)
    ratio = session / by_hand
    return [
        Row("condor_submit → running, by hand", f"{by_hand:.2f} s"),
        Row("accept → running", f"{session:.2f} s"),
        Row("÷ by hand", f"{ratio:.2f} ×", f"≤ {BESIDE} ×", ratio <= BESIDE),
    ]


def session_start(person: Person, client: Client) -> float:
    """The seconds from accept until HTCondor says that the session runs."""
    (offer,) = client.ask(run=["true"], platform=PLATFORM, time="1m", memory="64MiB")
    begin = time.time()
    session = offer.accept()
    seconds = until_running(person.kept("platforms", PLATFORM, "sessions", session.id, "log")) - begin
    session.wait(60).delete()
    return seconds


def until_running(log: Path) -> float:
    """When HTCondor's log of a job says that it runs."""
    deadline = time.time() + 60
    while not (log.exists() and "\n001 (" in log.read_text()):
        assert time.time() < deadline, f"{log} never said that the job runs"
        time.sleep(0.002)
    return time.time()


@contextmanager
def plain_jobs(person: Person) -> Iterator[Callable[[], float]]:
    """Submits a job by hand, from a shell that is there already; gives the seconds until it runs."""
    values = json.loads(person.kept("platforms", PLATFORM, "platform.json").read_text())
    told = {name: json.dumps(values[name]) for name in ("annex", "supplier")}
    shell = subprocess.Popen(
        person.words(f"CONDOR_CONFIG={values['configuration']}", "sh"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    )

    def submit() -> float:
        log = person.file(f"plain.{time.time_ns()}.log")
        person.file("plain.sub").write_text(DESCRIPTION.format(log=f"/home/{person.user}/{log.name}", **told))
        assert shell.stdin
        begin = time.time()
        shell.stdin.write("condor_submit -terse plain.sub\n")
        shell.stdin.flush()
        seconds = until_running(log) - begin
        person.site.wait(lambda: "\n005 (" in log.read_text())
        return seconds

    try:
        yield submit
    finally:
        shell.communicate()
