"""The base of all errors: a message, a hint, an HTTP status and an exit code."""

from __future__ import annotations

from typing import ClassVar


class SubletError(Exception):
    """Something went wrong."""

    hint: ClassVar[str] = ""
    status: ClassVar[int] = 500  # of the HTTP response
    exit_code: ClassVar[int] = 1  # 1 refused, 2 usage, 3 unreachable, 4 login needed

    def __init__(self, message: str = "", *, hint: str = "", **values: object) -> None:
        """Use the given message, or else the class's docstring with the values filled in."""
        self.values = values
        template = message or (type(self).__doc__ or "").strip()
        self.message = _make_text(template if message else _fill(template, values))
        self.advice = _make_text(hint or _fill(type(self).hint, values))
        super().__init__(self.message)
        if self.advice:
            self.add_note(f"hint: {self.advice}")  # shown below the traceback if nothing catches the error

    @property
    def clause(self) -> str:
        """The message without its full stop, for use within another sentence."""
        return self.message.removesuffix(".")

    @property
    def sentences(self) -> str:
        """The message followed by the hint."""
        needs_stop = self.advice and not self.message.endswith((".", "!", "?", "…"))
        return f"{self.message}{'.' if needs_stop else ''} {self.advice}".strip()

    @property
    def code(self) -> str:
        """The error's name on the wire: `OfferExpired` is `offer-expired`."""
        name = type(self).__name__
        return "".join(f"-{c.lower()}" if c.isupper() else c for c in name).lstrip("-")


def _make_text(words: str) -> str:
    r"""Return text that can be stored and sent: invalid bytes, as in file names, become escapes such as `\\xff`."""
    if words.isascii():
        return words
    try:
        raw = words.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # a lone surrogate that doesn't stand for a byte
        raw = words.encode("utf-8", "backslashreplace")
    return raw.decode("utf-8", "backslashreplace")


def _fill(template: str, values: dict[str, object]) -> str:
    import string  # slow to load, and most commands meet no error

    names = [name for _, name, _, _ in string.Formatter().parse(template) if name]
    return template.format(**{name: values.get(name, f"({name})") for name in names})
