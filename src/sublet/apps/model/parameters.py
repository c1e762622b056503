"""Checks an app's parameters against their schemas: what is wrong, and what would be right."""

from __future__ import annotations

import difflib
import importlib
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from keyword import iskeyword
from typing import Any

from sublet.apps.model.manifest import Manifest, Parameter
from sublet.booking.model.amounts import quote_value
from sublet.booking.model.offer import Reason
from sublet.kernel.patterns import LONGEST as LONGEST_MATCHED
from sublet.kernel.patterns import pattern_problem
from sublet.kernel.value_names import value_text

# What a parameter's schema may contain: nothing that refers elsewhere.
KEYWORDS = frozenset(
    """
    type title description default examples enum const minimum maximum exclusiveMinimum exclusiveMaximum multipleOf
    minLength maxLength pattern format items minItems maxItems uniqueItems step
    """.split()  # noqa: SIM905 - a list of so many words is read best as words
)
FORMATS = ("date", "email", "ipv4", "uuid")
TYPES = ("string", "integer", "number", "boolean", "array")
ORDERED = (("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems"))
LONGEST = 100_000  # characters of one value as JSON
MOST = 500  # parameters of one app
LONGEST_LIST = 2000  # characters of a list whose items must match a pattern
SLOW = "rfc3987_syntax"  # takes more than a second to load, for formats that no parameter has


@cache
def _jsonschema() -> Any:
    """Import jsonschema when it is needed, without the part that loads slowly."""
    if SLOW in sys.modules:
        return importlib.import_module("jsonschema")
    sys.modules[SLOW] = None  # type: ignore[assignment] # as if it were not installed
    try:
        return importlib.import_module("jsonschema")
    finally:
        sys.modules.pop(SLOW, None)


def schema_problems(parameter: Parameter) -> list[tuple[str, str]]:
    """Return what is wrong with the schema itself: the keyword, and why."""
    schema = parameter.schema
    problems = [(name, f"there is no {name} here") for name in schema if name not in KEYWORDS]
    if schema.get("type") not in (*TYPES, None):
        problems.append(("type", f"{quote_value(schema['type'])} is not a type; there are {', '.join(TYPES)}"))
    if schema.get("format") not in (*FORMATS, None):
        problems.append(("format", f"{quote_value(schema['format'])} is not a format; there are {', '.join(FORMATS)}"))
    deeper = list(_deeper(schema))
    problems += [("items", f"there is no {min(set(each) - KEYWORDS)} here") for each in deeper if set(each) - KEYWORDS]
    if problems:
        return problems
    for keyword, each in [("pattern", schema), *(("items", each) for each in deeper)]:
        if slow := pattern_problem(str(each.get("pattern", ""))):
            return [(keyword, f"the pattern: {slow}")]
    library = _jsonschema()
    try:
        library.Draft202012Validator.check_schema(dict(schema))
    except library.SchemaError as error:
        return [(str(error.path[0]) if error.path else "", error.message)]
    for low, high in ORDERED:
        if low in schema and high in schema and schema[low] > schema[high]:
            return [(low, f"its {low} {quote_value(schema[low])} is more than its {high} {quote_value(schema[high])}")]
    if parameter.has_default and (why := _wrong(parameter, schema["default"])):
        return [("default", f"the default itself is not allowed: {why[0]}")]
    return []


