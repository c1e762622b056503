"""A response header with the version of Sublet."""

from __future__ import annotations

from starlette.types import Message, Scope

from sublet.kernel.version import VERSION

HEADER = (b"sublet-version", VERSION.encode())


def add_version(_: Scope, head: Message) -> Message:
    """Add the version that this process was started with to the head of a response."""
    return {**head, "headers": [*head.get("headers", ()), HEADER]}
