"""The files of one job: the script, and the program that it reads, in which every value is quoted data."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cache
from importlib.resources import files
from shlex import quote

from sublet.booking.model.job import Job
from sublet.platforms.batch.shell import function, variable, word
from sublet.platforms.slurm.options import SlurmWish

_PLAIN = re.compile(r"[A-Za-z0-9._/-]+")  # a path that a shell reads as it stands
_WORD = re.compile(rb"[A-Za-z0-9._-]+\n")  # a file of one word
JOB = "job.sh"
PLACES = {"{user}": '"$USER"', "{job}": '"$SLURM_JOB_ID"'}  # what a setting's path may name


@cache
def far(name: str) -> str:
    """A script for the far side."""
    return files("sublet.platforms.slurm").joinpath("shell", f"{name}.sh").read_text()


def program(
    job: Job,
    key: str,
    wish: SlurmWish,
    *,
    grace: timedelta,
    path: Sequence[str] = (),
    modules: Sequence[str] = (),
    scratch: str = "",
) -> str:
    """What `job.sh` reads: assignments and functions of the shell. Raises ValueError for what no shell can hold."""
    seconds, nodes = wish.seconds, wish.nodes
    first = job.program.argv[0]
    values: dict[str, object] = {
        "session": key,
        "duration": seconds,
        "limit": round(wish.limit.total_seconds()),
        "warn": min(round(job.warn.total_seconds()), seconds // 2),
        "grace": min(round(grace.total_seconds()), seconds // 4),
        "connects": job.program.connects,
        "first": first,
        "joins": int(bool(job.program.join)),
        "missing": json.dumps(f"{first[:300]}: no such program is there"),
    }
    variables = {
        "OMP_NUM_THREADS": str(job.shape.cores if nodes == 1 else 1),
        "PYTHONUNBUFFERED": "1",
        "SUBLET_CORES": str(job.shape.cores),
        "SUBLET_MEMORY": str(job.shape.memory),
        "SUBLET_GPUS": str(job.shape.gpus),
        "SUBLET_NODES": str(nodes),
        **job.program.environment,
    }
    links = [
        f"link {word(mount.source)} {word(mount.target)} {int(mount.read_only)}"
        for mount in job.mounts
        if not mount.target.startswith("/")
    ]
    links = [f"point {word(name)} {word(target)}" for name, target in job.kept.items()] + links
    lines = [f"{name}={word(str(value))}" for name, value in values.items()]
    lines += [
        f"local_scratch={_placed(scratch)}",
        f"places={':'.join(map(_at_home, path))}",
        function("modules", [f"load {' '.join(map(word, modules))}"] if modules else []),
        function("links", links),
        function("environment", [f"export {variable(name)}={word(value)}" for name, value in variables.items()]),
        function("program", ["exec " + " ".join(map(word, job.program.argv))]),
        function("join", ["exec " + " ".join(map(word, job.program.join))] if job.program.join else []),
    ]
    return "\n".join(lines) + "\n"


def _at_home(path: str) -> str:
    return f'"$HOME"/{word(path[2:])}' if path.startswith("~/") else word(path)


def _placed(path: str) -> str:
    """A path in which only the names above are the shell's to fill in."""
    pieces = re.split(r"(\{user\}|\{job\})", path)
    return "".join(PLACES.get(piece) or quote(piece) for piece in pieces if piece) or "''"


def packed(contents: Mapping[str, bytes]) -> bytes:
    """Files for `submit.sh`: each with its mode, its size and its path below the session's directory."""
    pieces = []
    for path, data in contents.items():
        name = (
            f"={path}" if _PLAIN.fullmatch(path) else b64encode(f"{path}.".encode("utf-8", "surrogateescape")).decode()
        )
        if _WORD.fullmatch(data):
            pieces.append(f"line {data.decode().strip()} {name}\n".encode())
            continue
        mode = "700" if data.startswith(b"#!") and path != JOB else "600"  # Slurm reads its script, and copies it
        pieces.append(f"{mode} {len(data)} {name}\n".encode() + data)
    return b"".join(pieces)
