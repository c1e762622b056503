"""The service's TLS key, which pilots know by its pin, and its certificate; made with openssl. The key is permanent."""

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

DAYS = 400  # for which a certificate is valid
HOUR = 3600
SOON = 60 * 24 * HOUR  # seconds before its expiry when it is renewed
CURVE = "ec_paramgen_curve:prime256v1"


@dataclass(frozen=True)
class Certificate:
    """The files of the key and its certificate, and the key's pin."""

    key: Path
    file: Path
    pin: str  # base64 of the SHA-256 of the public key


def certificate(directory: Path) -> Certificate:
    """Return the certificate in a directory, created or renewed if needed; renewal doesn't change the pin."""
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
    """Return a key's pin, cached as long as its file is unchanged."""
    public = openssl("pkey", "-in", str(key), "-pubout", "-outform", "DER")
    return base64.b64encode(hashlib.sha256(public).digest()).decode()


@lru_cache(maxsize=8)
def _is_still_valid(file: Path, stamp: int, hour: int) -> bool:
    """Whether a certificate is valid for long enough, checked once an hour."""
    return lasts(file)


def lasts(file: Path) -> bool:
    """Whether a certificate is valid for at least 60 more days."""
    words = ["openssl", "x509", "-in", str(file), "-noout", "-checkend", str(SOON)]
    return subprocess.run(words, capture_output=True).returncode == 0


def openssl(*words: str) -> bytes:
    """Run openssl and return its output; raise NotListening if it fails."""
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
    """Move a file to its place, unless another process was first."""
    try:
        os.link(part, path)
    except FileExistsError:
        pass
    part.unlink()
