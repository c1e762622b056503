"""Gets an image from one of its locations with each tool's own means, and checks its digest.

Travels with the job: standard library only.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sublet.kinds.inside import container_tools as tools
from sublet.kinds.inside import image_files as files
from sublet.kinds.inside.container_tools import Plan, ToolImage
from sublet.kinds.inside.container_unpacked import can_run_unpacked, find_unpacked, use_unpacked


class NoImage(Exception):
    """This location doesn't lead to the image; the message says why."""


def say(text: str) -> None:
    """Print a message for the user."""
    sys.stderr.write(f"sublet: {text}\n")
    sys.stderr.flush()


def ask(*argv: str, **environment: str) -> str:
    """Run a tool and return its output; raise NoImage with its last message if it fails."""
    env = {**os.environ, **environment}
    done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=env)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise NoImage(lines[-1].strip() if lines else f"{argv[0]} failed with {done.returncode}")
    return done.stdout.strip()


def path_of(source: dict[str, str]) -> str:
    """Return the file of a source: its path, or the one file that was staged."""
    if "path" in source:
        return source["path"]
    names = sorted(os.listdir(source["folder"]))
    if not names:
        raise NoImage("it was not brought")
    return os.path.join(source["folder"], names[0])


def was_brought(source: dict[str, str]) -> bool:
    """Whether a registry image was staged already, as nothing can be fetched where this runs."""
    return os.path.isdir(source["folder"]) and bool(os.listdir(source["folder"]))


def sif_of(path: str, plan: Plan) -> str:
    """Return a Singularity image after checking its digest."""
    if plan["digest"] and files.sha256_of(path) != plan["digest"]:
        raise NoImage(f"its digest is not {plan['digest']}")
    return path


def pin(ref: str, digest: str) -> str:
    """Return a reference that identifies one image only, if its digest is known."""
    name, _, own = ref.partition("@")
    if not (digest or own):
        return ref
    head, slash, last = name.rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}@{digest or own}"


def have_unpacked(source: dict[str, str], plan: Plan) -> ToolImage | None:
    """Return an image file as a directory that was unpacked before the session; None if it wasn't."""
    about = find_unpacked(path_of(source), plan, is_brought="path" not in source)
    if about is None or (plan["tool"] == "podman" and not can_run_unpacked(plan["paths"]["podman"], about)):
        return None
    if plan["digest"] and plan["digest"] not in about["digests"]:
        raise NoImage(f"its digest is not {plan['digest']}; it can be told by {', '.join(about['digests'])}")
    if about["singularity"]:
        choose_command(about["root"], plan)
    return use_unpacked(about)


def unpack_archive(path: str, plan: Plan) -> ToolImage:
    """Unpack an archive into a directory, after checking it."""
    archive = open_archive(path, plan["digest"])
    try:
        archive.unpack(plan["image"])
    finally:
        archive.close()
    return ToolImage(directory=plan["image"], config=archive.config.get("config") or {}, temporary=True)


def open_archive(path: str, digest: str) -> files.Archive:
    """Open an archive after checking its digest."""
    archive = files.Archive(path)
    try:
        check_digest(archive, digest)
    except (NoImage, files.NotAnImage):
        archive.close()
        raise
    return archive


def check_digest(archive: files.Archive, digest: str, *, verify: bool = True) -> None:
    """Raise NoImage if an archive's digest is wrong; `verify` also checks its layers, unless that was done before."""
    if digest and digest not in (*archive.digests, archive.id) and digest not in (known := archive.list_digests()):
        raise NoImage(f"its digest is not {digest}; it can be told by {', '.join(known)}")
    if digest and verify:
        archive.verify_layers()


def unpack_sif(path: str, plan: Plan) -> ToolImage:
    """Unpack a Singularity image into a directory."""
    files.unsquash(plan["paths"]["unsquashfs"], path, plan["image"])
    choose_command(plan["image"], plan)
    return ToolImage(directory=plan["image"], singularity=True, temporary=True)


def choose_command(root: str, plan: Plan) -> None:
    """Run a Singularity image's own command, unless another entrypoint is given."""
    if not plan["entrypoint"]:
        plan["command"][:] = files.singularity_command(root, plan["command"])


def directory(source: dict[str, str], plan: Plan) -> ToolImage:
    """Use a directory that is a file system already, which can't be verified."""
    if plan["digest"]:
        raise NoImage("a directory has no digest that could be checked")
    if not os.path.isdir(source["path"]):
        raise NoImage("there is no such directory")
    return ToolImage(directory=source["path"])


