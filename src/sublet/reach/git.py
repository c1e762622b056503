"""Git with no hooks, user settings or prompts and with resource limits, so that a repository can only be read."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sublet.kernel.descriptors import restore_limit

# Limits for every program that git starts: CPU seconds, KiB of memory, and 512-byte blocks of any one file.
LIMITED = 'ulimit -t "$1" && ulimit -v "$2" && ulimit -f "$3" && ulimit -c 0 && shift 3 && exec "$@"'
CPU, MEMORY = 300, 1 << 20
SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.bigFileThreshold": "1m",
    "core.askPass": "",
    "credential.helper": "",
    "fetch.fsckObjects": "true",
    "fetch.fsck.zeroPaddedFilemode": "ignore",  # harmless, and found in old repositories
    "fetch.fsck.missingSpaceBeforeDate": "ignore",
    "fetch.unpackLimit": "1",  # one pack file for each fetch, so that the size limit of a file limits the fetch
    "fetch.writeCommitGraph": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "http.followRedirects": "false",
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "30",
    "pack.threads": "1",
    "protocol.version": "2",
    "submodule.recurse": "false",
    "transfer.bundleURI": "false",
}


@dataclass(frozen=True)
class Said:
    """The outcome of a git command."""

    code: int
    stdout: bytes
    complaint: str
    too_much: bool = False  # it printed more than the limit


@dataclass(frozen=True)
class Git:
    """A bare repository of Sublet's own, in a directory that no other user can enter."""

    place: Path
    protocol: str  # the only protocol that git may use
    largest: int  # bytes of any one file that git writes
    seconds: float
    resolve: str = ""  # HOST:PORT:ADDRESS if the name has been resolved already
    header: str = field(default="", repr=False)  # an HTTP header such as `Authorization: …`; never in argv

    async def run(self, *words: str, stdin: bytes = b"", most: int = 1 << 20) -> Said:
        """Run a git command; it is stopped if it prints more than `most` bytes."""
        limits = (str(CPU), str(MEMORY), str(self.largest // 512 + 1))
        argv = ("sh", "-c", LIMITED, "sh", *limits, "git", "--git-dir=repository", *self._settings(), *words)
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=self.place,
            env=self._environment(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        restore_limit(process.pid)
        try:
            async with asyncio.timeout(self.seconds):
                return await _hear(process, stdin, most)
        except TimeoutError:
            return Said(-1, b"", f"it took longer than {self.seconds:.0f} s")
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.communicate()  # without reading the rest of its output, wait() would never return

    def _settings(self) -> Sequence[str]:
        more = {"http.curloptResolve": self.resolve} if self.resolve else {}
        return [word for name, value in {**SETTINGS, **more}.items() for word in ("-c", f"{name}={value}")]

    def _environment(self) -> dict[str, str]:
        """Return an environment without the service's proxies, keys, agents and settings."""
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.place),
            "LC_ALL": "C",
            "TZ": "UTC",
            "GIT_ALLOW_PROTOCOL": self.protocol,
            "GIT_ASKPASS": "/bin/false",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            **({"GIT_SSL_CAINFO": authorities} if (authorities := os.environ.get("SSL_CERT_FILE")) else {}),
            **({"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.extraHeader"} if self.header else {}),
            **({"GIT_CONFIG_VALUE_0": self.header} if self.header else {}),
        }


async def _hear(process: asyncio.subprocess.Process, stdin: bytes, most: int) -> Said:
    telling = asyncio.create_task(_tell(process.stdin, stdin))
    complaining = asyncio.create_task(_read(process.stderr, 1 << 16))
    try:
        answer, more = await _read(process.stdout, most)
        if more:
            return Said(-1, b"", "it said too much", too_much=True)
        complaint, _ = await complaining
        code = await process.wait()
        return Said(code, answer, complaint.decode(errors="replace").strip())
    finally:
        for task in (telling, complaining):
            task.cancel()
        await asyncio.gather(telling, complaining, return_exceptions=True)


async def _tell(stream: asyncio.StreamWriter | None, text: bytes) -> None:
    if stream is None:
        return
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        stream.write(text)
        await stream.drain()
    stream.close()


async def _read(stream: asyncio.StreamReader | None, most: int) -> tuple[bytes, bool]:
    """Read a stream up to a limit; return the bytes and whether there were more."""
    pieces: list[bytes] = []
    size = 0
    while stream and (piece := await stream.read(1 << 16)):
        size += len(piece)
        if size > most:
            return b"".join(pieces), True
        pieces.append(piece)
    return b"".join(pieces), False
