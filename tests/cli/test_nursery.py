"""The nursery that forks Sublet's processes for the tests: a thread gets the process that it asked for."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.nursery import born

MANY = 24


def test_threads_that_start_processes_at_once_get_each_their_own(tmp_path: Path) -> None:
    reads, writes = os.pipe()

    def start(number: int) -> bool:
        file = tmp_path / str(number)
        with file.open("wb") as out:
            process = born("json.tool", [], os.environ, (reads, out.fileno(), out.fileno()))
        standard_output = Path(f"/proc/{process.pid}/fd/1")
        while standard_output.readlink().parent != tmp_path:  # not yet turned into its program
            time.sleep(0.01)
        is_its_own = standard_output.readlink() == file
        process.kill()
        return is_its_own

    with ThreadPoolExecutor(MANY) as threads:
        assert all(threads.map(start, range(MANY)))
    os.close(reads)
    os.close(writes)
