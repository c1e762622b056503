"""A session inside its virtual machine: laid out, run, watched, and its results written to the console.

Nothing can be called from here, and the service can't connect unless there is a door (`door.py`); Nova can press the
power button. So the program is stopped by that, by an order through the door, or at the machine's own limit, and its
results are written before the machine goes off. Pieces on the console, each sealed:

    began           when the program was started        beat:N          a heartbeat, every few seconds
    stdout:AT:SIZE  its output (stderr likewise)        end             how it ended, and how much it left
    door            how the service gets in by ssh      listens         that the program takes connections
    left:N          parts of an archive of the results; repeated until they are read and the machine is deleted
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import resource
import signal
import subprocess
import tarfile
import time
from typing import Any

from sublet.platforms.openstack.guest.button import PowerButton
from sublet.platforms.openstack.guest.console import SealedConsole
from sublet.platforms.openstack.guest.door import (
    DOOR,
    DOOR_USER,
    PORT,
    NoDoor,
    add_ranges,
    add_user,
    is_listening,
    is_stopped,
    open_door,
    write_text,
)

ROOT = "/var/lib/sublet/session"
RUNTIME = "/run/sublet"  # for sockets, whose paths must be short
USER = 64123  # the user of the program
PODMAN = """[engine]
  cgroup_manager = "cgroupfs"
[network]
  network_config_dir = "{own}/networks"
"""  # it has no systemd session, and would complain on each call; its default for networks is below HOME
PIECE = 6000  # bytes of a piece
BURST = 8  # pieces written at once: with all else less than the 100 KiB that Nova shows
PAUSE, LATER = 2.0, 15.0  # seconds between bursts; later, if one burst is all
SOON = 60.0  # seconds
STOPPED = 20.0  # seconds that the results are shown when Nova wants the machine off
BEAT = 5.0
LIVE = 12000  # bytes of output written at once while it runs
TICK = 0.2
REMEMBERED = 6  # beats after which important pieces are repeated
BY_DOOR = 4 << 20  # bytes: a larger archive is not written to the console if there is a door
STREAMS = ("stdout", "stderr")


def run(secret: bytes, content: bytes, console: str) -> None:
    """Run one session, from its start to the machine's end."""
    size = int.from_bytes(content[:4], "big")
    job, archive = json.loads(content[4 : 4 + size]), content[4 + size :]
    line = SealedConsole(secret, console)
    protect()
    try:
        session = RunningSession(job, line)
        end = session.run(archive)
    except Exception as error:
        end = {"unstarted": repr(error)[:300]}
    write_left(line, end, job)
    line.drain()
    go_off()


