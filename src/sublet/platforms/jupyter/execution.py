"""The state of a notebook's cells, from its kernel's messages: entries of a journal, applied one by one.

Applying the same entries again, after a crash, gives the same state.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

SETUP = -1  # the hidden cell that runs first
LIMITED = re.compile(
    r"IOPub (?:message|data) rate exceeded\.\s.*rate_limit_window", re.DOTALL
)  # the server's own words
Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Raised:
    """An exception that a cell raised."""

    name: str
    value: str
    traceback: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """The last line of its traceback."""
        return f"{self.name}: {self.value}" if self.value else self.name

    @property
    def exit_code(self) -> int:
        """The exit code of a notebook that raised it: 1, or the code of sys.exit."""
        if self.name != "SystemExit":
            return 1
        if self.value.strip() in ("", "None"):
            return 0
        return int(self.value) & 0xFF if self.value.strip().lstrip("-").isdigit() else 1


@dataclass
class Execution:
    """How far a notebook is, and the output of its cells."""

    kernel: str = ""  # its ID
    name: str = ""
    language: str = ""
    channel: str = ""  # our ID for the kernel
    process: str = ""  # of the kernel, if known: a new process has lost all state
    started: datetime | None = None
    cell: int | None = None  # the last one that was sent
    request: str = ""  # the ID of the message in which it was sent
    sent: int = 0  # cells that the kernel counts
    has_reply: bool = False
    is_idle: bool = False
    raised: Raised | None = None  # by the last cell that was sent
    outputs: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)
    lost: list[int] = field(default_factory=list)  # cells whose output may be incomplete
    limited: list[int] = field(default_factory=list)  # cells of whose output the server withheld some
    _clearing: set[int] = field(default_factory=set)

    @property
    def is_pending(self) -> bool:
        """Whether the last cell that was sent hasn't finished, as far as is known."""
        return self.cell is not None and not (self.has_reply and self.is_idle)

    def apply(self, entry: Entry) -> tuple[str, str]:
        """Apply an entry; return the output that it adds, as a stream and text."""
        match entry["kind"]:
            case "kernel":
                self.kernel, self.name, self.language = entry["id"], entry["name"], entry["language"]
                self.channel, self.started = entry["channel"], datetime.fromtimestamp(entry["at"], UTC)
            case "process":
                self.process = entry["id"]
            case "sent":
                self._send(entry)
            case "note":
                return "stderr", f"sublet: {entry['text']}\n"
            case "lost":
                self.has_reply = self.is_idle = True
                self.lost.append(entry["cell"])
                if entry.get("raised"):
                    self.raised = Raised(*entry["raised"])
            case "message" if entry["parent"] == self.request and self.cell is not None:
                return self._hear(self.cell, entry["type"], entry["content"])
        return "", ""

    def _send(self, entry: Entry) -> None:
        repeats = self.cell == entry["cell"]
        self.cell, self.request = entry["cell"], entry["id"]
        self.has_reply = self.is_idle = False
        self.raised = None
        self.sent += self.cell != SETUP and not repeats
        self.outputs[self.cell] = []

    def _hear(self, cell: int, kind: str, content: Mapping[str, Any]) -> tuple[str, str]:
        match kind:
            case "status":
                self.is_idle = self.is_idle or content.get("execution_state") == "idle"
            case "execute_reply":
                self.has_reply = True
                if isinstance(content.get("execution_count"), int) and cell != SETUP:
                    self.counts[cell] = content["execution_count"]
                if self.raised is None:
                    self.raised = _read_error(content) if content.get("status") == "error" else _find_exit(content)
            case "clear_output" if content.get("wait"):
                self._clearing.add(cell)
            case "clear_output":
                self.outputs[cell] = []
            case "update_display_data":
                self._update(content)
            case "stream" | "display_data" | "execute_result" | "error":
                return self._show(cell, kind, content)
        return "", ""

    def _show(self, cell: int, kind: str, content: Mapping[str, Any]) -> tuple[str, str]:
        shown = self.outputs.setdefault(cell, [])
        if cell in self._clearing:
            self._clearing.discard(cell)
            shown.clear()
        if kind == "error":
            self.raised = _read_error(content)
            trace = {"ename": self.raised.name, "evalue": self.raised.value, "traceback": [*self.raised.traceback]}
            shown.append({"output_type": "error", **trace})
            return "", ""
        if kind == "stream":
            name, text = str(content.get("name", "stdout")), str(content.get("text", ""))
            if name == "stderr" and LIMITED.search(text) and cell not in self.limited:
                self.limited.append(cell)
            if shown and shown[-1]["output_type"] == "stream" and shown[-1]["name"] == name:
                shown[-1]["text"].append(text)
            else:
                shown.append({"output_type": "stream", "name": name, "text": [text]})
            return ("stderr" if name == "stderr" else "stdout"), text
        output: dict[str, Any] = {
            "output_type": kind,
            "data": content.get("data") or {},
            "metadata": content.get("metadata") or {},
        }
        if kind == "execute_result":
            output["execution_count"] = content.get("execution_count")
        if display := (content.get("transient") or {}).get("display_id"):
            output["display"] = display
        shown.append(output)
        text = output["data"].get("text/plain", "")
        return "stdout", f"{''.join(text) if isinstance(text, list) else text}\n" if text else ""

    def _update(self, content: Mapping[str, Any]) -> None:
        display = (content.get("transient") or {}).get("display_id")
        for shown in self.outputs.values():
            for output in shown:
                if display and output.get("display") == display:
                    output["data"], output["metadata"] = content.get("data") or {}, content.get("metadata") or {}

    def fill(self, notebook: Mapping[str, Any]) -> dict[str, Any]:
        """Return the notebook with the output of its cells."""
        cells = []
        for index, cell in enumerate(notebook["cells"]):
            if index in self.outputs:
                shown = [_write_output(output) for output in self.outputs[index]]
                cell = {**cell, "outputs": shown, "execution_count": self.counts.get(index)}
            cells.append(cell)
        return {**notebook, "cells": cells}


def _write_output(output: Mapping[str, Any]) -> dict[str, Any]:
    """Return an output as notebooks have it; while it grows, its text is a list, as adding to a long text is slow."""
    written = {name: part for name, part in output.items() if name != "display"}
    return written | {"text": "".join(output["text"])} if output["output_type"] == "stream" else written


def _find_exit(content: Mapping[str, Any]) -> Raised | None:
    """Return that a cell called `exit()` or `quit()`, after which the kernel exits by itself; None if it didn't.

    IPython takes the code in `exit(3)` for an answer whether its kernel is to stay.
    """
    for part in content.get("payload") or ():
        if isinstance(part, dict) and part.get("source") == "ask_exit":
            code = part.get("keepkernel")
            return Raised("SystemExit", str(code) if isinstance(code, int) and not isinstance(code, bool) else "")
    return None


def _read_error(content: Mapping[str, Any]) -> Raised:
    trace = content.get("traceback") or ()
    return Raised(str(content.get("ename", "Error")), str(content.get("evalue", "")), tuple(map(str, trace)))
