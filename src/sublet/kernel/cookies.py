"""Cookies that a server sets: a client that serves several people must not keep them."""

from __future__ import annotations

from http.cookiejar import CookieJar, DefaultCookiePolicy


def keep_no_cookies() -> CookieJar:
    """Return a jar that stays empty, for an HTTP client that several people share.

    What a server sets for one of them must not be sent for another.
    """
    return CookieJar(DefaultCookiePolicy(allowed_domains=()))