class RunningSession:
    """The program and its state."""

    def __init__(self, job: dict[str, Any], line: SealedConsole) -> None:
        """Set up; nothing is laid out yet."""
        self.job, self.line = job, line
        self.sent = dict.fromkeys(STREAMS, 0)
        self.beats = 0
        self.next_beat = 0.0
        self.button = PowerButton()
        self.warned = False
        self.known: dict[str, Any] = {}  # pieces that are repeated now and then

    def run(self, archive: bytes) -> dict[str, Any]:
        """Lay the session out, run it, and return how it ended."""
        if self.job["door"]:
            try:
                self.tell_always("door", open_door(self.job["door"]))
            except NoDoor as error:
                if self.job["awaits"] or self.job["connects"]:
                    return {"unstarted": str(error)}
        if self.job["awaits"] and not self.wait_for_files():
            return {"unstarted": "its files did not come"}
        lay_out(self.job, archive)
        before = count_killed()
        began = time.time()
        clock = time.monotonic()
        try:
            child = self.start(began)
        except OSError as error:
            return {"unstarted": f"{self.job['argv'][0]}: {error.strerror or error}"}
        self.line.tell("began", {"at": began})
        why = self.watch(child, clock)
        left_over = find_processes()
        if left_over:
            stop_all(0 if not why else float(self.job["grace"]))
        self.send_output()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return {
            "code": child.returncode,
            "why": why,
            "killed": count_killed() - before,
            "wall": time.monotonic() - clock,
            "cpu": used.ru_utime + used.ru_stime,
            "peak": used.ru_maxrss * 1024,
        }

    def tell_always(self, label: str, value: object) -> None:
        """Write a piece now, and repeat it from time to time."""
        self.known[label] = value
        self.line.tell(label, value)

    def wait_for_files(self) -> bool:
        """Wait for the session's files; return whether they came."""
        over = time.monotonic() + self.job["keep"]
        while not os.path.exists(DOOR + "/in"):
            self.beat()
            if self.button.wait(TICK) or is_stopped() or time.monotonic() > over:
                return False
        return True

    def start(self, began: float) -> subprocess.Popen[bytes]:
        """Start the program as its own user."""
        until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began + self.job["seconds"]))
        own = {
            "PATH": os.environ.get("PATH", "/usr/local/bin:/usr/bin:/bin"),
            "HOME": ROOT + "/work",
            "TMPDIR": os.path.join(ROOT, "tmp"),
            "XDG_DATA_HOME": ROOT + "/own/data",  # Podman's images and other non-results
            "XDG_CACHE_HOME": ROOT + "/own/cache",
            "XDG_CONFIG_HOME": ROOT + "/own/config",
            "XDG_RUNTIME_DIR": RUNTIME,
            "USER": "sublet",
            "LANG": "C.UTF-8",
            "PYTHONUNBUFFERED": "1",
            "SUBLET_SESSION": self.job["session"],
            "SUBLET_DATA": ROOT + "/data",
            "SUBLET_WARNING": ROOT + "/warning",
            "SUBLET_UNTIL": until,
        }
        if self.job["connects"]:
            own.update({"SUBLET_HOST": "127.0.0.1", "SUBLET_PORT": str(PORT)})
        with open(ROOT + "/stdout", "wb") as out, open(ROOT + "/stderr", "wb") as err:
            return subprocess.Popen(
                self.job["argv"],
                cwd=ROOT + "/work",
                env={**own, **self.job["environment"]},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                preexec_fn=become_user,
            )

    def watch(self, child: subprocess.Popen[bytes], clock: float) -> str:
        """Wait for the program's end; return why it was stopped, if it was."""
        limit = clock + self.job["seconds"] + self.job["spare"]
        while child.poll() is None:
            self.send_output()
            self.beat()
            self.warn(clock)
            if self.button.wait(TICK) or is_stopped():
                why = "button"
            elif time.monotonic() > limit:
                why = "time"
            else:
                continue
            stop_all(float(self.job["grace"]))
            child.wait()
            return why
        return ""

    def warn(self, clock: float) -> None:
        """Warn the program once that its time is nearly over."""
        left = clock + self.job["seconds"] - time.monotonic()
        if self.job["warn"] and not self.warned and left <= self.job["warn"]:
            self.warned = True
            with open(ROOT + "/warning", "w") as file:
                file.write(time.strftime("%Y-%m-%dT%H:%M:%SZ\n", time.gmtime(time.time() + left)))

    def beat(self) -> None:
        """Send a heartbeat now and then."""
        if time.monotonic() >= self.next_beat:
            self.beats += 1
            self.next_beat = time.monotonic() + BEAT
            self.line.tell(f"beat:{self.beats}", {"at": time.time()})
            if self.job["connects"] and "listens" not in self.known and is_listening():
                self.tell_always("listens", {"port": PORT})
            if self.beats % REMEMBERED == 0:
                for label, value in self.known.items():
                    self.line.tell(label, value)

    def send_output(self) -> None:
        """Write new output; large amounts come only with the results."""
        for stream in STREAMS:
            with open(ROOT + "/" + stream, "rb") as file:
                file.seek(self.sent[stream])
                content = file.read(LIVE)
            for start in range(0, len(content), PIECE):
                piece = content[start : start + PIECE]
                self.line.write(f"{stream}:{self.sent[stream]}:{len(piece)}", piece)
                self.sent[stream] += len(piece)


def protect() -> None:
    """Protect this process from the OOM killer, and keep kernel messages off the console."""
    for path, value in (("/proc/self/oom_score_adj", "-1000"), ("/proc/sys/kernel/printk", "1 4 1 1")):
        try:
            with open(path, "w") as file:
                file.write(value)
        except OSError:
            continue


def become_user() -> None:
    """Drop privileges before the program is executed."""
    os.setsid()
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("0")
    os.setgroups([])
    os.setgid(USER)
    os.setuid(USER)


