"""A real OpenSSH server with data, and the movers that may use it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import AsyncIterator, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from sublet.booking.model.request import Data
from sublet.booking.platforms.known import KnownPlatforms
from sublet.booking.system_files import SystemFilesMover
from sublet.data.model.credentials import Credential, CredentialKind
from sublet.movers.port import Policy
from sublet.movers.rsync import RsyncMover
from sublet.movers.sftp import SftpMover
from sublet.platforms.batch.remote import RemotePlatform
from sublet.platforms.registry import load_platforms
from sublet.reach.prompts import nobody
from tests.sshd import Sshd, sshd

needs_rsync = pytest.mark.skipif(shutil.which("rsync") is None, reason="there is no rsync on this machine")
LARGE = os.urandom(12_000_000)
SHA = f"sha256:{hashlib.sha256(LARGE).hexdigest()}"
BOTH = [pytest.param("sftp"), pytest.param("rsync+ssh", marks=needs_rsync)]


@contextlib.contextmanager
def serve_data(directory: Path) -> Iterator[Sshd]:
    """Run an SSH server with a large file and a folder in its home directory."""
    with sshd(directory) as running:
        folder = running.home / "survey" / "deep"
        folder.mkdir(parents=True)
        (running.home / "cube.fits").write_bytes(LARGE)
        (folder / "a 'b'*.txt").write_text("a\n")
        (folder.parent / "run.sh").write_text("#!/bin/sh\n")
        (folder.parent / "run.sh").chmod(0o755)
        (folder.parent / "link").symlink_to("run.sh")
        (folder.parent / "empty").mkdir()
        yield running


def host_key(server: Sshd) -> str:
    return " ".join((server.directory / "host_key.pub").read_text().split()[:2])


def allow(
    server: Sshd, *, host_keys: str | None = None, port: int = 0, kind: CredentialKind = CredentialKind.KEY
) -> Policy:
    """What someone may bring who has a credential, and nothing else, of this machine."""
    secret = (server.directory / "key").read_text() if kind is CredentialKind.KEY else "a password"
    known = host_key(server) if host_keys is None else host_keys
    place = f"sftp://127.0.0.1:{port or server.port}"
    return Policy(public_only=False, credentials=[Credential(place, kind, server.user, secret, known)])


def mover_for(scheme: str, policy: Policy) -> SftpMover | RsyncMover:
    return SftpMover(policy, pause=0.01) if scheme == "sftp" else RsyncMover(policy, pause=0.01)


def data(server: Sshd, path: str, scheme: str = "sftp", port: int = 0, **fields: str) -> Data:
    return Data(
        "cube", "simple-data-resource", f"{scheme}://127.0.0.1:{port or server.port}{server.home}{path}", **fields
    )  # type: ignore[arg-type]


@contextlib.asynccontextmanager
async def sign_in(server: Sshd, run: Path) -> AsyncIterator[SystemFilesMover]:
    """Files of the system `far`, which somebody has signed in to."""
    ssh = server.options | {"BatchMode": "yes"}
    platforms, _ = load_platforms({"far": {"kind": "slurm", "host": "127.0.0.1", "port": server.port, "ssh": ssh}})
    far = platforms["far"]
    assert isinstance(far, RemotePlatform)
    far.way(run)
    assert far.login
    await far.login.open(nobody)
    try:
        yield SystemFilesMover(KnownPlatforms(None, datetime.now, timedelta(1), platforms), is_allowed=True)  # type: ignore[arg-type]
    finally:
        await far.login.close()


def list_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}
