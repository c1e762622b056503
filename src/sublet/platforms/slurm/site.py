"""What a survey of a Slurm site says: the site as its answers tell it, and the same for the service."""

from __future__ import annotations

from datetime import UTC, datetime

from sublet.platforms.batch.survey import Surveyor
from sublet.platforms.port import Survey
from sublet.platforms.slurm import readers as read
from sublet.platforms.slurm.offers import Site, notes


def read_site(surveyor: Surveyor) -> Site:
    """The site as it was at the last survey."""
    said = surveyor.said
    return Site(
        as_of=surveyor.as_of,
        nodes=read.read_nodes(said.get("nodes", "")),
        queues=read.read_queues(said.get("queues", "")),
        reservations=read.read_reservations(said.get("reservations", "")),
        accounts=read.read_accounts(said.get("accounts", "")),
        submits=read.read_submits(said.get("accounts", "")),
        qos_submits=read.read_submits(said.get("qos", "")),
        largest_array=read.read_largest_array(read.read_config(said.get("config", ""))),
    )


def describe_site(surveyor: Surveyor, site: Site, queues: set[str], reservation: str) -> Survey:
    """The same for the service: the nodes of these queues, and of the reservation if there is one."""
    kept = {node for one in site.reservations if one.name == reservation for node in one.nodes}
    nodes = [
        one.node
        for one in site.nodes
        if one.here and set(one.queues) & queues and (not reservation or one.node.name in kept)
    ]
    config, trouble = read.read_config(surveyor.said.get("config", "")), surveyor.trouble
    return Survey(
        as_of=surveyor.as_of,
        nodes=tuple(nodes),
        pools=surveyor.disk(),
        tools=surveyor.tools(),
        trouble=trouble,
        notes=(*([trouble] if trouble else []), *notes(site, config, datetime.now(UTC))),
    )
