"""What an engine is made of, built once and kept beside the testbed's box: each part whole, or not there."""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from testbed.box import CACHE, OPTIONS, mirror
from testbed.plan import SiteError


def have_part(engine: str, name: str, made_of: str, build: Callable[[Path], None], estimate: str) -> Path:
    """A directory that is made once for all, under a lock, and appears only when it is whole."""
    digest = hashlib.sha256(made_of.encode()).hexdigest()[:12]
    place = CACHE / "engines" / f"{engine.lower()}-{name}-{digest}"
    place.parent.mkdir(parents=True, exist_ok=True)
    with place.with_suffix(".lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not place.is_dir():
            say(f"building the {name} of {engine}, which takes {estimate} …")
            unfinished = place.with_suffix(".unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            began = time.monotonic()
            build(unfinished)
            unfinished.rename(place)
            say(f"built the {name} of {engine} in {time.monotonic() - began:.0f} s")
    return place


def say(words: str) -> None:
    """Say on stderr what is waited for."""
    print(f"testbed: {words}", file=sys.stderr, flush=True)


def run_words(words: Sequence[str], cwd: Path | None = None, text: str | None = None) -> str:
    """What a command prints; its last words, if it fails."""
    done = subprocess.run(words, capture_output=True, text=True, cwd=cwd, input=text)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-10:])
        raise SiteError(f"{words[0]} failed:\n{tail}")
    return done.stdout


def bootstrap(suite: str, place: Path, packages: Sequence[str], variant: str = "apt") -> None:
    """A Debian in a directory, or an archive, with these packages."""
    options = [f"--variant={variant}", "--mode=root", *OPTIONS, f"--include={','.join(packages)}"]
    run_words(["nice", "-n", "5", "mmdebstrap", *options, suite, str(place), mirror()])


@contextmanager
def workshop() -> Iterator[Path]:
    """A directory for what is needed to build something, which goes afterwards."""
    with tempfile.TemporaryDirectory(dir=CACHE / "engines", prefix="workshop-") as directory:
        yield Path(directory)
