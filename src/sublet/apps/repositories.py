"""Repositories: fetched at one commit, read without a checkout, and refused if they could do harm."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from fnmatch import fnmatchcase
from pathlib import Path

from sublet.apps.model.repository import (
    RepositoryAddress,
    Snapshot,
    check_branch,
    check_commit,
    check_names,
    read_address,
    show_hidden,
)
from sublet.apps.model.tree import TreeFile
from sublet.kernel.errors import BadRepository, BadTree, RepositoryUnreachable, ServiceFull
from sublet.kernel.public_addresses import NotPublic, public_addresses
from sublet.kernel.settings_tables import AppSettings
from sublet.reach.git import Git, Said

HEADS, TAGS = "refs/heads/", "refs/tags/"
TAG = "tags/"  # prefix of the branch of a version that was proposed by a tag
FILE, PROGRAM, LINK, SUBMODULE = "100644", "100755", "120000", "160000"
AUTHOR = re.compile(r"^author (?P<who>.*) (?P<time>\d{1,15}) (?P<zone>[+-]\d{4})$", re.MULTILINE)
FULL = "No space left on device"
LARGEST_ROW = 1024  # bytes of one line about a file


@dataclass(frozen=True)
class TreeRow:
    """One line of a git tree."""

    mode: str
    id: str
    size: int
    path: str


@dataclass(frozen=True)
class Repositories:
    """Fetches code from the repositories that the operator allows."""

    settings: AppSettings
    home: Path  # where repositories are kept while they are read
    private: bool = False  # whether any address may be on a private network, as for data

    async def fetch(self, repository: str, branch: str = "", commit: str = "") -> Snapshot:
        """Fetch the files of a repository at the tip of a branch or tag, or at a commit of it."""
        address = read_address(repository)
        wanted = check_commit(commit) if commit else ""
        branch = check_branch(branch) if branch else ""
        with tempfile.TemporaryDirectory(prefix="fetch-", dir=self._room()) as place:
            git = await self._git(address, Path(place))
            branch, tip = await _tip(git, address, branch)
            if wanted and wanted != tip:
                await self._on_branch(address, branch, tip, wanted)
            commit = wanted or tip
            await self._bring(git, address, "--depth=1", commit)
            rows = await self._rows(git, address, commit)
            files = await _files(git, address, rows)
            author, written, subject = await _about(git, address, commit)
        return Snapshot(address.text, branch, commit, author, written, subject, files)

    async def tip(self, repository: str, branch: str) -> str:
        """Return the commit that a branch or tag is at now."""
        address = read_address(repository)
        with tempfile.TemporaryDirectory(prefix="look-", dir=self._room()) as place:
            git = await self._git(address, Path(place))
            return (await _tip(git, address, branch))[1]

    async def has(self, repository: str, branch: str, commit: str) -> bool:
        """Whether a commit is still in the history of its branch."""
        address = read_address(repository)
        try:
            await self._on_branch(address, branch, "", commit)
        except BadRepository:
            return False
        return True

    def _room(self) -> Path:
        self.home.mkdir(parents=True, exist_ok=True, mode=0o700)
        return self.home

    def _is_trusted(self, address: RepositoryAddress) -> bool:
        """Whether the operator lets this address be private."""
        return self.private or any(fnmatchcase(address.text, pattern) for pattern in self.settings.private)

    async def _git(self, address: RepositoryAddress, place: Path) -> Git:
        """Make an empty repository that can only connect to this address."""
        git = Git(
            place,
            address.scheme,
            self.settings.largest_fetch,
            self.settings.patience.total_seconds(),
            await self._resolve_host(address),
        )
        good(await git.run("init", "--quiet", "--bare", "--template=", "repository"), address)
        return git

    async def _resolve_host(self, address: RepositoryAddress) -> str:
        """Return the host's public addresses for curl, empty if trusted; raise BadRepository if it isn't allowed."""
        if self._is_trusted(address):
            return ""
        if not any(fnmatchcase(address.text, pattern) for pattern in self.settings.repositories):
            known = ", ".join(self.settings.repositories)
            raise BadRepository(address=address.text, why=f"code may come from {known} here")
        if address.scheme != "https":
            raise BadRepository(address=address.text, why=f"a {address.scheme}: address can't be trusted")
        try:
            found = await public_addresses(address.host, address.port)
        except NotPublic as error:
            raise BadRepository(address=address.text, why=str(error)) from error
        except OSError as error:
            raise RepositoryUnreachable(repository=address.text, why=f"{address.host}: {error.strerror}") from error
        shown = [f"[{one}]" if ipaddress.ip_address(one).version == 6 else one for one in found]
        return f"{address.host}:{address.port}:{','.join(shown)}"

    async def _bring(self, git: Git, address: RepositoryAddress, *words: str) -> None:
        """Fetch into the repository, within the size limit."""
        options = ("--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--no-auto-maintenance")
        said = await git.run("fetch", *options, words[0], "--", address.text, *words[1:])
        if said.code and await asyncio.to_thread(_largest, git.place) >= self.settings.largest_fetch:
            raise BadTree(why=f"more than {self.settings.largest_fetch >> 20} MiB would have to be fetched")
        if said.code and "fsck error" in said.complaint:
            raise BadTree(why=_first(said.complaint))
        good(said, address)

    async def _on_branch(self, address: RepositoryAddress, branch: str, tip: str, commit: str) -> None:
        """Raise BadRepository unless a commit is in a branch's history, of which only commits are fetched."""
        with tempfile.TemporaryDirectory(prefix="history-", dir=self._room()) as place:
            git = await self._git(address, Path(place))
            tip = tip or (await _tip(git, address, branch))[1]
            if tip == commit:
                return
            await self._bring(git, address, "--filter=tree:0", tip)
            said = await git.run("merge-base", "--is-ancestor", commit, tip)
        if said.code:
            raise BadRepository(f"The commit {commit[:12]} is not on the branch {branch} of {address.text}.")

    async def _rows(self, git: Git, address: RepositoryAddress, commit: str) -> list[TreeRow]:
        """List a commit's tree; raise BadTree if it can't be an app."""
        most = self.settings.most_files
        said = await git.run("ls-tree", "-r", "-z", "-l", "--full-tree", commit, most=most * LARGEST_ROW)
        rows = [_row(line) for line in said.stdout.split(b"\0") if line]
        if said.too_much or len(rows) > most:
            raise BadTree(why=f"it has more than {most} files")
        good(said, address)
        if sum(row.size for row in rows) > self.settings.largest:
            raise BadTree(why=f"its files have more than {self.settings.largest >> 20} MiB")
        if not rows:
            raise BadTree(why="it is empty")
        for row in rows:
            if row.mode == SUBMODULE:
                why = f"{row.path!r} is a submodule, whose code would not be reviewed"
                raise BadTree(why=why, hint="Put its files in the repository itself.")
            if row.mode not in (FILE, PROGRAM, LINK, "100664"):
                raise BadTree(why=f"{row.path!r} is neither a file nor a link")
        check_names(row.path for row in rows)
        return rows


