"""Memory that was freed goes back to the system, in a process of its own so that no other test's memory counts."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sublet.kernel.memory import find_trim

HOLES = """
from pathlib import Path
from sublet.kernel.memory import trim_memory

def measure():
    return int(Path("/proc/self/statm").read_text().split()[1])

blocks = [bytes(2000) for _ in range(50_000)]
full = measure()
blocks = blocks[::50]
kept = measure()
trim_memory()
print(full - kept, full - measure())
"""


@pytest.mark.skipif(find_trim() is None, reason="the C library of this machine has no malloc_trim")
def test_pages_between_blocks_that_are_in_use_go_back_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", HOLES], capture_output=True, text=True, check=True)
    by_itself, trimmed = map(int, done.stdout.split())
    pages = 50_000 * 2000 // 4096
    assert by_itself < pages // 10
    assert trimmed > pages // 2
