"""dask.distributed: as many futures as tasks, on two workers. Prints the seconds that they took."""

import subprocess
import sys
import time

from distributed import Client, LocalCluster


def run(number: int) -> int:
    """One task."""
    return subprocess.run(["/bin/true", str(number)]).returncode


if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        client.gather(client.map(run, range(2)))
        begin = time.perf_counter()
        codes = client.gather(client.map(run, range(10, 10 + int(sys.argv[1]))))
        print(time.perf_counter() - begin)
        sys.exit(any(codes))
