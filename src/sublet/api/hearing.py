"""Whether whoever asked is still there."""

from __future__ import annotations

from starlette.requests import Request


def has_gone(request: Request) -> bool:
    """Whether the client of a request whose body was read has closed the connection, as far as that is known now.

    What would come next is looked at without waiting for it: Starlette's way makes and cancels a scope for that, which
    costs as much as a read of the database.
    """
    coming = request.receive()
    try:
        coming.send(None)  # type: ignore[attr-defined]
    except StopIteration as there:
        return bool(there.value["type"] == "http.disconnect")
    coming.close()  # type: ignore[attr-defined]
    return False
