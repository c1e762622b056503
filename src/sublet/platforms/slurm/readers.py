"""Readers for the output of Slurm's commands from 20.11 to 26.05: the text formats that all versions have."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from sublet.booking.model.offer import Node
from sublet.platforms.batch.pace import Limiter
from sublet.platforms.batch.site import SiteNode, SiteQueue, SiteReservation

MIB = 1 << 20
NOTHING = frozenset({"", "(null)", "N/A", "n/a", "None", "none", "Unknown", "NONE"})
NODE_FORMAT = "%N|%R|%c|%z|%m|%G|%T|%d|%f"
LARGEST_ARRAY = 1000  # Slurm's default of the most parts of an array
AWAY = re.compile(r"(^|\+)(down|drain|fail|maint|future|unk|err|inval|blocked)")  # not asleep: those can be woken


def pairs(line: str) -> dict[str, str]:
    """Read the `Key=value` words of one line of `scontrol show … -o`; a value may have spaces in it."""
    matches = list(re.finditer(r"(?:^|\s)([A-Za-z][\w:/]*)=", line))
    ends = [match.start() for match in matches[1:]] + [len(line)] * bool(matches)
    return {match[1]: line[match.end() : end].strip() for match, end in zip(matches, ends, strict=True)}


def moment(text: str) -> datetime | None:
    """Read a time as Slurm prints it with TZ=UTC; None if it isn't one."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    except ValueError:
        return None


def length(text: str) -> timedelta | None:
    """Read a limit like `1-02:00:00`, `04:00:00` or `30:00`; None if there is none."""
    match = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+)(?::(\d+))?", text)
    if not match:
        return None
    days, hours, mins, seconds = (int(part or 0) for part in match.groups())
    if match[1] and match[4] is None and match[2] is None:  # D-HH
        days, hours, mins = days, mins, 0
    elif match[2] and match[4] is None:  # MM:SS, or D-HH:MM
        hours, mins, seconds = (hours, mins, 0) if match[1] else (0, hours, mins)
    return timedelta(days=days, hours=hours, minutes=mins, seconds=seconds)


def count(text: str) -> int | None:
    """Read a number that may be missing or unlimited; None then."""
    return int(text) if text.isdigit() else None


def gpus(gres: str) -> int:
    """Count the GPUs in `gpu:a100:4(S:0-1),gpu:2,shard:8`."""
    numbers = re.findall(r"(?:^|,)(?:gres/)?gpu(?::[^:,()]+)*?:(\d+)(?=[,(]|$)", gres)
    return sum(int(number) for number in numbers)


def gpu_types(gres: str) -> tuple[str, ...]:
    """Return the GPU types in `gpu:a100:4(S:0-1),gpu:2,shard:8`; GPUs without a type are left out."""
    named = re.findall(r"(?:^|,)(?:gres/)?gpu:(?!no_consume:)([^:,()]+)(?::no_consume)?:\d+", gres)
    return tuple(dict.fromkeys(named))


def hosts(text: str) -> tuple[str, ...]:
    """Expand the host names in `c[1-3,07-09],login`."""
    names: list[str] = []
    for part in re.findall(r"(?:[^,\[]|\[[^\]]*\])+", text if text not in NOTHING else ""):
        names += _spread(part)
    return tuple(names)


def _spread(part: str) -> Iterator[str]:
    before, bracket, rest = part.partition("[")
    if not bracket:
        yield part
        return
    inside, _, after = rest.partition("]")
    for piece in inside.split(","):
        first, dash, last = piece.partition("-")
        for number in range(int(first), int(last if dash else first) + 1):
            for tail in _spread(after):
                yield f"{before}{number:0{len(first)}}{tail}"


