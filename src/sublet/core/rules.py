"""The operator's rules: what is refused or capped, by pattern on any field of a request's full document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, ClassVar, NamedTuple

from sublet.core.amounts import gib, parse_duration, parse_memory, shown
from sublet.core.offer import Reason
from sublet.errors import BadAmount

REFUSED = "urn:refused-by-rule"
_ANYONE = "*"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: refuse what matches `pattern`, refuse all that isn't in `only`, or lower what is above `cap`.

    A field is a dotted path, as in `executable.image.locations`; it reaches into every item of a list, and `*` stands
    for any name. Patterns are like those of file names, in any case of letters.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    field: str
    pattern: str | tuple[str, ...] = ()
    only: str | tuple[str, ...] = ()
    cap: int | float | str | None = None  # a number, or text such as 16GiB or 8h
    refuse: str = ""  # why, in words for the person who asked
    person: str | tuple[str, ...] = _ANYONE  # whom it is for

    def __post_init__(self) -> None:
        """A rule that could never do anything is a mistake."""
        if not self.field or not all(self.field.split(".")):
            raise ValueError("a rule's field is a path like compute.cores.max")
        if not (self.pattern or self.only or self.cap is not None):
            raise ValueError("a rule needs a pattern to refuse, a list of what only is allowed, or a cap")
        if self.cap is not None and _amount(self.cap, self.field, self.cap) is None:
            raise ValueError(f"{self.cap} is not an amount of {self.field}")


class Ruled(NamedTuple):
    """A document after the rules: changed by caps, with what is refused and what was changed."""

    document: Mapping[str, Any]
    reasons: tuple[Reason, ...]
    notes: tuple[str, ...]


def apply_rules(rules: Iterable[Rule], document: Mapping[str, Any], person: str) -> Ruled:
    """Apply each rule that is for this person to a full document, in order."""
    reasons: list[Reason] = []
    notes: list[str] = []
    changed: Any = document
    for rule in rules:
        if _matches(person, rule.person):
            changed = _visit(changed, rule.field.split("."), "", _applied(rule, reasons, notes))
    return Ruled(changed, tuple(reasons), tuple(notes))


Change = Callable[[Any, str, Any], Any]  # a value, its path, and the map that it is in → the value to put there


def _visit(value: Any, names: list[str], path: str, change: Change, within: Any = None) -> Any:
    """The value with every field at that path changed; what doesn't change is shared, not copied."""
    if isinstance(value, list):
        items = [_visit(item, names, f"{path}[{i}]", change, within) for i, item in enumerate(value)]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if not names:
        return change(value, path, within)
    if not isinstance(value, Mapping):
        return value
    news = {
        name: new
        for name in _named(value, names[0])
        if (new := _visit(value[name], names[1:], f"{path}.{name}" if path else name, change, value)) is not value[name]
    }
    return {**value, **news} if news else value


def _named(value: Mapping[str, Any], name: str) -> Iterator[str]:
    return iter(value) if name == "*" else iter([name] if name in value else [])


def _applied(rule: Rule, reasons: list[Reason], notes: list[str]) -> Change:
    def change(value: Any, path: str, within: Any) -> Any:
        if isinstance(value, Mapping):
            return _both(value, path) if rule.cap is not None else value
        if value is None:
            return value
        text = _text(value)
        if rule.pattern and _matches(text, rule.pattern):
            reasons.append(_refused(path, text, rule.refuse or f"the operator refuses {shown(text)} here"))
        if rule.only and not _matches(text, rule.only):
            allowed = ", ".join(_each(rule.only))
            why = rule.refuse or f"the operator allows only {allowed} here"
            reasons.append(_refused(path, text, why, allowed, _each(rule.only)[0]))
        return value if rule.cap is None else _capped(value, path, within)

    def _both(value: Mapping[str, Any], path: str) -> Mapping[str, Any]:
        """A cap on a range is a cap on its max."""
        if "max" not in value:
            return value
        capped = _capped(value["max"], f"{path}.max", value)
        return value if capped is value["max"] else {**value, "max": capped}

    def _capped(value: Any, path: str, within: Any) -> Any:
        limit = _text(rule.cap)
        if not _above(value, path, rule.cap):
            return value
        least = within.get("min") if path.endswith(".max") and isinstance(within, Mapping) else None
        must_be = value if path.endswith(".min") else least
        if must_be is not None and _above(must_be, path, rule.cap):
            field = path.removesuffix(".max") + ".min" if path.endswith(".max") else path
            why = rule.refuse or f"the operator allows at most {limit} here"
            reasons.append(_refused(field, _text(must_be), why, limit, limit))
            return value
        notes.append(f"{path} was {_text(value)} and is now {limit}: {rule.refuse or 'the operator allows no more'}.")
        return rule.cap

    return change


def _refused(path: str, wanted: str, why: str, limit: str = "", nearest: str = "") -> Reason:
    sentence = f"{path} {shown(wanted)} is refused: {why.rstrip('.')}."
    return Reason(REFUSED, path, sentence, wanted=shown(wanted), limit=limit, nearest=nearest)


def _above(value: Any, path: str, cap: Any) -> bool:
    amount, most = _amount(value, path, cap), _amount(cap, path, cap)
    return amount is not None and most is not None and amount > most


def _amount(value: Any, path: str, cap: Any) -> float | None:
    """A value as a number to compare: bytes, seconds or a count; None if it isn't one, which the reader will say."""
    try:
        if "memory" in path or path.endswith(("size", "size.min", "size.max")):
            return parse_memory(value) if isinstance(value, str) else gib(value)
        if isinstance(cap, str):
            return parse_duration(value).total_seconds()
        return float(value)
    except (BadAmount, TypeError, ValueError, AttributeError):
        return None


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _each(patterns: str | tuple[str, ...]) -> tuple[str, ...]:
    return (patterns,) if isinstance(patterns, str) else patterns


def _matches(text: str, patterns: str | tuple[str, ...]) -> bool:
    return any(fnmatchcase(text.lower(), pattern.lower()) for pattern in _each(patterns))
