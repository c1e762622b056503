"""What a run found, for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from tests.chaos.evidence import Evidence
from tests.chaos.plan import Part

MOST = 8  # refused clients that are named


def summarise(part: Part, evidence: Evidence, wrong: list[str]) -> Iterator[str]:
    """A few lines on a part: what happened, and what is wrong."""
    ends = Counter(record.kind or record.phase for record in evidence.records)
    faults = Counter(fault.kind for fault in evidence.faults)
    refused = [told for told in evidence.told if told.refused]
    yield f"part {part.name}: {len(evidence.work)} pieces of work, {len(evidence.witnesses)} lines of witness"
    yield f"  ends: {_count(ends)}"
    yield f"  faults: {_count(faults)}"
    looks = Counter(look.status for look in evidence.health)
    yield f"  health: {_count(looks)}; {len(evidence.failed_turns)} failed turns; log {evidence.log_bytes >> 10} KiB"
    yield f"  refused clients: {len(refused)}"
    yield from (f"    {told.work}: {_name_cause(told.refused)[:160]}" for told in refused[:MOST])
    yield from (f"  WRONG {words}" for words in wrong)


def _name_cause(words: str) -> str:
    """The line that says what was wrong."""
    lines = words.splitlines()
    return next((line for line in lines if line.startswith("error: ")), lines[0])


def _count(found: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(found.items()))
