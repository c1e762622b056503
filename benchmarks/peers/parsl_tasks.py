"""Parsl: as many apps as tasks, on two workers of its high-throughput executor. Prints the seconds that they took."""

import sys
import time

import parsl
from parsl.config import Config
from parsl.executors import HighThroughputExecutor
from parsl.providers import LocalProvider


@parsl.python_app
def run(number: int) -> int:
    """One task."""
    import subprocess

    return subprocess.run(["/bin/true", str(number)]).returncode


if __name__ == "__main__":
    executor = HighThroughputExecutor(max_workers_per_node=2, provider=LocalProvider(), address="127.0.0.1")
    with parsl.load(Config(executors=[executor], run_dir=sys.argv[2], usage_tracking=0)):
        run(0).result()
        begin = time.perf_counter()
        codes = [future.result() for future in [run(number) for number in range(int(sys.argv[1]))]]
        print(time.perf_counter() - begin)
    sys.exit(any(codes))
