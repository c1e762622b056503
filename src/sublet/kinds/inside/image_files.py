"""Reads image files without any tool: an archive's content, digests and file system.

Travels with the job: standard library only.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import subprocess
import tarfile
from typing import Any

WHITEOUT = ".wh."
OPAQUE = ".wh..wh..opq"
SQUASHFS = b"hsqs"
BLOCK = 1 << 20
INDEX = "sublet.index"  # the annotation by which the image mover marks the index that led to an image


class NotAnImage(Exception):
    """The file is not an image that can be used; the message says why."""


def sha256_of(path: str) -> str:
    """Return the digest of a whole file."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(BLOCK):
            digest.update(piece)
    return "sha256:" + digest.hexdigest()


class Archive:
    """An image in one tar file, from `docker save` or in the OCI layout."""

    def __init__(self, path: str) -> None:
        """Read its manifest and config."""
        self.path = path
        try:
            self.tar = tarfile.open(path)  # noqa: SIM115 (closed by close)
            self.config_name, self.layers = self._table()
            about = self.blob(self.config_name)
            self.config: dict[str, Any] = json.loads(about)
            self.id = "sha256:" + hashlib.sha256(about).hexdigest()  # its id in image stores
        except (OSError, tarfile.TarError, KeyError, IndexError, ValueError) as why:
            raise NotAnImage(f"{path} is not an image archive: {why}") from why

    def close(self) -> None:
        """Close the file."""
        self.tar.close()

    def blob(self, name: str) -> bytes:
        """Return a member's content."""
        file = self.tar.extractfile(name)
        if file is None:
            raise KeyError(name)
        return file.read()

    def _table(self) -> tuple[str, list[str]]:
        self.digests: list[str] = []
        names = set(self.tar.getnames())
        if "index.json" in names:
            entry = json.loads(self.blob("index.json"))["manifests"][0]
            raw = self.blob(_blob_name(entry["digest"]))
            manifest = json.loads(raw)
            if manifest.get("manifests"):  # a nested index: take the entry for this machine
                fits = [m for m in manifest["manifests"] if m.get("platform", {}).get("architecture") == "amd64"]
                entry = (fits or manifest["manifests"])[0]
                raw = self.blob(_blob_name(entry["digest"]))
                manifest = json.loads(raw)
            self.digests.append("sha256:" + hashlib.sha256(raw).hexdigest())
            self.digests += self._indexes(entry, names)
            return _blob_name(manifest["config"]["digest"]), [_blob_name(x["digest"]) for x in manifest["layers"]]
        manifest = json.loads(self.blob("manifest.json"))[0]
        return manifest["Config"], manifest["Layers"]

    def _indexes(self, entry: dict[str, Any], names: set[str]) -> list[str]:
        """Return the digest of the index that led to the image, if the archive has it and it names the image."""
        wanted = (entry.get("annotations") or {}).get(INDEX, "")
        if _blob_name(wanted) not in names:
            return []
        raw = self.blob(_blob_name(wanted))
        named = [each.get("digest") for each in json.loads(raw)["manifests"]]
        digest = "sha256:" + hashlib.sha256(raw).hexdigest()
        return [digest] if digest == wanted and entry["digest"] in named else []

    def list_digests(self) -> list[str]:
        """Return the archive's verified digests: of its manifest, its config (the image id), and the file."""
        return [*self.digests, self.id, sha256_of(self.path)]

    def verify_layers(self) -> None:
        """Raise NotAnImage unless each layer is the one in the config, so that the image's digest covers everything."""
        wanted = self.config.get("rootfs", {}).get("diff_ids", [])
        digests = [self._layer_digest(name) for name in self.layers]
        if wanted != digests:
            raise NotAnImage(f"{self.path}: its layers are not those that its configuration names")

    def _layer_digest(self, name: str) -> str:
        file = self.tar.extractfile(name)
        if file is None:
            raise NotAnImage(f"{self.path}: layer {name} is missing")
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        digest = hashlib.sha256()
        source: Any = gzip.GzipFile(fileobj=file) if packed else file
        while piece := source.read(BLOCK):
            digest.update(piece)
        return "sha256:" + digest.hexdigest()

    def unpack(self, root: str) -> None:
        """Unpack its file system, layer by layer."""
        os.makedirs(root, exist_ok=True)
        for name in self.layers:
            with tarfile.open(fileobj=self.tar.extractfile(name)) as layer:
                for member in layer:
                    apply(layer, member, root)


def _blob_name(digest: str) -> str:
    return "blobs/" + digest.replace(":", "/")


