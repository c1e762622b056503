"""The README as a package index shows it: without links and pictures that only work beside the source."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"^!\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)\n\n?", re.M)
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)\s]+)\)")
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|#", re.I)  # an address of its own, or a place on the same page


class IndexReadme(MetadataHookInterface):
    """Writes the description of the package out of README.md."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Links lead to the project's Source address, if it has one; else their text stays, and pictures go."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = str(metadata.get("urls", {}).get("Source", "")).rstrip("/")
        metadata["readme"] = {"content-type": "text/markdown", "text": make_readme(text, source)}


def make_readme(text: str, source: str = "") -> str:
    """The README for an index; `source` is where the repository can be looked at."""

    def draw(found: re.Match[str]) -> str:
        if ELSEWHERE.match(found["target"]):
            return found[0]
        return f"![{found['text']}]({source}/raw/main/{found['target']})\n\n" if source else ""

    def lead(found: re.Match[str]) -> str:
        if ELSEWHERE.match(found["target"]):
            return found[0]
        return f"[{found['text']}]({source}/blob/main/{found['target']})" if source else found["text"]

    return LINK.sub(lead, PICTURE.sub(draw, text))
