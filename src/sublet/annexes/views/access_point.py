"""Views of the access point, where HTCondor jobs wait and pilots attach to run them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, kw_only=True)
class AccessPointView:
    """The state of the access point."""

    stage: str  # absent: there is no HTCondor; fetching; stopped; ready; failed
    kind: str = ""  # own, machine
    version: str = ""  # HTCondor's
    release: str = ""  # the directory of HTCondor
    collector: str = ""  # where nodes connect to
    schedd: str = ""
    owner: str = ""  # the person's identity there
    configuration: str = ""  # CONDOR_CONFIG for HTCondor's own tools; empty: nothing to set
    job_lease: timedelta | None = None
    package: str = ""  # the command with which an administrator would install HTCondor
    url: str = ""  # the archive to download
    progress: str = ""
    note: str = ""  # a remark for the person
    problem: str = ""
    hint: str = ""


@dataclass(frozen=True, kw_only=True)
class SetUpAsk:
    """How to set up the access point."""

    fetch: bool = False  # download HTCondor if it is missing
    system: str = ""  # a system whose nodes have to reach it
