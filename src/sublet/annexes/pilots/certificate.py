"""The key that pilots expect of the service, and its certificate: made with openssl; the key stays for ever."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import time
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from sublet.kernel.errors import NotListening

DAYS = 400  # that a certificate is good for
HOUR = 3600
SOON = 60 * 24 * HOUR  # seconds before its end that it is made anew
CURVE = "ec_paramgen_curve:prime256v1"


@dataclass(frozen=True)
class Certificate:
    """Where the key and its certificate are, and how the key is known."""

    key: Path
    file: Path
    pin: str  # base64 of the SHA-256 of the public key


def certificate(directory: Path) -> Certificate:
    """The one of this directory, made or renewed if need be; what knows the key by its pin notices nothing."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    key, file = directory / "key.pem", directory / "certificate.pem"
    if not key.exists():
        part = _part(key)
        openssl("genpkey", "-algorithm", "EC", "-pkeyopt", CURVE, "-out", str(part))
        _first(part, key)
    if not file.exists() or not _is_still_valid(file, file.stat().st_mtime_ns, int(time.time() // HOUR)):
        part = _part(file)
        words = ("-subj", "/CN=sublet", "-days", str(DAYS), "-key", str(key), "-out", str(part))
        openssl("req", "-x509", "-new", *words)
        part.replace(file)
    return Certificate(key, file, _pin(key, key.stat().st_mtime_ns))


@lru_cache(maxsize=8)
def _pin(key: Path, stamp: int) -> str:
    """How a key is known, which stays as long as its file is the same."""
    public = openssl("pkey", "-in", str(key), "-pubout", "-outform", "DER")
    return base64.b64encode(hashlib.sha256(public).digest()).decode()


@lru_cache(maxsize=8)
def _is_still_valid(file: Path, stamp: int, hour: int) -> bool:
    """Whether it is good for a good while yet, looked at once an hour."""
    return lasts(file)


def lasts(file: Path) -> bool:
    """Whether a certificate is good for a good while yet."""
    words = ["openssl", "x509", "-in", str(file), "-noout", "-checkend", str(SOON)]
    return subprocess.run(words, capture_output=True).returncode == 0


def openssl(*words: str) -> bytes:
    """What openssl says; NotListening if it can't be used."""
    try:
        done = subprocess.run(["openssl", *words], capture_output=True, stdin=subprocess.DEVNULL, umask=0o077)
    except FileNotFoundError:
        raise NotListening(why="there is no openssl on this machine to make a key with") from None
    if done.returncode:
        raise NotListening(why=f"openssl failed: {done.stderr.decode(errors='replace').strip()[-200:]}")
    return done.stdout


def _part(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}")


def _first(part: Path, path: Path) -> None:
    """Of several who make it at once, the first one's counts."""
    try:
        os.link(part, path)
    except FileExistsError:
        pass
    part.unlink()
