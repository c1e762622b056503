"""Conversion of HTCondor jobs and DAGs to their views under /v1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from sublet.annexes.model.dags import QueuedDag
from sublet.annexes.model.jobs import QueuedJob
from sublet.annexes.views.jobs import DagView, JobView


def job_view(job: QueuedJob, names: Mapping[str, str]) -> JobView:
    """Convert a job to its view, with the name of its annex."""
    values = {**asdict(job), "annex": names.get(job.annex, job.annex)}
    del values["in_place"], values["pulled"], values["limits"]  # shown only in its explanation
    return JobView(**values)


def dag_view(dag: QueuedDag, names: Mapping[str, str]) -> DagView:
    """Convert a DAG to its view, with the name of its annex."""
    values = {**asdict(dag), "annex": names.get(dag.annex, dag.annex), "only_provisioner": dag.only_provisioner}
    return DagView(**values)
