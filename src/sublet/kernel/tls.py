"""Whom to trust over TLS: the certificate authorities of this machine, read once for many calls."""

from __future__ import annotations

import ssl
import time
from functools import lru_cache

import httpx2

READ_ANEW = 3600  # seconds after which an operator's change of the authorities counts


def trust_machine(*, environment: bool = True) -> ssl.SSLContext:
    """The machine's authorities, or with `environment` those that SSL_CERT_FILE or SSL_CERT_DIR names.

    To read them takes longer than most calls do.
    """
    return _read(environment, int(time.monotonic() // READ_ANEW))


@lru_cache(maxsize=4)
def _read(environment: bool, hour: int) -> ssl.SSLContext:
    return httpx2.create_ssl_context(trust_env=environment)
