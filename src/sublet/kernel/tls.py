"""The certificate authorities that this machine trusts for TLS, loaded once for many calls."""

from __future__ import annotations

import ssl
import time
from functools import lru_cache

import httpx2

READ_ANEW = 3600  # seconds after which changed authorities are loaded


def trust_machine(*, environment: bool = True) -> ssl.SSLContext:
    """Return a TLS context with the machine's authorities; `environment` honours SSL_CERT_FILE and SSL_CERT_DIR.

    It is cached, since loading the authorities takes longer than most calls.
    """
    return _read(environment, int(time.monotonic() // READ_ANEW))


@lru_cache(maxsize=4)
def _read(environment: bool, hour: int) -> ssl.SSLContext:
    return httpx2.create_ssl_context(trust_env=environment)
