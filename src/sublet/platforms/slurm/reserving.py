"""Reservations by Slurm's operators: the arguments of `scontrol create reservation` that hold an offer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, timedelta

from sublet.platforms.batch.planning import LEEWAY
from sublet.platforms.batch.site import SiteQueue
from sublet.platforms.slurm.options import SlurmAccount, SlurmWish, flags, option_name
from sublet.platforms.slurm.readers import SlurmPlan

PREFIX = "sublet-"  # a reservation's name is this and the session's key
IDLE = "00:05:00"  # Slurm itself removes a reservation that is unused for this long after its start
PURGING = (20, 2)  # the first Slurm whose flag PURGE_COMP takes a time
SHARING = re.compile(r"select/cons_(res|tres)")  # parts of a node can be reserved; otherwise whole ones
OPERATORS = ("operator", "administrator")


def reservation_name(key: str) -> str:
    """Return the name of a session's reservation, the same as in reserve.sh and give_up.sh."""
    return f"{PREFIX}{key}"


def words_to_reserve(
    wish: SlurmWish, account: SlurmAccount, plan: SlurmPlan, queue: SiteQueue | None, config: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the arguments for scontrol: the nodes of Slurm's own plan from its start on, or as many cores of each."""
    words = {option_name(word): word.partition("=")[2] for word in flags(wish, account)}
    length = wish.limit + LEEWAY  # the job starts a moment after the reservation
    cores = wish.amounts.shape.cores
    pairs = {
        "StartTime": f"{plan.start.astimezone(UTC):%Y-%m-%dT%H:%M:%S}",
        "Duration": str(-(-length // timedelta(minutes=1))),
        "Nodes": ",".join(plan.nodes),
        "PartitionName": words.get("partition", ""),
        "CoreCnt": "" if must_be_whole(wish, words, queue, config) else ",".join([str(cores)] * len(plan.nodes)),
        "Licenses": words.get("licenses", ""),
        "Flags": f"PURGE_COMP={IDLE}" if _read_version(config) >= PURGING else "",
    }
    return tuple(f"{name}={value}" for name, value in pairs.items() if value)


def must_be_whole(
    wish: SlurmWish, words: Mapping[str, str], queue: SiteQueue | None, config: Mapping[str, str]
) -> bool:
    """Whether whole nodes must be reserved, because a reservation of cores holds neither GPUs nor memory."""
    each = wish.amounts.shape
    if not SHARING.search(config.get("SelectType", "")) or "exclusive" in words or each.gpus:
        return True
    if queue is None or queue.whole:
        return True
    if "MEMORY" not in config.get("SelectTypeParameters", "").upper():
        return False  # no job's memory is limited
    return each.memory > each.cores * wish.threads * (queue.max_core_memory or 0)


def _read_version(config: Mapping[str, str]) -> tuple[int, ...]:
    match = re.match(r"(\d+)\.(\d+)", config.get("SLURM_VERSION", ""))
    return tuple(int(part) for part in match.groups()) if match else ()


def can_reserve(admin: str, config: Mapping[str, str]) -> bool:
    """Whether Slurm lets this person make reservations; `admin` is their user name and administrative level."""
    name, _, level = admin.strip().partition("|")
    user = config.get("SlurmUser", "").partition("(")[0]
    return bool(name) and (name in ("root", user) or level.strip().lower() in OPERATORS)


def is_ours(name: str) -> bool:
    """Whether a reservation was made by some Sublet service to hold an offer."""
    return name.startswith(PREFIX)
