"""Fetches files for a cache on the system itself, where it is sent; it needs Python 3.8 and nothing else.

Its arguments are a cache entry's directory, `kept/NAME`, and the name of a plan in it: what to fetch. It writes

    claim/      made by whoever transfers the entry, with a heartbeat file `beat` that is touched meanwhile
    part        what has been fetched so far: a file, or a directory of complete files
    progress    how many bytes of how many
    failed      why it failed, as JSON: `kind` (see KINDS) and `why`
    content     the complete entry, read-only, put there by rename

and stops when no session needs the entry any more. The plan is always removed, because it holds credentials.
"""

from __future__ import annotations

import errno
import hashlib
import http.client
import json
import os
import shutil
import socket
import sys
import threading
import time
import zlib
from typing import Any

from sublet.platforms.batch.far.sources import BrokenOff, FetchFailed, WebSources

BLOCK = 1 << 18
BEAT = 2.0  # seconds between heartbeats
DEAD = 90.0  # seconds without a heartbeat after which another process may take over
TRIES = 5
AT_ONCE = 8
PIECES = "part.file.begun"  # files of a folder that are not complete, under names that no file of it has
PARTS = ("part", "part.file", "part.file.sublet-part", "part.file.sublet-mark", PIECES)
AGAIN = (408, 425, 429, 500, 502, 503, 504)
KINDS = ("unreachable", "refused", "changed", "wrong", "cut", "full", "private", "failed")


class CacheEntry:
    """The directory of one cache entry, and the state that the threads which fill it share."""

    def __init__(self, directory: str, plan: dict[str, Any]) -> None:
        """Start with nothing fetched."""
        self.directory, self.plan = directory, plan
        self.done, self.lock, self.ended = 0, threading.Lock(), threading.Event()
        self.began, self.passed = time.monotonic(), 0
        self.trouble: FetchFailed | None = None

    def path(self, name: str) -> str:
        """Return the path of one of the entry's files."""
        return os.path.join(self.directory, name)

    def write(self, name: str, text: str) -> None:
        """Write one of the entry's files atomically."""
        part = self.path(f"{name}.{os.getpid()}.new")
        with open(part, "w") as file:
            file.write(text)
        os.replace(part, self.path(name))

    def add(self, count: int) -> None:
        """Count received bytes, and wait if they came faster than the rate limit.

        Raise FetchFailed if the transfer ended.
        """
        with self.lock:
            self.done += count
            self.passed += count
            ahead = self.passed / self.plan["rate"] - (time.monotonic() - self.began) if self.plan["rate"] else 0
        if self.ended.wait(ahead) if ahead > 0 else self.ended.is_set():
            raise FetchFailed("failed", "nobody needs it any more")

    def is_needed(self) -> bool:
        """Whether a session that needs the entry still exists."""
        root = os.path.dirname(os.path.dirname(self.directory))
        try:
            users = os.listdir(self.path("users"))
        except OSError:
            return False
        return any(
            os.path.isdir(os.path.join(root, place, user)) for user in users for place in ("sessions", "incoming")
        )

    def beat(self) -> None:
        """Report progress and send heartbeats until the transfer ends or no session needs the entry."""
        while not self.ended.wait(BEAT):
            if not self.is_needed():
                self.ended.set()
            self.tell()

    def tell(self) -> None:
        """Write the progress and a heartbeat."""
        try:
            self.write("progress", f"{self.done} {self.plan['total']}\n")
            with open(self.path("claim/beat"), "w"):
                pass
        except OSError:
            pass


