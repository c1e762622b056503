"""A parameter of an app as a form field, with its bounds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sublet.apps.model.manifest import Parameter
from sublet.apps.model.parameters import on_step, read
from sublet.web.fields import TICKED, Field

LONG = 200  # characters from which a text gets several lines
# format of a text → type of the browser's input
FORMATS = {"date": "date", "email": "email"}
BOUNDS = {"minimum": "at least", "exclusiveMinimum": "more than", "maximum": "at most", "exclusiveMaximum": "less than"}


def field_of(parameter: Parameter, key: str, id: str, value: str) -> Field:
    """Return the field for a parameter, with its value."""
    schema = parameter.schema
    title = str(schema.get("title") or parameter.name)
    needed = {} if parameter.has_default else {"required": ""}
    hint = _hint(schema)
    if "enum" in schema:
        choices = tuple((json.dumps(choice), _words(choice)) for choice in schema["enum"])
        blank = () if value in dict(choices) else (("", "Choose"),)
        return Field(key, id, title, "choice", value, hint, parameter.unit, (*blank, *choices), needed)
    if schema.get("type") == "boolean":
        return Field(key, id, title, "check", value, hint, parameter.unit)
    if schema.get("type") in ("integer", "number"):
        control = "number" if not value or _number(value) is not None else "text"
        attributes = needed | (_range(parameter) if control == "number" else {})
        return Field(key, id, title, control, value, hint, parameter.unit, attributes=attributes)
    control, attributes = _text(schema, value)
    return Field(key, id, title, control, value, hint, parameter.unit, attributes=needed | attributes)


def show_value(parameter: Parameter, value: Any) -> str:
    """Format a value for its field, so that it can be read again."""
    schema = parameter.schema
    if schema.get("type") == "boolean" and "enum" not in schema:
        return TICKED if value else ""
    if "enum" not in schema and isinstance(value, str) and read(parameter, value) == value:
        return value
    return json.dumps(value)


def _words(value: Any) -> str:
    return (value or "(empty)") if isinstance(value, str) else json.dumps(value)


def _text(schema: Mapping[str, Any], value: str) -> tuple[str, dict[str, str]]:
    """Return the control for a text, and its bounds; the browser's checks are a help, the service's count."""
    lengths = {name.lower(): str(schema[name]) for name in ("minLength", "maxLength") if name in schema}
    if schema.get("type") != "string":
        return "text", {}
    if "\n" in value or schema.get("maxLength", 0) > LONG:
        return "lines", lengths
    control = FORMATS.get(schema.get("format", ""), "text")
    if control == "date":
        return control, {}
    pattern = {"pattern": f".*(?:{schema['pattern']}).*"} if "pattern" in schema else {}
    return control, lengths | pattern


def _range(parameter: Parameter) -> dict[str, str]:
    """Return the bounds of a number, and its step from the minimum if the default fits it."""
    schema = parameter.schema
    low, high = schema.get("minimum"), schema.get("maximum")
    attributes = {name: json.dumps(value) for name, value in (("min", low), ("max", high)) if value is not None}
    whole = schema.get("type") == "integer"
    step = schema.get("multipleOf") or schema.get("step") or (1 if whole else None)
    reached = ([schema["default"]] if parameter.has_default else []) + ([0] if "multipleOf" in schema else [])
    fits = step is not None and all(on_step(low or 0, number, step) for number in reached)
    return attributes | {"step": json.dumps(step) if fits else "1" if whole else "any"}


def _hint(schema: Mapping[str, Any]) -> str:
    """Return a hint: the description, and which values are allowed."""
    bounds = {name: f"{word} {json.dumps(schema[name])}" for name, word in BOUNDS.items() if name in schema}
    if "minimum" in schema and "maximum" in schema:
        bounds = {"minimum": f"{json.dumps(schema['minimum'])} to {json.dumps(schema['maximum'])}"}
    hints = [", ".join(bounds.values())]
    if "multipleOf" in schema:
        hints.append(f"a multiple of {json.dumps(schema['multipleOf'])}")
    if "maxLength" in schema:
        hints.append(f"up to {schema['maxLength']} characters")
    if "pattern" in schema:
        hints.append(f"must match {schema['pattern']}")
    if schema.get("type") == "array":
        hints.append("a list, as in [1, 2]")
    text = "; ".join(filter(None, hints))
    description = str(schema.get("description", "")).strip().rstrip(".")
    return ". ".join(f"{words[0].upper()}{words[1:]}" for words in (description, text) if words)


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
