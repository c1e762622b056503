"""The mode is read where a service is put together, and nowhere else: it chooses policies."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "sublet"
WIRING = {"wiring.py", "policies.py", "app.py"}
READ = re.compile(r"""(settings|service|service_of\(request\))\.mode\b|\bmode [!=]= ["']""")
LEFT = 13  # this number may only shrink


def find_readings() -> list[str]:
    """Where the mode is read. A command line reads it in what a service says of itself, which is another thing."""
    return [
        f"{path.relative_to(SOURCE)}:{number}"
        for path in sorted(SOURCE.rglob("*.py"))
        if path.relative_to(SOURCE).as_posix() not in WIRING and "cli" not in path.parts
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if READ.search(line)
    ]


def test_the_mode_is_read_in_the_wiring_alone() -> None:
    found = find_readings()
    assert len(found) == LEFT, f"{len(found)} places read the mode: {', '.join(found)}"
