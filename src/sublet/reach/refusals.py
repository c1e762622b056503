"""The meaning of ssh's error messages: refused, or unreachable at the moment."""

from __future__ import annotations

import re
from enum import StrEnum

from sublet.kernel.errors import PlatformRefused, PlatformUnreachable

BUSY = re.compile(
    r"Session open refused by peer|session request failed|channel open refused|administratively prohibited"
)
_CHANGED = re.compile(r"REMOTE HOST IDENTIFICATION HAS CHANGED|differs from the key for the IP address")
_UNKNOWN = re.compile(r"Host key verification failed|host key is known|The authenticity of host")
_DENIED = re.compile(
    r"Permission denied|Too many authentication failures|Authentication failed|No supported authentication methods"
    r"|Access denied|Account .*(locked|expired)|Certificate invalid|no matching|Bad (owner|configuration)|Unprotected"
)
_CLOSED = re.compile(r"^Connection (closed|reset) by ", re.MULTILINE)
_AT_ONCE = re.compile(r"kex_exchange_identification|banner exchange")  # before any question could have been asked


class HostKey(StrEnum):
    """What is wrong with a host's key; an error about the key carries this as its value `host_key`."""

    CHANGED = "changed"  # another host may be answering
    UNCONFIRMED = "unconfirmed"  # no person has confirmed it


def read_refusal(platform: str, host: str, words: str) -> PlatformRefused | PlatformUnreachable:
    """Return the error for a failed ssh login, with ssh's own message."""
    why = last_words(words)
    if _CHANGED.search(words):
        match = re.search(r"fingerprint for the \S+ key sent by the remote host is\s+(\S+)", words)
        sent = f" It sent {match[1].rstrip('.')}." if match else ""
        where = re.search(r'ssh-keygen -f ["\'].*["\'] -R ["\'].*["\']', words)
        remove = where[0] if where else f"ssh-keygen -R {host}"
        return PlatformRefused(
            f"The host key of {host} has changed, so it may not be {host} that answers.{sent} ssh says: {why}",
            hint=f"Ask the centre. Only if it says that its key is a new one, remove the old one: {remove}",
            host_key=HostKey.CHANGED,
        )
    if _UNKNOWN.search(words):
        return PlatformRefused(
            f"The host key of {host} was not confirmed, so nothing was sent. ssh says: {why}",
            hint="Compare the fingerprint with the one that the centre publishes; if they are the same, answer `yes`.",
            host_key=HostKey.UNCONFIRMED,
        )
    if _DENIED.search(words):
        return PlatformRefused(
            platform=platform,
            why=why,
            hint=f"Check the user name, the key, the password and the code, then: sublet system login {platform}",
        )
    if _CLOSED.search(words) and not _AT_ONCE.search(words):
        return PlatformUnreachable(
            platform=platform,
            why=f"{host} closed the connection before the login was complete, as it does when an answer takes long",
            hint=f"Have your code at hand, and sign in again: sublet system login {platform}",
        )
    return PlatformUnreachable(platform=platform, why=why)


def last_words(words: str) -> str:
    """Return the last lines of ssh's output, without the frame around its warnings."""
    lines = [line.strip() for line in words.splitlines()]
    return "; ".join([line for line in lines if line and not line.startswith("@")][-3:]) or "ssh gave no reason"
