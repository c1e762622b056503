"""As root on Debian nothing is skipped for want of a program: what tests look for is what the set-up installs."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "scripts" / "system-packages"
LOOKED_FOR = re.compile(r"""(?:which|find_program)\("([\w.-]+)"(?!, path=(?:BESIDE|str))""")  # elsewhere than in .venv
NAMED = {  # by files that look for several
    "tests/docs/test_guides_operate.py": r"PROGRAMS = \((.*)\)",
    "tests/real/test_pilot_asking.py": r'"client", \[(.*)\]',
    "tests/real/container_tools.py": r"TOOLS = \{(.*)\}",
    "testbed/lifecycle.py": r"programs = \[(.*)\]",
}
# What every Debian has (its packages are essential or required), or comes with one of the packages.
THERE = {"dash", "initdb", "pg_dump", "nsenter", "unshare", "ssh-keygen", "charliecloud"}
NOT_TESTED_WITH = {"apt-get", "parallel"}  # a benchmark brings its own peer
LARGE = {"npm"}  # Debian's package brings hundreds of others: `make engines` says what it leaves out without it


def listed() -> set[str]:
    return set(re.findall(r"^    \[([^]]+)\]=", SCRIPT.read_text(), re.MULTILINE))


def looked_for() -> set[str]:
    files = [file for folder in ("tests", "testbed") for file in (ROOT / folder).rglob("*.py")]
    found = {name for file in files for name in LOOKED_FOR.findall(file.read_text())}
    for file, pattern in NAMED.items():
        found |= set(re.findall(r'"([\w.-]+)"', " ".join(re.findall(pattern, (ROOT / file).read_text()))))
    return found - THERE - NOT_TESTED_WITH - LARGE


def test_each_program_that_a_test_looks_for_is_installed_by_the_set_up() -> None:
    assert {"podman", "systemd-analyze", "wget", "crun"} <= looked_for()
    assert looked_for() - listed() == set()
