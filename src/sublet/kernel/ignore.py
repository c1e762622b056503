"""Which files of a folder aren't sent along: those that match patterns like .gitignore's, by a file or by default."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

# Files that are regenerated where they are needed, or useless elsewhere.
CLUTTER = (
    *(".git/", ".hg/", ".svn/", "__pycache__/", "*.pyc", ".venv/", "venv/", "node_modules/", ".tox/", ".nox/"),
    *(".mypy_cache/", ".ruff_cache/", ".pytest_cache/", ".ipynb_checkpoints/", ".DS_Store", ".subletignore"),
)
# Credentials, which a computation's files should never include.
SECRETS = (
    *(".ssh/", ".gnupg/", ".aws/", ".kube/", ".env", ".env.*", ".netrc", ".pgpass", ".git-credentials"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "id_rsa*", "id_ed25519*", "id_ecdsa*"),
)


class Ignore:
    """Patterns as in .gitignore: the last one that matches a path decides, and `!` includes a path again."""

    def __init__(self, lines: Iterable[str]) -> None:
        """Parse the lines of an ignore file; blank lines and comments are skipped."""
        self._rules = [rule for line in lines if (rule := _rule(line))]

    def skips(self, path: str, *, is_folder: bool) -> bool:
        """Whether the path, relative to the folder, is ignored by itself; the caller checks its parent folders."""
        for is_kept, folders_only, pattern in reversed(self._rules):
            if (is_folder or not folders_only) and pattern.fullmatch(path):
                return not is_kept
        return False


@cache
def _rule(line: str) -> tuple[bool, bool, re.Pattern[str]] | None:
    text = line.rstrip("\r\n")
    while text.endswith(" ") and not text.endswith("\\ "):
        text = text[:-1]
    if not text or text.startswith("#"):
        return None
    is_kept = text.startswith("!")
    text = text[1:] if is_kept else text
    folders_only = text.endswith("/")
    text = text.rstrip("/")
    is_anchored = "/" in text
    text = text.removeprefix("/")
    if not text:
        return None
    return is_kept, folders_only, re.compile(("" if is_anchored else "(?:.*/)?") + _translate(text))


def _translate(pattern: str) -> str:
    """Translate a pattern to a regular expression: `*` and `?` match within a name, `**` also across folders."""
    expression, at = "", 0
    while at < len(pattern):
        rest = pattern[at:]
        if rest.startswith("**/"):
            expression, at = f"{expression}(?:.*/)?", at + 3
        elif rest == "**":
            expression, at = f"{expression}.+", at + 2
        elif rest[0] == "*":
            expression, at = f"{expression}[^/]*", at + 1
        elif rest[0] == "?":
            expression, at = f"{expression}[^/]", at + 1
        elif rest[0] == "[" and (end := pattern.find("]", at + 2)) > 0:
            inner = pattern[at + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            inner = f"^{inner[1:]}" if inner[0] == "!" else inner
            expression, at = f"{expression}(?!/)[{inner}]", end + 1
        elif rest[0] == "\\" and len(rest) > 1:
            expression, at = expression + re.escape(rest[1]), at + 2
        else:
            expression, at = expression + re.escape(rest[0]), at + 1
    return expression
