"""How a session ended, as a sentence."""

from __future__ import annotations

import signal

from sublet.booking.model.session import End, EndKind

SENTENCES: dict[EndKind, tuple[str, str]] = {  # what happened; the details come between; what to do
    EndKind.EXITED: ("It exited with code {code}", ""),
    EndKind.SIGNALLED: ("It was ended by the signal {signal}, which Sublet did not send", ""),
    EndKind.TIMEOUT: ("It reached its time limit", "Ask for more time, or extend it while it runs."),
    EndKind.OUT_OF_MEMORY: ("It used more memory than was booked for it", "Ask for more."),
    EndKind.CANCELLED: ("It was cancelled by {by}", ""),
    EndKind.STAGING_FAILED: ("Its data could not be staged", ""),
    EndKind.NOT_STARTED: ("It could not be started", ""),
    EndKind.NODE_LOST: ("The machine it ran on went away or was restarted", ""),
    EndKind.PREEMPTED: ("The platform took its nodes for something else", ""),
    EndKind.KERNEL_DIED: ("Its kernel died", ""),
    EndKind.CULLED: ("The platform stopped it", ""),
    EndKind.WINDOW_PASSED: ("It could not start before its time was over", ""),
    EndKind.DISK_FULL: ("The disk was full", ""),
    EndKind.DEPENDENCY_FAILED: ("A session that it depends on did not complete", ""),
    EndKind.NOT_APPROVED: (
        "The code that it was to run may not be started",
        "`sublet app list` shows what can be run.",
    ),
    EndKind.GAVE_WAY: ("The offer gave way to a later request of the same person", "Ask again."),
    EndKind.UNKNOWN: ("There is no record of how it ended", ""),
}


def end_sentence(end: End) -> str:
    """Describe why a session ended, for a person."""
    what, advice = SENTENCES[end.kind]
    what = what.format(code=end.code, signal=_signal(end.signal), by=end.by or "someone")
    sentence = f"{what}: {end.detail.rstrip('.')}." if end.detail else f"{what}."
    return f"{sentence} {advice}".rstrip()


def _signal(number: int | None) -> str:
    try:
        return signal.Signals(number).name if number is not None else "(unknown)"
    except ValueError:
        return str(number)
