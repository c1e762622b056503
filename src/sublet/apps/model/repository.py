"""Git repositories: which addresses, branches and commits are valid."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from sublet.apps.model.tree import TreeFile
from sublet.kernel.errors import BadRepository, BadTree

GITHUB = "github://"
KEYED = re.compile(r"^(ssh|git\+ssh|ssh\+git)://|^[^/@:]+@[^/:]+:")
COMMIT = re.compile(r"[0-9a-f]{40}")
NOT_IN_BRANCH = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|^[-/.]|[/.]$|/\.|\.lock(/|$)")
NOT_IN_ADDRESS = re.compile(r"[\x00-\x20\x7f\\\"'<>`]")
# Nothing may hide from reviewers: these move a terminal's cursor, reverse the text, or are invisible.
UNSEEN = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]|\r(?!\n)")
LONGEST_ADDRESS, LONGEST_BRANCH = 500, 200


@dataclass(frozen=True, slots=True)
class RepositoryAddress:
    """The address of a repository."""

    text: str
    scheme: str  # https, http or file
    host: str = ""
    port: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A repository's files at one commit, and the commit's metadata."""

    repository: str
    branch: str  # such as `main`; for a tag `tags/v1`
    commit: str
    author: str
    written: str  # the author's own time, as ISO 8601
    subject: str
    files: tuple[TreeFile, ...]


def read_address(text: str) -> RepositoryAddress:
    """Parse a repository's address; raise BadRepository if it can't be used."""
    address = text.strip()
    if KEYED.match(address):
        raise BadRepository(address=address, why="this service has no key for ssh; name it by https")
    if address.startswith(GITHUB):
        if len(address.removeprefix(GITHUB).strip("/").split("/")) != 2:
            raise BadRepository(address=address, why="it has to be github://owner/name")
        address = f"https://github.com/{address.removeprefix(GITHUB).strip('/')}"
    if not address or len(address) > LONGEST_ADDRESS or NOT_IN_ADDRESS.search(address):
        raise BadRepository(address=address[:LONGEST_ADDRESS], why="it is no address")
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise BadRepository(address=address, why=f"it is no address: {error}") from error
    if parts.scheme not in ("https", "http", "file") or bool(host) == (parts.scheme == "file"):
        raise BadRepository(address=address, why="only https: addresses, and github://owner/name, can be used")
    if "@" in parts.netloc:
        raise BadRepository(address=f"{parts.scheme}://…@{host}", why="an address may have no name or password in it")
    if parts.query or parts.fragment or not parts.path.strip("/") or {".", ".."} & set(parts.path.split("/")):
        raise BadRepository(address=address, why="its path is not a repository's")
    return RepositoryAddress(address.rstrip("/"), parts.scheme, host, port or (80 if parts.scheme == "http" else 443))


def check_branch(branch: str) -> str:
    """Return the branch; raise BadRepository if git wouldn't accept it, or would take it for an option."""
    if not branch or len(branch) > LONGEST_BRANCH or NOT_IN_BRANCH.search(branch):
        raise BadRepository(f"{branch[:80]!r} can't be the name of a branch.", hint="Write it as in: --branch main")
    return branch


def check_commit(commit: str) -> str:
    """Return the commit in lower case; raise BadRepository if it isn't a full one."""
    if not COMMIT.fullmatch(commit.lower()):
        raise BadRepository(f"{commit[:80]!r} is not a whole commit.", hint="Write all its 40 hexadecimal digits.")
    return commit.lower()


def show_hidden(text: str) -> str:
    """Return the text with invisible characters written out."""
    return UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def check_names(paths: Iterable[str]) -> None:
    """Raise BadTree for names that git itself would read on any file system, or with invisible characters."""
    for path in paths:
        if any(_like_git(part) for part in path.split("/")):
            raise BadTree(why=f"it has a file called {path[:200]!r}, which git itself would read")
        if UNSEEN.search(path):
            raise BadTree(why=f"it has a file called {show_hidden(path[:200])!r}, which is not what it looks like")


def _like_git(part: str) -> bool:
    plain = "".join(letter for letter in part.lower() if letter.isascii()).rstrip(". ")
    return plain == ".git" or plain.startswith("git~")


def is_same_repository(first: str, other: str) -> bool:
    """Whether two addresses mean the same repository."""
    return plain_address(first) == plain_address(other)


def plain_address(repository: str) -> str:
    """Normalize a repository's address, for comparison."""
    return repository.lower().rstrip("/").removesuffix(".git")
