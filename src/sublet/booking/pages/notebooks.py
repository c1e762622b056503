"""A notebook as one HTML document, for a frame in which no script runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.5 system-ui, sans-serif; margin: 1rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: .88rem/1.5 ui-monospace, monospace; margin: .4rem 0; }
.code { border-left: 4px solid #0d5c63; padding-left: .8rem; }
.error { color: #a3251d; }
img { max-width: 100%; }
table { border-collapse: collapse; } td, th { padding: .2rem .6rem; border: 1px solid #8b8f8c; }
"""
PICTURES = ("image/png", "image/jpeg", "image/gif")


def draw_notebook(data: bytes) -> str:
    """Return the cells of a notebook and their outputs as HTML, or a note that it can't be shown."""
    try:
        cells = json.loads(data)["cells"]
        body = "\n".join(part for cell in cells for part in _cell(cell))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        body = "<p>This file is not a notebook that can be shown. Download it instead.</p>"
    return f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Notebook</title><style>{STYLE}</style>{body}'


def _cell(cell: Mapping[str, Any]) -> Iterator[str]:
    yield _words(_text(cell.get("source")), "code" if cell["cell_type"] == "code" else "words")
    for output in cell.get("outputs") or ():
        yield _output(output)


def _output(output: Mapping[str, Any]) -> str:
    if output["output_type"] == "stream":
        return _words(_text(output.get("text")))
    if output["output_type"] == "error":
        return _words(_text(output.get("traceback"), "\n"), "error")
    data = output.get("data") or {}
    for kind in PICTURES:
        if kind in data:
            content = escape("".join(_text(data[kind]).split()))
            return f'<img alt="" src="data:{kind};base64,{content}">'
    if "text/html" in data:
        return f"<div>{_text(data['text/html'])}</div>"
    return _words(_text(data.get("text/plain")))


def _words(text: str, name: str = "words") -> str:
    return f'<pre class="{name}">{escape(ANSI.sub("", text))}</pre>'


def _text(value: Any, between: str = "") -> str:
    return between.join(str(line) for line in value) if isinstance(value, list) else str(value or "")
