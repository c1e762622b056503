"""Judges the evidence: each check is a function that yields what is wrong, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from tests.chaos.evidence import Evidence, Record, Told
from tests.chaos.kinds import BY_NAME, NEVER_RAN
from tests.chaos.plan import Work

OVER = frozenset({"COMPLETED", "FAILED", "CANCELLED"})
NOT_ACCEPTED = frozenset({"OFFERED", "REJECTED", "EXPIRED"})
AROUND = 3.0  # seconds before and after a fault in which a session may still have met it
TOLD_FOR = 0.95  # seconds after a failed turn in which the loop can't have recovered
SETTLES = 0.05  # seconds that a failed turn may take until it is told
LOG_BASE, LOG_PER_SECOND = 512 << 10, 16 << 10  # bytes
SHELL_SIGNAL = 128
EXIT_CODES = {"timeout": 124, "not-started": 127, "cancelled": 130, "out-of-memory": 137}
BY_ITSELF = ("sublet, because", "someone on the system itself")  # who stopped a job that a fault had met
UNREACHABLE = 3  # the exit code of a command line that found no service

Check = Callable[[Evidence], Iterable[str]]


def check_once(evidence: Evidence) -> Iterator[str]:
    """A program runs once, or its end says that it never ran."""
    begun = Counter(line.work for line in evidence.witnesses if line.event == "begin")
    for work, count in begun.items():
        if count > 1:
            yield f"{work} ran {count} times"
    for work, records in _accepted_by_work(evidence).items():
        if len(records) > 1:
            yield f"{work} was accepted as {len(records)} sessions: {', '.join(record.id for record in records)}"
        for record in records:
            yield from _check_run(record, begun[work])


def _check_run(record: Record, begun: int) -> Iterator[str]:
    who = f"{record.name} ({record.id[:8]})"
    if begun and record.kind in NEVER_RAN - {"disk-full"}:
        yield f"{who} ran, and its end says that it didn't: {record.kind}: {record.detail}"
    if not begun and record.kind in ("exited", "signalled", "timeout", "out-of-memory"):
        yield f"{who} never ran, and its end says that it did: {record.kind}"


def check_nothing_is_lost(evidence: Evidence) -> Iterator[str]:
    """What a client was told is accepted is there; what was sent again under one key is one session."""
    known = {record.id: record for record in evidence.records}
    for told in evidence.told:
        for id in told.ids:
            if id not in known:
                yield f"{told.work} was accepted as {id[:8]}, which the database doesn't know"
            elif known[id].phase in NOT_ACCEPTED:
                yield f"{told.work} was accepted as {id[:8]}, which is {known[id].phase} now"
        if len(told.ids) > 1:
            yield f"{told.work} was sent again under one key, and became {len(told.ids)} sessions"


def check_ends(evidence: Evidence) -> Iterator[str]:
    """Code and signal are as planned, or match a fault that the session met."""
    planned = {work.name: work for work in evidence.work}
    ended = Counter(line.work for line in evidence.witnesses if line.event == "end")
    told = {one.work: one for one in evidence.told}
    for record in evidence.records:
        if record.phase not in OVER:
            continue
        work = planned.get(record.name)
        if work is None:
            yield f"{record.id[:8]} is named {record.name!r}, and nobody planned that"
        elif not _is_as_planned(record, work) and not _is_explained(record, work, told.get(work.name), evidence):
            words = f"{record.kind} code {record.code} signal {record.signal} by {record.by!r}: {record.detail}"
            yield f"{record.name} ({record.id[:8]}) ended without a cause: {words}"
        elif record.kind == "exited" and not ended[record.name]:
            yield f"{record.name} ({record.id[:8]}) is told as exited, and its program did not come to its end"


def _is_as_planned(record: Record, work: Work) -> bool:
    if work.signal:
        return record.kind == "signalled" and record.signal == work.signal
    return record.kind == "exited" and record.code == work.code


def _is_explained(record: Record, work: Work, told: Told | None, evidence: Evidence) -> bool:
    """Whether it was cancelled by its own client, or met a fault that leads to such an end."""
    if record.kind == "cancelled" and not record.by.startswith(BY_ITSELF):
        return work.cancel_after is not None and told is not None and told.cancelled
    ended = record.ended or record.created
    for fault in evidence.faults:
        kind = BY_NAME[fault.kind]
        met = record.created - AROUND <= fault.ended and fault.began <= ended + AROUND
        if met and record.platform in kind.hits and record.kind in kind.explains:
            return True
    return False


def check_clients(evidence: Evidence) -> Iterator[str]:
    """What clients were told is what the database says; `sublet run` exits as its session did."""
    records = {record.id: record for record in evidence.records}
    by_name = {record.name: record for record in evidence.records if record.phase in OVER}
    for told in evidence.told:
        for id in told.ids & records.keys():
            record = records[id]
            if told.end and told.end != (record.kind, record.code):
                yield f"{told.work}: its client was told {told.end}, and the database says {record.kind} {record.code}"
        ended = by_name.get(told.work)
        if told.exit is None or ended is None or told.exit == UNREACHABLE:
            continue
        if told.exit != _exit_code(ended):
            yield f"{told.work}: sublet run exited with {told.exit}, and its session ended {ended.kind} {ended.code}"


def _exit_code(record: Record) -> int:
    if record.kind == "exited" or (record.kind in ("disk-full", "out-of-memory") and record.code):
        return record.code or 0
    if record.kind == "signalled" and record.signal:
        return SHELL_SIGNAL + record.signal
    return EXIT_CODES.get(record.kind, 1)


def check_cancels(evidence: Evidence) -> Iterator[str]:
    """Cancelling one session changes that one only.

    A job that a controller forgot is killed by Slurm, and told as cancelled by someone else. Only what the site itself
    wrote down tells it from a neighbour that was met by mistake: each job that the account cancelled there has to be
    one that Sublet named.
    """
    planned = {work.name: work for work in evidence.work}
    names = {record.id: record.name for record in evidence.records}
    for id in sorted(evidence.cancelled_there - evidence.cancels):
        yield f"{names.get(id, 'a job')} ({id[:8]}) was cancelled on the site, and Sublet had named others"
    for record in evidence.records:
        work = planned.get(record.name)
        is_by_itself = record.by.startswith(BY_ITSELF)
        if record.phase == "CANCELLED" and not is_by_itself and work is not None and work.cancel_after is None:
            yield f"{record.name} ({record.id[:8]}) was cancelled by {record.by!r}, and nobody asked for that"


def check_quiet(evidence: Evidence) -> Iterator[str]:
    """Nothing is unfinished a while after the last fault."""
    yield from (f"still unfinished when all is quiet: {words}" for words in evidence.unfinished)


def check_leftovers(evidence: Evidence) -> Iterator[str]:
    """No process, booking, claim, directory or mark belongs to nobody."""
    open_keys = {record.id for record in evidence.records if record.phase not in OVER | NOT_ACCEPTED}
    known = {record.id for record in evidence.records}
    yield from (f"an orphan still runs: {process}" for process in evidence.processes)
    yield from (f"a booking holds what nobody uses: {key}" for key in sorted(evidence.booked - open_keys))
    yield from (f"a claim is left on {record.id[:8]}" for record in evidence.records if record.is_claimed)
    yield from (f"a directory belongs to no session: {name}" for name in sorted(evidence.directories - known))
    yield from (f"left behind: {name}" for name in evidence.leftovers)


def check_agreement(evidence: Evidence) -> Iterator[str]:
    """`sublet ps`, the database and the sessions' directories say the same."""
    for record in evidence.records:
        who = f"{record.name} ({record.id[:8]})"
        if record.phase in NOT_ACCEPTED:
            continue
        listed = evidence.listed.get(record.id)
        if listed != record.phase:
            yield f"{who} is {record.phase} in the database, and {listed or 'not listed'} in ps"
        end = evidence.ends.get(record.id)
        if end and record.phase in OVER and (end.kind, end.code) != (record.kind, record.code):
            yield f"{who} ended {record.kind} {record.code} in the database, and {end.kind} {end.code} in its directory"
    for id in evidence.listed.keys() - {record.id for record in evidence.records}:
        yield f"{id[:8]} is in ps, and not in the database"


