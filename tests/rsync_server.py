"""A real rsync server for tests: rsync's own daemon, with a module for all and one that needs a password."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from sublet.data.model.credentials import Credential, CredentialKind
from tests.ports import free_port

SECRET = "radium-that-nobody-sees"


@dataclass(frozen=True)
class RsyncServer:
    """One with two modules that show the same folder: `open`, and `closed`, which is Marie's."""

    host: str
    port: int
    folder: Path

    @property
    def begin(self) -> str:
        """How its addresses begin."""
        return f"rsync://{self.host}:{self.port}"

    @property
    def credential(self) -> Credential:
        """What opens `closed`."""
        return Credential(f"{self.begin}/closed", CredentialKind.LOGIN, "marie", SECRET)


@contextmanager
def serve_rsync(root: Path, host: str = "127.0.0.1") -> Iterator[RsyncServer]:
    """A server that lasts as long as the block."""
    if shutil.which("rsync") is None:
        pytest.skip("there is no rsync on this machine")
    folder, port = root / "public", free_port()
    folder.mkdir()
    (root / "secrets").write_text(f"marie:{SECRET}\n")
    (root / "secrets").chmod(0o600)
    user = f"uid = {os.getuid()}\ngid = {os.getgid()}\nuse chroot = no\nread only = no\npath = {folder}\n"
    private = f"auth users = marie\nsecrets file = {root}/secrets\n"
    (root / "rsyncd.conf").write_text(f"log file = {root}/log\n[open]\n{user}[closed]\n{user}{private}")
    options = (f"--port={port}", f"--address={host}", f"--config={root}/rsyncd.conf")
    process = subprocess.Popen(["rsync", "--daemon", "--no-detach", *options])
    try:
        deadline = time.monotonic() + 10
        while True:
            try:
                socket.create_connection((host, port), timeout=1).close()
                break
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.02)  # between two looks, until the deadline
        yield RsyncServer(host, port, folder)
    finally:
        process.terminate()
        process.wait()
