"""Object stores and WebDAV servers that others wrote, each on a port of its own, for as long as a test needs them."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sublet.data.model.credentials import Credential, CredentialKind

PATIENCE = 60.0


@dataclass(frozen=True)
class StorageServer:
    """One that answers, and the directory in which what it has can be seen."""

    address: str  # host and port
    directory: Path
    credential: Credential


@contextmanager
def serve_s3(directory: Path) -> Iterator[StorageServer]:
    """An object store that checks signatures: rclone's. Buckets are directories."""
    port, key, secret = free_port(), "sublet-tests", secrets.token_hex(16)
    at_once = ("--vfs-cache-mode", "off", "--dir-cache-time", "1ms")  # what is put is seen at once; with 0s it spins
    words = ["serve", "s3", "--addr", f"127.0.0.1:{port}", *at_once, str(directory)]
    environment = {
        **os.environ,
        "RCLONE_AUTH_KEY": f'"{key},{secret}"',
        "RCLONE_CONFIG": os.devnull,
        "RCLONE_CACHE_DIR": f"{directory}.cache",
    }
    place = f"s3+http://127.0.0.1:{port}"
    with _running([_program("rclone"), *words], environment, port):
        yield StorageServer(f"127.0.0.1:{port}", directory, Credential(place, CredentialKind.S3, key, secret))


@contextmanager
def serve_webdav(directory: Path) -> Iterator[StorageServer]:
    """A WebDAV server with one user: wsgidav."""
    port, user, password = free_port(), "marie", secrets.token_hex(16)
    settings = directory.with_suffix(".yaml")
    settings.write_text(
        f"host: 127.0.0.1\nport: {port}\nprovider_mapping: {{'/': '{directory}'}}\nhttp_authenticator:\n"
        f"  domain_controller: null\nsimple_dc:\n  user_mapping:\n    '*': {{'{user}': {{password: '{password}'}}}}\n"
    )
    settings.chmod(0o600)
    with _running([_program("wsgidav"), "--config", str(settings)], dict(os.environ), port):
        credential = Credential(f"dav://127.0.0.1:{port}", CredentialKind.LOGIN, user, password)
        yield StorageServer(f"127.0.0.1:{port}", directory, credential)


def _program(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


@contextmanager
def _running(words: list[str], environment: dict[str, str], port: int) -> Iterator[None]:
    process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(process, port)
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE)


def wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            assert process.poll() is None, "the server has ended"
            assert time.monotonic() < deadline, "the server does not listen"
            time.sleep(0.05)
