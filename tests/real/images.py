"""A tiny container image out of Debian's static busybox, in every form that an image comes in. No registry is asked."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

BUSYBOX = "/bin/busybox"
APPLETS = ("sh", "cat", "echo", "env", "id", "ls", "mkdir", "httpd", "pwd", "sleep", "touch", "dd", "tr", "wc", "nc")
SIF_HEAD = b"#!/usr/bin/env run-singularity\n".ljust(32768, b"\0")  # what lies before the file system in a real one


def made_busybox() -> bool:
    """Whether the one ingredient is here."""
    return Path(BUSYBOX).exists()


def layer(*, doc: bytes = b"made for tests\n", more: Mapping[str, Path | bytes] | None = None) -> bytes:
    """The image's only layer: busybox, and more files by their paths."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as tar:
        for name in ("bin", "etc", "tmp", "work", "input", "home", "usr", "proc", "sys", "dev", "app"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(folder)
        for name, content, mode in (
            ("bin/busybox", Path(BUSYBOX).read_bytes(), 0o755),
            ("etc/passwd", b"root:x:0:0::/:/bin/sh\nann:x:1000:1000::/:/bin/sh\n", 0o644),
            ("etc/group", b"root:x:0:\nann:x:1000:\n", 0o644),
            ("app/doc", doc, 0o644),
        ):
            file = tarfile.TarInfo(name)
            file.size, file.mode = len(content), mode
            tar.addfile(file, io.BytesIO(content))
        for name in APPLETS:
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            tar.addfile(link)
        for path, file in (more or {}).items():
            _add(tar, path.strip("/"), file)
    return target.getvalue()


def _add(tar: tarfile.TarFile, path: str, file: Path | bytes) -> None:
    """A program or module, at the time by which Python knows that what is compiled is not old."""
    member = tarfile.TarInfo(path)
    content = file if isinstance(file, bytes) else file.read_bytes()
    member.size, member.mode = len(content), 0o755
    member.mtime = 0 if isinstance(file, bytes) else int(file.stat().st_mtime)
    tar.addfile(member, io.BytesIO(content))


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def config(layers: list[bytes], **changes: Any) -> bytes:
    """The image's configuration: it prints its words unless told otherwise."""
    own = {"Entrypoint": ["/bin/echo", "entry"], "Cmd": ["by", "default"], "Env": ["PATH=/bin", "FROM_IMAGE=yes"]}
    document = {
        "architecture": "amd64",
        "os": "linux",
        "config": own | changes,
        "rootfs": {"type": "layers", "diff_ids": [digest(data) for data in layers]},
    }
    return json.dumps(document).encode()


def docker_archive(path: Path, data: bytes = b"", called: str = "", **changes: Any) -> str:
    """As `docker save` writes it, of busybox or another layer; returns the image's id."""
    data = data or layer()
    about = config([data], **changes)
    name = hashlib.sha256(about).hexdigest()
    tags = [called] if called else None
    table = json.dumps([{"Config": f"{name}.json", "RepoTags": tags, "Layers": ["l/layer.tar"]}]).encode()
    write_tar(path, {f"{name}.json": about, "l/layer.tar": data, "manifest.json": table})
    return f"sha256:{name}"


def oci_archive(path: Path, **changes: Any) -> str:
    """In the OCI layout, packed by gzip; returns the digest of its manifest."""
    data = layer()
    about, packed = config([data], **changes), gzip.compress(data, mtime=0)
    form = "application/vnd.oci.image"
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": f"{form}.manifest.v1+json",
            "config": {"mediaType": f"{form}.config.v1+json", "digest": digest(about), "size": len(about)},
            "layers": [{"mediaType": f"{form}.layer.v1.tar+gzip", "digest": digest(packed), "size": len(packed)}],
        }
    ).encode()
    entry = {"mediaType": f"{form}.manifest.v1+json", "digest": digest(manifest), "size": len(manifest)}
    blobs = {f"blobs/{digest(blob).replace(':', '/')}": blob for blob in (about, packed, manifest)}
    index = json.dumps({"schemaVersion": 2, "manifests": [entry]}).encode()
    write_tar(path, {"oci-layout": b'{"imageLayoutVersion": "1.0.0"}', "index.json": index, **blobs})
    return digest(manifest)


def write_tar(path: Path, members: dict[str, bytes]) -> None:
    with tarfile.open(path, "w") as tar:
        folders = {str(folder) for name in members for folder in PurePosixPath(name).parents}
        for name in sorted(folders - {"."}):  # Apptainer wants them, and every real tool writes them
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(folder)
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))


def directory(path: Path) -> Path:
    """As a directory with its file system."""
    path.mkdir()
    with tarfile.open(fileobj=io.BytesIO(layer())) as tar:
        tar.extractall(path)
    return path


def sif(path: Path, runscript: str = 'echo "run script: $@"\n') -> Path:
    """As a Singularity image: a head, then a SquashFS file system with a run script."""
    root = directory(path.with_suffix(".root"))
    (root / ".singularity.d").mkdir()
    (root / ".singularity.d" / "runscript").write_text("#!/bin/sh\n" + runscript)
    bare = path.with_suffix(".bare")
    subprocess.run(["mksquashfs", root, bare, "-noappend", "-quiet", "-no-progress"], check=True, capture_output=True)
    path.write_bytes(SIF_HEAD + bare.read_bytes())
    bare.unlink()
    shutil.rmtree(root)
    return path
