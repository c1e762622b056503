"""The table of a sweep: the parameters and results of each task."""

from __future__ import annotations

import csv
import json
import os
import sys
import tempfile
from typing import Any

from sublet.booking.calls import results
from sublet.cli.output import Output
from sublet.client.link import Link
from sublet.client.tables import PRINTED, RECORD, columns_of, join_table
from sublet.kernel.errors import NotFound


def print_table(out: Output, link: Link, session: str) -> None:
    """Print the table as CSV, or with --json as a list of rows."""
    names = {file.path for file in link.do(results.results(session)).items}
    if RECORD not in names:
        raise NotFound(noun="table", name=session, hint="A sweep or a bag has one, once a task of it has ended.")
    with tempfile.TemporaryFile() as printed:  # it may be large
        if PRINTED in names:
            printed.writelines(link.stream(results.result(session, PRINTED)))
            printed.flush()
        record = b"".join(link.stream(results.result(session, RECORD))).splitlines()
        rows = join_table(record, lambda offset, length: os.pread(printed.fileno(), length, offset))
    if out.json:
        out.data(rows)
        return
    writer = csv.DictWriter(sys.stdout, columns_of(rows), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _write_cell(value) for name, value in row.items()} for row in rows)


def _write_cell(value: Any) -> Any:
    """Return a value as CSV has it: lists, objects and truths as JSON, so that other programs can read them."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list, bool)) else value
