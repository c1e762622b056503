"""The outputs in a job's sandbox on a node, packed to be sent back. Sent with the far half."""

from __future__ import annotations

import io
import os
import re
import sys
import tarfile
import time
from typing import Any

from sublet.annexes.split.spool_files import read

OWN_ADS = (".job.ad", ".machine.ad")  # in a job's sandbox, and never among its outputs


def find_wanted_outputs(ad: str) -> list[str] | None:
    """Return the paths of the outputs that a job wants; None for all new files at the top level of its sandbox."""
    match = re.search(r'(?im)^TransferOutput\s*=\s*"(.*)"\s*$', ad)
    if match is None:
        return None
    return [os.path.normpath(word.strip()) for word in match.group(1).split(",") if word.strip()]


def wants_outputs_when_evicted(ad: str) -> bool:
    """Whether a job's outputs are kept when it is evicted, for its next start."""
    return re.search(r'(?im)^WhenToTransferOutput\s*=\s*"ON_EXIT_OR_EVICT"\s*$', ad) is not None


def find_manifest(ad: str) -> str:
    """Return the directory of a job's manifest below its sandbox; empty if it wants none."""
    if not re.search(r"(?im)^ManifestDesired\s*=\s*true\s*$", ad):
        return ""
    named = re.search(r'(?im)^ManifestDir\s*=\s*"(.*)"\s*$', ad)
    if named:
        place = os.path.normpath(named.group(1))
        return "" if place.startswith(("/", "..")) else place
    numbers = [re.search(r"(?im)^" + name + r"\s*=\s*(\d+)\s*$", ad) for name in ("ClusterId", "ProcId")]
    return "_".join(number.group(1) if number else "0" for number in numbers) + "_manifest"


def is_wanted(path: str, wanted: list[str] | None) -> bool:
    """Whether a file of the sandbox is sent back; stdout and stderr always are."""
    if path in (".", "_condor_stdout", "_condor_stderr"):
        return True
    if path in OWN_ADS:
        return False
    if wanted is None:
        return "/" not in path
    inside = [want for want in wanted if path == want or path.startswith(want + "/") or want.startswith(path + "/")]
    return bool(inside)


def has_outputs_below(path: str, wanted: list[str] | None) -> bool:
    """Whether a directory itself isn't sent back, but something below it is."""
    around = [want for want in wanted or [] if path == want or path.startswith(want + "/")]
    return not around and is_wanted(path, wanted)


def put_words(tar: tarfile.TarFile, name: str, words: str) -> None:
    """Add a small text to an archive without writing to this node's disk, which may be full."""
    content = words.encode()
    member = tarfile.TarInfo(name)
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))


def pack_outputs(tar: tarfile.TarFile, directory: str, seen: dict[str, Any]) -> None:
    """Pack the outputs that a job wants, with links resolved, as HTCondor does on any node."""
    ad = read(directory + "/job.ad") or ""
    wanted, manifest = find_wanted_outputs(ad), find_manifest(ad)
    sandbox = directory + "/sandbox"
    for place, folders, files in os.walk(sandbox, followlinks=True):
        above = os.path.relpath(place, sandbox)
        named = [name for name in folders if is_wanted(os.path.normpath(os.path.join(above, name)), wanted)]
        links = [name for name in named if os.path.islink(os.path.join(place, name))]
        refused = [name for name in links if not has_outputs_below(os.path.normpath(os.path.join(above, name)), wanted)]
        folders[:] = [name for name in named if name not in refused] if wanted is not None else []
        if not is_wanted(above, wanted):
            continue
        tar.add(os.path.realpath(place), os.path.normpath(os.path.join("sandbox", above)), recursive=False)
        for name in refused if wanted is not None else []:
            add_refused_link(tar, os.path.normpath(os.path.join("sandbox", above, name)))
        for name in files:
            path, member = os.path.join(place, name), os.path.normpath(os.path.join("sandbox", above, name))
            fresh = seen.get(member) != stamp(path)
            if fresh and is_wanted(member[len("sandbox/") :], wanted) and os.path.isfile(path):
                add_content(tar, path, member)
    if manifest and os.path.isfile(os.path.join(sandbox, manifest, "environment")):
        add_content(tar, os.path.join(sandbox, manifest, "environment"), f"sandbox/{manifest}/environment")


def add_refused_link(tar: tarfile.TarFile, name: str) -> None:
    """Add a link to a directory in place of one that a job wants: HTCondor sends none, and holds the job for it."""
    member = tarfile.TarInfo(name)
    member.type, member.linkname = tarfile.SYMTYPE, "."
    tar.addfile(member)


def add_content(tar: tarfile.TarFile, path: str, member: str) -> None:
    """Add a file, or the target of a link; an unreadable one is so there too, and HTCondor holds the job for it."""
    try:
        with open(path, "rb") as file:
            tar.addfile(tar.gettarinfo(arcname=member, fileobj=file), file)
    except PermissionError as error:
        say("can't read " + member + ": " + str(error))
        unreadable = tarfile.TarInfo(member)
        unreadable.mode = 0
        tar.addfile(unreadable)


def stamp(path: str) -> Any:
    """Return a stamp that changes when a file changes."""
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return (status.st_size, status.st_mtime_ns, status.st_ino)


def list_sandbox(sandbox: str) -> dict[str, Any]:
    """Return the stamps of a sandbox's files before the job runs, by their names in the result."""
    above = os.path.dirname(sandbox)
    stamps = {}
    for place, _, files in os.walk(sandbox):
        for file in files:
            path = os.path.join(place, file)
            stamps[os.path.relpath(path, above)] = stamp(path)
    return stamps


def say(words: str) -> None:
    """Write a message to the lease's log."""
    sys.stderr.write(time.strftime("%H:%M:%S ") + "far half: " + words + "\n")
    sys.stderr.flush()