def lay_out(job: dict[str, Any], archive: bytes) -> None:
    """Create the session's directory with its files, owned by the program's user."""
    add_user("sublet", USER, ROOT + "/work")
    add_ranges("sublet")
    for name in ("work", "data", "tmp", "storage", "own"):
        os.makedirs(ROOT + "/" + name, mode=0o755, exist_ok=True)
    given = {"name": DOOR + "/in"} if job["awaits"] else {"fileobj": io.BytesIO(archive)}
    with tarfile.open(mode="r:gz", **given) as opened:
        opened.extractall(ROOT)  # noqa: S202 (the service packed it, and sealed it)
    if job["awaits"]:
        os.unlink(DOOR + "/in")
    os.makedirs(ROOT + "/own/config/containers", exist_ok=True)
    write_text(ROOT + "/own/config/containers/containers.conf", PODMAN.format(own=ROOT + "/own"))
    for folder, folders, files in os.walk(ROOT):
        for name in (*folders, *files):
            os.lchown(os.path.join(folder, name), USER, USER)
    os.makedirs(RUNTIME, mode=0o700, exist_ok=True)
    os.chown(RUNTIME, USER, USER)
    os.chown(ROOT, 0, USER)
    os.chmod(ROOT, 0o1775)  # noqa: S103 (a kind's program says there why it did not begin; root's files stay root's)
    for source, target, is_read_only in job["links"]:
        link(ROOT + "/" + source, ROOT + "/work/" + target, is_read_only)


def link(source: str, target: str, is_read_only: bool) -> None:
    """Link a part of the session's directory below the working directory."""
    if not os.path.exists(source):
        os.makedirs(source)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.isdir(target) and not os.path.islink(target):
        os.rmdir(target)
    if not os.path.islink(target):
        os.symlink(source, target)
    if is_read_only:
        subprocess.run(["chmod", "-R", "a-w", source], check=False)
        subprocess.run(["chown", "-R", "0:0", source], check=False)
    else:
        os.chown(source, USER, USER)


def find_processes() -> list[int]:
    """Return all processes of the program's user."""
    there = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open("/proc/" + entry + "/status") as file:
                    status = file.read()
            except OSError:
                continue
            if f"\nUid:\t{USER}\t" in status and "\nState:\tZ" not in status:
                there.append(int(entry))
    return there


def send_all(number: int) -> None:
    """Signal all processes of the program."""
    for pid in find_processes():
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def stop_all(grace: float) -> None:
    """Stop all processes: TERM first, then KILL."""
    send_all(signal.SIGTERM)
    send_all(signal.SIGCONT)
    over = time.monotonic() + grace
    while find_processes() and time.monotonic() < over:
        time.sleep(0.1)
    while find_processes():
        send_all(signal.SIGKILL)
        time.sleep(0.05)


def count_killed() -> int:
    """Return how many processes the kernel killed for lack of memory."""
    with open("/proc/vmstat") as file:
        for row in file:
            name, number = row.split()
            if name == "oom_kill":
                return int(number)
    return 0


def pack(target: str) -> str:
    """Pack the results, without links, into an archive; return its digest."""
    packed = gzip.GzipFile(target, mode="wb", compresslevel=6, mtime=0)
    with packed, tarfile.open(fileobj=packed, mode="w|", format=tarfile.GNU_FORMAT) as archive:
        for name in (*STREAMS, "unstarted", "detail", "work"):
            if os.path.exists(ROOT + "/" + name):
                archive.add(ROOT + "/" + name, name, filter=keep_plain)
    digest = hashlib.sha256()
    with open(target, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def keep_plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Keep only files and folders."""
    return entry if entry.isreg() or entry.isdir() or entry.islnk() else None


def write_left(line: SealedConsole, end: dict[str, Any], job: dict[str, Any]) -> None:
    """Write the results again and again until the machine is deleted: once it is off, Nova shows no console.

    A large archive is not written if the service can fetch it. If Nova is turning the machine off, this is short.
    """
    has_door = os.path.isdir(DOOR)
    target = DOOR + "/left" if has_door else ROOT + "/left"
    os.makedirs(ROOT, exist_ok=True)
    digest = pack(target)
    if has_door:
        os.chown(target, DOOR_USER, DOOR_USER)
    size = os.path.getsize(target)
    count = 0 if has_door and size > BY_DOOR else -(-size // PIECE)
    end = {**end, "pieces": count, "size": size, "digest": digest, "fetched": has_door}
    began = time.monotonic()
    is_hurried = end.get("why") == "button" and not is_stopped()
    over = began + (STOPPED if is_hurried else float(job["keep"]))
    with open(target, "rb") as file:
        while time.monotonic() < over:
            for start in range(0, max(1, count), BURST):
                for number in range(start, min(count, start + BURST)):
                    file.seek(number * PIECE)
                    line.write(f"left:{number}", file.read(PIECE))
                line.tell("end", end)
                is_new = count > BURST or time.monotonic() - began < SOON
                time.sleep(PAUSE if is_new else LATER)


def go_off() -> None:
    """Turn the machine off."""
    os.sync()
    for words in (["poweroff"], ["poweroff", "-f"]):
        subprocess.run(words, check=False)
        time.sleep(20)