def with_podman_or_docker(source: dict[str, str], plan: Plan) -> ToolImage:
    """Return an image in the tool's own store, by its id."""
    tool, digest, how = plan["paths"][plan["tool"]], plan["digest"], source["how"]
    if how in ("sif", "directory") and plan["tool"] == "docker":
        raise NoImage("Docker has no way to run it; Podman has")
    if how == "sif":
        return have_unpacked(source, plan) or unpack_sif(sif_of(path_of(source), plan), plan)
    if how == "directory":
        return directory(source, plan)
    if how == "registry":
        inspected = find_here(tool, source["ref"], digest)
        if inspected is None and source["ref"].startswith("localhost/"):
            raise NoImage("there is no such image here" + (f" with the digest {digest}" if digest else ""))
        if inspected is None:
            say(f"fetching {source['said']}")
            ask(tool, "pull", "--quiet", pin(source["ref"], digest))
            inspected = find_here(tool, pin(source["ref"], digest), digest)
        if inspected is None:
            raise NoImage(f"what was fetched doesn't have the digest {digest}")
        return ToolImage(inspected["Id"], config=inspected.get("Config") or {})
    if plan["tool"] == "podman" and (unpacked := have_unpacked(source, plan)):
        return unpacked
    archive = files.Archive(path_of(source))
    try:
        stored = find_here(tool, name_kept(archive.id), "")
        is_stored = stored is not None and "sha256:" + stored["Id"].removeprefix("sha256:") == archive.id
        check_digest(archive, digest, verify=not is_stored)
    finally:
        archive.close()
    name = tag(archive, plan) if is_stored else load(archive, plan)
    return ToolImage(name, config=archive.config.get("config") or {}, temporary=True)


def name_kept(id: str) -> str:
    """Return an image's name in a store that was loaded before sessions need it (platforms/local/made_images.py)."""
    return f"localhost/sublet-kept:{id.partition(':')[2]}"


def tag(archive: files.Archive, plan: Plan) -> str:
    """Tag an image in the tool's store with a name of the session's own."""
    name = own_name(plan["name"])
    with alone():
        ask(plan["paths"][plan["tool"]], "tag", archive.id.removeprefix("sha256:"), name)
    return name


def load(archive: files.Archive, plan: Plan) -> str:
    """Load the archive's image into the tool's store, under a name of the session's own.

    The name keeps it there while this session needs it; the image is removed with its last name.
    """
    tool, name = plan["paths"][plan["tool"]], own_name(plan["name"])
    form = "oci-archive" if archive.digests else "docker-archive"
    fetch = ["load", "--input", archive.path] if plan["tool"] == "docker" else ["pull", f"{form}:{archive.path}"]
    with alone():
        ask(tool, fetch[0], "--quiet", *fetch[1:])
        ask(tool, "tag", archive.id.removeprefix("sha256:"), name)
    return name


