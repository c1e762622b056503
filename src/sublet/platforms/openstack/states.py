"""A session's state, from its server and its console, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from signal import Signals
from typing import Any

from sublet.booking.model.session import End, EndKind, Usage
from sublet.platforms.local.shim.watch import words_of
from sublet.platforms.openstack.readers import CloudServer

ELSEWHERE = "someone at the cloud itself, not through Sublet"
UNTOLD = "its virtual machine was turned off, and nothing says how it ended"
SILENT = "its virtual machine has given no sign of life for {seconds:.0f} s"
UNHEARD = (
    "its virtual machine is up, and nothing was heard of the session: an image needs cloud-init, python3, a config "
    "drive and a serial console"
)
PLAIN = "#sublet-plain "
REFUSALS = {
    "no-secret": "the config drive of its virtual machine has no admin_pass, by which the session is opened",
    "other-secret": "what its virtual machine was given can't be opened with the secret on its config drive",
}
WAITS = {"scheduling": "Nova looks for a host", "networking": "its network is being made", "spawning": "it is started"}
KEPT_WORDS = 300


@dataclass(frozen=True, slots=True)
class StopWishes:
    """Who or what wants a session stopped."""

    cancelled_by: str = ""
    is_over_time: bool = False

    def find_end(self, detail: str = "") -> End | None:
        """Return the end of the session if it is stopped now, or None."""
        if self.cancelled_by:
            return End(EndKind.CANCELLED, by=self.cancelled_by, detail=detail)
        return End(EndKind.TIMEOUT, detail=detail) if self.is_over_time else None


def describe_wait(server: CloudServer) -> str:
    """Describe what a server that is being created waits for."""
    return WAITS.get(server.task, "its virtual machine is being made")


def read_refusal(console: str) -> str:
    """Return what the first steps in a machine reported, if they failed."""
    lines = [line.strip() for line in console.splitlines() if line.strip().startswith(PLAIN)]
    words = lines[-1].removeprefix(PLAIN) if lines else ""
    return REFUSALS.get(words, words and f"its virtual machine could not begin: {words.removeprefix('failed ')}")


def describe_loss(words: str, console: str) -> str:
    """Describe why a machine is lost, with the last line of its console."""
    shown = [line.strip() for line in console.splitlines() if line.strip() and not line.strip().startswith("#sublet")]
    last = f"; its console shows last: {shown[-1][:KEPT_WORDS]}" if shown else ""
    return f"{words}{last}"


def describe_fault(server: CloudServer, has_begun: bool, wishes: StopWishes) -> End:
    """Return the end of a session whose server is in error."""
    words = server.fault or "Nova gives no reason"
    if end := wishes.find_end("it had not started" if not has_begun else words):
        return end
    return End(EndKind.NODE_LOST if has_begun else EndKind.NOT_STARTED, detail=words)


def describe_deletion(has_begun: bool, wishes: StopWishes) -> End:
    """Return the end of a session whose server was deleted."""
    detail = "" if has_begun else "it had not started"
    return wishes.find_end(detail) or End(
        EndKind.CANCELLED, by=ELSEWHERE, detail="; ".join(filter(None, ("its virtual machine was deleted", detail)))
    )


def describe_end(end: Mapping[str, Any], notes: Mapping[str, str], wishes: StopWishes) -> End:
    """Return how a program ended, by its machine's report."""
    if "unstarted" in end:
        return wishes.find_end("it had not started") or End(EndKind.NOT_STARTED, detail=str(end["unstarted"]))
    usage = Usage(float(end["wall"]), round(float(end["cpu"]), 3), int(end["peak"]))
    if end["why"] == "button":
        stopped = wishes.find_end() or End(EndKind.CANCELLED, by=ELSEWHERE, detail="its virtual machine was stopped")
        return End(stopped.kind, by=stopped.by, detail=stopped.detail, usage=usage)
    if end["why"] == "time":
        detail = "its virtual machine stopped it by itself: the service was away at the end of its time"
        return End(EndKind.TIMEOUT, detail=detail, usage=usage)
    return _describe_exit(int(end["code"]), int(end["killed"]), notes, usage)


def _describe_exit(code: int, killed: int, notes: Mapping[str, str], usage: Usage) -> End:
    kind, _, why = notes.get("unstarted", "").partition("\n")
    if kind.strip():
        unstarted = EndKind.STAGING_FAILED if kind.strip() == "staging-failed" else EndKind.NOT_STARTED
        return End(unstarted, detail=words_of(why), usage=usage)
    detail = words_of(notes.get("detail", ""))
    if killed and code:
        words = "the kernel of its virtual machine stopped it for lack of memory"
        return End(EndKind.OUT_OF_MEMORY, code=code if code > 0 else None, detail=words, usage=usage)
    if killed:
        detail = "; ".join(filter(None, (detail, "one of its processes was stopped for lack of memory")))
    number = -code if code < 0 else code - 128
    if number in set(Signals):
        return End(EndKind.SIGNALLED, signal=number, detail=detail, usage=usage)
    return End(EndKind.EXITED, code=code, detail=detail, usage=usage)
