"""The scripts for the far side: those in `shell/` that all share, behind the pieces of a scheduler's own package.

Three of them are nothing without such a piece, which has the scheduler's own commands as functions of the shell:

    submit.sh   submit_job WORD…   hands job.sh in, in the session's directory; its answer is read by
                read_id            which sets `id` out of `$said`;
                is_unsure          whether the scheduler may have the job all the same: its words are in submit.log
    cancel.sh   cancel_job         stops the job that is called `$key` and has the number `$id`, and no other
    job.sh      what a job knows of itself there (told in job.sh)

one more, if programs get to a job's other nodes by it (`Scheduler.reaches_nodes`):

    nodes.sh    list_nodes, on_node, ends_with_us (told in nodes.sh)

one more, if a scheduler's own tool starts a program on each node (`Platform.starts_each_node`), not nodes.sh:

    each.sh     becomes the program of the session: the first that fails ends the others, and its code is the session's

and one more, if users can hold and stop their jobs there (`Scheduler.can_pause`):

    pause.sh    pause_job          holds or stops it, or lets it go on (told in pause.sh)

and two more, if users can reserve nodes there (reservations.py):

    reserve.sh  reserve_job WORD…  makes the reservation `$key`; `read_id` and `is_unsure` as in submit.sh
    give_up.sh  give_up_job        cancels it (told in give_up.sh)
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

SHARED = "sublet.platforms.batch"
BORROWED = {  # scripts → those whose functions they have
    **dict.fromkeys(("clean", "let_go"), ("aside",)),
    **dict.fromkeys(("root", "submit", "reserve", "incoming", "keep"), ("own",)),
    **dict.fromkeys(("scratch", "unscratch"), ("own", "place")),
    **dict.fromkeys(("fetch", "spread", "send", "describe", "unpack_image"), ("python",)),
    **dict.fromkeys(("cancel", "pause"), ("submitted",)),
}
JOB, NODES, EACH_NODE = "job", "nodes", "each"
SHEBANG = "#!/bin/sh\n"


@cache
def read_script(name: str, package: str = SHARED) -> str:
    """A script for the far side, as it is written."""
    return files(package).joinpath("shell", f"{name}.sh").read_text()


def script(name: str, *words: str, package: str = "") -> tuple[str, ...]:
    """A script that is shared, behind the functions that it has from others and from a scheduler's package."""
    pieces = [read_script(borrowed) for borrowed in BORROWED.get(name, ())]
    pieces += [read_script(name, package)] if package else []
    return ("sh", "-c", "".join([*pieces, read_script(name)]), "sublet", *words)


def own_script(package: str, name: str, *words: str) -> tuple[str, ...]:
    """A script that only one scheduler has."""
    return ("sh", "-c", read_script(name, package), "sublet", *words)


def job_script(package: str) -> str:
    """The script of every job of a scheduler: first what it says of a job, then what is the same everywhere."""
    return SHEBANG + read_script(JOB, package) + read_script(JOB)


def nodes_script(package: str) -> str:
    """The script by which a job of several nodes runs a program on each of them."""
    return SHEBANG + read_script(NODES, package) + read_script(NODES)


def each_script(package: str = SHARED) -> str:
    """The script that starts a session's program on each of its nodes: a scheduler's own, or that by `nodes.sh`."""
    return SHEBANG + read_script(EACH_NODE, package)
