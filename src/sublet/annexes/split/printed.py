"""The output of a job on a node without network, shown here while the job runs, as HTCondor would show it."""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from sublet.annexes.split.frames import SLICE
from sublet.annexes.split.ledger import OpenAttempt

STREAMS = {"out": "_condor_stdout", "err": "_condor_stderr"}


def facts_of(job_ad: str, sandbox: str) -> tuple[str, dict[str, str]]:
    """Return a job's id, and the files in which its output appears while it runs, from its ad.

    Output that HTCondor would stream to the access point, which is this machine, goes there; other output goes into the
    sandbox.
    """
    try:
        text = Path(job_ad).read_text(errors="replace")
    except OSError:
        text = ""

    def value(name: str) -> str:
        match = re.search(rf'(?im)^{name}\s*=\s*"?([^"\n]*)"?\s*$', text)
        return match.group(1) if match else ""

    streams = {}
    for stream, file in STREAMS.items():
        streamed = value(f"Stream{stream}").lower() == "true" and value("OrigIwd")
        streams[stream] = os.path.join(value("OrigIwd"), value(stream)) if streamed else os.path.join(sandbox, file)
    return f"{value('ClusterId')}.{value('ProcId')}", streams


def show_all(attempt: OpenAttempt) -> None:
    """Copy a job's complete output to where HTCondor would have streamed it."""
    for stream, file in STREAMS.items():
        whole, target = Path(attempt.sandbox) / file, attempt.streams.get(stream, "")
        if target and target != str(whole) and whole.is_file() and not whole.is_symlink():
            with contextlib.suppress(OSError):
                copy(whole, target)


def copy(whole: Path, target: str) -> None:
    """Copy a file to where the output is shown."""
    with whole.open("rb") as source:
        offset = 0
        while piece := source.read(SLICE):
            show(target, offset, piece)
            offset += len(piece)


def show(file: str, offset: int, content: bytes) -> None:
    """Write part of a job's output to where it is shown."""
    with contextlib.suppress(OSError):
        target = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            os.pwrite(target, content, offset)
        finally:
            os.close(target)
