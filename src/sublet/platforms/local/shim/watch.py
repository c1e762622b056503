"""Supervises one job, from its start to the record of its end."""

from __future__ import annotations

import json
import os
import resource
import signal
import time
from typing import Any

from . import cgroups, clocks, energy, listeners, scratch
from .child import PR_SET_CHILD_SUBREAPER, WITHIN_GROUP, WITHOUT_GROUP, VolumesFailed, become, prctl
from .faults import point
from .outputs import FULL, NO_MEMORY, Outputs
from .processes import descendants, proportional, resident, send, still
from .shortage import patiently

TICK, CLOSE_TICK, STOP_TICK = (
    0.5,
    0.1,
    0.02,
)  # seconds between checks: usual; close to a limit or before it listens; while it stops
STILL_TRIES = 100  # for what the kernel itself delays; it is tried again at the next check
LEFT_BEHIND = 1.0  # seconds for processes that the main process left running
END_SIZE = 4096  # bytes reserved for the end's record
REFRESH = 3600.0  # seconds after which the short path to its temporary files is touched
NO_VOLUMES = "volumes: "  # the child's message starts with this if the volumes failed
UNSTARTED = ("staging-failed", "not-started")  # what a kind's own runner may report in the file `unstarted`
SIGNALS = {signal.SIGCHLD, signal.SIGUSR1, signal.SIGUSR2, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}


def read(name: str) -> str:
    """Read a small file of the session directory; empty if it doesn't exist."""

    def read_it() -> str:
        with open(name, encoding="utf-8") as file:
            return file.read()

    try:
        return patiently(read_it)
    except OSError:
        return ""


