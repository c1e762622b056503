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
from tests.ports import free_port

PATIENCE = 60.0
HERE = "127.0.0.1"


@dataclass(frozen=True)
class StorageServer:
    """One that answers, and the directory in which what it has can be seen."""

    address: str  # host and port
    directory: Path
    credential: Credential


@contextmanager
def serve_s3(directory: Path, host: str = HERE) -> Iterator[StorageServer]:
    """An object store that checks signatures: rclone's. Buckets are directories."""
    port, key, secret = free_port(host), "sublet-tests", secrets.token_hex(16)
    at_once = ("--vfs-cache-mode", "off", "--dir-cache-time", "1ms")  # what is put is seen at once; with 0s it spins
    words = ["serve", "s3", "--addr", f"{host}:{port}", *at_once, str(directory)]
    environment = {
        **os.environ,
        "RCLONE_AUTH_KEY": f'"{key},{secret}"',
        "RCLONE_CONFIG": os.devnull,
        "RCLONE_CACHE_DIR": f"{directory}.cache",
    }
    place = f"s3+http://{host}:{port}"
    with _running([_program("rclone"), *words], environment, port, host):
        yield StorageServer(f"{host}:{port}", directory, Credential(place, CredentialKind.S3, key, secret))


@contextmanager
def serve_webdav(directory: Path, host: str = HERE, *, is_digest: bool = False) -> Iterator[StorageServer]:
    """A WebDAV server with one user, who signs in by Basic, or by Digest: wsgidav."""
    port, user, password = free_port(host), "marie", secrets.token_hex(16)
    settings = directory.with_suffix(".yaml")
    ways = "  accept_basic: false\n  accept_digest: true\n  default_to_digest: true\n" if is_digest else ""
    settings.write_text(
        f"host: {host}\nport: {port}\nprovider_mapping: {{'/': '{directory}'}}\nhttp_authenticator:\n"
        f"  domain_controller: null\n{ways}simple_dc:\n"
        f"  user_mapping:\n    '*': {{'{user}': {{password: '{password}'}}}}\n"
    )
    settings.chmod(0o600)
    with _running([_program("wsgidav"), "--config", str(settings)], dict(os.environ), port, host):
        credential = Credential(f"dav://{host}:{port}", CredentialKind.LOGIN, user, password)
        yield StorageServer(f"{host}:{port}", directory, credential)


def sign_address(server: StorageServer, bucket: str, key: str) -> str:
    """An address that opens one object for an hour, made by rclone."""
    known = server.credential
    remote = f":s3,provider=Other,endpoint='http://{server.address}',force_path_style=true:{bucket}/{key}"
    keys = {"RCLONE_S3_ACCESS_KEY_ID": known.user, "RCLONE_S3_SECRET_ACCESS_KEY": known.secret}
    environment = {**os.environ, **keys, "RCLONE_CONFIG": os.devnull}
    words = [_program("rclone"), "link", "--expire", "1h", remote]
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def _program(name: str) -> str:
    return str(Path(sys.executable).with_name(name))


@contextmanager
def _running(words: list[str], environment: dict[str, str], port: int, host: str = HERE) -> Iterator[None]:
    process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(process, port, host)
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE)


def wait_for(process: subprocess.Popen[bytes], port: int, host: str = HERE) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection((host, port), 1).close()
            return
        except OSError:
            assert process.poll() is None, "the server has ended"
            assert time.monotonic() < deadline, "the server does not listen"
            time.sleep(0.05)
