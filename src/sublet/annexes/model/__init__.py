"""The rules of annexes: leases, nodes, jobs, job sets and DAGs as frozen values and pure functions."""
