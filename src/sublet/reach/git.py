"""Git, run so that a repository can do nothing but be read: no hooks, no settings, no prompts, and only so much."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sublet.kernel.descriptors import restore_limit

# Limits of every program that git starts: CPU seconds, KiB of memory, and 512-byte blocks of any one file.
LIMITED = 'ulimit -t "$1" && ulimit -v "$2" && ulimit -f "$3" && ulimit -c 0 && shift 3 && exec "$@"'
CPU, MEMORY = 300, 1 << 20
SETTINGS = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.bigFileThreshold": "1m",
    "core.askPass": "",
    "credential.helper": "",
    "fetch.fsckObjects": "true",
    "fetch.fsck.zeroPaddedFilemode": "ignore",  # old repositories have it, and it does no harm
    "fetch.fsck.missingSpaceBeforeDate": "ignore",
    "fetch.unpackLimit": "1",  # one file for all that came, so that its size is a limit on all
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
    """What git answered."""

    code: int
    stdout: bytes
    complaint: str
    too_much: bool = False  # it had more to say than it may


@dataclass(frozen=True)
class Git:
    """One bare repository of our own, in a directory that nobody else can enter."""

    place: Path
    protocol: str  # the only one that may be spoken
    largest: int  # bytes of any one file that git writes
    seconds: float
    resolve: str = ""  # HOST:PORT:ADDRESS, where the name was looked up already
    header: str = field(default="", repr=False)  # what a server is shown, as `Authorization: …`; never in argv

    async def run(self, *words: str, stdin: bytes = b"", most: int = 1 << 20) -> Said:
        """Run one of git's commands; of what it prints at most so many bytes are read, then it is stopped."""
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
            await process.communicate()  # what is still on the way has to be taken, or it is waited for in vain

    def _settings(self) -> Sequence[str]:
        more = {"http.curloptResolve": self.resolve} if self.resolve else {}
        return [word for name, value in {**SETTINGS, **more}.items() for word in ("-c", f"{name}={value}")]

    def _environment(self) -> dict[str, str]:
        """Nothing of ours: no proxies, keys, agents or settings."""
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
    """What comes, and whether there was more than may be."""
    pieces: list[bytes] = []
    size = 0
    while stream and (piece := await stream.read(1 << 16)):
        size += len(piece)
        if size > most:
            return b"".join(pieces), True
        pieces.append(piece)
    return b"".join(pieces), False