def place(name: str, text: str) -> bool:
    """Write a small file atomically; return False on a full disk, which must not end the job."""
    try:
        with open(f"{name}.new", "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(f"{name}.new", name)
    except OSError:
        return False
    return True


def words_of(text: str) -> str:
    """Decode a JSON string; return other text as it is."""
    try:
        return str(json.loads(text))
    except ValueError:
        return text.strip()


def amount(size: int) -> str:
    """Format a number of bytes for people."""
    power = min(3, max(0, (size.bit_length() - 1) // 10))
    return f"{size / (1 << 10 * power):.4g} {('bytes', 'KiB', 'MiB', 'GiB')[power]}"


class Watch:
    """The supervisor of one job."""

    def __init__(self, began: float) -> None:
        """Read the job from the current directory; `began` is its start on the steady clock."""
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        self.job: dict[str, Any] = json.loads(read("job.json"))
        self.began = began
        self.main = 0  # the pid of the main process
        self.status: int | None = None  # how it ended, as returned by wait
        self.ending: dict[str, Any] = {}  # why the shim stops it, if it does
        self.notes: list[str] = []
        self.kill_at: float | None = None
        self.stuck = False  # one of its processes can't be killed
        self.warned = False
        self.paused = ""  # the pause order that was obeyed
        self.pauses = 0  # how many orders were obeyed: each one is news
        self.peak, self.energy = 0, energy.EnergyMeter(self.job.get("powercap", ""))
        self.port = 0
        self.opened = not self.job["connects"]
        self.scratch = self.job["scratch"]  # the short path, and the directory that it leads to
        self.refresh_at = began + REFRESH
        self.outputs = Outputs(self.job["output_limit"])
        self.group: cgroups.ControlGroup | None = None
        self.set_until(self.job["until"], self.job["clock"])

    def set_until(self, until: float, offset: float) -> None:
        """Set the times of the warning, of SIGTERM and of the end, on the steady clock, so that nothing shifts them."""
        self.until = until
        self.deadline = until - offset
        whole = max(0.0, self.deadline - self.began)
        self.warn_at = self.deadline - min(self.job["warn"], whole / 2)
        self.term_at = self.deadline - min(self.job["grace"], whole / 4)

    def run(self) -> None:
        """Run the job from its start to its end."""
        try:
            if self.may_start() and self.start():
                while not self.stuck and (self.status is None or self.rest()):
                    self.turn()
            end = self.ending or self.own_end()
        except OSError as error:
            end = {"kind": "unknown" if self.main else "not-started", "detail": f"the shim failed: {error}"}
        finally:
            self.kill_all()
        self.tell(end)

    def may_start(self) -> bool:
        """Whether the job is neither cancelled nor too late already."""
        self.orders()
        if not self.ending and clocks.steady() >= self.deadline:
            self.ending = {"kind": "window-passed", "detail": "its time was over before it could start"}
        return not self.ending

    def start(self) -> bool:
        """Start the main process; if that fails, return False and keep the reason."""
        if self.job["cgroups"]:
            sizes = self.job["memory"], self.job["processes"], len(self.job["cores"])
            self.group = cgroups.make(f"sublet-{self.job['key']}", *sizes)
        if self.group:
            place("ran/group", "\n".join(self.group.folders))  # so that the service can clean up if we are killed
        if self.job["connects"]:
            self.port = listeners.free_port()
        complaint = self.spawn("bind")
        if complaint.startswith(NO_VOLUMES):
            self.notes.append(f"its volumes were links, not mounts: {complaint.removeprefix(NO_VOLUMES)}")
            complaint = self.spawn("link")
        if complaint:
            full = any(words.decode() in complaint for words in FULL)
            self.ending = {"kind": "disk-full" if full else "not-started", "detail": complaint.removeprefix(NO_VOLUMES)}
        return not complaint

    def spawn(self, volumes: str) -> str:
        """Fork and exec the program; return the system's error message, or an empty string."""
        environment = dict(self.job["environment"])
        if self.port:
            environment["SUBLET_PORT"] = str(self.port)
        go_read, go_write = patiently(os.pipe, self.deadline)
        said_read, said_write = patiently(os.pipe, self.deadline)  # both close on exec: end of file means that it runs
        pid = patiently(os.fork, self.deadline)
        if not pid:
            os.close(go_write)
            try:
                become(self.job, environment, self.outputs.appended, go_read, volumes)
            except VolumesFailed as error:
                os.write(said_write, f"{NO_VOLUMES}{error}".encode()[:2000])
            except OSError as error:
                os.write(said_write, f"{self.job['argv'][0]}: {error.strerror}".encode()[:2000])
            except ValueError as error:
                os.write(said_write, str(error).encode()[:2000])
            os._exit(127)
        os.close(go_read)
        os.close(said_write)
        point("shim.starting")
        begun = patiently(lambda: os.open("ran/begun", os.O_CREAT | os.O_WRONLY, 0o600))
        os.close(begun)  # without it, the program never ran
        os.write(go_write, WITHIN_GROUP if self.join(pid) else WITHOUT_GROUP)
        os.close(go_write)
        with os.fdopen(said_read, "rb") as file:
            complaint = file.read().decode(errors="replace")
        if complaint:
            os.waitpid(pid, 0)
        else:
            self.main = pid
            point("shim.started")
        return complaint

    def join(self, pid: int) -> bool:
        """Put the main process into its cgroup, and return whether there is one."""
        if self.group is None:
            return False
        try:
            self.group.add(pid)
        except OSError:
            self.group.remove()
            self.group = None
        return self.group is not None

    def turn(self) -> None:
        """Wait for an event, and handle it."""
        stopping = self.kill_at is not None
        close = not self.opened or (self.group is None and 2 * self.peak > self.job["memory"])
        got = signal.sigtimedwait(SIGNALS, STOP_TICK if stopping else self.pause(CLOSE_TICK if close else TICK))
        self.reap()
        if got and got.si_signo == signal.SIGTERM and not self.ending:
            self.stop({"kind": "node-lost", "detail": "the shim was told to stop, as when the machine shuts down"})
        if got and got.si_signo == signal.SIGUSR2 and not self.ending:
            self.stop({"kind": "cancelled"})
        if self.status is None and not self.ending:
            self.orders()
            self.clock()
            self.look()
        elif self.kill_at is None and (rest := self.rest()):
            left = (
                "a process that it left running was"
                if len(rest) == 1
                else f"{len(rest)} processes that it left running were"
            )
            self.notes.append(f"{left} stopped")
            self.stop({}, LEFT_BEHIND)
        if self.kill_at is not None and clocks.steady() >= self.kill_at:
            self.kill_all()

    def pause(self, tick: float) -> float:
        """Return how long to wait: until the next check, or the next time to warn or stop."""
        moment = self.term_at if self.warned else min(self.warn_at, self.term_at)
        return float(max(0.0, min(tick, moment - clocks.steady())))

    def reap(self) -> None:
        """Reap dead processes, and remember how the main process ended."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            if pid == self.main:
                self.status = status

    def rest(self) -> list[int]:
        """Return the living processes of the job."""
        return patiently(lambda: descendants(os.getpid()))

    def orders(self) -> None:
        """Obey the files `cancel`, `until` and `pause`."""
        by = read("cancel")
        if by and not self.ending:
            self.stop({"kind": "cancelled", "by": by})
        until = read("until")
        if until and float(until) != self.until:
            self.set_until(float(until), clocks.offset())
            self.warned = False
            place("warning", "")
        self.obey_pause(read("pause"))

    def obey_pause(self, order: str) -> None:
        """Pause or resume all processes, and confirm that."""
        if order and not self.ending:
            self.freeze()
        elif self.paused:
            send(self.rest(), signal.SIGCONT)
        if order != self.paused:
            self.paused = order
            place("paused", order)
            self.pauses += 1
            self.mark(f"pause-{self.pauses}")

    def freeze(self) -> None:
        """Send SIGSTOP until nothing runs, as the job may have started new processes meanwhile."""
        for _ in range(STILL_TRIES):
            moving = patiently(lambda: [pid for pid in self.rest() if not still(pid)])
            if not moving:
                return
            send(moving, signal.SIGSTOP)
            time.sleep(0.002)

    def clock(self) -> None:
        """Warn before the end of the job's time, and stop it at the end."""
        now = clocks.steady()
        end = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.deadline + clocks.offset()))
        if now >= self.term_at and not self.ending:
            self.outputs.say(f"the booked time ends at {self.local_end()}: stopping")
            self.stop({"kind": "timeout", "detail": f"it was booked until {end}"}, self.deadline - now)
        elif now >= self.warn_at and not self.warned:
            self.warned = True
            self.outputs.say(f"this session ends at {self.local_end()}")
            place("warning", end)

    def local_end(self) -> str:
        """Return when the job's time ends, in this machine's time zone, for the readers of its output."""
        return time.strftime("%H:%M:%S %Z on %Y-%m-%d", time.localtime(self.deadline + clocks.offset()))

    def look(self) -> None:
        """Check the job's memory, output, connector and temporary files."""
        self.outputs.look()
        self.energy.look()
        if clocks.steady() >= self.refresh_at:
            self.refresh_at = clocks.steady() + REFRESH
            scratch.refresh(*self.scratch)
        if self.group:
            self.peak = max(self.peak, self.group.resident())
        else:
            self.watch_memory()
        if not self.opened and (where := listeners.location(self.port, self.job["socket"])):
            self.opened = place("connector", where)
            self.mark("open")

    def watch_memory(self) -> None:
        """Without a cgroup, measure the memory of all processes together, and stop the job if they use too much."""
        rest = self.rest()
        used = resident(rest)
        if used > self.job["memory"]:
            used = proportional(rest)
        self.peak = max(self.peak, used)
        if used > self.job["memory"]:
            self.stop(
                {"kind": "out-of-memory", "detail": f"it had {amount(self.job['memory'])} and used {amount(used)}"}, 0
            )

    def stop(self, ending: dict[str, Any], grace: float | None = None) -> None:
        """Send SIGTERM to all processes, and schedule SIGKILL after the grace period."""
        self.ending = ending
        rest = self.rest()
        send(rest, signal.SIGTERM)
        send(rest, signal.SIGCONT)
        self.kill_at = clocks.steady() + (self.job["grace"] if grace is None else grace)

    def kill_all(self) -> None:
        """Send SIGKILL until no process is left; one that the kernel holds is named, not waited for."""
        deadline = time.monotonic() + 5
        send(self.rest(), signal.SIGKILL)  # before it exits with a misleading error
        if self.group:
            self.group.close()
        while rest := self.rest() + (self.group.pids() if self.group else []):
            send(rest, signal.SIGKILL)
            self.reap()
            if time.monotonic() > deadline:
                self.notes += () if self.stuck else (f"these processes could not be stopped: {rest}",)
                self.stuck = True
                break
            time.sleep(0.002)
        self.reap()

    def own_end(self) -> dict[str, Any]:
        """Return how the job ended by itself."""
        assert self.status is not None  # noqa: S101 (own_end is asked only after the main process ended)
        code = os.waitstatus_to_exitcode(self.status)
        kind, _, why = read("unstarted").partition("\n")
        if kind in UNSTARTED:
            return {"kind": kind, "detail": words_of(why)}
        killed = self.group.count_killed() if self.group else 0
        if killed and code:
            return {"kind": "out-of-memory", "detail": f"it had {amount(self.job['memory'])}"}
        if code and self.group is None and (words := self.outputs.last_words(NO_MEMORY)):
            return {"kind": "out-of-memory", "detail": f"it had {amount(self.job['memory'])}, and {words}"}
        if killed:
            self.notes.append(f"{killed} of its processes were stopped for lack of memory")
        if code < 0:
            return {"kind": "signalled"}
        if code and (words := self.outputs.last_words(FULL)):
            return {"kind": "disk-full", "detail": f"it exited with {code}, and {words}"}
        if code and self.outputs.is_disk_full():
            self.notes.append("the disk was full when it ended")
        return {"kind": "exited", "detail": words_of(read("detail"))}

    def tell(self, end: dict[str, Any]) -> None:
        """Record the end, remove the cgroup, and notify the service."""
        point("shim.ending")
        self.outputs.look()
        if self.group and self.group.count_refused():
            self.notes.append(f"it had more than {self.job['processes']} processes, and no more could be started")
        if self.status is not None:
            code = os.waitstatus_to_exitcode(self.status)
            end["code" if code >= 0 else "signal"] = abs(code)
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        now, wall_time = clocks.wall(), clocks.steady() - self.began
        if self.outputs.cut:
            self.notes.append(f"what it printed beyond {amount(self.job['output_limit'])} was dropped")
        end["detail"] = "; ".join(part for part in (end.get("detail", ""), *self.notes) if part)[:2000]
        end["started"], end["ended"] = now - wall_time, now
        end["usage"] = {
            "wall": wall_time,
            "cpu": spent.ru_utime + spent.ru_stime,
            "peak_memory": max(self.peak, spent.ru_maxrss * 1024),
            **self.energy.share(spent.ru_utime + spent.ru_stime),
        }
        if self.group:
            self.group.remove()
        scratch.remove_link(*self.scratch)
        with patiently(lambda: open("end.json.room", "r+", encoding="utf-8")) as file:
            file.write(json.dumps(end).ljust(END_SIZE))
            file.flush()
            os.fsync(file.fileno())
        os.rename("end.json.room", "end.json")
        point("shim.told")
        self.mark("ended")
        scratch.remove_files(self.scratch[1])  # it may take long, and nobody waits for it

    def mark(self, what: str) -> None:
        """Leave a mark where the service looks for news; for the end, the running mark itself is moved."""
        target = os.path.join(self.job["news"], f"{self.job['key']}.{what}")
        try:
            if what == "ended":
                os.rename(self.job["running"], target)
            else:
                os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
        except OSError:
            return  # the service also checks by itself, only less often
