"""Has an image from one of its locations, with each tool's own means, and checks that it is the one that was meant.

Travels with the job: Python alone.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sublet.kinds.inside import image_files as files
from sublet.kinds.inside.container_tools import Image, Plan


class NoImage(Exception):
    """This location doesn't lead to the image; the message says why."""


def say(text: str) -> None:
    """Tell the person."""
    sys.stderr.write(f"sublet: {text}\n")
    sys.stderr.flush()


def ask(*argv: str) -> str:
    """What a tool says; NoImage with its last words if it fails."""
    said = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if said.returncode:
        lines = (said.stderr or said.stdout).strip().splitlines()
        raise NoImage(lines[-1].strip() if lines else f"{argv[0]} failed with {said.returncode}")
    return said.stdout.strip()


def path_of(source: dict[str, str]) -> str:
    """The file of a source: where it lies, or the one file that was brought."""
    if "path" in source:
        return source["path"]
    names = sorted(os.listdir(source["folder"]))
    if not names:
        raise NoImage("it was not brought")
    return os.path.join(source["folder"], names[0])


def pinned(ref: str, digest: str) -> str:
    """A reference that can mean one image only, if its digest is known."""
    name, _, own = ref.partition("@")
    if not (digest or own):
        return ref
    head, slash, last = name.rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}@{digest or own}"


def unpacked_archive(path: str, plan: Plan) -> Image:
    """An archive as a directory, checked."""
    archive = opened(path, plan["digest"])
    try:
        archive.unpack(plan["image"])
    finally:
        archive.close()
    return Image(directory=plan["image"], config=archive.config.get("config") or {}, temporary=True)


def opened(path: str, digest: str) -> files.Archive:
    """An archive that is the one that was meant."""
    archive = files.Archive(path)
    if digest:
        if digest not in (known := archive.known_as()):
            archive.close()
            raise NoImage(f"its digest is not {digest}; it can be told by {', '.join(known)}")
        archive.verify_layers()
    return archive


def unpacked_sif(path: str, plan: Plan) -> Image:
    """A Singularity image as a directory."""
    files.unsquash(plan["paths"]["unsquashfs"], path, plan["image"])
    command = files.singularity_command(plan["image"], plan["command"])
    plan["command"][:] = command
    return Image(directory=plan["image"], singularity=True, temporary=True)


def directory(source: dict[str, str], plan: Plan) -> Image:
    """A directory that is a file system already: nothing can vouch for it."""
    if plan["digest"]:
        raise NoImage("a directory has no digest that could be checked")
    if not os.path.isdir(source["path"]):
        raise NoImage("there is no such directory")
    return Image(directory=source["path"])


def with_podman_or_docker(source: dict[str, str], plan: Plan) -> Image:
    """An image in the tool's own store, by its id."""
    tool, digest, how = plan["paths"][plan["tool"]], plan["digest"], source["how"]
    if how in ("sif", "directory") and plan["tool"] == "docker":
        raise NoImage("Docker has no way to run it; Podman has")
    if how == "sif":
        return unpacked_sif(path_of(source), plan)
    if how == "directory":
        return directory(source, plan)
    if how == "registry":
        inspected = here(tool, source["ref"], digest)
        if inspected is None and source["ref"].startswith("localhost/"):
            raise NoImage("there is no such image here" + (f" with the digest {digest}" if digest else ""))
        if inspected is None:
            say(f"fetching {source['said']}")
            ask(tool, "pull", "--quiet", pinned(source["ref"], digest))
            inspected = here(tool, pinned(source["ref"], digest), digest)
        if inspected is None:
            raise NoImage(f"what was fetched doesn't have the digest {digest}")
        return Image(inspected["Id"], config=inspected.get("Config") or {})
    archive = opened(path_of(source), digest)
    archive.close()
    return Image(loaded(archive, plan), config=archive.config.get("config") or {}, temporary=True)