@contextmanager
def alone() -> Iterator[None]:
    """Hold a lock of this user's image store.

    A store loses names that are given while it removes others, whichever service started the sessions.
    """
    store = os.open(find_store_folder(), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with suppress(OSError):  # the file system may lack locks
            fcntl.flock(store, fcntl.LOCK_EX)
        yield
    finally:
        os.close(store)


def find_store_folder() -> str:
    """Return a directory that exactly those who share an image store can see."""
    home = os.path.expanduser("~")  # Podman's rootless store is below it
    folders = (home,) if os.geteuid() else ("/var/lib/containers", "/var/lib")
    return next((folder for folder in folders if os.path.isdir(folder)), "/")


def own_name(container: str) -> str:
    """Return the name of a session's image, after its container."""
    return f"localhost/{container.lower()}:session"


def find_here(tool: str, reference: str, digest: str) -> dict[str, Any] | None:
    """Return what the tool's store says of an image, if it is there and has the digest."""
    try:
        image: dict[str, Any] = json.loads(ask(tool, "image", "inspect", reference))[0]
    except NoImage:
        return None
    digests = [image.get("Digest"), *(name.partition("@")[2] for name in image.get("RepoDigests") or ())]
    ids = [image["Id"], "sha256:" + image["Id"].removeprefix("sha256:")]
    return image if not digest or digest in digests or digest in ids else None


def with_apptainer(source: dict[str, str], plan: Plan) -> ToolImage:
    """Return an image as one file, built from whatever the location is."""
    how = source["how"]
    if how == "sif":
        return ToolImage(sif_of(path_of(source), plan))
    if how == "directory":
        return directory(source, plan)
    if how == "archive":
        path = path_of(source)
        if not tarfile.is_tarfile(path):
            return ToolImage(path)  # built from that very image where it could be fetched
        if made := find_made(path, plan):
            return ToolImage(made)
        return (
            ToolImage(share_sif(path, plan)) if os.path.islink(path) else ToolImage(own_sif(path, plan), temporary=True)
        )
    location = source["ref"] if how == "library" else f"docker://{pin(source['ref'], plan['digest'])}"
    say(f"fetching {source['said']}")
    return ToolImage(make_sif(location, f"{plan['image']}.sif", plan), temporary=True)


def find_made(path: str, plan: Plan) -> str:
    """Return the Singularity image that was built from an archive before the session; empty if there is none."""
    archive = files.Archive(path)
    try:
        made = f"{plan['image']}-{archive.id.partition(':')[2]}.sif"
        if not os.path.exists(made):
            return ""
        check_digest(archive, plan["digest"], verify=False)
    finally:
        archive.close()
    return made


def own_sif(path: str, plan: Plan) -> str:
    """Convert an archive to a Singularity image for this session only."""
    archive = open_archive(path, plan["digest"])
    archive.close()
    return make_sif(transport(archive), f"{plan['image']}.sif", plan)


def share_sif(path: str, plan: Plan) -> str:
    """Convert a shared archive to a Singularity image beside it, which sessions share too; the first one builds it."""
    shared = os.path.realpath(path)
    target, known = (os.path.join(os.path.dirname(shared), name) for name in ("image.sif", "image.names"))
    with only_one(os.path.join(os.path.dirname(shared), "lock")):
        if not os.path.exists(target):
            say("preparing the image, once for all sessions here")
            archive = open_archive(shared, "")
            archive.verify_layers()
            archive.close()
            with open(known, "w", encoding="ascii") as file:
                file.write("\n".join(archive.list_digests()))
            os.rename(make_sif(transport(archive), f"{target}.{plan['name']}", plan), target)
    with open(known, encoding="ascii") as file:
        names = file.read().split()
    if plan["digest"] and plan["digest"] not in names:
        raise NoImage(f"its digest is not {plan['digest']}; it can be told by {', '.join(names)}")
    return target


def transport(archive: files.Archive) -> str:
    """Return an archive's address in Apptainer's syntax."""
    return f"{'oci-archive' if archive.digests else 'docker-archive'}:{archive.path}"


def make_sif(location: str, target: str, plan: Plan) -> str:
    """Build a Singularity image from a location, and leave nothing else behind."""
    tool = plan["paths"][plan["tool"]]
    ask(tool, "--silent", "pull", "--disable-cache", "--force", target, location, **tools.apptainer_home(plan))
    return target


@contextmanager
def only_one(path: str) -> Iterator[None]:
    """Hold a lock, if the file system has locks; without them the last writer wins."""
    with open(path, "a", encoding="ascii") as lock:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def with_charliecloud(source: dict[str, str], plan: Plan) -> ToolImage:
    """Return an image as a directory."""
    how = source["how"]
    if how == "sif":
        return have_unpacked(source, plan) or unpack_sif(sif_of(path_of(source), plan), plan)
    if how == "directory":
        return directory(source, plan)
    if how == "archive":
        return have_unpacked(source, plan) or unpack_archive(path_of(source), plan)
    for part in ("ch-image", "ch-convert"):
        if part not in plan["paths"]:
            raise NoImage(f"there is no {part} to fetch it with")
    reference = pin(source["ref"], plan["digest"])
    say(f"fetching {source['said']}")
    ask(plan["paths"]["ch-image"], "pull", reference)
    ask(plan["paths"]["ch-convert"], "-i", "ch-image", "-o", "dir", reference, plan["image"])
    try:
        with open(f"{plan['image']}/ch/config.pulled.json", encoding="utf-8") as file:
            config = json.load(file).get("config") or {}
    except (OSError, ValueError):
        config = {}
    return ToolImage(directory=plan["image"], config=config, temporary=True)


HAVE: dict[str, Callable[[dict[str, str], Plan], ToolImage]] = {
    "podman": with_podman_or_docker,
    "docker": with_podman_or_docker,
    "apptainer": with_apptainer,
    "singularity": with_apptainer,
    "charliecloud": with_charliecloud,
}


def have_image(plan: Plan) -> ToolImage:
    """Return the image from the first location that works, reporting those that don't; raise NoImage if none does."""
    reasons = []
    for source in plan["sources"]:
        if source["how"] == "registry" and was_brought(source):
            source = {**source, "how": "archive"}
        try:
            return HAVE[plan["tool"]](source, plan)
        except (NoImage, files.NotAnImage, OSError) as why:
            reasons.append(f"could not pull the image {source['said']}: {why}")
            say(reasons[-1])
            shutil.rmtree(plan["image"], ignore_errors=True)
    raise NoImage("; ".join(reasons))
