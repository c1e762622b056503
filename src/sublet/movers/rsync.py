"""The mover of rsync addresses: `rsync+ssh://USER@HOST/PATH` over SSH, `rsync://HOST/MODULE/PATH` from a server."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from posixpath import join
from urllib.parse import unquote, urlsplit, urlunsplit

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.data.model.credentials import credential_for
from sublet.data.model.links import LinkedFiles
from sublet.data.model.tools import ToolPlan
from sublet.kernel.descriptors import restore_limit
from sublet.kernel.public_addresses import NotPublic, public_addresses
from sublet.movers.arrival import check_arrived, guess, missing, refuse_folder, require_sound, unsent
from sublet.movers.port import SIMPLE, Content, KnownContent, NoLinks, Policy, Progress, ServerFiles
from sublet.movers.rsync_listing import LIST, LISTED, TOO_MANY, RsyncListing, list_links
from sublet.movers.sending import spool
from sublet.movers.sftp import SftpMover
from sublet.movers.ssh_access import (
    SshDenied,
    check_ssh_address,
    check_ssh_data,
    explain_refusal,
    open_way,
    split_ssh_address,
)
from sublet.movers.trees import MOST_FILES, safe_path
from sublet.reach.sftp_packets import SftpLost

EXAMPLE = "rsync+ssh://marie@data.example.org/home/marie/survey/"
OVER_SSH = "rsync+ssh"
SPEED = 20_000_000  # bytes per second, for a guess
MOMENT = 3.0  # seconds that a request waits for a size
PORT = 873
PASSWORD = "RSYNC_PASSWORD"  # noqa: S105 - the name of a variable
IDLE = "120"  # seconds without a byte until rsync gives up
# Links are followed; of permissions only "executable" is kept, and devices and owners aren't.
BRING = ("--recursive", "--times", "--executability", "--copy-links", "--no-devices", "--no-specials")
GO_ON = ("--partial", "--append-verify")  # partial files are kept, and checked when they are complete
ALWAYS = ("-s", "--no-motd", "--no-human-readable", f"--timeout={IDLE}", "--no-super")
TRY_AGAIN = frozenset({10, 12, 20, 30, 35})  # exit codes: the connection broke, or timed out
TRIES = 5
PAUSE = 0.5  # seconds before the first retry, doubled each time
TOTAL = re.compile(r"Total file size: (\d+)")
FILES = re.compile(r"Number of files: (\d+)")
FOLDERS = re.compile(r"Number of files: .*\bdir: \d")
DONE = re.compile(rb"\s(\d+)\s+\d+%")
BROKEN_OFF = re.compile(r"\([1-9]\d* bytes received so far\)")  # the login succeeded, and the connection was lost later
SUM = "rsync error"  # how the line begins that only sums up what went wrong
OWN = ("rsync:", "@ERROR", "symlink has no referent", "file has vanished", "directory has vanished", SUM)
NEVER_IN = "(0 bytes received so far)"
MOST_WORDS = 1 << 16  # bytes of rsync's output that are kept
Tell = Callable[[int], None]  # takes the bytes so far


@dataclass(frozen=True)
class RsyncRoad:
    """How to call rsync for one address."""

    address: str  # in rsync's syntax
    options: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)  # may hold a password


class RsyncFailed(Exception):
    """It ended badly: its exit code and its words."""

    def __init__(self, code: int, words: str) -> None:
        """Keep the exit code, with its message."""
        super().__init__(words or f"rsync ended with exit code {code}")
        self.code = code


@dataclass
class RsyncMover:
    """Brings files and folders, and sends files."""

    policy: Policy
    pause: float = PAUSE
    name: str = "rsync"
    schemes: Sequence[str] = (OVER_SSH, "rsync")
    kinds: Sequence[str] = (SIMPLE,)

    def check(self, data: Data) -> Sequence[Reason]:
        """Return what is wrong with the address or checksum."""
        return check_ssh_data(data, EXAMPLE)

    def check_push(self, location: str) -> str:
        """Return why the address names no host and path; empty if it does."""
        return check_ssh_address(location)

    async def measure(self, data: Data) -> int | None:
        """Return the size that rsync reports in a dry run, if that is quick."""
        if self.check(data):
            return None
        with contextlib.suppress(SshDenied, RsyncFailed, TimeoutError, OSError):
            async with asyncio.timeout(MOMENT), self._open(data.location) as road:
                size = TOTAL.search(await _add_up(road))
                return int(size[1]) if size else None
        return None

    def estimate(self, data: Data) -> timedelta:
        """Guess how long it takes."""
        return guess(data, SPEED)

    async def bring(self, data: Data, target: Path, progress: Progress) -> None:
        """Bring a file under its own name, or a folder's content, resuming an earlier attempt."""
        require_sound(data, self.check(data))
        try:
            async with self._open(data.location) as road:
                total = await self._measure(data, road)
                await self._persist(data, road, target, lambda done: progress(done, total))
        except SshDenied as denied:
            raise missing(data, str(denied)) from denied
        except RsyncFailed as failed:
            raise missing(data, await self._explain(data.location, failed)) from failed
        await asyncio.to_thread(_check, data, target)
        progress(total, total)

    async def list_versions(self, data: Data) -> ServerFiles:
        """Return the files with size and modification time as their versions."""
        require_sound(data, self.check(data))
        try:
            async with self._open(data.location) as road:
                listing = RsyncListing(data)
                await _run(road, (*LIST, "--recursive", "--copy-links", "--", road.address), take=listing.take)
        except (SshDenied, RsyncFailed) as error:
            raise missing(data, str(error)) from error
        return ServerFiles(data.location.endswith("/"), listing.files)

    async def plan(self, data: Data) -> ToolPlan:
        """Plan a fetch by the system's rsync from an rsync server.

        Raise NoLinks for rsync over SSH, as the system has no credentials for it.
        """
        require_sound(data, self.check(data))
        if urlsplit(data.location).scheme.lower() == OVER_SSH:
            raise NoLinks
        road, files, named = await self._list(data)
        password = road.environment[PASSWORD]
        options = [("option", option) for option in (*road.options, *BRING, *GO_ON)]
        facts = [("address", road.address), ("secret", password), *options]
        return ToolPlan("rsync", files.links[0].host, facts, named, files)

    async def find_content(self, data: Data) -> KnownContent:
        """Return the files as they are now, and bring them by this machine's own rsync."""
        require_sound(data, self.check(data))
        _, files, named = await self._list(data)
        return KnownContent(named, files, partial(self.bring, data))

    async def _list(self, data: Data) -> tuple[RsyncRoad, LinkedFiles, LinkedFiles]:
        """List the files; return how rsync was called, links to them, and the links that name them in caches."""
        try:
            async with self._open(data.location) as road:
                listing = RsyncListing(data)
                await _run(road, (*LIST, "--recursive", "--copy-links", "--", road.address), take=listing.take)
        except (SshDenied, RsyncFailed) as error:
            raise missing(data, await self._explain(data.location, error)) from error
        password = road.environment.get(PASSWORD, "")
        return road, *list_links(data, listing, {PASSWORD: password} if password else {})

    async def push(self, content: Content, location: str, progress: Progress) -> str:
        """Send a file, which gets its name when it is complete: over SSH as a stream, if the host has SFTP."""
        parts = urlsplit(location)
        if parts.scheme.lower() == OVER_SSH:
            with contextlib.suppress(SftpLost):  # if rsync can't reach the host either, its message says why
                by_sftp = urlunsplit(parts._replace(scheme="sftp"))
                sent = await SftpMover(self.policy).stream(content, by_sftp, progress)
                return f"{OVER_SSH}{sent.removeprefix('sftp')}"
        return await self._push_copy(content, location, progress)

    async def _push_copy(self, content: Content, location: str, progress: Progress) -> str:
        """Send a file by rsync, which reads nothing but files: copy it to this machine's disk first."""
        sent = join(location, content.path) if location.endswith("/") else location
        folder = content.path if location.endswith("/") else ""
        with tempfile.TemporaryDirectory(prefix="sublet-rsync-") as name:
            file = Path(name, folder or "file")
            await spool(content, file)
            try:
                async with self._open(location) as road:
                    if not folder and await _is_folder(road):
                        raise refuse_folder(content.path, location, sent)
                    source = f"{name}/./{folder}" if folder else str(file)
                    words = ("--times", "--mkpath", *(("--relative",) if folder else ()), "--", source, road.address)
                    await _run(road, ("--partial", "--info=progress2", *words), lambda n: progress(n, content.size))
            except SshDenied as denied:
                raise unsent(content.path, sent, str(denied)) from denied
            except RsyncFailed as failed:
                raise unsent(content.path, sent, await self._explain(location, failed)) from failed
        return sent

    async def _measure(self, data: Data, road: RsyncRoad) -> int:
        """Return the total size in bytes; raise DataNotThere if it is too large or has too many files."""
        answer = await _add_up(road)
        size, files = TOTAL.search(answer), FILES.search(answer)
        if size is None or files is None:
            raise missing(data, "rsync did not say how much it is")
        if int(files[1]) > MOST_FILES:
            raise missing(data, TOO_MANY)
        if FOLDERS.search(answer) and not data.location.endswith("/"):
            raise missing(data, "it is a folder; write a / at the end of its address to fetch its files")
        self._check_size(data, int(size[1]))
        return int(size[1])

    def _check_size(self, data: Data, size: int) -> None:
        if self.policy.largest and size > self.policy.largest:
            raise missing(data, f"it has more than {self.policy.largest} bytes, the most that is downloaded here")

    async def _persist(self, data: Data, road: RsyncRoad, target: Path, tell: Tell) -> None:
        """Retry the transfer until it is complete; raise the error after too many failures without progress."""
        failures, best = 0, 0

        def hear(done: int) -> None:
            nonlocal best
            best = max(best, done)
            self._check_size(data, done)
            tell(done)

        while True:
            before = best
            try:
                words = ("--info=progress2", *BRING, *GO_ON, "--", road.address, f"{target}/")
                await _run(road, words, hear)
                return
            except RsyncFailed as failed:
                failures = 1 if best > before else failures + 1
                if failures >= TRIES or not (failed.code in TRY_AGAIN or BROKEN_OFF.search(str(failed))):
                    raise
            await asyncio.sleep(self.pause * 2 ** (failures - 1))

    @contextlib.asynccontextmanager
    async def _open(self, location: str) -> AsyncIterator[RsyncRoad]:
        if urlsplit(location).scheme.lower() == OVER_SSH:
            async with open_way(self.policy, location) as way:
                place = way.place
                host = f"[{place.host}]" if ":" in place.host else place.host
                options = (*ALWAYS, f"--rsh={way.shell_line}")
                yield RsyncRoad(f"{host}:{place.path}", options, {**way.environment, "TZ": "UTC"})
            return
        yield await self._find_server(location)

    async def _find_server(self, location: str) -> RsyncRoad:
        """Return how to call an rsync server, with a password if there is one."""
        parts = urlsplit(location)
        credential, host = credential_for(self.policy.credentials, location), parts.hostname or ""
        if self.policy.public_only:
            try:
                host = (await public_addresses(host, parts.port or PORT))[0]
            except (NotPublic, OSError) as error:
                raise SshDenied(str(error)) from error
        host = f"[{host}]" if ":" in host else host
        user = unquote(parts.username or "") or (credential.user if credential else "")
        address = f"{user}@{host}" if user else host
        port = (f"--port={parts.port}",) if parts.port else ()
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}
        environment[PASSWORD] = credential.secret if credential else ""  # empty: rsync must not prompt
        return RsyncRoad(f"{address}::{unquote(parts.path).lstrip('/')}", (*ALWAYS, *port), environment)

    async def _explain(self, location: str, failed: Exception) -> str:
        """Explain a failure in ssh's words if the login failed, otherwise in rsync's."""
        words = str(failed)
        lines = words.strip().splitlines() or ["rsync gave no reason"]
        own = [line for line in lines if line.startswith(OWN)]
        others = [line for line in lines if line not in own]
        if NEVER_IN in words and others and urlsplit(location).scheme.lower() == OVER_SSH:
            return await explain_refusal(split_ssh_address(location), "\n".join(others))
        return min(own or lines, key=lambda line: line.startswith(SUM)).removeprefix("rsync: ")


