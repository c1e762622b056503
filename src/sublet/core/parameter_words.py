"""Parameters that a person typed as text, as the values that an app's schema means."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sublet.core.manifest import Manifest

YES = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def typed(manifest: Manifest, words: Mapping[str, str]) -> dict[str, Any]:
    """Each text by the type of its parameter; what can't be such a value stays text, and is refused as such later."""
    return {name: _typed(manifest, name, word) for name, word in words.items()}


def _typed(manifest: Manifest, name: str, word: str) -> Any:
    parameter = manifest.parameter(name)
    if parameter is None:
        return _json(word)
    schema = parameter.schema
    for choice in schema.get("enum", ()):
        if (choice if isinstance(choice, str) else json.dumps(choice)) == word:
            return choice
    kind = schema.get("type")
    if kind in ("integer", "number"):
        value = _json(word)
        return value if isinstance(value, int | float) and not isinstance(value, bool) else word
    if kind == "boolean":
        return YES.get(word.lower(), word)
    if kind == "array":
        return _json(word) if word.startswith("[") else word
    return word if kind == "string" else _json(word)


def _json(word: str) -> Any:
    try:
        return json.loads(word)
    except ValueError:
        return word