async def _tip(git: Git, address: RepositoryAddress, branch: str) -> tuple[str, str]:
    """Return a branch (default: the repository's own) or tag, and its commit."""
    if not branch:
        said = good(await git.run("ls-remote", "--symref", "--", address.text, "HEAD"), address)
        found = re.search(rf"^ref: {HEADS}(\S+)\tHEAD$", said, re.MULTILINE)
        if not found:
            raise BadRepository(f"{address.text} names no branch of its own.", hint="Name one: --branch main")
        branch = check_branch(found[1])
    plain = branch.removeprefix(TAG)
    names = (f"{HEADS}{branch}", f"{TAGS}{plain}^{{}}", f"{TAGS}{plain}")
    refs = _refs(good(await git.run("ls-remote", "--", address.text, *names), address))
    for name in names:
        if name in refs:
            return branch if name.startswith(HEADS) else f"{TAG}{plain}", check_commit(refs[name])
    raise BadRepository(f"{address.text} has no branch {branch}.", hint="`git ls-remote` shows what it has.")


async def _files(git: Git, address: RepositoryAddress, rows: Sequence[TreeRow]) -> tuple[TreeFile, ...]:
    """Read the content of each file, without filters or attributes."""
    ids = list(dict.fromkeys(row.id for row in rows))
    sizes = {row.id: row.size for row in rows}
    most = sum(sizes.values()) + 200 * len(ids)
    said = await git.run("cat-file", "--batch", stdin="".join(f"{id}\n" for id in ids).encode(), most=most)
    good(said, address)
    contents, at = {}, 0
    for id in ids:
        at = said.stdout.index(b"\n", at) + 1
        contents[id] = said.stdout[at : at + sizes[id]]
        at += sizes[id] + 1
    return tuple(_file(row, contents[row.id]) for row in sorted(rows, key=lambda row: row.path))


def _file(row: TreeRow, content: bytes) -> TreeFile:
    if row.mode != LINK:
        return TreeFile(row.path, content, row.mode == PROGRAM)
    return TreeFile(row.path, link=content.decode(errors="surrogateescape"))


async def _about(git: Git, address: RepositoryAddress, commit: str) -> tuple[str, str, str]:
    """Return a commit's author, date and subject, as it claims."""
    said = good(await git.run("cat-file", "commit", commit), address)
    head, _, message = said.partition("\n\n")
    found = AUTHOR.search(head)
    subject = message.strip().partition("\n")[0][:200]
    who, written = (found["who"][:200], _time(found["time"], found["zone"])) if found else ("", "")
    return show_hidden(who), written, show_hidden(subject)


def _time(seconds: str, zone: str) -> str:
    offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[3:])) * (-1 if zone[0] == "-" else 1)
    try:
        return datetime.fromtimestamp(int(seconds), UTC).astimezone(timezone(offset)).isoformat()
    except (ValueError, OverflowError, OSError):
        return ""


def _row(line: bytes) -> TreeRow:
    facts, _, path = line.partition(b"\t")
    mode, _, id, size = facts.decode().split()
    try:
        return TreeRow(mode, id, int(size) if size.isdigit() else 0, path.decode())
    except UnicodeDecodeError as error:
        raise BadTree(why=f"it has a file whose name can't be read: {path!r}") from error


def _refs(said: str) -> dict[str, str]:
    pairs = (line.split("\t", 1) for line in said.splitlines() if "\t" in line)
    return {name: id for id, name in pairs}


def good(said: Said, address: RepositoryAddress) -> str:
    """Return git's output; raise an error if it failed."""
    if FULL in said.complaint:
        raise ServiceFull
    if said.code or said.too_much:
        raise RepositoryUnreachable(repository=address.text, why=_first(said.complaint))
    return said.stdout.decode(errors="replace")


def _first(complaint: str) -> str:
    """Return git's first error, without its prefix."""
    lines = [line for line in complaint.splitlines() if line.startswith(("fatal:", "error:"))] or [complaint]
    return lines[0].partition(": ")[2] or lines[0] or "git did not say why"


def _largest(place: Path) -> int:
    """Return the size of the largest file that was written."""
    return max((file.stat().st_size for file in place.rglob("*") if file.is_file()), default=0)
