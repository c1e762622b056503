"""Conversion of HTCondor jobs and DAGs to their views under /v1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields

from sublet.annexes.model.dags import QueuedDag
from sublet.annexes.model.jobs import QueuedJob
from sublet.annexes.views.jobs import DagView, JobView


def job_view(job: QueuedJob, names: Mapping[str, str]) -> JobView:
    """Convert a job to its view, with the name of its annex."""
    shown = {field.name for field in fields(JobView)}  # the rest is told only in its explanation
    values = {name: value for name, value in asdict(job).items() if name in shown}
    return JobView(**{**values, "annex": names.get(job.annex, job.annex)})


def dag_view(dag: QueuedDag, names: Mapping[str, str]) -> DagView:
    """Convert a DAG to its view, with the name of its annex."""
    values = {**asdict(dag), "annex": names.get(dag.annex, dag.annex), "only_provisioner": dag.only_provisioner}
    return DagView(**values)
