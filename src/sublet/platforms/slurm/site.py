"""The survey of a Slurm site: the site as its commands describe it, and as the service needs it."""

from __future__ import annotations

from datetime import UTC, datetime

from sublet.platforms.batch.survey import Surveyor
from sublet.platforms.port import Survey
from sublet.platforms.slurm import readers as read
from sublet.platforms.slurm.offers import Site, notes


def read_site(surveyor: Surveyor) -> Site:
    """Return the site as of the last survey."""
    answers = surveyor.said
    config = read.read_config(answers.get("config", ""))
    return Site(
        as_of=surveyor.as_of,
        nodes=read.read_nodes(answers.get("nodes", "")),
        queues=read.read_queues(answers.get("queues", "")),
        reservations=read.read_reservations(answers.get("reservations", "")),
        accounts=read.read_accounts(answers.get("accounts", "")),
        submits=read.read_submits(answers.get("accounts", "")),
        qos_submits=read.read_submits(answers.get("qos", "")),
        config=config,
        largest_array=read.read_largest_array(config),
        licenses=read.read_licenses(answers["licenses"]) if "licenses" in answers else None,
    )


def describe_site(surveyor: Surveyor, site: Site, queues: set[str], reservation: str) -> Survey:
    """Return the survey for the service: the nodes of these queues, and only the reservation's if one is named."""
    kept = {node for each in site.reservations if each.name == reservation for node in each.nodes}
    nodes = [
        each.node
        for each in site.nodes
        if each.here and set(each.queues) & queues and (not reservation or each.node.name in kept)
    ]
    trouble = surveyor.trouble
    return Survey(
        as_of=surveyor.as_of,
        nodes=tuple(nodes),
        pools=surveyor.disk(),
        tools=surveyor.tools(),
        trouble=trouble,
        notes=(*([trouble] if trouble else []), *notes(site, site.config, datetime.now(UTC))),
    )
