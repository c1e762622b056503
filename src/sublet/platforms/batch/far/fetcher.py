"""Fetches files for a cache, on the system itself: travels there, and is Python from 3.6 on with nothing beside it.

Its argument is an entry of the cache, `kept/NAME`, and the name of a plan in it, which says what to fetch. It writes

    claim/      made by whoever brings the entry, with a file `beat` that is touched while that goes on
    part        what has come so far: a file, or a directory of files
    progress    how many bytes of how many
    failed      why it can't be had, as JSON: `kind` (see KINDS) and `why`
    content     the whole, read-only, by rename

and stops when no session needs the entry any more. The plan goes in any case: it holds what opens the source.
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
BEAT = 2.0  # seconds between two signs of life
DEAD = 90.0  # seconds without one, after which another may go on
TRIES = 5
AT_ONCE = 8
PARTS = ("part", "part.file", "part.file.sublet-part", "part.file.sublet-mark")
AGAIN = (408, 425, 429, 500, 502, 503, 504)
KINDS = ("unreachable", "refused", "changed", "wrong", "cut", "full", "private", "failed")


class CacheEntry:
    """The directory of one entry of the cache, and what is shared by those who fill it."""

    def __init__(self, directory: str, plan: dict[str, Any]) -> None:
        """Nothing has come yet."""
        self.directory, self.plan = directory, plan
        self.done, self.lock, self.ended = 0, threading.Lock(), threading.Event()
        self.began, self.passed = time.monotonic(), 0
        self.trouble: FetchFailed | None = None

    def path(self, name: str) -> str:
        """One of its files."""
        return os.path.join(self.directory, name)

    def write(self, name: str, text: str) -> None:
        """Write one of its files by rename."""
        part = self.path(f"{name}.{os.getpid()}.new")
        with open(part, "w") as file:
            file.write(text)
        os.replace(part, self.path(name))

    def add(self, count: int) -> None:
        """So many bytes have come; waits where there is a limit to how many may come in a second."""
        with self.lock:
            self.done += count
            self.passed += count
            ahead = self.passed / self.plan["rate"] - (time.monotonic() - self.began) if self.plan["rate"] else 0
        if self.ended.wait(ahead) if ahead > 0 else self.ended.is_set():
            raise FetchFailed("failed", "nobody needs it any more")

    def is_needed(self) -> bool:
        """Whether a session that needs it is still there."""
        root = os.path.dirname(os.path.dirname(self.directory))
        try:
            users = os.listdir(self.path("users"))
        except OSError:
            return False
        return any(
            os.path.isdir(os.path.join(root, place, user)) for user in users for place in ("sessions", "incoming")
        )

    def beat(self) -> None:
        """Tell how far it is, and that this goes on; until it is over, or nobody needs it."""
        while not self.ended.wait(BEAT):
            if not self.is_needed():
                self.ended.set()
            self.tell()

    def tell(self) -> None:
        """Tell how far it is."""
        try:
            self.write("progress", f"{self.done} {self.plan['total']}\n")
            with open(self.path("claim/beat"), "w"):
                pass
        except OSError:
            pass


class FetchedFile:
    """One file of a plan, as much of it as has come."""

    def __init__(self, entry: CacheEntry, link: dict[str, Any]) -> None:
        """It lies at its path in `part`, under another name until it is whole."""
        self.entry, self.link = entry, link
        self.target = entry.path(os.path.join("part", link["path"]) if entry.plan["folder"] else "part.file")
        self.part, self.mark = self.target + ".sublet-part", self.target + ".sublet-mark"

    def size(self) -> int:
        """How many bytes have come."""
        try:
            return os.stat(self.part).st_size
        except OSError:
            return 0

    def version(self) -> str:
        """Of which version they are."""
        try:
            with open(self.mark) as file:
                return file.read()
        except OSError:
            return ""

    def drop(self) -> None:
        """Forget them."""
        self.entry.add(-self.size())
        for path in (self.part, self.mark):
            if os.path.exists(path):
                os.remove(path)

    def have(self, source: WebSources) -> None:
        """Have it whole and checked."""
        if os.path.exists(self.target):
            size = os.stat(self.target).st_size
            if size == self.link["size"]:
                self.entry.add(size)
                return
            os.remove(self.target)  # of a stream that was cut off
        os.makedirs(os.path.dirname(self.target), exist_ok=True)
        self.entry.add(self.size())
        failures = 0
        while True:
            before = self.size()
            try:
                self.fetch(source)
                break
            except BrokenOff as broken:
                failures = 1 if self.size() > before else failures + 1
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
        """One try: go on where the last one stopped, if the server still has the same version."""
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
        """Get ready for what comes, and say how many bytes it will be in all, if that is known."""
        code, tag = answer.status, answer.headers.get("ETag") or ""
        validators = [tag, answer.headers.get("Last-Modified") or ""]
        wanted = self.link["version"]
        if code in (200, 206) and wanted and any(validators) and plain(wanted) not in map(plain, validators):
            raise FetchFailed("changed", "it changed since it was looked at")
        span = (answer.headers.get("Content-Range") or "").partition("bytes ")[2]
        if code == 206 or (code == 200 and span):  # some servers of S3 say only there that it is a part
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
        """Stop where it is more than may come, or than it has."""
        largest, wanted = self.entry.plan["largest"], self.link["size"]
        if largest and size > largest:
            raise FetchFailed("wrong", f"it has more than {largest} bytes, the most that is downloaded here")
        if wanted is not None and size > wanted:
            raise FetchFailed("wrong", f"it has {size} bytes or more, and {wanted} were expected")

    def check(self) -> None:
        """See that it is what was asked for."""
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
    """The checksum of a file, in hexadecimal."""
    sum, known = 1, None if kind == "adler32" else hashlib.new(kind)
    with open(path, "rb") as file:
        for piece in iter(lambda: file.read(BLOCK), b""):
            if known:
                known.update(piece)
            else:
                sum = zlib.adler32(piece, sum)
    return known.hexdigest() if known else f"{sum:08x}"


def read_piece(answer: http.client.HTTPResponse) -> bytes:
    """The next bytes that come."""
    try:
        return answer.read(BLOCK)
    except (OSError, http.client.HTTPException) as error:
        raise BrokenOff(str(error) or type(error).__name__) from error


def plain(version: str) -> str:
    """A version without what some servers add to it and others don't."""
    return version[2:] if version.startswith("W/") else version


