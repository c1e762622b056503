"""Commands for HTCondor jobs: submit, mark, unmark, move, remove, list, and explain why they wait."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import click

from sublet.annexes.calls import jobs
from sublet.annexes.cli.job_submit import submit
from sublet.annexes.views.jobs import JobList, JobView
from sublet.cli.command import CommandGroup, Example, command
from sublet.cli.output import Output, table
from sublet.cli.texts import length, moment
from sublet.kernel.texts import count_text

NOW = click.option("--now", is_flag=True, help="Stop jobs that run elsewhere; they start again from the beginning.")
JOBS = click.argument("ids", nargs=-1, required=True, metavar="JOB…")
ANNEX = click.option("--annex", required=True, metavar="NAME", help="The annex.")


@click.group("job", cls=CommandGroup, epilog=Example("sublet job submit sweep.sub --annex example"))
def job() -> None:
    """Submit HTCondor jobs for an annex, move them, and say why they wait.

    JOB is 12.0, or 12 for all jobs of a cluster. Jobs that name no annex run on none, unless one is open. A submit
    description can name one itself, for whichever program submits it: MY.AnnexName = "example"
    """


@command("list", "sublet job list", "sublet job list --annex example")
@click.option("--annex", default="", metavar="NAME", help="Only jobs that name this annex.")
def list_(out: Output, annex: str) -> None:
    """List your jobs that wait or run, and the annexes that they name."""
    view = out.link().do(jobs.jobs(annex))
    out.show(view, lambda: _table(view.items), lambda: (job.id for job in view.items))
    if not view.items and out.for_people:
        out.note("No jobs wait or run.")


@command("mark", "sublet job mark 12 --annex example")
@JOBS
@ANNEX
def mark(out: Output, ids: tuple[str, ...], annex: str) -> None:
    """Assign jobs that name no annex to one, however they were submitted.

    The id of a DAG means all its nodes: those in the queue, and those that it submits later.
    """
    _tell(out, out.link().do(jobs.mark(ids, annex)), f"for {annex} now")


@command("move", "sublet job move 12.3 --annex other", "sublet job move 40 --annex other --now")
@JOBS
@ANNEX
@NOW
def move(out: Output, ids: tuple[str, ...], annex: str, now: bool) -> None:
    """Move jobs from one annex to another. Running jobs stay where they are, unless you use --now.

    The id of a DAG means all its nodes, also of its sub-DAGs: those in the queue, and those that it submits later.
    """
    _tell(out, out.link().do(jobs.move(ids, annex, now=now)), f"for {annex} now")


@command("unmark", "sublet job unmark 12")
@JOBS
@NOW
def unmark(out: Output, ids: tuple[str, ...], now: bool) -> None:
    """Make jobs, or a DAG's nodes, name no annex. They then run on annexes that are open, or on none."""
    _tell(out, out.link().do(jobs.unmark(ids, now=now)), "for no annex now")


@command("remove", "sublet job remove 12", "sublet job remove 12.3 14")
@JOBS
def remove(out: Output, ids: tuple[str, ...]) -> None:
    """Remove jobs from the queue, and running ones from their nodes; what these wrote there is lost."""
    removed = out.link().do(jobs.remove(ids))
    _tell(out, removed, "no more")


@command("explain", "sublet job explain 12.0")
@click.argument("id", metavar="JOB")
def explain(out: Output, id: str) -> None:
    """Say why a job is not running: no nodes, a waiting lease, too little room or time, or its requirements."""
    view = out.link().do(jobs.explain(id))
    where = f" for {view.job.annex}" if view.job.annex else ""

    def lines() -> list[str]:
        hint = ["", f"hint: {view.hint}"] if view.hint else []
        return [f"{view.job.id} ({view.job.name}){where} is {view.job.state}.", *view.sentences, *hint]

    out.show(view, lines, lambda: view.sentences)


def _tell(out: Output, changed: JobList, what: str) -> None:
    count = len(changed.items)
    jobs = f"{count_text(count, 'job')} {'is' if count == 1 else 'are'} {what}"
    if not changed.dags:
        out.show(changed, lambda: [f"{jobs}."], lambda: (job.id for job in changed.items))
        return
    dags = f"{'DAG' if len(changed.dags) == 1 else 'DAGs'} {', '.join(changed.dags)}"
    lines = [f"{jobs}.", f"Nodes that {dags} will submit later are {what.removesuffix(' now')} too."]
    out.show(changed, lambda: lines if count else lines[1:], lambda: changed.dags)


def _table(views: Sequence[JobView]) -> list[str]:
    now = datetime.now(UTC)
    rows = [
        (job.id, job.state, job.annex, _name(job), moment(job.submitted, now), _since(job, now), job.why)
        for job in views
    ]
    return (
        table(
            ("JOB", "STATE", "ANNEX", "NAME", "SUBMITTED", "SINCE", "WHY"), rows, keep=("STATE",), least=("SUBMITTED",)
        )
        if rows
        else []
    )


def _name(job: JobView) -> str:
    return f"{job.name} (for {job.guest})" if job.guest else job.name


def _since(job: JobView, now: datetime) -> str:
    return length(now - job.since) if job.since else ""


for one in (submit, mark, unmark, move, remove, list_, explain):
    job.add_command(one)