def apply(layer: tarfile.TarFile, member: tarfile.TarInfo, root: str) -> None:
    """Unpack one member of a layer; nothing is ever written outside `root`."""
    parts = [part for part in member.name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise NotAnImage(f"a layer has the path {member.name!r}")
    if not parts:
        return
    folder = inside(root, parts[:-1])
    os.makedirs(folder, exist_ok=True)
    name, target = parts[-1], os.path.join(folder, parts[-1])
    if name == OPAQUE:
        for old in os.listdir(folder):
            remove(os.path.join(folder, old))
    elif name.startswith(WHITEOUT):
        remove(os.path.join(folder, name[len(WHITEOUT) :]))
    elif member.isdir():
        if os.path.islink(target) or not os.path.isdir(target):
            remove(target)
            os.mkdir(target)
        os.chmod(target, member.mode | 0o700)
    else:
        remove(target)
        _place(layer, member, root, target)


def _place(layer: tarfile.TarFile, member: tarfile.TarInfo, root: str, target: str) -> None:
    if member.issym():
        os.symlink(member.linkname, target)
    elif member.islnk():
        parts = [part for part in member.linkname.split("/") if part not in ("", ".")]
        os.link(os.path.join(inside(root, parts[:-1]), parts[-1]), target, follow_symlinks=False)
    elif member.isreg():
        source = layer.extractfile(member)
        with open(target, "wb") as file:
            if source is not None:
                shutil.copyfileobj(source, file, BLOCK)
        os.chmod(target, member.mode & 0o777 | 0o400)
    # Devices and pipes are skipped: our containers don't use the image's own.


def inside(root: str, parts: list[str], depth: int = 0) -> str:
    """Resolve a path with links as the container would see them: `/run` is `root/run`."""
    if depth > 40:
        raise NotAnImage("its links lead in a circle")
    at: list[str] = []
    for number, part in enumerate(parts):
        if part == "..":
            at = at[:-1]
            continue
        path = os.path.join(root, *at, part)
        if os.path.islink(path):
            link = os.readlink(path)
            base = [] if link.startswith("/") else at
            further = [p for p in link.split("/") if p not in ("", ".")]
            return inside(root, [*base, *further, *parts[number + 1 :]], depth + 1)
        at.append(part)
    return os.path.join(root, *at)


def make_place(root: str, target: str, what: str) -> None:
    """Make a mount point in an unpacked image; its links can't lead outside."""
    place = inside(root, [part for part in target.split("/") if part])
    if os.path.exists(place):
        return
    os.makedirs(place if what == "folder" else os.path.dirname(place), exist_ok=True)
    if what == "file":
        with open(place, "a", encoding="utf-8"):
            pass


def make_usual_places(root: str) -> None:
    """Make the mount points that Charliecloud needs in every image."""
    for folder in ("bin", "dev", "etc", "home", "proc", "root", "sys", "tmp", "usr"):
        make_place(root, folder, "folder")
    for name in ("passwd", "group", "hosts", "resolv.conf"):
        make_place(root, f"etc/{name}", "file")  # the machine's own are mounted over these


def remove(path: str) -> None:
    """Remove a file or directory, if it exists."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def squashfs_offset(path: str) -> int:
    """Return where the file system begins in a Singularity image (0 in a bare SquashFS file)."""
    before = b""
    with open(path, "rb") as file:
        at = 0
        while piece := file.read(BLOCK):
            block = before + piece
            start = -1
            while (start := block.find(SQUASHFS, start + 1)) >= 0:
                if len(block) >= start + 30 and block[start + 28 : start + 30] == b"\x04\x00":  # version 4
                    return at - len(before) + start
            before, at = block[-32:], at + len(piece)
    raise NotAnImage(f"{path} has no SquashFS file system in it")


def unsquash(program: str, path: str, root: str) -> None:
    """Unpack the file system of a Singularity image."""
    offset = squashfs_offset(path)
    argv = [program, "-no-progress", "-no-xattrs", "-quiet", "-offset", str(offset), "-dest", root, path]
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        raise NotAnImage(f"{path}: {(done.stderr or done.stdout).strip().splitlines()[-1:]}")


def singularity_command(root: str, command: list[str]) -> list[str]:
    """Return a Singularity image's command: its run script with these words, or the words themselves."""
    script = os.path.join(root, ".singularity.d", "runscript")
    if os.path.exists(script):
        return ["/bin/sh", "/.singularity.d/runscript", *command]
    return command
