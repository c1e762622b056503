"""Data in git repositories: `git+https://SERVER/REPOSITORY@REF#FOLDER`, at a branch, a tag or a commit."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

from sublet.booking.model.offer import Reason
from sublet.booking.model.request import Data
from sublet.data.model.credentials import credential_for
from sublet.kernel.folders import LinkLeadsOut, walk
from sublet.kernel.ignore import Ignore
from sublet.kernel.public_addresses import NotPublic, public_addresses
from sublet.movers.arrival import guess, missing, refuse
from sublet.movers.port import SIMPLE, Policy, Progress
from sublet.movers.sending import authorization
from sublet.movers.trees import MOST_FILES, safe_path
from sublet.reach.git import Git, Said

EXAMPLE = "git+https://example.org/owner/repository@v1.2#data"
COMMIT = re.compile(r"[0-9a-f]{40}")
NOT_IN_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|^[-/.]")
PREFIX = "git+"
SPEED = 5_000_000  # bytes a second, for a guess
LARGEST = 1 << 40  # bytes, where there is no limit
OVERHEAD = 64 << 20  # bytes that git may write beside the data: what is in no folder that was asked for, and indices
PATIENCE = 3600.0  # seconds for all that a server sends
SETTINGS = ("-c", "core.symlinks=true", "-c", "core.protectNTFS=false", "-c", "advice.detachedHead=false")


@dataclass(frozen=True)
class GitSource:
    """Where an address leads."""

    repository: str
    ref: str  # a branch, a tag or a commit; empty: what the server thinks is the usual one
    folder: str


@dataclass
class GitMover:
    """Brings the files of a repository as they are at one commit, without its history."""

    policy: Policy
    name: str = "git"
    schemes: Sequence[str] = ("git+https", "git+http")
    kinds: Sequence[str] = (SIMPLE,)

    def check(self, data: Data) -> Sequence[Reason]:
        """What is wrong with its address."""
        if data.checksum:
            return [refuse(data, "A repository is named by its commit, and has no checksum.", nearest=EXAMPLE)]
        try:
            source, parts = split_address(data.location), urlsplit(data.location)
            _ = parts.port
        except ValueError as error:
            return [refuse(data, f"It is not an address: {error}.", nearest=EXAMPLE)]
        if not parts.hostname or not urlsplit(source.repository).path.strip("/"):
            return [refuse(data, "The address names no repository.", nearest=EXAMPLE)]
        if NOT_IN_REF.search(source.ref) or ".." in source.folder.split("/"):
            return [refuse(data, "The address names no branch, tag, commit or folder.", nearest=EXAMPLE)]
        return []

    async def measure(self, data: Data) -> int | None:
        """Nobody knows before it is fetched."""
        return None

    def estimate(self, data: Data) -> timedelta:
        """How long it is going to take."""
        return guess(data, SPEED)

    async def bring(self, data: Data, target: Path, progress: Progress) -> None:
        """Fetch one commit, see that it does no harm, and write its files."""
        for reason in self.check(data):
            raise missing(data, reason.message)
        source = split_address(data.location)
        await asyncio.to_thread(target.mkdir, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".git-", dir=target.parent) as place:
            git = await self._prepare(data, source, Path(place))
            commit = source.ref if COMMIT.fullmatch(source.ref) else await _find_commit(git, data, source)
            options = ("--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--depth=1")
            _require(data, await git.run("fetch", *options, "--", source.repository, commit))
            size = await self._judge_files(git, data, source, commit)
            tree = Path(place, "tree")
            await asyncio.to_thread(tree.mkdir)
            _require(data, await git.run(*SETTINGS, f"--work-tree={tree}", "checkout", "--force", commit, "--", "."))
            await asyncio.to_thread(_move, data, tree / source.folder, target)
        progress(size, size)

    async def _prepare(self, data: Data, source: GitSource, place: Path) -> Git:
        parts = urlsplit(source.repository)
        header = authorization(credential_for(self.policy.credentials, source.repository))
        most = self.policy.largest + OVERHEAD if self.policy.largest else LARGEST
        git = Git(place, parts.scheme, most, PATIENCE, await self._resolve(data, source), header)
        _require(data, await git.run("init", "--quiet", "--bare", "--template=", "repository"))
        return git

    async def _resolve(self, data: Data, source: GitSource) -> str:
        """What the name of its host means, once and for all, where only public addresses may be asked."""
        if not self.policy.public_only:
            return ""
        parts = urlsplit(source.repository)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        try:
            addresses = await public_addresses(parts.hostname or "", port)
        except (NotPublic, OSError) as error:
            raise missing(data, str(error)) from error
        shown = [f"[{text}]" if ipaddress.ip_address(text).version == 6 else text for text in addresses]
        return f"{parts.hostname}:{port}:{','.join(shown)}"

    async def _judge_files(self, git: Git, data: Data, source: GitSource, commit: str) -> int:
        """How many bytes its files have; DataNotThere if that is too much, or if the folder isn't there."""
        where = [f":(literal){source.folder}"] if source.folder else []
        listed = await git.run("ls-tree", "-r", "-z", "--long", commit, "--", *where, most=MOST_FILES * 200)
        if listed.too_much:
            raise missing(data, f"it has more than {MOST_FILES} files; bring an archive of them instead")
        _require(data, listed)
        rows = [row.partition("\t") for row in listed.stdout.decode(errors="surrogateescape").split("\0") if row]
        if not rows:
            raise missing(data, f"there is no folder {source.folder} in it" if source.folder else "it has no files")
        for _, _, path in rows:
            safe_path(data, path)
        size = sum(int(facts.split()[3]) for facts, _, _ in rows if facts.split()[3].isdigit())
        if self.policy.largest and size > self.policy.largest:
            raise missing(data, f"it has more than {self.policy.largest} bytes, the most that is downloaded here")
        return size


