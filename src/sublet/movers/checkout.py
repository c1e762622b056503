"""Writes the files of one commit into a directory, with its LFS files and its submodules."""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from sublet.booking.model.request import Data
from sublet.data.model.credentials import credential_for
from sublet.kernel.ignore import Ignore
from sublet.kernel.public_addresses import NotPublic, public_addresses
from sublet.movers.arrival import missing, without_secrets
from sublet.movers.http import HttpMover
from sublet.movers.lfs import LONGEST_POINTER, LargeFile, LargeFiles, find_server, read_pointer
from sublet.movers.port import Policy, Progress
from sublet.movers.sending import authorization
from sublet.movers.trees import MOST_FILES, safe_path
from sublet.reach.git import Git, Said

COMMIT = re.compile(r"[0-9a-f]{40}")
LARGEST = 1 << 40  # bytes, if there is no limit
OVERHEAD = 64 << 20  # bytes that git may write beside the data: other folders of the commit, and indices
PATIENCE = 3600.0  # seconds for all that a server sends
SETTINGS = ("-c", "core.symlinks=true", "-c", "core.protectNTFS=false", "-c", "advice.detachedHead=false")
SUBMODULE = "160000"
FILES = ("100644", "100755")
DEEPEST = 8  # nesting of submodules
MOST_SUBMODULES = 100
PROTOCOLS = ("https", "http", "file")


@dataclass(frozen=True)
class GitSource:
    """The repository, ref and folder that an address names."""

    repository: str
    ref: str  # a branch, tag or commit; empty: the server's default branch
    folder: str


@dataclass(frozen=True)
class CommitEntry:
    """One entry of a commit."""

    mode: str
    object: str  # of a submodule: its commit
    size: int
    path: str


