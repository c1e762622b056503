"""Uploads a session's results from the system itself; it is sent there behind `sources.py`, and needs only Python.

Its argument is the directory of the results; stdin has the plan, which contains secrets.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import time
import urllib.parse
from typing import Any, BinaryIO

from sublet.platforms.batch.far.sources import FetchFailed, WebSources

TRIES = 3
PAUSE = 1.0  # seconds before the second try; doubled before the third
BLOCK = 1 << 20
AGAIN = (408, 425, 429, 500, 502, 503, 504)


class PacedFile:
    """A file that is read at most at `rate` bytes a second; 0: no limit."""

    def __init__(self, file: BinaryIO, rate: int) -> None:
        """Read from the file's current position."""
        self.file, self.rate = file, rate

    def read(self, size: int = BLOCK) -> bytes:
        """Read the next piece."""
        piece = self.file.read(min(size, self.rate) if self.rate else size)
        if self.rate:
            time.sleep(len(piece) / self.rate)
        return piece


def send_file(sources: WebSources, root: str, put: dict[str, Any], rate: int) -> None:
    """Upload one file completely; raise FetchFailed if that fails. Redirects aren't followed."""
    path = os.path.realpath(os.path.join(root, put["path"]))
    if os.path.commonpath([path, os.path.realpath(root)]) != os.path.realpath(root):
        raise FetchFailed("refused", "it is a link that leads elsewhere")
    parts = urllib.parse.urlsplit(put["url"])
    target = (parts.path or "/") + ("?" + parts.query if parts.query else "")
    why = ""
    for number in range(TRIES):
        if number:
            time.sleep(PAUSE * 2 ** (number - 1))
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size != put["size"]:
                raise FetchFailed("changed", "it is not as large as it was")
            connection = sources.connect(parts)
            connection.blocksize = BLOCK
            try:
                headers = {"Content-Length": str(put["size"]), "User-Agent": "sublet", **put["headers"]}
                connection.request("PUT", target, body=PacedFile(file, rate), headers=headers)
                answer = connection.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException) as error:
                why = str(error) or type(error).__name__
                continue
            finally:
                connection.close()
        if 200 <= answer.status < 300:
            return
        why = f"the server answered {answer.status} {answer.reason}"
        if answer.status not in AGAIN:
            break
    raise FetchFailed("refused", why)


def main() -> int:
    """Upload all files, and stop at the first failure."""
    plan = json.load(sys.stdin)
    sources = WebSources(plan["public"])
    for put in plan["puts"]:
        try:
            send_file(sources, sys.argv[1], put, plan["rate"])
        except FetchFailed as failed:
            json.dump({"kind": failed.kind, "why": failed.why}, sys.stdout)
            return 0
        except OSError as error:
            json.dump({"kind": "failed", "why": str(error)}, sys.stdout)
            return 0
    json.dump({"kind": "sent"}, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