def _check(data: Data, target: Path) -> None:
    """Check a single file's size and checksum, or the names of a folder's files."""
    if data.location.endswith("/"):
        if data.checksum:
            raise missing(data, "it is a folder, and a checksum is of a file")
        for folder, _, names in os.walk(target):
            for name in names:
                safe_path(data, os.path.relpath(os.path.join(folder, name), target))
        return
    file = target / unquote(urlsplit(data.location).path).rpartition("/")[2]
    try:
        check_arrived(data, file)
    except Exception:
        file.unlink(missing_ok=True)
        raise


async def _is_folder(road: RsyncRoad) -> bool:
    """Whether an address is a folder, into which rsync would put a file under its local name."""
    try:
        answer = await _run(road, (*LIST, "--", road.address))
    except RsyncFailed:
        return False  # it doesn't exist, or the error will show when the file is sent
    rows = [row for line in answer.splitlines() if (row := LISTED.match(line))]
    return len(rows) == 1 and rows[0]["kind"] == "d"


async def _add_up(road: RsyncRoad) -> str:
    """Return rsync's statistics of a dry run."""
    with tempfile.TemporaryDirectory(prefix="sublet-rsync-") as empty:
        return await _run(road, ("--dry-run", "--stats", *BRING, "--", road.address, empty))


