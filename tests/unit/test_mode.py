"""The mode of a service is read in one place, which chooses policies by it: they are named for what they decide."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "sublet"
READ = re.compile(r"""\bsettings\.mode\b|\bservice\.mode\b|\)\.mode\b|\bmode [!=]= ["']""")
PLACES = {
    "policies.py": 1,  # what it means
    "service.py": 1,  # what others are told
}


def count_readings() -> dict[str, int]:
    """How often each file reads it. A command line reads it in what a service tells, which is another thing."""
    texts = {path.relative_to(SOURCE).as_posix(): path.read_text() for path in sorted(SOURCE.rglob("*.py"))}
    counts = {name: len(READ.findall(text)) for name, text in texts.items() if "cli" not in name.split("/")}
    return {name: count for name, count in counts.items() if count}


def test_the_mode_is_read_where_policies_are_chosen_and_nowhere_else() -> None:
    assert count_readings() == PLACES
