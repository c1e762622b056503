"""Presents a user name and password to a web server: by Basic, or by Digest if that is all that the server takes."""

from __future__ import annotations

from collections.abc import Generator

import httpx2


class LoginAuth(httpx2.Auth):
    """Authenticates by Basic at first, and by Digest from the answer on that asks for it."""

    def __init__(self, user: str, password: str) -> None:
        """Use this login."""
        self._basic, self._digest = httpx2.BasicAuth(user, password), httpx2.DigestAuth(user, password)
        self.is_digest = False  # the server takes Digest only: every request needs a header of its own

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        """Add the header; a body that can't be read twice is not sent again, as the caller has to do that."""
        flow = (self._digest if self.is_digest else self._basic).auth_flow(request)
        response = yield next(flow)
        if response.status_code != httpx2.codes.UNAUTHORIZED or not _wants_digest(response):
            return
        if not self.is_digest:
            self.is_digest = True
            request.headers.pop("Authorization", None)
            flow = self._digest.auth_flow(request)
            next(flow)
        answered = flow.send(response)  # takes up the server's challenge
        if isinstance(request.stream, httpx2.ByteStream):
            yield answered


def needs_digest(auth: httpx2.Auth | None) -> bool:
    """Whether a server was found to take Digest only."""
    return isinstance(auth, LoginAuth) and auth.is_digest


def _wants_digest(response: httpx2.Response) -> bool:
    ways = [header.lower() for header in response.headers.get_list("WWW-Authenticate")]
    return any("digest " in way for way in ways) and not any("basic" in way for way in ways)