class Checkout:
    """A checkout of one item of data; it counts the bytes of all its repositories."""

    def __init__(self, policy: Policy, data: Data, place: Path, store: Path, progress: Progress) -> None:
        """Work in the directory `place`, and keep LFS files in `store` until everything is there."""
        self._policy, self._data, self._place, self._store = policy, data, place, store
        self._progress = progress
        self._ignore = Ignore(data.fields.get("ignore", ()))
        self._numbers = count()
        self.size = 0

    async def write(self, source: GitSource, tree: Path, above: Sequence[str] = ()) -> None:
        """Write the files of a commit and its submodules into a directory."""
        git = await self._prepare(source)
        commit = source.ref if COMMIT.fullmatch(source.ref) else await self._find_commit(git, source)
        options = ("--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--depth=1")
        self._require(await git.run("fetch", *options, "--", source.repository, commit))
        rows = await self._list(git, source, commit)
        self._count(sum(row.size for row in rows))
        await asyncio.to_thread(tree.mkdir, parents=True, exist_ok=True)
        words = (f"--work-tree={tree}", "checkout", "--force", commit, "--", ".")
        self._require(await git.run(*SETTINGS, *words))
        wanted = [row for row in rows if not self._is_ignored("/".join((*above, row.path)))]
        await asyncio.to_thread(_remove, tree, set(rows) - set(wanted))
        await self._bring_large_files(git, source, commit, wanted, tree)
        await self._write_submodules(git, source, commit, wanted, tree, above)

    async def find_commit(self, source: GitSource) -> str:
        """Return the commit that an address currently means."""
        return (
            source.ref if COMMIT.fullmatch(source.ref) else await self._find_commit(await self._prepare(source), source)
        )

    async def _prepare(self, source: GitSource) -> Git:
        parts = urlsplit(source.repository)
        header = authorization(credential_for(self._policy.credentials, source.repository))
        most = self._policy.largest + OVERHEAD if self._policy.largest else LARGEST
        place = self._place / f"git-{next(self._numbers)}"
        await asyncio.to_thread(place.mkdir)
        git = Git(place, parts.scheme, most, PATIENCE, await self.resolve(source), header)
        self._require(await git.run("init", "--quiet", "--bare", "--template=", "repository"))
        return git

    async def resolve(self, source: GitSource) -> str:
        """Resolve the host once, for git to use, if only public addresses are allowed.

        Otherwise return an empty string.
        """
        parts = urlsplit(source.repository)
        if not self._policy.public_only or parts.scheme == "file":
            return ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
        try:
            addresses = await public_addresses(parts.hostname or "", port)
        except (NotPublic, OSError) as error:
            raise missing(self._data, str(error)) from error
        shown = [f"[{text}]" if ipaddress.ip_address(text).version == 6 else text for text in addresses]
        return f"{parts.hostname}:{port}:{','.join(shown)}"

    async def _find_commit(self, git: Git, source: GitSource) -> str:
        """Return the commit that a branch or tag is currently at."""
        ref = source.ref or "HEAD"
        wanted = (ref,) if ref == "HEAD" else (f"refs/heads/{ref}", f"refs/tags/{ref}", f"refs/tags/{ref}^{{}}")
        answer = self._require(await git.run("ls-remote", "--", source.repository, *wanted))
        lines = (line.split("\t") for line in answer.stdout.decode().splitlines())
        commits = {name: commit for commit, name in lines}
        for name in (ref, f"refs/heads/{ref}", f"refs/tags/{ref}^{{}}", f"refs/tags/{ref}"):
            if name in commits:
                return commits[name]
        why = f"there is no branch or tag {ref} in it" if source.ref else "it has no commits"
        raise missing(self._data, why)

    async def _list(self, git: Git, source: GitSource, commit: str) -> list[CommitEntry]:
        """List the entries of the commit, or of the requested folder."""
        where = [f":(literal){source.folder}"] if source.folder else []
        listed = await git.run("ls-tree", "-r", "-z", "--long", commit, "--", *where, most=MOST_FILES * 200)
        if listed.too_much:
            raise missing(self._data, f"it has more than {MOST_FILES} files; bring an archive of them instead")
        self._require(listed)
        rows = [_read_row(row) for row in listed.stdout.decode(errors="surrogateescape").split("\0") if row]
        if not rows:
            why = f"there is no folder {source.folder} in it" if source.folder else "it has no files"
            raise missing(self._data, why)
        for row in rows:
            safe_path(self._data, row.path)
        return rows

    def _count(self, size: int) -> None:
        self.size += size
        if self._policy.largest and self.size > self._policy.largest:
            limit = f"it has more than {self._policy.largest} bytes, the most that is downloaded here"
            raise missing(self._data, limit)

    def _is_ignored(self, path: str) -> bool:
        parts = path.split("/")
        folders = ("/".join(parts[:length]) for length in range(1, len(parts)))
        return self._ignore.skips(path, is_folder=False) or any(
            self._ignore.skips(folder, is_folder=True) for folder in folders
        )

    async def _bring_large_files(
        self, git: Git, source: GitSource, commit: str, rows: Sequence[CommitEntry], tree: Path
    ) -> None:
        small = [row.path for row in rows if row.mode in FILES and 0 < row.size <= LONGEST_POINTER]
        pointers = await asyncio.to_thread(_read_pointers, tree, small)
        if pointers:
            pointers = await self._keep_filtered(git, pointers, tree)
        if not pointers:
            return
        self._count(sum(file.size for file in pointers))
        settings = await self._read_settings(git, f"{commit}:.lfsconfig", r"^lfs\.url$")
        server = find_server(source.repository, settings.get("lfs.url", ""), self._policy.credentials)
        files = LargeFiles(HttpMover(self._policy), self._data, server, self._store)
        await files.bring(pointers, tree, self._progress)

    async def _keep_filtered(self, git: Git, pointers: Sequence[LargeFile], tree: Path) -> list[LargeFile]:
        """Return the pointers that .gitattributes assigns to Git LFS; other files only look like pointers."""
        names = "".join(f"{file.path}\0" for file in pointers).encode(errors="surrogateescape")
        words = (f"--work-tree={tree}", "check-attr", "-z", "--stdin", "filter")
        answer = self._require(await git.run(*words, stdin=names, most=MOST_FILES * 300))
        fields = answer.stdout.decode(errors="surrogateescape").split("\0")
        filters = dict(zip(fields[::3], fields[2::3], strict=False))
        return [file for file in pointers if filters.get(file.path) == "lfs"]

    async def _read_settings(self, git: Git, blob: str, pattern: str) -> Mapping[str, str]:
        """Read settings from a file of the commit; empty if there is no such file."""
        answer = await git.run("config", "--blob", blob, "-z", "--get-regexp", pattern)
        pairs = (entry.partition("\n") for entry in answer.stdout.decode(errors="replace").split("\0") if entry)
        return {name: value for name, _, value in pairs}

    async def _write_submodules(
        self, git: Git, source: GitSource, commit: str, rows: Sequence[CommitEntry], tree: Path, above: Sequence[str]
    ) -> None:
        modules = [row for row in rows if row.mode == SUBMODULE]
        if not modules:
            return
        if len(above) >= DEEPEST or len(modules) > MOST_SUBMODULES:
            raise missing(self._data, "it has too many submodules, or submodules within submodules")
        settings = await self._read_settings(git, f"{commit}:.gitmodules", r"^submodule\..*\.(path|url)$")
        for row in modules:
            address = self._find_address(source, row, settings)
            await self.write(GitSource(address, row.object, ""), tree / row.path, (*above, row.path))

    def _find_address(self, source: GitSource, row: CommitEntry, settings: Mapping[str, str]) -> str:
        """Return the address of a submodule, which may be relative to the repository."""
        names = (name.removesuffix(".path") for name, path in settings.items() if path == row.path)
        address = next((settings[f"{name}.url"] for name in names if f"{name}.url" in settings), "")
        if address.startswith(("./", "../")):
            address = urljoin(f"{source.repository.rstrip('/')}/", address).rstrip("/")
        scheme = urlsplit(address).scheme.lower()
        is_ours = self._policy.file_roots is None
        if scheme not in PROTOCOLS or (scheme == "file" and not is_ours):
            where = f"at {without_secrets(address)}, from where nothing can be brought" if address else "nowhere"
            hint = f"leave it out with ignore: [{row.path}], or bring it as data of its own by git+https://"
            raise missing(self._data, f"its submodule {row.path} is {where}; {hint}")
        return address

    def _require(self, answer: Said) -> Said:
        if answer.code:
            lines = [line for line in answer.complaint.splitlines() if line.strip()] or ["git failed"]
            raise missing(self._data, lines[-1].removeprefix("fatal: ").strip())
        return answer


def _read_row(row: str) -> CommitEntry:
    facts, _, path = row.partition("\t")
    mode, _, object, size = facts.split()
    return CommitEntry(mode, object, int(size) if size.isdigit() else 0, path)


def _read_pointers(tree: Path, paths: Sequence[str]) -> list[LargeFile]:
    files = ((path, tree / path) for path in paths)
    pointers = (read_pointer(path, file.read_bytes()) for path, file in files if file.is_file())
    return [pointer for pointer in pointers if pointer]


def _remove(tree: Path, rows: set[CommitEntry]) -> None:
    """Remove ignored entries."""
    for row in rows:
        place = tree / row.path
        with suppress(FileNotFoundError):
            place.rmdir() if row.mode == SUBMODULE else place.unlink()
