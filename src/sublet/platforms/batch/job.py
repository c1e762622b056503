"""The files of one job: the script, and the program that it reads, in which every value is quoted data."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from shlex import quote

from sublet.booking.model.job import Job
from sublet.booking.model.shape import Amounts
from sublet.platforms.batch.quoting import function, variable, word
from sublet.platforms.told import tell_amounts, tell_places

_PLAIN = re.compile(r"[A-Za-z0-9._/-]+")  # a path that needs no quoting in a shell
_WORD = re.compile(rb"[A-Za-z0-9._-]+\n")  # a file of one word
JOB = "job.sh"
EACH = "each.sh"  # in the session's directory: starts the program on each of several nodes
PLACES = {"{user}": '"$USER"', "{job}": '"$job_id"'}  # placeholders in a setting's path


@dataclass(frozen=True, slots=True)
class Submission:
    """What a scheduler is told about one job."""

    words: tuple[str, ...]  # arguments of its submit command
    amounts: Amounts  # with the session's own time
    limit: timedelta  # the scheduler's time limit
    files: Mapping[str, bytes] = field(default_factory=dict)  # more files for the session's directory: headers

    @property
    def seconds(self) -> int:
        """The session's own time in whole seconds."""
        return max(1, round(self.amounts.time.total_seconds()))


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The environment of every job on a system, by the platform's settings."""

    grace: timedelta  # between SIGTERM and SIGKILL
    path: Sequence[str] = ()
    modules: Sequence[str] = ()
    scratch: str = ""


def program(job: Job, key: str, submission: Submission, around: Surroundings) -> str:
    """Write the shell assignments and functions that `job.sh` reads.

    Raise ValueError for values that no shell can hold.
    """
    seconds, first = submission.seconds, job.program.argv[0]
    values: dict[str, object] = {
        "session": key,
        "duration": seconds,
        "limit": round(submission.limit.total_seconds()),
        "warn": min(round(job.warn.total_seconds()), seconds // 2),
        "grace": min(round(around.grace.total_seconds()), seconds // 4),
        "connects": job.program.connects,
        "first": first,
        "joins": int(bool(job.program.join)),
        "missing": json.dumps(f"{first[:300]}: no such program is there"),
    }
    variables = {
        "PYTHONUNBUFFERED": "1",
        **tell_amounts(submission.amounts, each_node=job.program.each_node),
        **tell_places(job.places),
        **job.program.environment,
    }
    links = [
        f"link {word(mount.source)} {word(mount.target)} {int(mount.read_only)}"
        for mount in job.mounts
        if not mount.target.startswith("/")
    ]
    links = [f"point {word(name)} {word(target)}" for name, target in job.kept.items()] + links
    links += [
        f"point {word(f'work/{place.target}')} {word(place.path)}" for place in job.places if place.target[0] != "/"
    ]
    lines = [f"{name}={word(str(value))}" for name, value in values.items()]
    lines += [
        f"local_scratch={_place(around.scratch)}",
        f"places={':'.join(map(_at_home, around.path))}",
        function("modules", [f"load {' '.join(map(word, around.modules))}"] if around.modules else []),
        function("links", links),
        function("environment", [f"export {variable(name)}={word(value)}" for name, value in variables.items()]),
        function("program", [_start(job)]),
        function("join", ["exec " + " ".join(map(word, job.program.join))] if job.program.join else []),
    ]
    return "\n".join(lines) + "\n"


def _start(job: Job) -> str:
    """Return the line that executes the program, directly or on each of several nodes."""
    words = " ".join(map(word, job.program.argv))
    return f'exec sh "$dir/{EACH}" {words}' if is_for_each_node(job) else f"exec {words}"


def is_for_each_node(job: Job) -> bool:
    """Whether the job's program is to be started on several nodes."""
    return job.program.each_node and job.amounts.nodes > 1


def _at_home(path: str) -> str:
    return f'"$HOME"/{word(path[2:])}' if path.startswith("~/") else word(path)


def _place(path: str) -> str:
    """Quote a path, except for the placeholders in `PLACES`, which the shell fills in."""
    pieces = re.split(r"(\{user\}|\{job\})", path)
    return "".join(PLACES.get(piece) or quote(piece) for piece in pieces if piece) or "''"


def pack(contents: Mapping[str, bytes]) -> bytes:
    """Pack files for `submit.sh`: each with its mode, size and path below the session's directory."""
    pieces = []
    for path, data in contents.items():
        name = (
            f"={path}" if _PLAIN.fullmatch(path) else b64encode(f"{path}.".encode("utf-8", "surrogateescape")).decode()
        )
        if _WORD.fullmatch(data):
            pieces.append(f"line {data.decode().strip()} {name}\n".encode())
            continue
        mode = "700" if data.startswith(b"#!") and path != JOB else "600"  # the scheduler reads job.sh, and copies it
        pieces.append(f"{mode} {len(data)} {name}\n".encode() + data)
    return b"".join(pieces)


def header_script(mark: str, lines: Iterable[str], directory: str) -> bytes:
    """Write a script that executes `job.sh`, for schedulers that read their options as directives in its head."""
    head = list(lines)
    if any(not line.isprintable() for line in head):
        raise ValueError("a line for the scheduler is more than one line")
    words = f"exec sh {word(f'{directory}/{JOB}')} {word(directory)}"
    return "\n".join(["#!/bin/sh", *(f"{mark} {line}" for line in head), words, ""]).encode("utf-8", "surrogateescape")
