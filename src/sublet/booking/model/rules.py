"""The operator's rules: what is refused or capped, by pattern on any field of a request's full document."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, ClassVar, NamedTuple

from sublet.booking.model.amounts import gib, parse_duration, parse_memory, quote_value
from sublet.booking.model.bag import as_text
from sublet.booking.model.offer import Reason
from sublet.kernel.errors import BadAmount

REFUSED = "urn:refused-by-rule"
_ANYONE = "*"


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: refuse values that match `pattern` or don't match `only`, or lower values above `cap`.

    A field is a dotted path, such as `executable.image.locations`; it applies to every item of a list, and `*` stands
    for any name. Patterns are written like those for file names (`*.org`), and ignore case.
    """

    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    field: str
    pattern: str | tuple[str, ...] = ()
    only: str | tuple[str, ...] = ()
    cap: int | float | str | None = None  # a number, or text such as 16GiB or 8h
    refuse: str = ""  # why, in words for the person who asked
    person: str | tuple[str, ...] = _ANYONE  # the people it applies to

    def __post_init__(self) -> None:
        """Raise ValueError for a bad field or cap, and for a rule that could never do anything."""
        if not self.field or not all(self.field.split(".")):
            raise ValueError("a rule's field is a path like compute.cores.max")
        if not (self.pattern or self.only or self.refuse or self.cap is not None):
            raise ValueError("a rule needs something to refuse, a list of what only is allowed, or a cap")
        if self.cap is not None and _amount(self.cap, self.field, self.cap) is None:
            raise ValueError(f"{self.cap} is not an amount of {self.field}")

    @property
    def refused(self) -> str | tuple[str, ...]:
        """The patterns that the rule refuses: everything, if it states only a reason."""
        return self.pattern or ("*" if self.refuse and not self.only and self.cap is None else ())


class Ruled(NamedTuple):
    """A document with caps applied, the reasons for refusals, and notes on what was changed."""

    document: Mapping[str, Any]
    reasons: tuple[Reason, ...]
    notes: tuple[str, ...]


def apply_rules(rules: Iterable[Rule], document: Mapping[str, Any], *names: str) -> Ruled:
    """Apply to a full document, in order, each rule for a person who has one of these names."""
    reasons: list[Reason] = []
    notes: list[str] = []
    changed: Any = document
    for rule in rules:
        if any(_matches(name, rule.person) for name in names):
            changed = _visit(changed, rule.field.split("."), "", _Change(rule, reasons, notes))
    return Ruled(changed, tuple(reasons), tuple(notes))


def _visit(value: Any, names: list[str], path: str, change: _Change, within: Any = None) -> Any:
    """Return the value with every field at that path changed; unchanged parts are shared, not copied."""
    if isinstance(value, list):
        items = [_visit(item, names, f"{path}[{i}]", change, within) for i, item in enumerate(value)]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if not names:
        return change(value, path, within)
    if not isinstance(value, Mapping):
        return value
    news = {
        name: new
        for name in _find_named(value, names[0])
        if (new := _visit(value[name], names[1:], f"{path}.{name}" if path else name, change, value)) is not value[name]
    }
    return {**value, **news} if news else value


def _find_named(value: Mapping[str, Any], name: str) -> Iterator[str]:
    return iter(value) if name == "*" else iter([name] if name in value else [])


@dataclass(frozen=True, slots=True)
class _Change:
    """What one rule does to a value, with the lists to which it adds reasons and notes."""

    rule: Rule
    reasons: list[Reason]
    notes: list[str]

    def __call__(self, value: Any, path: str, within: Any) -> Any:
        """Return the value to put there; `within` is the map that contains it."""
        if isinstance(value, Mapping):
            if "*" in self.rule.refused:
                self.reasons.append(_refuse(path, "", self.rule.refuse))
            return self._cap_range(value, path)
        if value is None:
            return value
        self._refuse(as_text(value), path)
        return value if self.rule.cap is None else self._cap(value, path, within)

    def _refuse(self, text: str, path: str) -> None:
        rule = self.rule
        if rule.refused and _matches(text, rule.refused):
            self.reasons.append(_refuse(path, text, rule.refuse or f"the operator refuses {quote_value(text)} here"))
        if rule.only and not _matches(text, rule.only):
            allowed = ", ".join(_each(rule.only))
            why = rule.refuse or f"the operator allows only {allowed} here"
            self.reasons.append(_refuse(path, text, why, allowed, _each(rule.only)[0]))

    def _cap_range(self, value: Mapping[str, Any], path: str) -> Mapping[str, Any]:
        """Apply the cap to the max of a range."""
        if self.rule.cap is None or "max" not in value:
            return value
        capped = self._cap(value["max"], f"{path}.max", value)
        return value if capped is value["max"] else {**value, "max": capped}

    def _cap(self, value: Any, path: str, within: Any) -> Any:
        """Lower a value to the cap; refuse it if the minimum is above the cap."""
        cap = self.rule.cap
        limit = as_text(cap)
        if not _above(value, path, cap):
            return value
        least = within.get("min") if path.endswith(".max") and isinstance(within, Mapping) else None
        must_be = value if path.endswith(".min") else least
        if must_be is not None and _above(must_be, path, cap):
            field = f"{path.removesuffix('.max')}.min" if path.endswith(".max") else path
            why = self.rule.refuse or f"the operator allows at most {limit} here"
            self.reasons.append(_refuse(field, as_text(must_be), why, limit, limit))
            return value
        why = self.rule.refuse or "the operator allows no more"
        self.notes.append(f"{path} was {as_text(value)} and is now {limit}: {why.rstrip('.')}.")
        return cap


def _refuse(path: str, wanted: str, why: str, limit: str = "", nearest: str = "") -> Reason:
    asked = quote_value(wanted) if wanted else ""
    sentence = f"{f'{path} {asked}'.strip()} is refused: {why.rstrip('.') or 'the operator refuses it'}."
    return Reason(REFUSED, path, sentence, wanted=asked, limit=limit, nearest=nearest)


def _above(value: Any, path: str, cap: Any) -> bool:
    amount, most = _amount(value, path, cap), _amount(cap, path, cap)
    return amount is not None and most is not None and amount > most


def _amount(value: Any, path: str, cap: Any) -> float | None:
    """Return a value in bytes, seconds or as a count; None if it isn't one, which is reported when it is read."""
    try:
        if "memory" in path or path.endswith(("size", "size.min", "size.max")):
            return parse_memory(value) if isinstance(value, str) else gib(value)
        if isinstance(cap, str):
            return parse_duration(value).total_seconds()
        return float(value)
    except (BadAmount, TypeError, ValueError, AttributeError):
        return None


def _each(patterns: str | tuple[str, ...]) -> tuple[str, ...]:
    return (patterns,) if isinstance(patterns, str) else patterns


def _matches(text: str, patterns: str | tuple[str, ...]) -> bool:
    return any(fnmatchcase(text.lower(), pattern.lower()) for pattern in _each(patterns))