def split_address(location: str) -> GitSource:
    """The repository, the branch, tag or commit, and the folder that an address names."""
    address, _, folder = location.removeprefix(PREFIX).partition("#")
    head, slash, tail = address.rpartition("/")
    name, at, ref = tail.partition("@")
    if not at and "@" in head.partition("://")[2].partition("/")[2]:  # a branch with a slash in its name
        host, _, path = head.partition("://")[2].partition("/")
        path, _, ref = f"{path}/{tail}".partition("@")
        return GitSource(f"{head.partition('://')[0]}://{host}/{path}", ref, folder.strip("/"))
    return GitSource(f"{head}{slash}{name}", ref, folder.strip("/"))


async def _find_commit(git: Git, data: Data, source: GitSource) -> str:
    """The commit that a branch or a tag is at now."""
    ref = source.ref or "HEAD"
    wanted = (ref,) if ref == "HEAD" else (f"refs/heads/{ref}", f"refs/tags/{ref}", f"refs/tags/{ref}^{{}}")
    said = await git.run("ls-remote", "--", source.repository, *wanted)
    _require(data, said)
    lines = (line.split("\t") for line in said.stdout.decode().splitlines())
    commits = {name: commit for commit, name in lines}
    for name in (ref, f"refs/heads/{ref}", f"refs/tags/{ref}^{{}}", f"refs/tags/{ref}"):
        if name in commits:
            return commits[name]
    raise missing(data, f"there is no branch or tag {ref} in it" if source.ref else "it has no commits")


def _require(data: Data, said: Said) -> None:
    if said.code:
        lines = [line for line in said.complaint.splitlines() if line.strip()] or ["git failed"]
        raise missing(data, lines[-1].removeprefix("fatal: ").strip())


def _move(data: Data, tree: Path, target: Path) -> None:
    """Put its files where they belong; a link that leads out is refused."""
    try:
        for _ in walk(str(tree), Ignore(())):
            pass
    except LinkLeadsOut as error:
        raise missing(data, str(error)) from error
    target.mkdir(parents=True, exist_ok=True)
    for entry in sorted(tree.iterdir()):
        place = target / entry.name
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)  # of a try that was cut off
        entry.rename(place)
