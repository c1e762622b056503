"""Calls about uploads: list and manage one's own, and send files in pieces."""

from __future__ import annotations

from datetime import timedelta

from sublet.client.call import Call, HttpAnswer, as_view, body_of, nothing, path_of
from sublet.data.model.uploads import write_metadata
from sublet.data.views.uploads import KeepAsk, UploadList, UploadShown, UploadView
from sublet.kernel.views import plain

TUS = {"Tus-Resumable": "1.0.0"}
OCTETS = "application/offset+octet-stream"


def uploads() -> Call[UploadList]:
    """List one's uploads."""
    return Call("GET", path_of("uploads"), as_view(UploadList))


def upload(name: str) -> Call[UploadShown]:
    """Show an upload with its files."""
    return Call("GET", path_of("uploads", name), as_view(UploadShown))


def keep(name: str, duration: timedelta) -> Call[UploadView]:
    """Keep an upload for this long from now on."""
    return Call(
        "POST", path_of("uploads", name, "keep"), as_view(UploadView), body=body_of(plain(KeepAsk(duration=duration)))
    )


def remove(name: str, *, force: bool = False) -> Call[None]:
    """Remove an upload with its files; `force`: even if sessions still need it."""
    return Call("DELETE", path_of("uploads", name), nothing, query={"force": force})


def begin(name: str, path: str, size: int, first: bytes, *, modified: float = 0, executable: bool = False) -> Call[str]:
    """Create a file with its first bytes; return the id to append to."""
    values = {"upload": name, "path": path, "modified": f"{modified:.6f}" if modified > 0 else ""}
    headers = {
        **TUS,
        "Upload-Length": str(size),
        "Upload-Metadata": write_metadata({**values, "executable": "1" if executable else ""}),
    }
    return Call("POST", path_of("tus"), _read_id, body=first, type=OCTETS, more=headers)


def append(id: str, offset: int, piece: bytes) -> Call[int]:
    """Append a piece to a file; return the new offset."""
    headers = {**TUS, "Upload-Offset": str(offset)}
    return Call("PATCH", path_of("tus", id), _read_offset, body=piece, type=OCTETS, more=headers)


def offset(id: str) -> Call[int]:
    """Return how many bytes of a file have come."""
    return Call("GET", path_of("tus", id), _read_offset, more=TUS)


def cancel(id: str) -> Call[None]:
    """Cancel a file's upload, or remove the file."""
    return Call("DELETE", path_of("tus", id), nothing, more=TUS)


def _read_id(answer: HttpAnswer) -> str:
    return answer.headers["location"].rpartition("/")[2]


def _read_offset(answer: HttpAnswer) -> int:
    return int(answer.headers["upload-offset"])
