"""`job submit`: submits a description or a job set, in the person's own directory and environment."""

from __future__ import annotations

import os
import re
import sys

import click

from sublet.annexes.cli.refusals import refuse_lines
from sublet.annexes.cli.submitting import Cluster, clusters, submitting, tool
from sublet.annexes.model.jobset import JobSet, parse_jobset
from sublet.annexes.views.jobs import SubmittingView
from sublet.cli.command import command
from sublet.cli.output import Output
from sublet.kernel.errors import BadRequest, SubmitFailed
from sublet.kernel.texts import count_text

ITERATOR = re.compile(r"^\s*iterator\s*=\s*\w", re.IGNORECASE | re.MULTILINE)


@command(
    "submit",
    "sublet job submit sweep.sub --annex example",
    "sublet job submit sweep.sub --annex example -- -batch-name sweep temperature=300",
)
@click.option("--annex", required=True, metavar="NAME", help="The annex that they are to run on.")
@click.argument("file", metavar="FILE")
@click.argument("words", nargs=-1, metavar="[-- OPTIONS…]", type=click.UNPROCESSED)
def submit(out: Output, annex: str, file: str, words: tuple[str, ...]) -> None:
    """Submit an HTCondor submit description, or a job set, for an annex.

    condor_submit reads the file, in this directory and with this environment; options after -- are passed to it. Each
    job names the annex, and runs nowhere else until it is moved or unmarked. It need not have nodes yet. A file with
    a line `iterator = table …` is a job set, as `htcondor jobset submit` reads it.
    """
    _refuse_interactive(words)
    text = sys.stdin.read() if file == "-" else _read(file)
    refuse_lines((text, *words))
    jobset = parse_jobset(text, _read, file) if ITERATOR.search(text) else None
    refuse_lines(jobset.descriptions() if jobset else ())
    link = out.link()
    access = submitting(out, link, annex)
    made, answer_text = _set(access, jobset, words) if jobset else _description(access, file, text, words)
    count = sum(cluster.last - cluster.first + 1 for cluster in made)
    if not made:
        click.echo(answer_text, nl=False)
        return
    answer = {"annex": annex, "jobs": count, "clusters": [cluster.cluster for cluster in made]}
    if jobset:
        answer["jobset"] = jobset.name
    out.show(
        answer,
        lambda: [f"{count_text(count, 'job')} for {annex}: {_name_jobs(made)}"],
        lambda: (str(cluster.cluster) for cluster in made),
    )


def _name_jobs(made: list[Cluster]) -> str:
    return ", ".join(cluster.text for cluster in made)


def _read(file: str) -> str:
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as opened:
            return opened.read()
    except OSError as error:
        raise BadRequest(f"{file} can't be read: {error.strerror}.", hint=f"This is {os.getcwd()}.") from error


def _refuse_interactive(words: tuple[str, ...]) -> None:
    """Raise BadRequest for condor_submit's -interactive or an abbreviation, as nodes can't be connected to."""
    for word in words:
        typed = word.lower().removeprefix("-").removeprefix("-")
        if word.startswith("-") and typed and "interactive".startswith(typed):
            raise BadRequest(
                f"{word} can't be used on an annex: its nodes can't be connected to.",
                hint="`sublet run --interactive shell`, and `sublet attach`, give a shell on a system.",
            )


def _description(access: SubmittingView, file: str, text: str, words: tuple[str, ...]) -> tuple[list[Cluster], str]:
    stdin = text if file == "-" else None
    answer = tool(access, "condor_submit", "-terse", file, *words, stdin=stdin)
    return clusters(answer), answer


def _set(access: SubmittingView, jobset: JobSet, words: tuple[str, ...]) -> tuple[list[Cluster], str]:
    """Submit each job of a set; if one is refused, remove the ones before it."""
    made: list[Cluster] = []
    for description in jobset.descriptions():
        try:
            made += clusters(tool(access, "condor_submit", "-terse", "-", *words, stdin=description))
        except SubmitFailed:
            if made:
                tool(access, "condor_rm", *(str(cluster.cluster) for cluster in made))
            raise
    return made, ""
