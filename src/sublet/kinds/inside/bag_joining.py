"""Joins what the parts of a bag left, as if one had run them all. Travels with the job: standard library only.

`tasks.parts/N.jsonl`, `N.out` and `N.err` of every part N become `tasks.jsonl`, `tasks.out` and `tasks.err`. It can be
repeated at any time, after a crash or concurrently: files are complete, or not there.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, TextIO

from sublet.booking.model.parts import INCOMPLETE, ranges

PARTS = "tasks.parts"
RECORD = "tasks.jsonl"
JOINED = ".sublet/joined"  # where complete files are written before they are moved
LOGS = {"stdout": "out", "stderr": "err"}
TRIES = 3  # attempts, as another process may join them at the same time


def join(total: int) -> int:
    """Join the parts of a bag with so many tasks, and report how it ended."""
    for _ in range(TRIES):
        try:
            parts = part_numbers()
            if parts:
                merge(parts)
        except FileNotFoundError:
            continue  # another process has done it meanwhile
        break
    return tell(total)


def part_numbers() -> list[int]:
    """Return the parts that left something, in order; empty if they are joined already."""
    try:
        return sorted({int(name.partition(".")[0]) for name in os.listdir(PARTS)})
    except FileNotFoundError:
        return []


def merge(parts: Iterable[int]) -> None:
    """Write the three files aside, move them into place with the record last, and remove the parts."""
    new = f"{JOINED}.{os.getpid()}"
    with open(f"{new}.jsonl", "w") as record, open(f"{new}.out", "wb") as out, open(f"{new}.err", "wb") as err:
        logs = {"stdout": out, "stderr": err}
        for part in parts:
            starts = {stream: log.tell() for stream, log in logs.items()}
            for line in lines_of(f"{PARTS}/{part}.jsonl"):
                record.write(json.dumps(move_line(line, starts)) + "\n")
            for stream, log in logs.items():
                append(log, f"{PARTS}/{part}.{LOGS[stream]}")
    for name in ("out", "err", "jsonl"):
        os.rename(f"{new}.{name}", f"tasks.{name}")
    os.rename(PARTS, new)
    shutil.rmtree(new, ignore_errors=True)


def lines_of(path: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of a record, without truncated ones."""
    with open_part(path) as file:
        for raw in file:
            try:
                yield json.loads(raw)
            except ValueError:
                continue


def open_part(path: str) -> BinaryIO:
    """Open a part's file, as empty if it was never written; raise FileNotFoundError if all parts are gone."""
    try:
        return open(path, "rb")
    except FileNotFoundError:
        if not os.path.isdir(PARTS):
            raise
        return io.BytesIO()


def move_line(line: dict[str, Any], starts: dict[str, int]) -> dict[str, Any]:
    """Return a line with the offsets of its output shifted."""
    return line | {stream: [line[stream][0] + at, line[stream][1]] for stream, at in starts.items() if stream in line}


def append(log: BinaryIO, path: str) -> None:
    """Append all of a file to another."""
    with open_part(path) as file:
        shutil.copyfileobj(file, log, 1 << 20)


def tell(total: int) -> int:
    """Report the outcome; return the exit code that one part would have had, or INCOMPLETE if tasks have no result."""
    succeeded: set[int] = set()
    failed: set[int] = set()
    attempts = 0
    for line in lines_of(RECORD) if os.path.exists(RECORD) else ():
        if line.get("interrupted"):
            continue
        attempts += 1
        (failed if line["code"] != 0 else succeeded).add(line["task"])
    failed -= succeeded
    missing = set(range(total)) - succeeded - failed
    again = attempts - len(succeeded) - len(failed)
    words = f"{len(succeeded)} succeeded, {len(failed)} failed, {again} tried again"
    lack = "has no result" if len(missing) == 1 else "have no result"
    say(words + (f"; {len(missing)} {lack}: {ranges(missing)}" if missing else ""))
    return INCOMPLETE if missing else 1 if failed else 0


def say(text: str, stream: TextIO = sys.stdout) -> None:
    """Print a message, and flush it."""
    stream.write(f"bag: {text}\n")
    stream.flush()
