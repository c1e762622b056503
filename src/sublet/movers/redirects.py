"""Redirects of requests that write: they are followed only where the same file is sent again, and never become a GET.

HTTP clients answer a 302 or 303 to a PUT with a GET, whose success would pass for that of the PUT.
"""

from __future__ import annotations

import httpx2

from sublet.movers.arrival import without_secrets

SESSION_TOKEN = "x-amz-security-token"  # noqa: S105 - a header
READS = ("GET", "HEAD")
LEADS_TO_A_GET = (302, 303)
SAME_METHOD = (307, 308)  # storage servers lead with these to the node that stores a file


class RedirectRefused(httpx2.TransportError):
    """A request that writes was redirected in a way that isn't followed."""


async def refuse_other_methods(response: httpx2.Response) -> None:
    """Raise RedirectRefused if following a redirect would turn a request that writes into one that reads."""
    method, code = response.request.method, response.status_code
    if method in READS or not response.has_redirect_location:
        return
    if code in LEADS_TO_A_GET or (code == 301 and method in ("POST", "PUT")):
        raise RedirectRefused(f"{_describe(response)}, which is not followed when something is sent")


async def hide_session_token(response: httpx2.Response) -> None:
    """Drop the session token of S3 keys before a redirect is followed: the client itself drops only Authorization."""
    if response.has_redirect_location:
        response.request.headers.pop(SESSION_TOKEN, None)


def find_next(response: httpx2.Response) -> httpx2.URL | None:
    """Return where the same file has to be sent instead; None if the response isn't such a redirect."""
    if response.status_code not in SAME_METHOD or response.next_request is None:
        return None
    leads_to = response.next_request.url
    if response.request.url.scheme == "https" and leads_to.scheme != "https":
        raise RedirectRefused(f"{_describe(response)}, without encryption")
    return leads_to


def is_same_host(one: httpx2.URL, other: httpx2.URL) -> bool:
    """Whether two addresses have the same protection, host and port, and so the same credential."""
    return (one.scheme, one.netloc) == (other.scheme, other.netloc)


def _describe(response: httpx2.Response) -> str:
    where = without_secrets(response.headers["Location"])
    return f"the server answered {response.status_code} {response.reason_phrase}: it leads to {where}"
