"""HyperQueue: one job of many tasks on a local cluster with two cores. Prints the seconds that they took."""

import sys
import time

from hyperqueue import Job, LocalCluster
from hyperqueue.cluster import WorkerConfig

count = int(sys.argv[1])
with LocalCluster() as cluster:
    cluster.start_worker(WorkerConfig(cores=2))
    client = cluster.client()
    job = Job()
    for number in range(count):
        job.program(["/bin/true", str(number)], stdout=None, stderr=None)
    begin = time.perf_counter()
    client.wait_for_jobs([client.submit(job)])
    print(time.perf_counter() - begin)
