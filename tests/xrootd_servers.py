"""XRootD servers, each on ports of its own, for as long as a test needs them. None of them runs as root."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.ports import free_port
from tests.storage_servers import PATIENCE, wait_for

USER = "nobody"


@dataclass(frozen=True)
class XrootdTestServer:
    """One that answers, and the directory in which what it has can be seen."""

    address: str  # host and port of its own protocol
    web: str  # host and port of HTTP
    directory: Path

    def put(self, path: str, content: bytes) -> Path:
        """A file that it has."""
        file = self.directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        _give(self.directory)
        return file


@contextmanager
def serve_xrootd(*lines: str) -> Iterator[XrootdTestServer]:
    """A server of a directory of its own, over its own protocol and HTTP, with checksums; and more settings."""
    if not shutil.which("xrootd") or not shutil.which("xrdcp"):
        pytest.skip("not on this machine: xrootd-server, xrootd-client (scripts/system-packages installs them)")
    with tempfile.TemporaryDirectory(prefix="sublet-xrootd-") as place:  # where another user can go
        home = Path(place)
        home.chmod(0o755)
        (home / "data").mkdir()
        (home / "state").mkdir()
        port, web = free_port(), free_port()
        settings = [
            "all.export /",
            f"oss.localroot {home}/data",
            f"all.adminpath {home}/state",
            f"all.pidpath {home}/state",
            f"xrd.port {port}",
            f"xrd.protocol XrdHttp:{web} libXrdHttp.so",
            "xrootd.chksum max 2 adler32 md5",
            *lines,
        ]
        (home / "server.cfg").write_text("\n".join(settings) + "\n")
        _give(home)
        with _running(home, port, web):
            yield XrootdTestServer(f"127.0.0.1:{port}", f"127.0.0.1:{web}", home / "data")


@contextmanager
def _running(home: Path, port: int, web: int) -> Iterator[None]:
    as_whom = ["-R", USER] if os.geteuid() == 0 else []
    words = ["xrootd", *as_whom, "-c", f"{home}/server.cfg", "-l", f"{home}/state/log"]
    process = subprocess.Popen(words, cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(process, port)
        wait_for(process, web)
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _give(directory: Path) -> None:
    """Let the server's user write there."""
    if os.geteuid() == 0:
        for path in (directory, *directory.rglob("*")):
            shutil.chown(path, USER)
