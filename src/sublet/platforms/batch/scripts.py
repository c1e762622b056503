"""The scripts for the remote side: the shared ones in `shell/`, each after the part of a scheduler's own package.

Three of them need such a part, which has the scheduler's own commands as shell functions:

    submit.sh   submit_job WORD…   submits job.sh, in the session's directory; its answer is read by
                read_id            which sets `id` from `$said`;
                is_unsure          whether the scheduler may have the job all the same: its messages are in submit.log
    cancel.sh   cancel_job         stops the job with the name `$key` and the number `$id`, and no other
    job.sh      what a job knows of itself there (described in job.sh)

one more, if programs reach a job's other nodes by it (`Scheduler.reaches_nodes`):

    nodes.sh    list_nodes, on_node, ends_with_us (described in nodes.sh)

one more, if a scheduler's own tool, not nodes.sh, starts a program on each node (`Platform.starts_each_node`):

    each.sh     becomes the session's program: the first that fails ends the others, and its code is the session's

one more, if users can hold and stop their jobs there (`Scheduler.can_pause`):

    pause.sh    pause_job          holds, stops or continues it (described in pause.sh)

and two more, if users can reserve nodes there (reservations.py):

    reserve.sh  reserve_job WORD…  makes the reservation `$key`; `read_id` and `is_unsure` as in submit.sh
    give_up.sh  give_up_job        cancels it (described in give_up.sh)
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

SHARED = "sublet.platforms.batch"
BORROWED = {  # scripts → those whose functions they use
    "clean": ("aside",),
    "let_go": ("aside", "needs"),
    "kept": ("needs",),
    **dict.fromkeys(("root", "submit", "reserve", "incoming", "keep"), ("own",)),
    **dict.fromkeys(("scratch", "unscratch"), ("own", "place")),
    **dict.fromkeys(("fetch", "spread", "send", "describe", "unpack_image", "tools"), ("python",)),
    **dict.fromkeys(("cancel", "pause"), ("submitted",)),
    **dict.fromkeys(("entry", "entries", "publish"), ("seal",)),
}
JOB, NODES, EACH_NODE = "job", "nodes", "each"
SHEBANG = "#!/bin/sh\n"


@cache
def read_script(name: str, package: str = SHARED) -> str:
    """Read a script for the remote side."""
    return files(package).joinpath("shell", f"{name}.sh").read_text()


def script(name: str, *words: str, package: str = "") -> tuple[str, ...]:
    """Return a shared script as a command, after the scripts it borrows functions from and the scheduler's own part."""
    pieces = [read_script(borrowed) for borrowed in BORROWED.get(name, ())]
    pieces += [read_script(name, package)] if package else []
    return ("sh", "-c", "".join([*pieces, read_script(name)]), "sublet", *words)


def own_script(package: str, name: str, *words: str) -> tuple[str, ...]:
    """Return a script that only one scheduler has, as a command."""
    return ("sh", "-c", read_script(name, package), "sublet", *words)


def job_script(package: str) -> str:
    """Return the job script of a scheduler: its own part first, then the shared one."""
    return SHEBANG + read_script(JOB, package) + read_script(JOB)


def nodes_script(package: str) -> str:
    """Return the script by which a job of several nodes runs a program on each of them."""
    return SHEBANG + read_script(NODES, package) + read_script(NODES)


def each_script(package: str = SHARED) -> str:
    """Return the script that starts a program on each node: a scheduler's own, or the shared one using `nodes.sh`."""
    return SHEBANG + read_script(EACH_NODE, package)
