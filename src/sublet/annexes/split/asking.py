"""Forwards a node's claim from the spool to the service's endpoint for pilots, as the node itself would send it."""

from __future__ import annotations

import http.client
import ssl
from urllib.parse import urlsplit

PATIENCE = 30.0
LARGEST = 1 << 30


class Refused(Exception):
    """The service said no, in these words."""


class Endpoint:
    """The service's endpoint for pilots, whose certificate is known."""

    def __init__(self, urls: tuple[str, ...], certificate: str, lease: str) -> None:
        """Use these addresses for one lease."""
        self._urls, self._certificate, self._lease = urls, certificate, lease

    def claim(self, number: int, asked: str) -> bytes:
        """Return the answer to a node's claim; raise Refused, or OSError while the service doesn't answer."""
        words = f"{asked.rstrip()}\ncarry=spool\n".encode()
        for url in self._urls:
            try:
                return self._post(url, f"/pilots/{self._lease}/{number}/claim", words)
            except http.client.HTTPException as error:
                raise ConnectionError(str(error)) from error
            except OSError as error:
                last = error
        raise last if self._urls else ConnectionError("there is nobody to ask")

    def _post(self, url: str, path: str, words: bytes) -> bytes:
        context = ssl.create_default_context(cafile=self._certificate)
        context.check_hostname = False  # only the service's own certificate is trusted
        where = urlsplit(url)
        line = http.client.HTTPSConnection(where.hostname or "", where.port, timeout=PATIENCE, context=context)
        try:
            line.request("POST", where.path.rstrip("/") + path, words, {"Content-Type": "text/plain"})
            answer = line.getresponse()
            content = answer.read(LARGEST)
        finally:
            line.close()
        if 400 <= answer.status < 500 and answer.status != 429:
            raise Refused(content.decode(errors="replace").splitlines()[0][:300] if content else str(answer.status))
        if answer.status >= 300:
            raise ConnectionError(f"it answered with {answer.status}")
        return content
