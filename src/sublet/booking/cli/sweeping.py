"""`sweep`: one command with many values, run as tasks of one session."""

from __future__ import annotations

import shlex
from typing import Any

import click

from sublet.booking.calls import offers
from sublet.booking.cli.asking import KEEP_OFFERS, show_answer, split
from sublet.booking.cli.choosing import prefer_option
from sublet.booking.cli.fetching import Destination, check_folder, overwrite_option
from sublet.booking.cli.running import follow_to_end, take_best
from sublet.booking.cli.waiting import ask_service
from sublet.booking.cli.wishes import document, send_files, wishes_of_a_command
from sublet.booking.model.bag import count
from sublet.cli.command import command
from sublet.cli.interrupts import Interrupts
from sublet.cli.keys import key_option
from sublet.cli.output import Output
from sublet.client.choosing import has_cost_limit
from sublet.client.sweeps import USUALLY_AT_MOST, first_tasks, make_bag, read_lines, read_table, read_values
from sublet.kernel.errors import BadRequest
from sublet.kernel.texts import count_text

# options that a sweep doesn't have
KINDS = (
    "image",
    "tasks",
    "each_node",
    "notebook",
    "compose",
    "param",
    "script",
    "interactive",
    "web",
    "idle",
    "step",
    "together",
    "keep_going",
)
SHOWN = 5  # tasks that --dry-run shows


@command(
    "sweep",
    "sublet sweep --grid a=0.1,0.5 --grid b=1:10:3 --cores 4 --time 1h -- python3 sim.py {a} {b}",
    "sublet sweep --table params.csv --dry-run -- python3 sim.py --rate={rate}",
    "sublet sweep --each-line stars.txt -- ./fit.sh {line}",
)
@click.option("--grid", metavar="NAME=VALUES", multiple=True, help="Values: a=0.1,0.5; b=FROM:TO:BY; c='[\"x\"]'.")
@click.option("--each-line", metavar="FILE", help="A task for each line of a file: {line}.")
@click.option("--table", "rows", metavar="FILE", help="A task for each row of a CSV file: {COLUMN}.")
@click.option("--zip", "zipped", is_flag=True, help="Take the first of each, then the second, not all combinations.")
@click.option("--retries", metavar="N", type=int, help="Run a task that fails up to N more times.")
@click.option("--parallel", metavar="N", type=int, help="So many tasks at a time; default: one for each core.")
@click.option("--parts", metavar="N", type=int, help="On a cluster: in so many jobs.")
@click.option("--max-tasks", metavar="N", type=int, default=USUALLY_AT_MOST, help="Refuse a sweep with more tasks.")
@click.option("--dry-run", is_flag=True, help="Show how many tasks there are and the first of them; ask nothing.")
@click.option("--detach", "-d", is_flag=True, help="Print its id, and don't follow it.")
@click.option("--yes", "-y", is_flag=True, help="Accept whatever it costs.")
@click.option("--out", "to", metavar="DIR", callback=check_folder, help="Fetch the results into this directory.")
@overwrite_option
@click.option("--keep", is_flag=True, help="With --out: leave it on the system too.")
@KEEP_OFFERS
@key_option
@prefer_option
@wishes_of_a_command
@click.argument("file", required=False, metavar="")
@click.argument("words", nargs=-1, metavar="-- COMMAND…", type=click.UNPROCESSED)
def sweep(out: Output, file: str | None, words: tuple[str, ...], dry_run: bool, keep_offers: bool, **given: Any) -> int:
    """Run a command with many values: {NAME} in it stands for each value of NAME, {{ and }} for braces.

    All combinations of the values run as tasks of one session. --time, --cores and --memory are for the whole
    session, not for one task; as many tasks as cores run at a time. On a cluster the session may be several jobs that
    share the tasks; then these options are for each job. Files that the command or a value names are sent along.

    Afterwards `sublet result --table SESSION` shows the parameters of each task with its exit code, its seconds, and
    its result: the fields of a JSON object on the last line that it printed, or that line.
    """
    extra, words = split(file, words)
    if extra is not None:
        raise click.UsageError(f"{extra}: a sweep has no file; write the command after --.")
    bag = _make_bag(words, given)
    if dry_run:
        return _show(out, bag)
    link = out.link()
    wishes = {**dict.fromkeys(KINDS), "param": (), **given}
    asked = send_files(out, link, document(out, None, (), wishes, local=link.address.local, bag=bag))
    out.note(f"runs {count_text(count(bag) or 0, 'task')}")
    view = ask_service(out, link, offers.ask(asked, keep_offers=keep_offers, firm=True, key=given.pop("key")))
    if not view.offers:
        return show_answer(out, view)
    detach = given["detach"]
    agreed = given["yes"] or has_cost_limit(asked)
    with Interrupts() as interrupts:
        session = take_best(out, link, view, interrupts, detach=detach, yes=agreed, prefer=given["prefer"])
        to = Destination.read(given["to"], keep=given["keep"], overwrite=given["overwrite"])
        code = follow_to_end(out, link, session, interrupts, detach=detach, to=to)
    if not detach:
        out.note(f"Its table: sublet result --table {session.short}")
    return code


def _make_bag(words: tuple[str, ...], given: dict[str, Any]) -> dict[str, Any]:
    grid: dict[str, list[Any]] = {}
    for text in given["grid"]:
        name, values = read_values(text)
        if name in grid:
            raise BadRequest(detail=f"{name} is given twice", hint="Write all its values in one --grid.")
        grid[name] = values
    return make_bag(
        words,
        grid,
        table=read_table(given["rows"]) if given["rows"] else None,
        lines=read_lines(given["each_line"]) if given["each_line"] else None,
        zipped=given["zipped"],
        at_most=given["max_tasks"],
        retries=given["retries"],
        parallel=given["parallel"],
        parts=given["parts"],
    )


def _show(out: Output, bag: dict[str, Any]) -> int:
    """Show the first tasks, and how many there are."""
    total = count(bag) or 0
    first = first_tasks(bag, SHOWN)
    view = {
        "tasks": total,
        "first": [{"task": task.number, "parameters": task.parameters, "argv": task.argv} for task in first],
    }
    lines = [shlex.join(task.argv) for task in first]
    out.show(view, lambda: lines, lambda: [str(total)])
    out.note(f"{count_text(total, 'task')}" + (f", of which these are the first {SHOWN}" if total > SHOWN else ""))
    return 0