def loaded(archive: files.Archive, plan: Plan) -> str:
    """The archive's image in the tool's store, under a name of the session's own.

    The name keeps it there while this session needs it; when the last name is taken away, the image goes too.
    """
    tool, name = plan["paths"][plan["tool"]], own_name(plan["name"])
    form = "oci-archive" if archive.digests else "docker-archive"
    fetch = ["load", "--input", archive.path] if plan["tool"] == "docker" else ["pull", f"{form}:{archive.path}"]
    with alone(plan):
        ask(tool, fetch[0], "--quiet", *fetch[1:])
        ask(tool, "tag", archive.id.removeprefix("sha256:"), name)
    return name


@contextmanager
def alone(plan: Plan) -> Iterator[None]:
    """One session at a time: a store forgets names that are given while it takes others away."""
    sessions = os.open(os.path.dirname(os.path.dirname(plan["private"])), os.O_RDONLY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(sessions, fcntl.LOCK_EX)
        yield
    finally:
        os.close(sessions)


def own_name(container: str) -> str:
    """What the image of a session is called, after its container."""
    return f"localhost/{container.lower()}:session"


def here(tool: str, reference: str, digest: str) -> dict[str, Any] | None:
    """What the tool's store says of an image, if it is there and has the digest."""
    try:
        found: dict[str, Any] = json.loads(ask(tool, "image", "inspect", reference))[0]
    except NoImage:
        return None
    digests = [found.get("Digest"), *(name.partition("@")[2] for name in found.get("RepoDigests") or ())]
    ids = [found["Id"], "sha256:" + found["Id"].removeprefix("sha256:")]
    return found if not digest or digest in digests or digest in ids else None


def with_apptainer(source: dict[str, str], plan: Plan) -> Image:
    """An image as one file, made from whatever the location is."""
    tool, how = plan["paths"][plan["tool"]], source["how"]
    if how == "sif":
        return Image(path_of(source))
    if how == "directory":
        return directory(source, plan)
    target = f"{plan['image']}.sif"
    if how == "archive":
        archive = opened(path_of(source), plan["digest"])
        archive.close()
        location = f"{'oci-archive' if archive.digests else 'docker-archive'}:{archive.path}"
    else:
        location = source["ref"] if how == "library" else f"docker://{pinned(source['ref'], plan['digest'])}"
    say(f"fetching {source['said']}")
    ask(tool, "--silent", "pull", "--force", target, location)
    return Image(target, temporary=True)


def with_charliecloud(source: dict[str, str], plan: Plan) -> Image:
    """An image as a directory."""
    how = source["how"]
    if how == "sif":
        return unpacked_sif(path_of(source), plan)
    if how == "directory":
        return directory(source, plan)
    if how == "archive":
        return unpacked_archive(path_of(source), plan)
    for part in ("ch-image", "ch-convert"):
        if part not in plan["paths"]:
            raise NoImage(f"there is no {part} to fetch it with")
    reference = pinned(source["ref"], plan["digest"])
    say(f"fetching {source['said']}")
    ask(plan["paths"]["ch-image"], "pull", reference)
    ask(plan["paths"]["ch-convert"], "-i", "ch-image", "-o", "dir", reference, plan["image"])
    try:
        with open(f"{plan['image']}/ch/config.pulled.json", encoding="utf-8") as file:
            config = json.load(file).get("config") or {}
    except (OSError, ValueError):
        config = {}
    return Image(directory=plan["image"], config=config, temporary=True)


HAVE: dict[str, Callable[[dict[str, str], Plan], Image]] = {
    "podman": with_podman_or_docker,
    "docker": with_podman_or_docker,
    "apptainer": with_apptainer,
    "singularity": with_apptainer,
    "charliecloud": with_charliecloud,
}


def have_image(plan: Plan) -> Image | None:
    """The image from the first location that leads to it; each that doesn't is told."""
    for source in plan["sources"]:
        try:
            return HAVE[plan["tool"]](source, plan)
        except (NoImage, files.NotAnImage, OSError) as why:
            say(f"the image at {source['said']} could not be had: {why}")
            shutil.rmtree(plan["image"], ignore_errors=True)
    return None
