"""DAGs that are assigned to an annex as a whole: their managers, and the nodes that aren't assigned yet.

DAGMan submits a node when its parents are done, with the settings with which DAGMan was started. So the manager's own
ad says where the DAG is to run now, and nodes are marked when they appear.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from sublet.annexes.model.annex import DAG_MOVED, JOB_FOLLOWED, JOB_SESSION, JOB_SUPPLIER, JOB_TAKEN, JOB_TARGET
from sublet.annexes.pilots.dags import MANAGER
from sublet.annexes.pilots.marking import WRITTEN
from sublet.annexes.pilots.occupancy import VANILLA, reread
from sublet.annexes.pilots.queue import number_of, text_of
from sublet.platforms.htcondor.commands import HELD, IDLE, RUNNING, to_edit_cluster, to_queue
from sublet.platforms.htcondor.configuration import quote_string
from sublet.platforms.htcondor.tools import Ad, Tools
from sublet.reach.port import Command

ATTRIBUTES = ("ClusterId", "DAGManJobId", "QDate", JOB_TARGET, JOB_TAKEN, DAG_MOVED)
THERE = f"(JobStatus == {IDLE} || JobStatus == {RUNNING} || JobStatus == {HELD})"


@dataclass(frozen=True, slots=True)
class Manager:
    """The manager of one DAG."""

    id: str  # its cluster
    parent: str = ""  # the DAG of which it is a sub-DAG
    annex: str = ""  # the id of the annex for its nodes; empty: none
    moved: int = 0  # when all nodes were marked for it, in seconds since the epoch; 0: never
    submitted: int = 0  # in seconds since the epoch
    is_named: bool = False  # whether a line of the DAG itself names it

    @property
    def has_followers(self) -> bool:
        """Whether nodes that name no annex themselves get that of the manager."""
        return bool(self.moved or (self.is_named and self.annex))

    @property
    def since(self) -> int:
        """The time after which submitted nodes can't have been placed elsewhere on purpose."""
        return self.moved or self.submitted


@dataclass(frozen=True, slots=True)
class Follower:
    """A queued node that isn't assigned to its DAG's annex yet."""

    id: str
    submitted: int
    is_running: bool


def to_managers(tools: Tools) -> Command[list[Manager]]:
    """Build the command that lists the managers of all DAGs in the queue."""
    return reread(to_queue(tools, MANAGER, ATTRIBUTES), lambda ads: [read_manager(ad) for ad in ads])


def read_manager(ad: Ad) -> Manager:
    """Parse a manager from its ad."""
    return Manager(
        id=str(ad["ClusterId"]),
        parent=str(ad.get("DAGManJobId", "")),
        annex=text_of(ad.get(JOB_TARGET)),
        moved=number_of(ad.get(DAG_MOVED)) or 0,
        submitted=number_of(ad.get("QDate")) or 0,
        is_named=JOB_TAKEN in ad,
    )


def find_parts(managers: Sequence[Manager], wanted: Collection[str]) -> list[Manager]:
    """Return these DAGs and their sub-DAGs."""
    by_id = {manager.id: manager for manager in managers}
    return [manager for manager in managers if any(above.id in wanted for above in _chain(manager, by_id))]


def inherit(managers: Sequence[Manager]) -> list[Manager]:
    """Return the sub-DAGs that have yet to get the annex of their parent DAG, with that annex."""
    by_id = {manager.id: manager for manager in managers}
    changed = []
    for manager in managers:
        above = _chain(manager, by_id)[1:]
        last = max(above, key=lambda each: each.moved, default=manager)
        named = next((each for each in above if each.is_named and each.annex), None)
        if last.moved > manager.moved:
            changed.append(replace(manager, annex=last.annex, moved=last.moved))
        elif named and not manager.annex and not manager.moved and not manager.is_named:
            changed.append(replace(manager, annex=named.annex, is_named=True))
    return changed


def _chain(manager: Manager, by_id: dict[str, Manager]) -> list[Manager]:
    """Return a DAG, its parent DAG, and so on."""
    chain = [manager]
    while (above := by_id.get(chain[-1].parent)) and above not in chain:
        chain.append(above)
    return chain


def to_tell(tools: Tools, manager: Manager, supplier: str) -> Command[int]:
    """Build the command that records in a manager's ad where its DAG is to run."""
    write = quote_string if manager.annex else lambda _: "undefined"
    changes = {JOB_TARGET: write(manager.annex), JOB_SUPPLIER: write(supplier)}
    changes |= {DAG_MOVED: str(manager.moved)} if manager.moved else {JOB_TAKEN: WRITTEN}
    return to_edit_cluster(tools, manager.id, changes)


def to_followers(tools: Tools, manager: Manager) -> Command[list[Follower]]:
    """Build the command that lists the nodes of a DAG that aren't assigned to its annex yet."""
    own = f"DAGManJobId == {int(manager.id)} && {VANILLA} && {THERE} && {JOB_SESSION} =?= undefined"
    if manager.moved:
        there = quote_string(manager.annex) if manager.annex else "undefined"
        which = f"({JOB_FOLLOWED} ?: 0) < {manager.moved} && {JOB_TARGET} =!= {there}"
    else:
        which = f'{JOB_TARGET} =?= undefined && {JOB_TAKEN} =?= undefined && {WRITTEN} == ""'
    query = to_queue(tools, f"{own} && {which}", ("ClusterId", "ProcId", "QDate", "JobStatus"))
    return reread(query, lambda ads: [_follower(ad) for ad in ads])


def _follower(ad: Ad) -> Follower:
    id = f"{ad['ClusterId']}.{ad.get('ProcId', 0)}"
    return Follower(id, number_of(ad.get("QDate")) or 0, ad.get("JobStatus") == RUNNING)
