"""Calls about usage."""

from __future__ import annotations

from sublet.access.views.usage import UsageReport
from sublet.client.call import Call, as_bytes, as_view, path_of

CSV = "text/csv"


def usage(**asked: str) -> Call[UsageReport]:
    """Report usage by `platform`, `person`, and `quarter` or `since` and `until`."""
    return Call("GET", path_of("usage"), as_view(UsageReport), query=asked)


def usage_csv(**asked: str) -> Call[bytes]:
    """Report usage as CSV."""
    return Call("GET", path_of("usage"), as_bytes, query=asked, accept=CSV)
