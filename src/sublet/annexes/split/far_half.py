"""The far half of a pilot, on one node: takes attempts from the spool and runs each with a stock condor_starter.

It sees only the spool and its own node's disk, and starts in its own directory on that disk. It doesn't rely on
synchronised clocks, locks or notifications: it polls, and takes files by rename.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import tarfile
import threading
import time
from typing import Any

from sublet.annexes.split.far_ads import has_exit
from sublet.annexes.split.far_attempts import AGAIN, FarAttempt, FarResult, WaitingAttempt
from sublet.annexes.split.far_kept import heed_notes, unpack
from sublet.annexes.split.far_programs import NotStartable
from sublet.annexes.split.far_results import list_sandbox, pack_outputs, put_words, say, wants_outputs_when_evicted
from sublet.annexes.split.far_starting import NO_RESULT, describe_image_failure, show_ads, start
from sublet.annexes.split.spool_files import (
    GENTLY,
    forget,
    forget_pulses,
    is_scarce,
    names,
    pulse,
    pulses,
    read,
    write_at,
)

LIVE = 1 << 20  # bytes of each stream that are shown while the job runs
STREAMS = (("out", "_condor_stdout"), ("err", "_condor_stderr"))
KEPT = 900.0  # seconds for which delivery is retried; then the job is reported as failed, with the reason
ROOM = 60.0  # seconds that an attempt waits for room on this node; then it is reported as not started
TRIES = 3  # failed starts in a row after which this node takes no more attempts


class FarHalf:
    """The far half on one node of a lease."""

    def __init__(self, settings: dict[str, Any]) -> None:
        """Use the settings that the near side sent."""
        self.spool, self.node, self.home = settings["spool"], str(settings["node"]), os.getcwd()
        self.settings = settings
        self.attempts: dict[str, FarAttempt] = {}
        self.results: dict[str, FarResult] = {}  # not delivered yet
        self.waiting: dict[str, WaitingAttempt] = {}
        self.taking: list[str] = []
        self.begun: set[str] = set()  # names are unique: an attempt that comes again isn't run again
        self.ending = ""
        self.ended = threading.Event()
        self.count = 0
        self.failures = 0
        self.epoch = self._new_epoch()
        self.pulsing = False  # whether the spool had no room for the last heartbeat
        self.lease: str | None = None
        self.pulsed: list[str] = []
        self.leased = time.monotonic()
        self.looked = 0.0
        self.over = time.monotonic() + settings["life"]

    def path(self, *names: str) -> str:
        """Return a path in the spool."""
        return os.path.join(self.spool, *names)

    def run(self) -> None:
        """Run attempts until the node is told to end, or has to."""
        signal.signal(signal.SIGTERM, lambda number, frame: self._end("the site stopped it"))
        say("begins as " + self.epoch)
        heart = threading.Thread(target=self._keep_beating, daemon=True)
        heart.start()
        while True:
            self._look()
            self._take()
            self._collect()
            self._deliver_again()
            if self.ending and not self.attempts:
                break
            time.sleep(self.settings["poll"])
        self.ended.set()
        heart.join()
        forget(self.path("alive", self.node))
        self._forget_pulses()
        say("ends: " + self.ending)

    # Heartbeats, and orders of the near side

    def _keep_beating(self) -> None:
        """Send heartbeats, also while a large sandbox is packed or unpacked, which may take minutes."""
        self._beat()
        while not self.ended.wait(1):
            self._beat()

    def _beat(self) -> None:
        self.count += 1
        beat = {
            "epoch": self.epoch,
            "count": self.count,
            "node": os.uname().nodename,
            "runs": sorted({*self._list_given(), *self.taking, *self.attempts, *self.results}),  # in this order
        }
        beat["facts"] = dict(self.settings["facts"], left=str(int(self.over - time.monotonic())))
        if self.ending:
            beat["ending"] = self.ending
        if self._write("alive/" + self.node, json.dumps(beat).encode()):
            self._forget_pulses()
        else:
            self.pulsing = True
            pulse(self.path("alive"), self.node, str(self.count).zfill(9))

    def _look(self) -> None:
        """Check once a second for orders of the near side."""
        if time.monotonic() - self.looked < 1:
            return
        self.looked = time.monotonic()
        self._look_at_lease()
        if os.path.exists(self.path("fence", self.epoch)):
            self._void("it had been given up", self._names())
            self.epoch = self._new_epoch()
            say("goes on as " + self.epoch)
        self._look_at_kills()
        self._look_at_time()
        for attempt in self.attempts.values():
            self._show(attempt)

    def _look_at_kills(self) -> None:
        kills = set(names(self.path("kill")))
        self._void("it is to be stopped", [name for name in self._names() if name in kills])
        for name, attempt in self.attempts.items():
            if name + GENTLY in kills and not attempt.ending and not attempt.void:
                attempt.ending = True
                say("asks " + name + " to end")
                attempt.starter.send_signal(signal.SIGTERM)  # it sends the job its own signal, and waits

    def _forget_pulses(self) -> None:
        if self.pulsing:
            forget_pulses(self.path("alive"), self.node)
            self.pulsing = False

    def _names(self) -> list[str]:
        """Return the names of all attempts that run or have undelivered results."""
        return sorted({*self.attempts, *self.results})

    def _look_at_lease(self) -> None:
        lease = read(self.path("lease"))
        pulsed = pulses(self.spool, "lease") if lease in (self.lease, None) else []
        if (lease is not None and lease != self.lease) or (pulsed and pulsed != self.pulsed):
            self.lease, self.pulsed, self.leased = lease, pulsed, time.monotonic()
        if (self.attempts or self.results) and time.monotonic() - self.leased > self.settings["lease"]:
            self._void("the near side has been silent for too long", self._names())

    def _look_at_time(self) -> None:
        reasons = [
            (os.path.exists(self.path("stop", self.node)), "it was shut down"),
            (time.monotonic() > self.over, "its lifetime is over"),
            (not os.path.isdir(self.spool), "its spool is gone"),
            (self.failures >= TRIES and not self._names(), "jobs could not be started here"),
        ]
        for holds, why in reasons:
            if holds and not self.ending:
                self._end(why)

    def _end(self, why: str) -> None:
        self.ending = self.ending or why
        self._void(why, self._names())

    def _void(self, why: str, given_up: list[str]) -> None:
        """Stop these attempts; their results won't be delivered."""
        for name in given_up:
            if name in self.results:
                self._discard(self.results.pop(name))
                continue
            attempt = self.attempts[name]
            if not attempt.void:
                attempt.void = True
                say("stops " + name + ": " + why)
                attempt.starter.send_signal(signal.SIGQUIT)

    def _discard(self, result: FarResult) -> None:
        """Discard a result that is no longer wanted."""
        say("gives up the result of " + result.name)
        self._write("out/" + result.name + ".off", b"")
        shutil.rmtree(result.directory, ignore_errors=True)

    def _new_epoch(self) -> str:
        return "{}.{}.{}".format(self.settings["lease_id"], self.node, os.urandom(4).hex())

    def _write(self, name: str, content: bytes) -> bool:
        part = self.path("tmp", "f." + self.node + "." + name.replace("/", "_"))
        try:
            with open(part, "wb") as file:
                file.write(content)
            os.rename(part, self.path(name))
        except OSError as error:
            forget(part)
            say("can't write " + name + ": " + str(error))
            return False
        return True

    # Attempts

    def _list_given(self) -> list[str]:
        """List the attempts in the spool for this node."""
        return [name[:-4] for name in sorted(names(self.path("in", self.node))) if name.endswith(".tar")]

    def _take(self) -> None:
        for name in self._list_given():
            if self.ending:
                return
            given, waits = self.path("in", self.node, name + ".tar"), self.waiting.get(name)
            if name in self.begun:
                forget(given)
            elif self._is_to_stop(name) and forget(given):
                self.waiting.pop(name, None)
                self._write("out/" + name + ".off", b"")
            elif waits is None or time.monotonic() >= waits.again:
                self.taking = [name]
                self._start(name, given)
                self.taking = []

    def _is_to_stop(self, name: str) -> bool:
        return any(os.path.exists(self.path("kill", name + end)) for end in ("", GENTLY))

    def _start(self, name: str, given: str) -> None:
        """Start an attempt, unless it was already taken; if there is no room here, put it back and retry later."""
        archive, directory = self.path("tmp", "taken." + name + ".tar"), os.path.join(self.home, "jobs", name)
        try:
            os.rename(given, archive)
        except OSError:
            return
        try:
            os.makedirs(directory)
            with tarfile.open(archive, "r|") as tar:
                unpack(tar, directory)
            heed_notes(directory + "/sandbox", self.settings.get("kept", ""))
            show_ads(directory)
            seen = list_sandbox(directory + "/sandbox")
            self.attempts[name] = FarAttempt(name, directory, start(self.home, directory, self.settings), seen)
            self._void(self.ending, [name] if self.ending else [])  # the node may have been told to end meanwhile
        except Exception as error:
            say("can't start " + name + ": " + repr(error))
            shutil.rmtree(directory, ignore_errors=True)
            if self._waits(name, error) and self._put_back(archive, given):
                return
            result = FarResult(name, directory, str(error), {})
            result.unsent = str(error) if isinstance(error, NotStartable) else ""
            self._send_home(result)
        self.begun.add(name)
        self.waiting.pop(name, None)
        forget(archive)

    def _waits(self, name: str, error: Exception) -> bool:
        """Whether the attempt should wait, since there may be room for it later."""
        if not is_scarce(error):
            return False
        waiting = self.waiting.setdefault(name, WaitingAttempt())
        waited = time.monotonic() - waiting.since
        waiting.again = time.monotonic() + max(AGAIN, waited / 2)
        return bool(waited < self.settings.get("room", ROOM))

    def _put_back(self, archive: str, given: str) -> bool:
        try:
            os.rename(archive, given)
        except OSError:
            return False
        return True

    def _show(self, attempt: FarAttempt) -> None:
        for stream, file in STREAMS:
            at = attempt.shown[stream]
            try:
                with open(attempt.directory + "/sandbox/" + file, "rb") as source:
                    source.seek(at)
                    new = source.read(LIVE - at)
                if new:
                    attempt.shown[stream] += write_at(self.path("live", attempt.name + "." + stream), at, new)
            except OSError:
                continue

    def _collect(self) -> None:
        for name, attempt in list(self.attempts.items()):
            if attempt.starter.poll() is None:
                continue
            self._look()  # this process may have slept: check for orders before anything is delivered
            if attempt.void:
                self._write("out/" + name + ".off", b"")
                shutil.rmtree(attempt.directory, ignore_errors=True)
            else:
                self._finish(attempt)
            del self.attempts[name]

    def _finish(self, attempt: FarAttempt) -> None:
        ad = read(attempt.directory + "/out.ad") or ""
        if attempt.ending:
            result = FarResult(attempt.name, attempt.directory, "", attempt.seen)
            result.evicted, result.saves = True, wants_outputs_when_evicted(read(attempt.directory + "/job.ad") or "")
            self._send_home(result)
        elif has_exit(ad):
            self.failures = 0
            self._send_home(FarResult(attempt.name, attempt.directory, "", attempt.seen))
        else:
            of_image = describe_image_failure(attempt.directory)
            self.failures += not of_image
            say("the starter of " + attempt.name + " failed" + (of_image and ": " + of_image))
            result = FarResult(attempt.name, attempt.directory, of_image or NO_RESULT, {})
            result.explains = bool(of_image)
            self._send_home(result)

    def _send_home(self, result: FarResult) -> None:
        """Deliver a result to the spool; if there is no room, keep it on this node and retry later."""
        result.tried = time.monotonic()
        self.results[result.name] = result
        try:
            self._deliver(result)
        except OSError as error:
            say("can't deliver " + result.name + ": " + str(error))
            if not result.saves:
                return self._discard(self.results.pop(result.name))
            if time.monotonic() - result.since > self.settings.get("keep", KEPT):
                result.unsent = "it ended, and its results could not be brought back: " + str(error)
            return
        self.results.pop(result.name, None)
        shutil.rmtree(result.directory, ignore_errors=True)

    def _deliver_again(self) -> None:
        for result in list(self.results.values()):
            if time.monotonic() - result.tried >= AGAIN:
                self._send_home(result)

    def _deliver(self, result: FarResult) -> None:
        """Write a result into the spool, with only wanted and new files; a failed starter isn't the job's end."""
        part = self.path("tmp", "o." + self.epoch + "." + result.name)
        try:
            with tarfile.open(part, "w") as tar:
                if result.unsent:
                    put_words(tar, "unsent", result.unsent)
                elif result.failure:
                    put_words(tar, "failure", result.failure)
                else:
                    self._pack(tar, result)
                if os.path.exists(result.directory + "/starter.log") and not (result.unsent or result.explains):
                    tar.add(result.directory + "/starter.log", "starter.log")
            bad = result.failure or result.unsent
            os.rename(part, self.path("out", result.name + (".bad" if bad else ".tar")))
        except OSError:
            forget(part)
            raise

    def _pack(self, tar: tarfile.TarFile, result: FarResult) -> None:
        if os.path.exists(result.directory + "/out.ad") or not result.evicted:
            tar.add(result.directory + "/out.ad", "out.ad")
        if result.saves:
            pack_outputs(tar, result.directory, result.seen)


def read_node_facts() -> dict[str, Any]:
    """Return the facts about this node that the pilot's shell put into the environment."""
    variables = {name: value for name, value in os.environ.items() if name.startswith("SUBLET_FAR_")}
    facts = {name[16:]: value for name, value in variables.items() if name.startswith("SUBLET_FAR_FACT_")}
    options: dict[str, Any] = {
        name[11:]: value for name, value in variables.items() if name[11:] in ("spool", "starter")
    }
    if os.environ.get("SUBLET_KEPT"):
        options["kept"] = os.environ["SUBLET_KEPT"]
    if "SUBLET_FAR_life" in variables:
        options["life"] = float(variables["SUBLET_FAR_life"])
    return dict(options, facts=facts) if facts else options


def main(settings: dict[str, Any]) -> None:
    """Run the far half."""
    os.umask(0o077)
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):  # a shell's background programs ignore them, and so
        signal.signal(number, signal.SIG_DFL)  # would jobs
    FarHalf(dict(settings, **read_node_facts())).run()
