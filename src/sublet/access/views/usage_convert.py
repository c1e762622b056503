"""Converts usage to a report, with sums per quarter and platform."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import groupby

from sublet.access.model.usage import Used
from sublet.access.views.usage import QuarterView, UsageReport, UsedView


def usage_report(since: datetime, until: datetime, rows: Sequence[Used]) -> UsageReport:
    """Build a report from rows sorted by quarter and platform, with their sums."""
    items = tuple(
        UsedView(
            quarter=row.quarter,
            platform=row.platform,
            person=row.person,
            sessions=row.sessions,
            running=row.running,
            core_hours=round(row.core_hours, 4),
            node_hours=round(row.node_hours, 4),
            gpu_hours=round(row.gpu_hours, 4),
        )
        for row in rows
    )
    groups = groupby(rows, key=lambda row: (row.quarter, row.platform))
    totals = tuple(_total(*key, list(same)) for key, same in groups)
    return UsageReport(since=since, until=until, items=items, totals=totals)


def _total(quarter: str, platform: str, rows: Sequence[Used]) -> QuarterView:
    return QuarterView(
        quarter=quarter,
        platform=platform,
        people=len({row.person for row in rows}),
        sessions=sum(row.sessions for row in rows),
        core_hours=round(sum(row.core_hours for row in rows), 4),
        node_hours=round(sum(row.node_hours for row in rows), 4),
        gpu_hours=round(sum(row.gpu_hours for row in rows), 4),
    )
