"""Reservations that Slurm lets its operators make: what is asked of `scontrol create reservation` to hold an offer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, timedelta

from sublet.platforms.batch.planning import LEEWAY
from sublet.platforms.batch.site import SiteQueue
from sublet.platforms.slurm.options import SlurmAccount, SlurmWish, flags, option_name
from sublet.platforms.slurm.readers import SlurmPlan

PREFIX = "sublet-"  # before the session's key: what a reservation is called
IDLE = "00:05:00"  # so long after its start nobody has used it, or used it any more, and Slurm itself removes it
PURGING = (20, 2)  # the first Slurm whose flag PURGE_COMP takes a time
SHARING = re.compile(r"select/cons_(res|tres)")  # parts of a node can be reserved, else whole ones
OPERATORS = ("operator", "administrator")


def reservation_name(key: str) -> str:
    """What the reservation for a session is called, as reserve.sh and give_up.sh have it too."""
    return f"{PREFIX}{key}"


def words_to_reserve(
    wish: SlurmWish, account: SlurmAccount, plan: SlurmPlan, queue: SiteQueue | None, config: Mapping[str, str]
) -> tuple[str, ...]:
    """The words for scontrol: the nodes of Slurm's own plan from its start on, or as many cores of each."""
    words = {option_name(word): word.partition("=")[2] for word in flags(wish, account)}
    length = wish.limit + LEEWAY  # the job starts a moment after the reservation does
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
    """Whether whole nodes have to be reserved: a reservation of cores holds neither GPUs nor memory beside them."""
    each = wish.amounts.shape
    if not SHARING.search(config.get("SelectType", "")) or "exclusive" in words or each.gpus:
        return True
    if queue is None or queue.whole:
        return True
    if "MEMORY" not in config.get("SelectTypeParameters", "").upper():
        return False  # nobody's jobs are kept to their memory
    return each.memory > each.cores * wish.threads * (queue.max_core_memory or 0)


def _read_version(config: Mapping[str, str]) -> tuple[int, ...]:
    match = re.match(r"(\d+)\.(\d+)", config.get("SLURM_VERSION", ""))
    return tuple(int(part) for part in match.groups()) if match else ()


def can_reserve(admin: str, config: Mapping[str, str]) -> bool:
    """Whether Slurm lets this person make reservations; `admin` is their name there, then their level."""
    name, _, level = admin.strip().partition("|")
    user = config.get("SlurmUser", "").partition("(")[0]
    return bool(name) and (name in ("root", user) or level.strip().lower() in OPERATORS)


def is_ours(name: str) -> bool:
    """Whether a reservation was made by a Sublet, ours or another's, to hold an offer."""
    return name.startswith(PREFIX)
