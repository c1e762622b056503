"""What was freed goes back to the system, or is of use to all threads; each in a process of its own."""

from __future__ import annotations

import os
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

ARENAS = """
import ctypes, sys, threading
from sublet.kernel.memory import limit_arenas

limit_arenas()
here = threading.Barrier(8)
threads = [threading.Thread(target=here.wait) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
libc = ctypes.CDLL(None)
libc.fdopen.restype = ctypes.c_void_p
libc.malloc_info(0, ctypes.c_void_p(libc.fdopen(1, b"w")))
libc.fflush(None)
"""
IS_GNU = find_trim() is not None


@pytest.mark.skipif(not IS_GNU, reason="the C library of this machine has no malloc_trim")
def test_pages_between_blocks_that_are_in_use_go_back_to_the_system() -> None:
    done = subprocess.run([sys.executable, "-c", HOLES], capture_output=True, text=True, check=True)
    by_itself, trimmed = map(int, done.stdout.split())
    pages = 50_000 * 2000 // 4096
    assert by_itself < pages // 10
    assert trimmed > pages // 2


@pytest.mark.skipif(not IS_GNU, reason="the C library of this machine has no arenas")
@pytest.mark.parametrize(("set_by_operator", "arenas"), [(None, 2), ("5", 5)])
def test_threads_share_two_arenas_unless_the_operator_sets_their_number(
    set_by_operator: str | None, arenas: int
) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "MALLOC_ARENA_MAX"}
    if set_by_operator:
        environment["MALLOC_ARENA_MAX"] = set_by_operator
    done = subprocess.run([sys.executable, "-c", ARENAS], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.count("<heap nr=") == arenas
