"""The access point: where HTCondor jobs wait, and pilots come to run them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, kw_only=True)
class AccessPointView:
    """How it is."""

    stage: str  # absent: there is no HTCondor; fetching; stopped; ready; failed
    kind: str = ""  # own, machine
    version: str = ""  # HTCondor's
    release: str = ""  # where HTCondor is
    collector: str = ""  # where nodes connect to
    schedd: str = ""
    owner: str = ""  # who one is to it
    configuration: str = ""  # CONDOR_CONFIG for HTCondor's own tools; empty: nothing to set
    job_lease: timedelta | None = None
    package: str = ""  # how an administrator would install HTCondor
    url: str = ""  # what would be fetched
    progress: str = ""
    note: str = ""  # what a person should know of it
    problem: str = ""
    hint: str = ""


@dataclass(frozen=True, kw_only=True)
class SetUpAsk:
    """What is to be done to have one."""

    fetch: bool = False  # bring HTCondor if there is none
    system: str = ""  # whose nodes have to reach it
