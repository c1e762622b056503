"""What all errors are: a sentence, a hint, a status and an exit code."""

from __future__ import annotations

from typing import ClassVar


class SubletError(Exception):
    """Something went wrong."""

    hint: ClassVar[str] = ""
    status: ClassVar[int] = 500  # what HTTP would call it
    exit_code: ClassVar[int] = 1  # 1 refused, 2 usage, 3 unreachable, 4 login needed

    def __init__(self, message: str = "", *, hint: str = "", **values: object) -> None:
        """Say it in the caller's words, else in the docstring's, with the values put in."""
        self.values = values
        template = message or (type(self).__doc__ or "").strip()
        self.message = _make_text(template if message else _fill(template, values))
        self.advice = _make_text(hint or _fill(type(self).hint, values))
        super().__init__(self.message)
        if self.advice:
            self.add_note(f"hint: {self.advice}")  # below a traceback, for whoever doesn't catch it

    @property
    def clause(self) -> str:
        """The message without its full stop, to stand within another sentence."""
        return self.message.removesuffix(".")

    @property
    def sentences(self) -> str:
        """The message and the hint, one after the other."""
        needs_stop = self.advice and not self.message.endswith((".", "!", "?", "…"))
        return f"{self.message}{'.' if needs_stop else ''} {self.advice}".strip()

    @property
    def code(self) -> str:
        """The error's name on the wire: `OfferExpired` is `offer-expired`."""
        name = type(self).__name__
        return "".join(f"-{c.lower()}" if c.isupper() else c for c in name).lstrip("-")


def _make_text(words: str) -> str:
    """What can be stored and sent: names of files are bytes, and those that are no UTF-8 are written as `\\xff`."""
    if words.isascii():
        return words
    try:
        raw = words.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half of a pair that stands for no byte
        raw = words.encode("utf-8", "backslashreplace")
    return raw.decode("utf-8", "backslashreplace")


def _fill(template: str, values: dict[str, object]) -> str:
    import string  # slow to load, and most commands meet no error

    names = [name for _, name, _, _ in string.Formatter().parse(template) if name]
    return template.format(**{name: values.get(name, f"({name})") for name in names})
