"""Edits of a system's file that change only the given fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def with_fields(text: str, fields: Mapping[str, Any]) -> str:
    """Return a file's text with these fields, each replacing the old one in place; comments are kept."""
    import yaml  # slow to load, and only needed here

    root = yaml.compose(text, Loader=yaml.CSafeLoader)
    if not isinstance(root, yaml.MappingNode) or root.flow_style:
        whole = {**yaml.load(text, Loader=yaml.CSafeLoader), **fields}
        return yaml.safe_dump(whole, sort_keys=False, allow_unicode=True)
    lines = text.splitlines()
    begins = [key.start_mark.line for key, _ in root.value]
    spans = zip(begins, [*begins[1:], len(lines)], strict=True)
    places = {
        key.value: (begin, _end(lines, begin, end)) for (key, _), (begin, end) in zip(root.value, spans, strict=True)
    }
    replaced = sorted(((places[name], name) for name in fields if name in places), reverse=True)
    for (begin, end), name in replaced:
        lines[begin:end] = _write(name, fields[name])
    for name in fields:
        lines += _write(name, fields[name]) if name not in places else []
    return "\n".join(lines) + "\n"


def _end(lines: list[str], begin: int, end: int) -> int:
    """Return the line where a field ends; comments and empty lines after it belong to the next field."""
    while end > begin + 1 and (not lines[end - 1].strip() or lines[end - 1].startswith("#")):
        end -= 1
    return end


def _write(name: str, value: Any) -> list[str]:
    import yaml

    return yaml.safe_dump({name: value}, sort_keys=False, allow_unicode=True, width=120).splitlines()