class FetchedFile:
    """One file of a plan, as far as it has been fetched."""

    def __init__(self, entry: CacheEntry, link: dict[str, Any]) -> None:
        """Set the file's paths; it is in `part`, or elsewhere until it is complete."""
        self.entry, self.link = entry, link
        self.target = begun = entry.path("part.file")
        if entry.plan["folder"]:
            self.target = entry.path(os.path.join("part", link["path"]))
            begun = entry.path(os.path.join(PIECES, hashlib.sha256(os.fsencode(link["path"])).hexdigest()))
        self.part, self.mark = begun + ".sublet-part", begun + ".sublet-mark"

    def size(self) -> int:
        """Return how many bytes have been fetched."""
        try:
            return os.stat(self.part).st_size
        except OSError:
            return 0

    def version(self) -> str:
        """Return the version of the server's file that the fetched bytes belong to; empty if unknown."""
        try:
            with open(self.mark) as file:
                return file.read()
        except OSError:
            return ""

    def drop(self) -> None:
        """Discard the fetched bytes."""
        self.entry.add(-self.size())
        for path in (self.part, self.mark):
            if os.path.exists(path):
                os.remove(path)

    def have(self, source: WebSources) -> None:
        """Fetch the file completely, with retries, and check it."""
        if os.path.exists(self.target):
            size = os.stat(self.target).st_size
            if size == self.link["size"]:
                self.entry.add(size)
                return
            os.remove(self.target)  # left over from a stream that was cut off
        for path in (self.target, self.part):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        self.entry.add(self.size())
        failures, most = 0, self.size()
        while True:
            try:
                self.fetch(source)
                break
            except BrokenOff as broken:
                size = self.size()  # a server without ranges sends the same bytes again and again: no progress
                failures, most = 1 if size > most else failures + 1, max(size, most)
                if failures >= TRIES:
                    raise FetchFailed("cut", f"{broken} ({failures} tries, {self.size()} bytes so far)") from broken
                pause = min(max(broken.pause, 0.5 * 2 ** (failures - 1)), 30.0)
            if self.entry.ended.wait(pause):
                raise FetchFailed("failed", "nobody needs it any more")
        self.check()
        os.replace(self.part, self.target)
        if os.path.exists(self.mark):
            os.remove(self.mark)

    def fetch(self, source: WebSources) -> None:
        """Try once: resume where the last try stopped, if the server still has the same version."""
        at, version = self.size(), self.version()
        headers = {"Accept-Encoding": "identity", "User-Agent": "sublet"}
        if at and version:
            headers.update({"Range": f"bytes={at}-", "If-Range": version})
        answer = source.get(self.link["url"], headers, self.link["headers"])
        whole = self.accept(answer, at)
        with open(self.part, "ab") as file:
            while piece := read_piece(answer):
                file.write(piece)
                self.entry.add(len(piece))
                self.check_size(file.tell())
        if whole is not None and self.size() != whole:
            raise BrokenOff(f"the connection ended after {self.size()} of {whole} bytes")

    def accept(self, answer: http.client.HTTPResponse, at: int) -> int | None:
        """Check the answer's status and prepare to receive it; return the total size in bytes, or None if unknown."""
        code, tag = answer.status, answer.headers.get("ETag") or ""
        validators = [tag, answer.headers.get("Last-Modified") or ""]
        wanted = self.link["version"]
        if code in (200, 206) and wanted and any(validators) and plain(wanted) not in map(plain, validators):
            raise FetchFailed("changed", "it changed since it was looked at")
        span = (answer.headers.get("Content-Range") or "").partition("bytes ")[2]
        if code == 206 or (code == 200 and span):  # some S3 servers say only in this header that the answer is partial
            if span.partition("-")[0] != str(at):
                self.drop()
                raise BrokenOff("the server sent another part than was asked for")
            whole = span.rpartition("/")[2]
            return int(whole) if whole.isdigit() else None
        if code == 200:
            if at:
                self.drop()
            with open(self.mark, "w") as file:
                file.write(tag if tag.startswith('"') else validators[1])
            length = answer.headers.get("Content-Length") or ""
            self.check_size(int(length) if length.isdigit() else 0)
            return int(length) if length.isdigit() else None
        if code == 416:
            self.drop()
            raise BrokenOff("the server has less of it than before")
        why = f"the server answered {code} {answer.reason}".strip()
        if code in AGAIN:
            after = answer.headers.get("Retry-After") or ""
            answer.read()
            raise BrokenOff(why, float(after) if after.isdigit() else 0.0)
        raise FetchFailed("refused", why)

    def check_size(self, size: int) -> None:
        """Raise FetchFailed if the size is over the limit or more than expected."""
        largest, wanted = self.entry.plan["largest"], self.link["size"]
        if largest and size > largest:
            raise FetchFailed("wrong", f"it has more than {largest} bytes, the most that is downloaded here")
        if wanted is not None and size > wanted:
            raise FetchFailed("wrong", f"it has {size} bytes or more, and {wanted} were expected")

    def check(self) -> None:
        """Raise FetchFailed if the size or the checksum isn't as expected."""
        size, wanted = self.size(), self.link["size"]
        if wanted is not None and size != wanted:
            raise FetchFailed("wrong", f"{size} of {wanted} bytes came")
        kind, _, digits = self.link["checksum"].partition(":")
        if not digits:
            return
        actual = digest(self.part, kind.lower())
        if actual != digits.lower():
            raise FetchFailed("wrong", f"its checksum is {kind}:{actual}, and {self.link['checksum']} was expected")


