"""Submission of jobs for an annex through environment variables, which condor_submit and DAGMan pass on.

Every job of a description, of a DAG, of its splices and of its sub-DAGs gets the attributes that name the annex, and
the requirement that keeps it to the annex's slots.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from sublet.annexes.model.annex import JOB_SUPPLIER, JOB_TARGET, TARGETED
from sublet.annexes.model.inputs import WAITS
from sublet.platforms.htcondor.configuration import attribute

ATTRIBUTES, REQUIRED, REQUIRED_OF_ALL = "SUBMIT_ATTRS", "APPEND_REQ_VANILLA", "APPEND_REQUIREMENTS"
LEASE, TOLD = "JOB_DEFAULT_LEASE_DURATION", "DAGMAN_QUEUE_UPDATE_INTERVAL"
OFTEN = 2  # seconds between updates of a DAG's manager
KEPT_TO = f"{TARGETED} && {WAITS}"  # the requirement of every job of an annex
ASKED = (ATTRIBUTES, REQUIRED, REQUIRED_OF_ALL)  # settings that the access point's own configuration may have


def environment_for(annex: str, supplier: str, lease: timedelta, already: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which tools submit for an annex; the configuration's own values still apply."""
    marks = {JOB_TARGET: annex, JOB_SUPPLIER: supplier}
    required = already.get(REQUIRED) or already.get(REQUIRED_OF_ALL) or ""
    values = {
        ATTRIBUTES: " ".join([*already.get(ATTRIBUTES, "").split(), *marks]),
        REQUIRED: f"({required}) && {KEPT_TO}" if required else KEPT_TO,
        LEASE: str(round(lease.total_seconds())),
        TOLD: str(OFTEN),
        **{name: attribute(value) for name, value in marks.items()},
    }
    return {f"_CONDOR_{name}": value for name, value in values.items()}
