"""The pages for people who change the code name files and functions that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs" / "handbook").glob("*.md"))]
NAMED = re.compile(r"`([a-z_0-9./]+\.(?:py|sh))(?::([A-Za-z_.]+))?`")


def find_file(path: str) -> Path | None:
    """The file that a page means: from the root of the repository, or from the package; None if there is none."""
    return next((place / path for place in (ROOT, ROOT / "src" / "sublet") if (place / path).is_file()), None)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_file_and_function_that_a_page_names_is_there(page: Path) -> None:
    named = NAMED.findall(page.read_text())
    assert named
    missing = []
    for path, name in named:
        if "/" not in path and not find_file(path):
            continue  # a file's bare name, as in "`port.py` is what each answers"
        file = find_file(path)
        last = name.rpartition(".")[2]
        if file is None or (last and not re.search(rf"(def|class) {last}\b|^{last}\b", file.read_text(), re.MULTILINE)):
            missing.append(f"{path}:{name}" if name else path)
    assert not missing
