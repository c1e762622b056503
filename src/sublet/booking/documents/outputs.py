"""The results that a request asks to be sent somewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sublet.booking.documents.shapes import OUTPUTS
from sublet.booking.model.amounts import quote_value
from sublet.booking.model.request import SentResults, is_pattern
from sublet.kernel.document_fields import a_list, a_map, a_text, decline

MOST = 100
MOST_LINE = 4096
FIELDS = ("path", "to", "when")
WHEN = {"completed": False, "always": True}


def read_outputs(value: Any) -> tuple[SentResults, ...]:
    """Read a list of outputs, or a map of paths to addresses."""
    if isinstance(value, Mapping):
        value = [{"path": path, "to": to} for path, to in value.items()]
    items = a_list(value, OUTPUTS)
    if len(items) > MOST:
        decline(OUTPUTS, f"there are {len(items)} of them", f"At most {MOST} are read.")
    return tuple(_read_output(item, f"{OUTPUTS}[{number}]") for number, item in enumerate(items))


def _read_output(value: Any, where: str) -> SentResults:
    item = a_map(value, where)
    for name in item:
        if name not in FIELDS:
            decline(f"{where}.{name}", "there is no such field", f"Write {', '.join(FIELDS)}.")
    for name in ("path", "to"):
        if name not in item:
            decline(f"{where}.{name}", "it is missing", "Write which results, and where to: out/*.csv, s3://bucket/x/.")
    path, to = (a_text(item[name], f"{where}.{name}", MOST_LINE) for name in ("path", "to"))
    if path.startswith("/") or ".." in path.split("/") or not path.strip("/."):
        decline(f"{where}.path", f"{quote_value(path)} is not below the working directory", "Write one like out/*.csv.")
    when = a_text(item.get("when", "completed"), f"{where}.when")
    if when not in WHEN:
        decline(f"{where}.when", f"{quote_value(when)} is no such time", f"Write {' or '.join(WHEN)}.")
    is_folder = path.endswith("/") or is_pattern(path)
    return SentResults(path, f"{to}/" if is_folder and not to.endswith("/") else to, WHEN[when])
