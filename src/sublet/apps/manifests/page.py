"""A manifest as a document whose values have line numbers, with the problems that were found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sublet.apps.manifests.lines import Lines, Path, json_lines, json_twice, yaml_lines
from sublet.apps.model.manifest import Manifest
from sublet.booking.model.amounts import quote_value
from sublet.kernel.document import parse_document
from sublet.kernel.errors import SubletError


@dataclass(frozen=True, slots=True)
class ManifestFinding:
    """One problem, or something that its author should know."""

    file: str
    line: int  # 0: no particular line
    message: str
    error: bool  # False: a warning, and the manifest can be used
    is_about_image: bool = False  # it names an image that isn't known here

    def __str__(self) -> str:
        """Format as compilers do: `sublet.yaml:12: error: …`."""
        where = f"{self.file}:{self.line}" if self.line else self.file
        return f"{where}: {'error' if self.error else 'warning'}: {self.message}"


@dataclass(frozen=True, slots=True)
class ManifestReading:
    """A manifest, unless there are errors, and all findings."""

    manifest: Manifest | None
    findings: tuple[ManifestFinding, ...] = ()

    @property
    def errors(self) -> list[ManifestFinding]:
        """The findings that prevent its use."""
        return [finding for finding in self.findings if finding.error]


@dataclass
class ManifestPage:
    """A document that is read field by field; problems are noted with their lines, and reading continues."""

    file: str
    value: Mapping[str, Any] = field(default_factory=dict)
    lines: Lines = field(default_factory=dict)
    findings: list[ManifestFinding] = field(default_factory=list)

    @classmethod
    def of(cls, file: str, content: bytes) -> ManifestPage:
        """Parse a file; if that fails, the document is empty, with a finding that says why."""
        page = cls(file)
        kind = "application/json" if file.endswith(".json") else "application/yaml"
        try:
            page.value = parse_document(content, kind)
            text = content.decode("utf-8-sig")
            page.lines = json_lines(text) if file.endswith(".json") else yaml_lines(text)
        except SubletError as error:
            page.findings.append(ManifestFinding(file, _find_line(error, content), _sentence(error), error=True))
        return page

    @property
    def broken(self) -> bool:
        """Whether there are errors."""
        return any(finding.error for finding in self.findings)

    def line(self, path: Path) -> int:
        """Return the line of a value, or of its container."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)

    def error(self, path: Path, message: str, *, is_about_image: bool = False) -> None:
        """Note an error."""
        self._note(path, message, error=True, is_about_image=is_about_image)

    def warn(self, path: Path, message: str) -> None:
        """Note a warning."""
        self._note(path, message, error=False)

    def _note(self, path: Path, message: str, *, error: bool, is_about_image: bool = False) -> None:
        self.findings.append(ManifestFinding(self.file, self.line(path), message, error, is_about_image))

    def note_unknown(
        self, path: Path, value: Mapping[str, Any], names: Iterable[str], note: Callable[[Path, str], None]
    ) -> None:
        """Note unknown fields."""
        there = list(names)
        for name in value:
            if name not in there:
                where = f" in {'.'.join(map(str, path))}" if path else ""
                note((*path, name), f"there is no field {quote_value(name)}{where}; there are: {', '.join(there)}.")

    def a_text(self, path: Path, value: Any, otherwise: str = "") -> str:
        """Return a text, or the default if there is none; note an error if it isn't text."""
        if value is None:
            return otherwise
        if not isinstance(value, str):
            self.error(path, f"{_name_field(path)} must be text, not {quote_value(value)}.")
            return otherwise
        return value

    def a_map(self, path: Path, value: Any) -> Mapping[str, Any]:
        """Return a map, empty if there is none; note an error if it isn't one."""
        if value is not None and not isinstance(value, Mapping):
            self.error(path, f"{_name_field(path)} must be a map of names to values, not {quote_value(value)}.")
        return value if isinstance(value, Mapping) else {}

    def texts(self, path: Path, value: Any) -> tuple[str, ...]:
        """Return a list of texts; a single text is accepted too."""
        if value is None:
            return ()
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list):
            self.error(path, f"{_name_field(path)} must be a list, not {quote_value(value)}.")
            return ()
        return tuple(text for i, item in enumerate(items) if (text := self.a_text((*path, i), item)))

    def a_flag(self, path: Path, value: Any, otherwise: bool = False) -> bool:
        """Return a boolean, or the default if there is none; note an error if it isn't one."""
        if value is None or isinstance(value, bool):
            return otherwise if value is None else value
        self.error(path, f"{_name_field(path)} must be true or false, not {quote_value(value)}.")
        return otherwise

    def at(self, path: Path, read: Callable[..., Any], *values: object) -> Any:
        """Return what a reader makes of values; None, with an error noted, if it fails."""
        try:
            return read(*values)
        except SubletError as error:
            self.error(path, f"{_name_field(path)}: {_sentence(error)}")
            return None


def _name_field(path: Path) -> str:
    return ".".join(map(str, path)) or "the manifest"


def _find_line(error: SubletError, content: bytes) -> int:
    """Return the line at which parsing failed; the first if that isn't known."""
    line = error.values.get("line")
    if not line and error.values.get("repeated"):
        line = json_twice(content.decode("utf-8", "replace"))
    return line if isinstance(line, int) and line else 1


def _sentence(error: SubletError) -> str:
    """Return an error's message, with its advice if that is specific to this problem."""
    message = str(error.values.get("detail") or error.message)
    is_own = error.advice and error.advice != type(error).hint
    return f"{message.rstrip('.')}. {error.advice}" if is_own else message