def _deeper(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas of its items, of their items, and so on."""
    while isinstance(schema := schema.get("items", ()), Mapping):
        yield schema


def is_variable(name: str) -> bool:
    """Whether the name is a valid notebook variable; nothing else may be written into its code."""
    return name.isidentifier() and not iskeyword(name)


def check(manifest: Manifest, given: Mapping[str, Any]) -> list[Reason]:
    """Return what is wrong with the values, each with the parameter's name, the limit and the nearest valid value."""
    if len(given) > MOST:
        message = f"an app has up to {MOST} parameters, not {len(given)}."
        return [Reason("urn:invalid-value", "parameters", message, str(len(given)), str(MOST))]
    reasons = []
    names = [parameter.name for parameter in manifest.parameters]
    for name in given:
        if manifest.parameter(str(name)) is None:
            if manifest.notebook and not is_variable(str(name)):
                message = f"{quote_value(name)} can't be a variable, as the parameters of a notebook are."
                reasons.append(Reason("urn:invalid-value", "parameters", message, str(name)[:200]))
                continue
            if manifest.any_parameters:
                reasons += _reasons(Parameter(str(name)), given[name])
                continue
            close = difflib.get_close_matches(str(name)[:200], names, 1)
            there = ", ".join(names) or "none"
            message = f"{manifest.name} has no parameter {quote_value(name)}; it has: {there}."
            reasons.append(Reason("urn:invalid-value", f"parameters.{name}", message, str(name)[:200], there, *close))
    for parameter in manifest.parameters:
        if parameter.name in given:
            reasons += _reasons(parameter, given[parameter.name])
        elif parameter.required or not parameter.has_default:
            message = f"{manifest.name} needs the parameter {parameter.name}{_meaning(parameter)}."
            reasons.append(Reason("urn:missing-required-value", f"parameters.{parameter.name}", message))
    return reasons


def _meaning(parameter: Parameter) -> str:
    title = parameter.schema.get("title") or parameter.schema.get("description")
    return f" ({quote_value(title)})" if title else ""


def _reasons(parameter: Parameter, value: Any) -> list[Reason]:
    wrong = _wrong(parameter, value)
    if wrong is None:
        return []
    why, limit, nearest = wrong
    message = f"the parameter {parameter.name} {why}."
    field = f"parameters.{parameter.name}"
    better = value_text(nearest) if nearest is not None else ""
    return [Reason("urn:invalid-value", field, message, quote_value(value), limit, better)]


def _wrong(parameter: Parameter, value: Any) -> tuple[str, str, Any] | None:
    """Return why a value can't be used, the limit, and the nearest valid value; None if it can."""
    schema = {name: item for name, item in parameter.schema.items() if name != "step"}
    if isinstance(value, float) and not math.isfinite(value):
        return "must be a finite number", "", None
    if (size := len(json.dumps(value, default=str))) > LONGEST:
        return f"is longer than {LONGEST} characters", str(LONGEST), None
    longest = LONGEST_MATCHED if isinstance(value, str) else LONGEST_LIST
    matched = any("pattern" in each for each in (schema, *_deeper(schema)))
    if matched and (len(value) if isinstance(value, str) else size) > longest:
        return f"is longer than {longest} characters", str(longest), None
    if isinstance(value, str) and "\0" in value:
        return "contains a NUL character", "", None
    library = _jsonschema()
    nowhere = importlib.import_module("referencing").Registry()  # fetches nothing
    checker = library.FormatChecker(FORMATS)
    validator = library.Draft202012Validator(schema, format_checker=checker, registry=nowhere)
    errors = sorted(validator.iter_errors(value), key=lambda error: error.validator != "type")
    return _describe_error(parameter, errors[0], value) if errors else _between_steps(parameter, value)


def on_step(low: Any, value: Any, step: Any) -> bool:
    """Whether a value is reached from the minimum by whole steps; False for invalid steps."""
    try:
        return step > 0 and math.isclose(math.remainder(value - low, step), 0, abs_tol=1e-9)
    except (TypeError, OverflowError, ValueError):
        return False


def _between_steps(parameter: Parameter, value: Any) -> tuple[str, str, Any] | None:
    """Return why a value between two steps of a slider can't be used; its default and maximum are always valid."""
    schema: Mapping[str, Any] = parameter.schema
    step, low, most = schema.get("step", 0), schema.get("minimum", 0), schema.get("maximum")
    if not all(type(number) in (int, float) for number in (step, low, value)) or step <= 0:
        return None
    if on_step(low, value, step) or value in (schema.get("default"), most):
        return None
    near = low + round((value - low) / step) * step
    nearest = near if most is None or near <= most else most
    unit = f" {parameter.unit}" if parameter.unit else ""
    return f"goes in steps of {step}{unit} from {low}, and can't be {quote_value(value)}", f"steps of {step}", nearest


def _describe_error(parameter: Parameter, error: Any, value: Any) -> tuple[str, str, Any]:
    schema, unit = parameter.schema, f" {parameter.unit}" if parameter.unit else ""
    keyword, limit = error.validator, error.validator_value
    shown = quote_value(value)
    nearest = nearest_of(schema, value)
    if error.path:
        return f"is wrong at {'.'.join(map(str, error.path))}: {error.message}", "", None
    if keyword in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"):
        least, most = schema.get("minimum"), schema.get("maximum")
        between = f"{least} to {most}{unit}" if least is not None and most is not None else f"{keyword} {limit}{unit}"
        return f"must be within {between}, not {shown}", between, nearest
    if keyword == "multipleOf":
        return f"must be a multiple of {limit}{unit}, not {shown}", f"multiples of {limit}", nearest
    if keyword == "enum":
        there = ", ".join(value_text(item) for item in limit)
        return f"must be one of {there}, not {shown}", there, nearest
    if keyword == "type":
        return f"must be of type {limit}, not {shown}", str(limit), nearest
    return f"can't be {shown}: {error.message}", f"{keyword} {quote_value(limit)}", nearest


def nearest_of(schema: Mapping[str, Any], value: Any) -> Any:
    """Return the valid value nearest to an invalid one, if known; otherwise the default, or None."""
    if isinstance(schema.get("enum"), Sequence):
        close = difflib.get_close_matches(str(value)[:200], [str(item) for item in schema["enum"]], 1, 0.5)
        return next((item for item in schema["enum"] if [str(item)] == close), schema.get("default"))
    kind = schema.get("type")
    if kind in ("integer", "number"):
        number = _number(value)
        return schema.get("default") if number is None else clamp(schema, number)
    if kind == "boolean" and str(value).lower() in ("true", "yes", "1", "false", "no", "0"):
        return str(value).lower() in ("true", "yes", "1")
    if kind == "string" and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return schema.get("default")


def _number(value: Any) -> float | None:
    try:
        number = float(value) if not isinstance(value, bool) else None
    except (TypeError, ValueError, OverflowError):
        return None
    return number if number is not None and math.isfinite(number) else None


def clamp(schema: Mapping[str, Any], number: float) -> float:
    """Return the nearest number within a schema's bounds."""
    low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
    number = min(max(number, low), high)
    if (step := schema.get("multipleOf")) and step > 0:
        number = round(number / step) * step
        number += step if number < low else -step if number > high else 0
    return round(number) if schema.get("type") == "integer" or float(number).is_integer() else number


def fill_parameters(manifest: Manifest, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return all parameters in the manifest's order, with defaults for those that weren't given."""
    own = {
        parameter.name: given.get(parameter.name, parameter.schema.get("default"))
        for parameter in manifest.parameters
        if parameter.name in given or parameter.has_default
    }
    return own | (dict(given) if manifest.any_parameters else {})


def read(parameter: Parameter | None, text: str) -> Any:
    """Convert typed text: unchanged if text is wanted, otherwise parsed as JSON."""
    kind = parameter.schema.get("type") if parameter else None
    if kind == "string" or (kind is None and parameter and _all_text(parameter.schema.get("enum"))):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def as_typed(manifest: Manifest, given: Mapping[str, Any]) -> dict[str, Any]:
    """Convert values that came as text from a form to the types of their schemas."""
    known = {parameter.name: parameter for parameter in manifest.parameters}
    return {
        name: read(known[name], value) if name in known and isinstance(value, str) else value
        for name, value in given.items()
    }


def _all_text(values: Any) -> bool:
    return isinstance(values, Sequence) and all(isinstance(item, str) for item in values)
