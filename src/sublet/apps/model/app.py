"""Apps: reviewed code, pinned. What a version is, what a reviewer sees of it, and how two versions differ."""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sublet.apps.model.manifest import Manifest, from_json
from sublet.apps.model.repository import UNSEEN, show_hidden
from sublet.apps.model.tree import TreeFile
from sublet.kernel.errors import BadName

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,59}")
POINTER = b"version https://git-lfs.github.com/spec/"
MOST_SHOWN = 100_000  # characters of one file on a page, or in an answer
NEAR = 3  # context lines around a change


class VersionState(StrEnum):
    """The state of a version."""

    PROPOSED = "proposed"  # not decided yet
    APPROVED = "approved"  # it can be run
    REFUSED = "refused"  # can't be run
    REVOKED = "revoked"  # it can no longer be run


@dataclass(frozen=True, slots=True)
class App:
    """An app's name, and its owner."""

    name: str
    person: str
    repository: str
    created: datetime


@dataclass(frozen=True)
class Version:
    """One version of an app's code, manifest and image, decided on as a whole."""

    id: str
    app: str
    number: int
    repository: str
    branch: str
    commit: str
    tree: str  # SHA-256 of the archive of its files
    manifest: Mapping[str, Any]  # with its image pinned
    manifest_hash: str
    image: str
    digest: str  # of the image; empty: not known
    state: VersionState
    proposed: datetime
    proposed_by: str
    author: str = ""  # of the commit, as it claims
    written: str = ""
    subject: str = ""
    findings: tuple[str, ...] = ()  # what a reviewer should know
    decided: datetime | None = None
    decided_by: str = ""
    why: str = ""

    @property
    def name(self) -> str:
        """The version's name: `summa@3`."""
        return f"{self.app}@{self.number}"

    @property
    def pinned(self) -> dict[str, Any]:
        """What is stored with a session that runs the version."""
        return {
            "version": self.id,
            "number": self.number,
            "repository": self.repository,
            "branch": self.branch,
            "commit": self.commit,
            "tree": self.tree,
            "manifest_hash": self.manifest_hash,
            "manifest": dict(self.manifest),
            "image": self.image,
            "digest": self.digest,
        }

    @property
    def when(self) -> str:
        """When the version was decided on."""
        return f"{self.decided:%Y-%m-%d %H:%M} UTC" if self.decided else "an unknown day"

    def as_manifest(self) -> Manifest:
        """Return the parsed manifest."""
        return from_json(self.manifest)

    def same_as(self, other: Version) -> bool:
        """Whether both are the same code from the same place."""
        return all(getattr(self, field) == getattr(other, field) for field in SAME)


def find_revoked(versions: Iterable[Version], number: int | None = None) -> Version | None:
    """Return the revoked version, if that is why none can be run: of this number, or the newest."""
    there = list(versions)
    if number is None and any(version.state is VersionState.APPROVED for version in there):
        return None
    revoked = (
        version for version in there if version.state is VersionState.REVOKED and number in (None, version.number)
    )
    return max(revoked, key=lambda version: version.number, default=None)


SAME = ("repository", "branch", "commit", "tree", "manifest_hash", "digest")


@dataclass(frozen=True, slots=True)
class Change:
    """How one file differs between two versions."""

    path: str
    how: str  # added, removed or changed
    diff: str = ""  # in the format of `diff -u`; empty if there is nothing to read


def check_name(name: str) -> str:
    """Return the name; raise BadName if an app can't have it."""
    if not NAME.fullmatch(name):
        hint = "Names have small letters, digits, `.`, `_` and `-`, up to 60: --name flood-model"
        raise BadName(noun="an app", name=name[:80] or "(empty)", hint=hint)
    return name


def name_of(text: str) -> str:
    """Make a name from that of the manifest or repository."""
    plain = re.sub(r"[^a-z0-9._-]+", "-", text.lower()).strip("-._")
    return plain[:60].rstrip("-._")


def read_ref(ref: str) -> tuple[str, int | None]:
    """Split `summa@3` into name and number; `summa` has no number."""
    name, at, number = ref.partition("@")
    if at and not (number.isdecimal() and len(number) < 10):
        raise BadName(noun="a version", name=ref[:80], hint="Write it as summa@3.")
    return name, int(number) if at else None


def hash_manifest(manifest: Mapping[str, Any]) -> str:
    """Return the hash of a manifest."""
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def text_of(file: TreeFile) -> str | None:
    """Return a file's text, with invisible characters shown; None if it isn't text."""
    if file.link or b"\0" in file.content:
        return None
    try:
        text = file.content.decode()
    except UnicodeDecodeError:
        return None
    return show_hidden(text)


def notes_on(files: Iterable[TreeFile]) -> list[str]:
    """Return notes about files for a reviewer, besides their text."""
    notes = []
    for file in files:
        if file.content.startswith(POINTER):
            notes.append(f"{file.path}: warning: it points to a large file elsewhere (Git LFS), which is not brought.")
        elif file.link:
            notes.append(f"{file.path}: warning: it is a link to {file.link}.")
        elif text_of(file) is None:
            notes.append(f"{file.path}: warning: it is binary, so nobody can read what it does.")
        elif UNSEEN.search(file.content.decode()):
            notes.append(f"{file.path}: warning: it has characters that are not seen, or turn the text around.")
    return notes


def changes(old: Sequence[TreeFile], new: Sequence[TreeFile]) -> list[Change]:
    """Return the differences, file by file."""
    before, after = ({file.path: file for file in files} for files in (old, new))
    listed = []
    for path in sorted(before.keys() | after.keys()):
        one, other = before.get(path), after.get(path)
        if one != other:
            how = "changed" if one and other else "added" if other else "removed"
            listed.append(Change(path, how, _diff(path, _show_file(one), _show_file(other))))
    return listed


def manifest_diff(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Return the differences between two manifests."""
    return _diff("manifest", *(json.dumps(each, indent=2, sort_keys=True, ensure_ascii=False) for each in (old, new)))


def _show_file(file: TreeFile | None) -> str:
    """Return a file as lines to compare; its mode first, if it is executable."""
    if file is None:
        return ""
    if file.link:
        return f"(a link to {file.link})\n"
    text = text_of(file)
    if text is None:
        digest = hashlib.sha256(file.content).hexdigest()
        text = f"(binary, {len(file.content)} bytes, sha256:{digest})\n"
    return f"(may be executed)\n{text}" if file.executable else text


def _diff(path: str, old: str, new: str) -> str:
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), f"a/{path}", f"b/{path}", n=NEAR, lineterm="")
    text = "\n".join(lines)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}\n… and more: it is too long to be shown whole."
