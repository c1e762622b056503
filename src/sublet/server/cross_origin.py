"""Requests from pages of other sites (CORS): only from the operator's origins, with a token, and never to our pages."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
SENT = (
    *("Authorization", "Content-Type", "Idempotency-Key", "If-None-Match", "Last-Event-ID", "Prefer", "Range"),
    *("Tus-Resumable", "Upload-Checksum", "Upload-Length", "Upload-Metadata", "Upload-Offset"),
)
SHOWN = (
    *("Content-Disposition", "Content-Range", "ETag", "Location", "Retry-After", "Sublet-Version", "WWW-Authenticate"),
    *("Sublet-Next-Offset", "Tus-Resumable", "Upload-Expires", "Upload-Length", "Upload-Offset"),
)
KEPT = 600  # seconds for which a browser may cache the answer to a preflight
OWN = ("/web", "/connect")  # authorised by cookies or by secrets in the address, so never open to other sites


class CrossOrigin:
    """Middleware that lets browser pages of the given origins call the application."""

    def __init__(self, app: ASGIApp, origins: Sequence[str]) -> None:
        """Let these origins call this application."""
        self.app = app
        self._open = CORSMiddleware(
            app,
            allow_origins=list(origins),
            allow_methods=METHODS,
            allow_headers=SENT,
            expose_headers=SHOWN,
            allow_credentials=False,
            max_age=KEPT,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a preflight, or pass the request on and add the CORS headers."""
        is_open = scope["type"] == "http" and not _is_own(scope["path"])
        await (self._open if is_open else self.app)(scope, receive, send)


def _is_own(path: str) -> bool:
    return any(path == start or path.startswith(f"{start}/") for start in OWN)
