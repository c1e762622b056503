"""Default names of requests, from their file, notebook or command."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

LONGEST = 30


def name_of(document: Mapping[str, Any], file: str = "") -> str:
    """Return a default name for a request in the short form; empty if nothing suggests one."""
    if file:
        return shorten(os.path.splitext(os.path.basename(file))[0])
    if isinstance(notebook := document.get("notebook"), str):
        return shorten(notebook.rstrip("/").rpartition("/")[2])
    if words := _words(document):
        return shorten(" ".join([os.path.basename(words[0]) or words[0], *words[1:]]))
    if isinstance(kind := document.get("interactive"), str | bool):
        return kind if isinstance(kind, str) else "lab"
    image = document.get("image")
    return shorten(image.rpartition("/")[2]) if isinstance(image, str) else ""


def _words(document: Mapping[str, Any]) -> list[str]:
    """Return the words of the command, of the first step, of a bag's template, or of its first task."""
    steps = document.get("steps")
    if first := (steps.get("run") if isinstance(steps, Mapping) else steps):
        step = first[0] if isinstance(first, Sequence) else ""
        return _words({"run": step.get("run") if isinstance(step, Mapping) else step})
    bag = document.get("bag")
    line = document.get("run") or (bag.get("template") or bag.get("tasks") if isinstance(bag, Mapping) else bag)
    if bag and isinstance(line, Sequence) and line and not isinstance(line, str):
        first = line[0]
        line = first.get("argv") if isinstance(first, Mapping) else line if isinstance(first, str) else first
        if "template" not in bag and isinstance(first, str):
            line = first
    if isinstance(line, str):
        return line.split()
    return [str(word) for word in line] if isinstance(line, list | tuple) else []


def shorten(text: str) -> str:
    """Return the text as one printable line of limited length."""
    kept = "".join(letter if letter.isprintable() else " " for letter in text).strip()
    return kept if len(kept) <= LONGEST else f"{kept[: LONGEST - 1]}…"
