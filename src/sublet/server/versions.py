"""Every answer says which version of Sublet gave it."""

from __future__ import annotations

from starlette.types import Message, Scope

from sublet.kernel.version import VERSION

HEADER = (b"sublet-version", VERSION.encode())


def add_version(_: Scope, head: Message) -> Message:
    """The head of an answer, with the version that this process was started with."""
    return {**head, "headers": [*head.get("headers", ()), HEADER]}