async def _run(
    road: RsyncRoad,
    words: Sequence[str],
    hear: Tell = lambda _: None,
    take: Callable[[bytes], None] = lambda _: None,
) -> str:
    """Run rsync, reporting progress, and return the end of its output; raise RsyncFailed if it fails.

    `take` receives all output as it comes.
    """
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            *("rsync", *road.options, *words),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            env=road.environment,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise RsyncFailed(127, "there is no rsync on the service's machine") from error
    restore_limit(process.pid)
    complaining = asyncio.create_task(_read(process.stderr, lambda _: None))
    try:
        answer = await _read(process.stdout, hear, take)
        code, complaint = await process.wait(), await complaining
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        complaining.cancel()
        await asyncio.gather(complaining, return_exceptions=True)
        await process.communicate()
    if code:
        raise RsyncFailed(code, complaint)
    return answer


async def _read(stream: asyncio.StreamReader | None, hear: Tell, take: Callable[[bytes], None] = lambda _: None) -> str:
    """Read a stream to its end, and return the last part as text."""
    kept = b""
    while stream and (piece := await stream.read(1 << 14)):
        kept = (kept + piece)[-MOST_WORDS:]
        take(piece)
        if numbers := DONE.findall(piece):
            hear(int(numbers[-1]))
    return kept.decode("utf-8", "replace")