def digest(path: str, kind: str) -> str:
    """Return the checksum of a file, in hexadecimal."""
    sum, known = 1, None if kind == "adler32" else hashlib.new(kind)
    with open(path, "rb") as file:
        for piece in iter(lambda: file.read(BLOCK), b""):
            if known:
                known.update(piece)
            else:
                sum = zlib.adler32(piece, sum)
    return known.hexdigest() if known else f"{sum:08x}"


def read_piece(answer: http.client.HTTPResponse) -> bytes:
    """Read the next bytes of an answer; raise BrokenOff if the connection fails."""
    try:
        return answer.read(BLOCK)
    except (OSError, http.client.HTTPException) as error:
        raise BrokenOff(str(error) or type(error).__name__) from error


def plain(version: str) -> str:
    """Return a version without the `W/` that only some servers put before it."""
    return version[2:] if version.startswith("W/") else version


def work(entry: CacheEntry, waiting: list[dict[str, Any]]) -> None:
    """Fetch one file after another until none is left or one has failed."""
    source = WebSources(entry.plan["public"])
    while not entry.trouble:
        with entry.lock:
            if not waiting:
                return
            link = waiting.pop()
        try:
            FetchedFile(entry, link).have(source)
        except FetchFailed as failed:
            entry.trouble = failed
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            entry.trouble = FetchFailed("full" if full else "failed", str(error))
        except Exception as error:  # report any failure: nobody sees this thread's exceptions
            entry.trouble = FetchFailed("failed", f"{type(error).__name__}: {error}")


def fill(entry: CacheEntry) -> None:
    """Fetch all files of an entry, and publish it."""
    waiting = list(reversed(entry.plan["links"]))
    threads = [threading.Thread(target=work, args=(entry, waiting)) for _ in range(min(AT_ONCE, len(waiting)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if entry.trouble:
        raise entry.trouble
    part = entry.path("part" if entry.plan["folder"] else "part.file")
    remove(entry.path(PIECES))
    sizes = []
    for folder, _, names in os.walk(part) if entry.plan["folder"] else [(entry.directory, (), ["part.file"])]:
        for path in (os.path.join(folder, name) for name in names):
            os.chmod(path, 0o400)
            sizes.append(os.stat(path).st_size)
    entry.tell()
    entry.write("size", f"{entry.done}\n")
    os.rename(part, entry.path("content"))
    with open(entry.path("seal"), "w") as seal:
        seal.write(f"{len(sizes)} {sum(sizes)}\n")


def claim(directory: str) -> bool:
    """Claim the entry for this process, also from a process without heartbeat; return whether that succeeded."""
    place = os.path.join(directory, "claim")
    try:
        os.mkdir(place)
    except OSError:
        try:
            if time.time() - os.stat(os.path.join(place, "beat")).st_mtime < DEAD:
                return False
        except OSError:
            if time.time() - os.stat(place).st_mtime < DEAD:
                return False
        aside = f"{place}.{os.getpid()}"
        os.rename(place, aside)  # a process that does the same fails here, or finds our claim
        shutil.rmtree(aside)
        os.mkdir(place)
    with open(os.path.join(place, "beat"), "w") as file:
        file.write(f"{socket.gethostname()} {os.getpid()}\n")
    return True


def remove(path: str) -> None:
    """Remove a file or directory, if it exists."""
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.exists(path):
        os.remove(path)


def main(directory: str, plan: str) -> None:
    """Fetch one entry, unless it exists or another process is fetching it."""
    os.umask(0o077)
    with open(os.path.join(directory, plan)) as file:
        entry = CacheEntry(directory, json.load(file))
    os.remove(os.path.join(directory, plan))
    if os.path.exists(entry.path("content")) or not claim(directory):
        return
    beating = threading.Thread(target=entry.beat)
    try:
        if os.path.exists(entry.path("failed")):
            os.remove(entry.path("failed"))
        beating.start()
        fill(entry)
    except FetchFailed as failed:
        if failed.kind in ("full", "wrong", "changed"):  # the fetched bytes are useless, or take up space
            for name in PARTS:
                remove(entry.path(name))
        entry.write("failed", json.dumps({"kind": failed.kind, "why": failed.why}))
    finally:
        entry.ended.set()
        if beating.ident is not None:  # it was started
            beating.join()
        shutil.rmtree(entry.path("claim"), ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
