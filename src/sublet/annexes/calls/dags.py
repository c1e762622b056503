"""Calls about DAGs of HTCondor jobs."""

from __future__ import annotations

from sublet.annexes.views.jobs import DagList, DagView
from sublet.client.call import Call, as_view, nothing, path_of


def dags() -> Call[DagList]:
    """List the caller's DAGs that are in the queue."""
    return Call("GET", path_of("dags"), as_view(DagList))


def dag(id: str) -> Call[DagView]:
    """Show a DAG."""
    return Call("GET", path_of("dags", id), as_view(DagView))


def remove(id: str) -> Call[None]:
    """Remove a DAG and its jobs."""
    return Call("DELETE", path_of("dags", id), nothing)


def end_provisioning(job: str) -> Call[DagView]:
    """Tell the DAG of a provisioner's job that its work is done."""
    return Call("POST", path_of("dags", "provisioners", job, "ready"), as_view(DagView))
