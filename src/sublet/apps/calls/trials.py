"""Calls about trials of apps."""

from __future__ import annotations

from sublet.apps.views.trials import TrialView
from sublet.client.call import Call, as_view


def try_app(archive: bytes, *, name: str = "app", image: str = "", kind: str = "") -> Call[TrialView]:
    """Have one's own service pin an app's files; the answer has the name to request it by."""
    query = {"name": name, "image": image, "kind": kind}
    return Call("POST", "/v1/trials", as_view(TrialView), query=query, body=archive, type="application/octet-stream")
