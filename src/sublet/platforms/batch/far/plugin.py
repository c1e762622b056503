"""A file transfer plug-in that serves a job's http: and https: addresses from the cache of the system it runs on.

    plugin PLAIN KEPT SESSION -infile ASKED -outfile SAID

PLAIN is HTCondor's own plug-in, which gets all files that can't be cached: those with a query or a login in their
address, those whose server gives no version or size, and those that can't be fetched or kept here. KEPT is the cache,
below the directory of the sessions; SESSION is the lease's own session, which protects the entries that its jobs need.
It is sent to the system together with the files that it imports, and needs nothing but Python.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import sys
import time
import urllib.parse

from sublet.platforms.batch.far.asked import AskedFile, leave_to, read_asked
from sublet.platforms.batch.far.fetcher import DEAD, main
from sublet.platforms.batch.far.sources import BrokenOff, FetchFailed, WebSources

STARTS = 3  # of a transfer that ended without a result
PAUSE = 0.2  # seconds between two checks on another job's transfer
LONGEST_PAUSE = 5.0


def is_open(url: str) -> bool:
    """Whether anybody who knows the URL may read it, so that it may be cached for others."""
    parts = urllib.parse.urlsplit(url)
    return parts.scheme.lower() in ("http", "https") and not parts.query and "@" not in parts.netloc


def name_entry(url: str, version: str, size: int) -> str:
    """Return the name of the cache entry, the same for sessions and jobs (data/model/links.py)."""
    text = "\0".join(["", "", f"{url} {version} {size} "])
    return f"data-{hashlib.sha256(text.encode('utf-8', 'surrogateescape')).hexdigest()}"


def describe(url: str) -> tuple[str, int]:
    """Ask the server for a file's version and size; raise FetchFailed if it doesn't give both."""
    answer = WebSources(False).get(url, {"Accept-Encoding": "identity", "User-Agent": "sublet"}, {}, "HEAD")
    answer.read()
    version = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
    length = answer.headers.get("Content-Length") or ""
    if answer.status != 200 or not version or not length.isdigit():
        raise FetchFailed("refused", "its server says nothing by which it is known again")
    return version, int(length)


def open_kept(kept: str) -> None:
    """Make the cache's directory; raise FetchFailed if others can write to it."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(kept, 0o700)
    status = os.stat(kept)
    if status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise FetchFailed("refused", "others could change what is kept")


def need(directory: str, session: str, label: str) -> None:
    """Record that a session needs an entry; call this before looking at the entry."""
    os.makedirs(os.path.join(directory, "users"), 0o700, exist_ok=True)
    for name in (os.path.join("users", session), "used"):
        with open(os.path.join(directory, name), "w"):
            pass
    if not os.path.exists(os.path.join(directory, "label")):
        with open(os.path.join(directory, "label"), "w") as file:
            file.write(label + "\n")


def is_there(directory: str) -> bool:
    """Whether an entry is complete and hasn't been changed since."""
    content, seal = os.path.join(directory, "content"), os.path.join(directory, "seal")
    try:
        if not os.path.exists(seal):
            return os.path.isfile(content)
        with open(seal) as file:
            sealed = file.read().strip()
        state = os.stat(content)
        return state.st_mtime <= os.stat(seal).st_mtime and sealed in ("", f"1 {state.st_size}")
    except OSError:
        return False


def is_claimed(directory: str) -> bool:
    """Whether another process is transferring the entry, by its heartbeat."""
    claim = os.path.join(directory, "claim")
    for sign in (os.path.join(claim, "beat"), claim):
        with contextlib.suppress(OSError):
            return time.time() - os.stat(sign).st_mtime < DEAD
    return False


def have(directory: str, url: str, version: str, size: int) -> None:
    """Get an entry into the cache: fetch it, or wait for another job or session that began earlier."""
    link = {"path": "file", "url": url, "headers": {}, "size": size, "checksum": "", "version": version}
    plan = {"folder": False, "total": size, "public": False, "largest": 0, "rate": 0, "links": [link]}
    for _ in range(STARTS):
        if is_there(directory):
            return
        name = f"plan.{os.uname().nodename}.{os.getpid()}"
        with open(os.path.join(directory, name), "w") as file:
            json.dump(plan, file)
        main(directory, name)
        pause = PAUSE
        while not is_there(directory) and is_claimed(directory):
            time.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE)
    if not is_there(directory):
        raise FetchFailed("failed", "it could not be brought to the cache")


def bring(asked: AskedFile, kept: str, session: str) -> int:
    """Copy a file from the cache to where the job will see it, and return its size."""
    if not is_open(asked.url) or not session:
        raise FetchFailed("refused", "it is not for the cache")
    open_kept(kept)
    version, size = describe(asked.url)
    directory = os.path.join(kept, name_entry(asked.url, version, size))
    parts = urllib.parse.urlsplit(asked.url)
    name = urllib.parse.unquote(parts.path).rpartition("/")[2]
    need(directory, session, "{} from {}".format("".join(filter(str.isprintable, name)), parts.netloc))
    have(directory, asked.url, version, size)
    part = f"{asked.target}.part"
    shutil.copyfile(os.path.join(directory, "content"), part)
    if os.stat(part).st_size != size:
        raise FetchFailed("changed", "it changed while it was copied")
    os.replace(part, asked.target)
    return size


def transfer(plain: str, kept: str, session: str, asked: str, answers: str) -> int:
    """Transfer all files that HTCondor asks for, and return the exit code."""
    with open(asked) as file:
        wanted = read_asked(file.read())
    left = []
    with open(answers, "w") as file:
        for each in wanted:
            try:
                file.write(each.describe(bring(each, kept, session)))
            except (OSError, ValueError, FetchFailed, BrokenOff):
                left.append(each)
    return leave_to(plain, left, asked, answers) if left else 0


if __name__ == "__main__":
    words = sys.argv[1:]
    options = dict(zip(words[3::2], words[4::2]))  # noqa: B905
    sys.exit(transfer(words[0], words[1], words[2], options["-infile"], options["-outfile"]))
