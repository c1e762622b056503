"""The mover of git repositories: `git+https://SERVER/REPOSITORY@REF#FOLDER`, at a branch, tag or commit."""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.data.model.credentials import credential_for
from sublet.data.model.links import FileLink, LinkedFiles
from sublet.data.model.tools import ToolPlan
from sublet.kernel.folders import LinkLeadsOut, walk
from sublet.kernel.ignore import Ignore
from sublet.movers.arrival import guess, missing, refuse, require_sound
from sublet.movers.checkout import Checkout, GitSource
from sublet.movers.port import SIMPLE, KnownContent, NoLinks, Policy, Progress
from sublet.movers.sending import authorization

EXAMPLE = "git+https://example.org/owner/repository@v1.2#data"
NOT_IN_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|^[-/.]")
PREFIX = "git+"
SPEED = 5_000_000  # bytes per second, for a guess
OTHERS_FILES = "Only its owner's sessions can use repositories on this machine's own disks."


@dataclass
class GitMover:
    """Brings the files of a repository at one commit, without its history."""

    policy: Policy
    name: str = "git"
    schemes: Sequence[str] = ("git+https", "git+http", "git+file")
    kinds: Sequence[str] = (SIMPLE,)

    def check(self, data: Data) -> Sequence[Reason]:
        """Return what is wrong with the address."""
        if data.checksum:
            return [refuse(data, "A repository is named by its commit, and has no checksum.", nearest=EXAMPLE)]
        try:
            source, parts = split_address(data.location), urlsplit(data.location)
            _ = parts.port
        except ValueError as error:
            return [refuse(data, f"It is not an address: {error}.", nearest=EXAMPLE)]
        is_local = parts.scheme.lower() == "git+file"
        if is_local and self.policy.file_roots is not None:
            return [refuse(data, OTHERS_FILES, nearest=EXAMPLE)]
        if bool(parts.hostname) is is_local or not urlsplit(source.repository).path.strip("/"):
            return [refuse(data, "The address names no repository.", nearest=EXAMPLE)]
        if NOT_IN_REF.search(source.ref) or ".." in source.folder.split("/"):
            return [refuse(data, "The address names no branch, tag, commit or folder.", nearest=EXAMPLE)]
        return []

    async def measure(self, data: Data) -> int | None:
        """Return None: the size isn't known before the fetch."""
        return None

    def estimate(self, data: Data) -> timedelta:
        """Guess how long it takes."""
        return guess(data, SPEED)

    async def plan(self, data: Data) -> ToolPlan:
        """Plan a fetch by the system's git, at the commit the address means now.

        Raise NoLinks if only this machine can bring it: local repositories, and those with ignored files.
        """
        require_sound(data, self.check(data))
        source = split_address(data.location)
        parts = urlsplit(source.repository)
        if parts.scheme == "file" or "@" in parts.netloc or data.fields.get("ignore"):
            raise NoLinks
        header = authorization(credential_for(self.policy.credentials, source.repository))
        with tempfile.TemporaryDirectory(prefix="sublet-git-") as place:
            checkout = Checkout(self.policy, data, Path(place), Path(place), lambda _, __: None)
            commit, resolve = await checkout.find_commit(source), await checkout.resolve(source)
        facts = [("address", source.repository), ("commit", commit), ("folder", source.folder), ("secret", header)]
        facts += [("resolve", resolve), ("public", "yes" if self.policy.public_only else "")]
        named = _name_commit(source, commit, header)
        return ToolPlan("git", named.host, facts, LinkedFiles([named], is_folder=True), LinkedFiles([], is_folder=True))

    async def find_content(self, data: Data) -> KnownContent:
        """Return the commit that the address means now, which is all that its files depend on."""
        require_sound(data, self.check(data))
        source = split_address(data.location)
        if urlsplit(source.repository).scheme == "file":
            raise NoLinks
        header = authorization(credential_for(self.policy.credentials, source.repository))
        commit = await self._find_commit(data, source)
        named = _name_commit(source, commit, header, data.fields.get("ignore", ()))
        # Anybody may have what is named as open, so no credential may open its submodules or large files either
        mover = replace(self, policy=replace(self.policy, credentials=())) if named.is_open else self
        folder = f"#{source.folder}" if source.folder else ""
        pinned = replace(data, location=f"{PREFIX}{source.repository}@{commit}{folder}")
        tree = LinkedFiles([], is_folder=True)
        return KnownContent(LinkedFiles([named], is_folder=True), tree, partial(mover.bring, pinned))

    async def _find_commit(self, data: Data, source: GitSource) -> str:
        with tempfile.TemporaryDirectory(prefix="sublet-git-") as place:
            checkout = Checkout(self.policy, data, Path(place), Path(place), lambda _, __: None)
            return await checkout.find_commit(source)

    async def bring(self, data: Data, target: Path, progress: Progress) -> None:
        """Fetch one commit, check that its links stay inside, and write its files."""
        require_sound(data, self.check(data))
        source = split_address(data.location)
        store = target.parent / f".lfs-{target.name}"  # beside the target, so that a retry can continue with it
        await asyncio.to_thread(target.mkdir, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".git-", dir=target.parent) as place:
            tree = Path(place, "tree")
            checkout = Checkout(self.policy, data, Path(place), store, progress)
            await checkout.write(source, tree)
            await asyncio.to_thread(_move, data, tree / source.folder, target)
        await asyncio.to_thread(shutil.rmtree, store, ignore_errors=True)
        progress(checkout.size, checkout.size)


def _name_commit(source: GitSource, commit: str, header: str, ignored: Sequence[str] = ()) -> FileLink:
    """Return a link that stands for the files of a commit; the commit says it all, so its size is 0."""
    headers = {"Authorization": header} if header else {}
    path = "\0".join((source.folder or ".", *ignored))
    return FileLink(path, source.repository, headers, size=0, version=commit)


def split_address(location: str) -> GitSource:
    """Split an address into repository, ref (branch, tag or commit) and folder."""
    address, _, folder = location.removeprefix(PREFIX).partition("#")
    head, slash, tail = address.rpartition("/")
    name, at, ref = tail.partition("@")
    if not at and "@" in head.partition("://")[2].partition("/")[2]:  # a branch with a slash in its name
        host, _, path = head.partition("://")[2].partition("/")
        path, _, ref = f"{path}/{tail}".partition("@")
        return GitSource(f"{head.partition('://')[0]}://{host}/{path}", ref, folder.strip("/"))
    return GitSource(f"{head}{slash}{name}", ref, folder.strip("/"))


def _move(data: Data, tree: Path, target: Path) -> None:
    """Move the files to the target; raise DataNotThere if a link leads outside."""
    try:
        for _ in walk(str(tree), Ignore(())):
            pass
    except LinkLeadsOut as error:
        raise missing(data, str(error)) from error
    target.mkdir(parents=True, exist_ok=True)
    for entry in sorted(tree.iterdir()):
        place = target / entry.name
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)  # left by an interrupted attempt
        entry.rename(place)
