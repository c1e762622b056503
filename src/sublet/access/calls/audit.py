"""Calls about the audit log."""

from __future__ import annotations

from sublet.access.views.audit import AuditPage
from sublet.client.call import Call, as_bytes, as_view, path_of


def audit(after: int = 0, limit: int = 100, **sought: object) -> Call[AuditPage]:
    """List a page of entries, by `person`, `action`, `noun`, `name`, `since` and `until`."""
    return Call("GET", path_of("audit"), as_view(AuditPage), query={**sought, "after": after, "limit": limit})


def export(format: str, **sought: object) -> Call[bytes]:
    """Export all matching entries, as `jsonl` or `csv`."""
    return Call("GET", path_of("audit", "export"), as_bytes, query={**sought, "format": format}, accept="*/*")
