"""Calls about the archive of ended sessions."""

from __future__ import annotations

from sublet.archive.views.archive import ArchivePage, CalibrationList, ErasedView
from sublet.client.call import Call, as_bytes, as_view, path_of


def list_records(after: str = "", limit: int = 100, **wanted: object) -> Call[ArchivePage]:
    """List a page of records, filtered by `person`, `platform`, `since` and `until`."""
    return Call("GET", path_of("archive"), as_view(ArchivePage), query={**wanted, "after": after, "limit": limit})


def export(format: str, **wanted: object) -> Call[bytes]:
    """Export all records, as `jsonl` or `csv`."""
    return Call("GET", path_of("archive", "export"), as_bytes, query={**wanted, "format": format}, accept="*/*")


def calibration(since: str | None = None) -> Call[CalibrationList]:
    """Get how often predictions came true."""
    return Call("GET", path_of("archive", "calibration"), as_view(CalibrationList), query={"since": since})


def request_of(session: str) -> Call[bytes]:
    """Get the request of one's own archived session, as it was sent."""
    return Call("GET", path_of("archive", session, "request"), as_bytes, accept="*/*")


def forget(person: str = "", records: bool = False) -> Call[ErasedView]:
    """Erase whose records these are, and what the person typed; with `records`, erase the records, too."""
    query = {"person": person, "records": records}
    return Call("DELETE", path_of("archive"), as_view(ErasedView), query=query)
