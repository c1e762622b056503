"""Describes what went wrong between this machine and a web server."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress

import httpx2

UNKNOWN_AUTHORITY = (
    "the authority that signed its certificate isn't trusted here; add it to the authorities of the service's machine,"
    " or name a file with all authorities in SSL_CERT_FILE and restart the service"
)
# What is wrong with a certificate, by OpenSSL's number
FAULTS = {
    2: UNKNOWN_AUTHORITY,
    9: "its certificate isn't valid yet",
    10: "its certificate has expired",
    18: UNKNOWN_AUTHORITY,
    19: UNKNOWN_AUTHORITY,
    20: UNKNOWN_AUTHORITY,
    21: UNKNOWN_AUTHORITY,
    62: "its certificate is for another host name",
    64: "its certificate is for another IP address",
}


def describe_web_error(error: httpx2.HTTPError) -> str:
    """Return an error's cause in words, as httpx often gives none."""
    causes = list(_list_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return FAULTS.get(cause.verify_code, f"its certificate can't be verified: {cause.verify_message}")
        if isinstance(cause, socket.gaierror):
            with suppress(RuntimeError):
                return f"the name {error.request.url.host} can't be resolved: {cause.strerror}"
    return str(error) or str(causes[-1]) or type(error).__name__


def is_distrust(error: httpx2.HTTPError) -> bool:
    """Whether a server's certificate was refused, so that another try wouldn't help."""
    return any(isinstance(cause, ssl.SSLCertVerificationError) for cause in _list_causes(error))


def _list_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