def read_nodes(text: str) -> tuple[SiteNode, ...]:
    """Read the nodes in `sinfo -N`, which has one line for each node and queue."""
    nodes: dict[str, SiteNode] = {}
    for line in text.splitlines():
        parts = line.strip().split("|")
        if len(parts) not in (7, 8, 9) or not parts[2].isdigit():  # older saved surveys have fewer columns
            continue
        name, queue, cpus, sizes, memory, gres, state, *more = parts
        tmp, features = more[:1], "".join(more[1:])
        seen = nodes.get(name)
        threads = int(sizes.rpartition(":")[2]) if re.fullmatch(r"\d+:\d+:\d+", sizes) else 1
        threads = threads if threads and int(cpus) % threads == 0 else 1
        nodes[name] = SiteNode(
            Node(name, int(cpus) // threads, _mib(memory), gpus(gres), _mib(*tmp)),
            (*(seen.queues if seen else ()), queue),
            threads,
            not AWAY.search(state.lower()),
            gpu_types(gres),
            _names(features),
        )
    return tuple(nodes.values())


def _mib(text: str = "") -> int:
    return int(re.sub(r"\D", "", text) or 0) * MIB


def read_queues(text: str) -> tuple[SiteQueue, ...]:
    """Read the partitions in `scontrol show partition -o`."""
    return tuple(_queue(values) for line in text.splitlines() if (values := pairs(line)).get("PartitionName"))


def _queue(values: Mapping[str, str]) -> SiteQueue:
    cores, memory = count(values.get("MaxCPUsPerNode", "")), count(values.get("MaxMemPerNode", ""))
    return SiteQueue(
        name=values["PartitionName"],
        up=values.get("State") == "UP" and values.get("RootOnly") != "YES",
        default=values.get("Default") == "YES",
        whole=values.get("OverSubscribe", "").startswith("EXCLUSIVE") or values.get("Exclusive") == "NODE",
        min_nodes=count(values.get("MinNodes", "")) or 0,
        max_nodes=count(values.get("MaxNodes", "")),
        max_time=length(values.get("MaxTime", "")),
        max_cores=cores,
        max_memory=memory * MIB if memory else None,
        max_core_memory=(count(values.get("MaxMemPerCPU", "")) or 0) * MIB or None,
        accounts=_names(values.get("AllowAccounts", "")),
        denied=_names(values.get("DenyAccounts", "")),
        qos="" if values.get("QoS", "N/A") in NOTHING else values["QoS"],
        needs_reservation=values.get("ReqResv") == "YES",
    )


def _names(text: str) -> tuple[str, ...]:
    return () if text in NOTHING or text == "ALL" else tuple(text.split(","))


def read_reservations(text: str) -> tuple[SiteReservation, ...]:
    """Read the reservations in `scontrol show res -o`."""
    reservations = []
    for values in map(pairs, text.splitlines()):
        start, end = moment(values.get("StartTime", "")), moment(values.get("EndTime", ""))
        if start and end:
            reservations.append(
                SiteReservation(values.get("ReservationName", ""), start, end, hosts(values.get("Nodes", "")))
            )
    return tuple(reservations)


def read_licenses(text: str) -> dict[str, int]:
    """Read how many there are of each license in `scontrol show licenses -o`."""
    rows = [pairs(line) for line in text.splitlines()]
    return {row["LicenseName"]: count(row.get("Total", "")) or 0 for row in rows if row.get("LicenseName")}


def read_config(text: str) -> dict[str, str]:
    """Read the settings in `scontrol show config`."""
    lines = (line.partition("=") for line in text.splitlines() if "=" in line)
    return {name.strip(): value.strip() for name, _, value in lines}


def counts_energy(config: Mapping[str, str]) -> bool:
    """Whether nodes measure energy and accounting records it, by these settings."""
    counter = config.get("AcctGatherEnergyType", "").removeprefix("acct_gather_energy/")
    kept = config.get("AccountingStorageType", "").removeprefix("accounting_storage/")
    return counter not in NOTHING and kept not in NOTHING


def read_accounts(text: str) -> tuple[str, ...]:
    """Read the accounts in `sacctmgr -nP show assoc format=account,…`."""
    return tuple(dict.fromkeys(line.strip().partition("|")[0] for line in text.splitlines() if line.strip()))


def read_submits(text: str) -> dict[str, int]:
    """Read how many jobs may be submitted at a time, by account or QOS."""
    lines = [line.strip().split("|") for line in text.splitlines() if line.strip()]
    limits = {name: [most for word in words if (most := count(word)) is not None] for name, *words in lines}
    return {name: min(some) for name, some in limits.items() if some}


def read_largest_array(config: Mapping[str, str]) -> int:
    """Return how many parts an array may have."""
    most = count(config.get("MaxArraySize", ""))
    return LARGEST_ARRAY if most is None else most


@dataclass(frozen=True, slots=True)
class SlurmPlan:
    """When and where Slurm would start a job."""

    start: datetime
    nodes: tuple[str, ...] = ()


def read_plan(stderr: str) -> SlurmPlan | None:
    """Read `sbatch --test-only`: `to start at TIME using 2 processors on nodes c[1-2] in partition debug`."""
    match = re.search(r"to start at (\S+)(?:.*? on nodes (\S+))?", stderr)
    start = moment(match[1]) if match else None
    return SlurmPlan(start, hosts(match[2] or "")) if match and start else None


def read_limiter(config: Mapping[str, str]) -> Limiter | None:
    """Read the limiter in `scontrol show config`; None if it isn't enabled."""
    words = [word.strip() for word in config.get("SlurmctldParameters", "").lower().split(",")]
    if "rl_enable" not in words:
        return None
    values = dict(word.split("=", 1) for word in words if "=" in word)
    size, rate, period = (
        int(values[name]) if values.get(name, "").isdigit() else usual
        for name, usual in (("rl_bucket_size", 30), ("rl_refill_rate", 2), ("rl_refill_period", 1))
    )
    return Limiter(max(1, size), rate / max(1, period))
