"""Probing a live system and comparing it with what was known; and the track record of its predicted starts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import click

from sublet.booking.calls import systems as calls
from sublet.booking.model.amounts import MOST_TIME, duration_text, memory_text
from sublet.booking.views.systems import LiveQueueView, ProbeView, RecordView
from sublet.cli.command import command
from sublet.cli.output import Output, table
from sublet.cli.texts import length
from sublet.kernel.errors import NotFound, SubletError
from sublet.kernel.home import sublet_home
from sublet.systems import catalogue
from sublet.systems.cli.logins import own_names
from sublet.systems.own import Systems

STATES = {"different": "differs", "unknown": "not known", "same": "same"}
SOURCE = "probe"  # the source's name for saved facts


@command("probe", "sublet system probe expanse", "sublet system probe expanse --save")
@click.argument("name", shell_complete=own_names)
@click.option("--all", "-a", "everything", is_flag=True, help="Show also what is the same.")
@click.option("--save", is_flag=True, help="Keep the live queues in your own file, so that `check` uses them.")
def probe(out: Output, name: str, everything: bool, save: bool) -> None:
    """Query a live system, and compare it with the catalogue and your own file.

    Its queues, limits, nodes, your projects and its tools are read over your login. A dash means that one side says
    nothing; a limit that is not shown may still exist.
    """
    own = Systems(sublet_home().systems)
    if name not in own.own_names() and (save or name in catalogue.names()):
        own.find(name)
        raise NotFound(f"{name} is in the catalogue, but not yet yours.", hint=f"sublet system add {name} --user NAME")
    view = out.link().do(calls.probe(name))
    out.show(view, lambda: _draw(view, everything), lambda: _different(view))
    if save:
        own.put(name, facts_of(view))
        out.note(f"The queues are kept in {own.file(name)}.")


def _different(view: ProbeView) -> list[str]:
    return [
        f"{difference.subject}: {difference.what}" for difference in view.differences if difference.state == "different"
    ]


def _draw(view: ProbeView, everything: bool) -> list[str]:
    counts = Counter(difference.state for difference in view.differences)
    rows = [
        (difference.subject, difference.what, difference.known, difference.live, STATES[difference.state])
        for difference in view.differences
        if everything or difference.state != "same"
    ]
    words = [
        f"{counts['different']} differ",
        f"{counts['unknown']} not known on one side",
        f"{counts['same']} the same",
    ]
    hidden = " (--all shows them)" if counts["same"] and not everything else ""
    drawn = [*table(("OF", "WHAT", "KNOWN", "LIVE", ""), rows), ""] if rows else []
    return [*drawn, f"{', '.join(words)}{hidden}."]


def facts_of(view: ProbeView) -> dict[str, Any]:
    """Return the live queues in the form of a system's file; node types are included only where they differ."""
    changed = {each.nodes_of for each in view.differences if each.nodes_of and each.state != "same"}
    kinds = {
        node.name: {"cores": node.cores, "usable": memory_text(node.memory)}
        | ({"gpus": node.gpus} if node.gpus else {})
        for queue in view.queues
        if queue.name in changed
        for node in queue.nodes
    }
    nodes = {"nodes": {name: {**kind, "source": SOURCE} for name, kind in kinds.items()}} if kinds else {}
    named = any(queue.name == view.default_queue for queue in view.queues)
    default = {"scheduler": {"default_queue": view.default_queue}} if named else {}
    return {
        **default,
        "sources": {SOURCE: {"kind": "live", "date": view.as_of.date().isoformat()}},
        **nodes,
        "queues": [_queue(queue, queue.name in changed) for queue in view.queues],
    }


def _queue(queue: LiveQueueView, with_nodes: bool) -> dict[str, Any]:
    known: dict[str, Any] = {
        "sharing": queue.sharing,
        "node": [node.name for node in queue.nodes] if with_nodes else None,
        "min_nodes": queue.min_nodes,
        "max_nodes": queue.max_nodes,
        "max_time": duration_text(queue.max_time) if queue.max_time and queue.max_time <= MOST_TIME else None,
        "max_cores": queue.max_cores,
        "max_gpus": queue.max_gpus,
        "quotas": {"user": queue.per_user} if queue.per_user else None,
    }
    return {"name": queue.name} | {field: value for field, value in known.items() if value} | {"source": [SOURCE]}


def record_of(out: Output, name: str) -> RecordView | None:
    """Return the service's track record for a system, or None if no service is running; none is started."""
    link = out.link()
    link.address = replace(link.address, home=None)
    try:
        return link.do(calls.record(name))
    except SubletError as error:
        out.detail(f"no track record: {error.message}")
        return None


def describe_record(record: RecordView | None) -> list[str]:
    """Describe, for people, how much later jobs started than predicted."""
    if record is None:
        return []
    head = ("QUEUE", "SIZE", "STARTS", "P10", "P50", "P90", "")
    rows = [
        (
            item.queue,
            item.size,
            str(item.samples),
            *map(late, (item.p10, item.p50, item.p90)),
            "" if item.p50 is not None else f"no track record: {record.enough} starts make one",
        )
        for item in record.items
    ]
    none = [f"no track record: no start was seen in {record.days} days"]
    title = f"Predicted starts, and how much later jobs started in {record.days} days"
    notes = ["", "Notes of the last survey", *(f"  {note}" for note in record.notes)] if record.notes else []
    return ["", title, *(table(head, rows, margin="  ") if rows else [f"  {line}" for line in none]), *notes]


def late(time: timedelta | None) -> str:
    """Format a delay: `5 min`, `-2 h` (earlier), `0 s`."""
    return "" if time is None else f"-{length(time)}" if time <= timedelta(seconds=-1) else length(time)
