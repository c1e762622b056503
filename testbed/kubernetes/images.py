"""Docker archives of one layer, out of files: what containerd imports where there is no registry."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

FOLDERS = ("bin", "etc", "home", "proc", "root", "tmp", "usr", "usr/bin", "var", "var/tmp")
OPEN = frozenset({"tmp", "var/tmp"})
PATH = "/usr/local/bin:/usr/bin:/bin"
MADE = "2026-01-01T00:00:00Z"
USERS = b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"


def write_image(target: Path, name: str, layer: bytes, entrypoint: Sequence[str] = ()) -> None:
    """An image of one layer, which is a tar archive."""
    digest = hashlib.sha256(layer).hexdigest()
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": list(entrypoint) or None, "Env": [f"PATH={PATH}"], "WorkingDir": "/"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        "history": [{"created": MADE}],
    }
    body = json.dumps(config).encode()
    called = f"{hashlib.sha256(body).hexdigest()}.json"
    manifest: list[dict[str, Any]] = [{"Config": called, "RepoTags": [name], "Layers": [f"{digest}.tar"]}]
    with tarfile.open(target, "w") as archive:
        for path, content in (
            (called, body),
            (f"{digest}.tar", layer),
            ("manifest.json", json.dumps(manifest).encode()),
        ):
            _add(archive, path, content)


def make_layer(files: Mapping[str, Path], links: Sequence[str] = ()) -> bytes:
    """A layer of these files, with links to BusyBox for its applets."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as layer:
        for folder in FOLDERS:
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder in OPEN else 0o755
            layer.addfile(entry)
        for path, source in sorted(files.items()):
            layer.add(source, path, recursive=False)
        _add(layer, "etc/passwd", USERS)
        for applet in links:
            entry = tarfile.TarInfo(f"bin/{applet}")
            entry.type, entry.linkname = tarfile.SYMTYPE, "busybox"
            layer.addfile(entry)
    return buffer.getvalue()


def _add(archive: tarfile.TarFile, path: str, content: bytes) -> None:
    entry = tarfile.TarInfo(path)
    entry.size, entry.mode = len(content), 0o755
    archive.addfile(entry, io.BytesIO(content))
