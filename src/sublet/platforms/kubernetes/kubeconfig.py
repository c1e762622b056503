"""Kubeconfig files, merged as kubectl merges those of $KUBECONFIG.

Of clusters, users and contexts with the same name, the one in the first file counts; so does the first current context.
Files that don't exist are skipped, and a relative path is relative to the file that contains it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

USUAL = "~/.kube/config"
GROUPS = ("clusters", "users", "contexts")


class BadAccess(Exception):
    """What is wrong with a kubeconfig or a token, in words."""


@dataclass(frozen=True)
class KubeconfigEntry:
    """A cluster, user or context, and the directory to which its paths are relative."""

    content: Mapping[str, Any]
    folder: Path


@dataclass(frozen=True)
class Kubeconfig:
    """The merged content of kubeconfig files."""

    source: str  # the files, for messages
    current_context: str
    entries: Mapping[str, Mapping[str, KubeconfigEntry]]  # by group and name

    def choose_context(self, name: str) -> Mapping[str, Any]:
        """Return the context of this name, or the current one if the name is empty."""
        if not (chosen := name or self.current_context):
            known = ", ".join(self.entries["contexts"]) or "none"
            raise BadAccess(f"{self.source} has no current context; set `context` to one of these: {known}")
        return self.find("contexts", chosen).content

    def find(self, group: str, name: str) -> KubeconfigEntry:
        """Return a cluster, user or context; raise BadAccess if there is none of this name."""
        entries = self.entries[group]
        if name not in entries:
            known = ", ".join(entries) or "none"
            raise BadAccess(f"{self.source} has no {group.removesuffix('s')} {name}; there are: {known}")
        return entries[name]


def list_kubeconfigs(named: str, environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the files to read: the named one, else those of $KUBECONFIG, else the usual one."""
    texts = [named] if named else [text for text in environment.get("KUBECONFIG", "").split(os.pathsep) if text]
    return tuple(dict.fromkeys(Path(text).expanduser() for text in texts or [USUAL]))


def read_kubeconfig(files: Sequence[Path]) -> Kubeconfig:
    """Read and merge kubeconfig files; at least one of them must exist."""
    source = ", ".join(map(str, files))
    existing = [file for file in files if not _is_missing(file)]
    if not existing:
        raise BadAccess(f"{source} can't be read: {os.strerror(errno.ENOENT)}")
    current, entries = "", {group: dict[str, KubeconfigEntry]() for group in GROUPS}
    for file in existing:
        document = _read_document(file)
        current = current or str(document.get("current-context") or "")
        for group in GROUPS:
            for name, content in _list_entries(document, group, file):
                entries[group].setdefault(name, KubeconfigEntry(content, file.parent))
    return Kubeconfig(source, current, entries)


def _is_missing(file: Path) -> bool:
    try:
        file.stat()
    except FileNotFoundError:
        return True
    except OSError:
        return False  # reading it says what is wrong
    return False


def _read_document(file: Path) -> Mapping[str, Any]:
    try:
        document = yaml.safe_load(read_text(file)) or {}
    except yaml.YAMLError as error:
        raise BadAccess(f"{file} is not YAML: {str(error).splitlines()[0]}") from error
    if not isinstance(document, Mapping):
        raise BadAccess(f"{file} is no kubeconfig that can be used: it has no `clusters`, `users` and `contexts`")
    return document


def _list_entries(document: Mapping[str, Any], group: str, file: Path) -> list[tuple[str, Mapping[str, Any]]]:
    field = group.removesuffix("s")
    try:
        return [(str(entry["name"]), entry.get(field) or {}) for entry in document.get(group) or ()]
    except (KeyError, TypeError, AttributeError) as error:
        why = f"its `{group}` must be a list of a name and a `{field}` each"
        raise BadAccess(f"{file} is no kubeconfig that can be used: {why}") from error


def read_text(file: Path) -> str:
    """Read a file; raise BadAccess if that isn't possible."""
    try:
        return file.read_text()
    except OSError as error:
        raise BadAccess(f"{file} can't be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise BadAccess(f"{file} can't be read: it is no text") from error
