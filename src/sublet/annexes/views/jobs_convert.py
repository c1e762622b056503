"""From HTCondor jobs to what a person sees of them under /v1."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from sublet.annexes.model.dags import QueuedDag
from sublet.annexes.model.jobs import QueuedJob
from sublet.annexes.views.jobs import DagView, JobView


def job_view(job: QueuedJob, names: Mapping[str, str]) -> JobView:
    """A job; the annex that it names is called as its owner calls it."""
    values = {**asdict(job), "annex": names.get(job.annex, job.annex)}
    del values["in_place"], values["pulled"]  # which only its explanation tells of
    return JobView(**values)


def dag_view(dag: QueuedDag, names: Mapping[str, str]) -> DagView:
    """A DAG; the annex that its nodes name is called as its owner calls it."""
    values = {**asdict(dag), "annex": names.get(dag.annex, dag.annex), "only_provisioner": dag.only_provisioner}
    return DagView(**values)