def check_health(evidence: Evidence) -> Iterator[str]:
    """/health isn't ok while the loop fails, or while the database can't be used."""
    fine = [look for look in evidence.health if look.status == "ok"]
    for first, last in evidence.outages:
        if any(first + SETTLES <= look.asked <= look.answered <= last for look in fine):
            yield "/health said ok while the database could not be used"
    for failed in evidence.failed_turns:
        first, last = failed.time + SETTLES, failed.time + TOLD_FOR
        if any(service == failed.service and failed.time <= time <= last for service, time in evidence.starts):
            continue  # that was another process
        for look in fine:
            if look.service == failed.service and first <= look.asked <= look.answered <= last:
                yield f"/health said ok {look.asked - failed.time:.2f} s after a turn of the loop had failed"


def check_log(evidence: Evidence) -> Iterator[str]:
    """The log stays small, whatever fails."""
    most = LOG_BASE + LOG_PER_SECOND * evidence.seconds
    if evidence.log_bytes > most:
        yield f"the log grew to {evidence.log_bytes} bytes in {evidence.seconds:.0f} s; {most:.0f} are enough"


def check_notes(evidence: Evidence) -> Iterator[str]:
    """What was seen on the way and is wrong by itself."""
    yield from evidence.notes


CHECKS: tuple[Check, ...] = (
    check_once,
    check_nothing_is_lost,
    check_ends,
    check_clients,
    check_cancels,
    check_quiet,
    check_leftovers,
    check_agreement,
    check_health,
    check_log,
    check_notes,
)


def judge(evidence: Evidence) -> list[str]:
    """All that is wrong."""
    return [f"{check.__name__}: {words}" for check in CHECKS for words in check(evidence)]


def _accepted_by_work(evidence: Evidence) -> dict[str, list[Record]]:
    found: dict[str, list[Record]] = {}
    for record in evidence.records:
        if record.phase not in NOT_ACCEPTED:
            found.setdefault(record.name, []).append(record)
    return found