def work(entry: CacheEntry, waiting: list[dict[str, Any]]) -> None:
    """Have one file after another, until none is left or something is wrong."""
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
        except Exception as error:  # whatever it is, someone has to be told
            entry.trouble = FetchFailed("failed", f"{type(error).__name__}: {error}")


def fill(entry: CacheEntry) -> None:
    """Fetch all, and publish it."""
    waiting = list(reversed(entry.plan["links"]))
    threads = [threading.Thread(target=work, args=(entry, waiting)) for _ in range(min(AT_ONCE, len(waiting)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if entry.trouble:
        raise entry.trouble
    part = entry.path("part" if entry.plan["folder"] else "part.file")
    for folder, _, names in os.walk(part) if entry.plan["folder"] else [(entry.directory, (), ["part.file"])]:
        for name in names:
            os.chmod(os.path.join(folder, name), 0o400)
    entry.tell()
    entry.write("size", f"{entry.done}\n")
    os.rename(part, entry.path("content"))
    with open(entry.path("seal"), "w"):
        pass


def claim(directory: str) -> bool:
    """Be the one who brings the entry; whether nobody else does."""
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
        os.rename(place, aside)  # another who does the same fails here, or finds ours
        shutil.rmtree(aside)
        os.mkdir(place)
    with open(os.path.join(place, "beat"), "w") as file:
        file.write(f"{socket.gethostname()} {os.getpid()}\n")
    return True


def remove(path: str) -> None:
    """Remove a file or directory, if it is there."""
    if os.path.isdir(path):
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.exists(path):
        os.remove(path)


def main(directory: str, plan: str) -> None:
    """Bring one entry, unless it is there or somebody else brings it."""
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
        if failed.kind in ("full", "wrong", "changed"):  # what came is of no use, or in the way
            for name in PARTS:
                remove(entry.path(name))
        entry.write("failed", json.dumps({"kind": failed.kind, "why": failed.why}))
    finally:
        entry.ended.set()
        beating.join()
        shutil.rmtree(entry.path("claim"), ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
