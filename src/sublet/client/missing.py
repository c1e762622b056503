"""Checks that the local files that a request names exist, before anything is booked."""

from __future__ import annotations

import difflib
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from sublet.booking.model.amounts import quote_value
from sublet.client.files import COMMANDS, leads_up, list_step_lines
from sublet.kernel.errors import BadRequest

IMAGE_FILES = (".sif", ".simg", ".sqfs", ".squashfs", ".img", ".tar", ".tar.gz", ".tgz")
INTERPRETERS = re.compile(
    r"(python|pypy|perl|ruby|node|julia|Rscript|php|lua|octave|tclsh|bash|sh|dash|zsh|ksh|fish)[0-9.]*\Z"
)
CODE = ("-c", "-m", "-e", "-E", "-s", "-", "--eval", "--expression")  # options after which no program file follows
WITH_VALUE = ("-W", "-X", "-o", "-O", "-I", "-L", "-J")  # options whose value is the next word
PATH = re.compile(r"[\w.+@%,/ -]+\Z")
SUFFIX = re.compile(r"\.[A-Za-z][A-Za-z0-9]{0,4}\Z")
ITS_OWN = (
    "A session starts in its own directory, with the files that its command names; "
    "--stay (in Python stay=True) sends the command as it is."
)


def looks_like_image_file(place: str) -> bool:
    """Whether an image is given as a relative file path, not as a name in a registry."""
    if ":" in place or os.path.isabs(place):
        return False
    return place.startswith(("./", "../", "~")) or place.lower().endswith(IMAGE_FILES)


def refuse_missing_image(place: str, directory: str) -> BadRequest:
    """Return the error for an image file that doesn't exist."""
    message = f"There is no image file {place} {describe_place(directory)}."
    near = suggest(place, directory)
    return BadRequest(message, hint=near or "Name a file that is here, a URL, or an image of a registry.")


def refuse_missing_notebook(place: str, directory: str) -> BadRequest:
    """Return the error for a notebook that doesn't exist."""
    message = f"There is no notebook {place} {describe_place(directory)}."
    return BadRequest(message, hint=suggest(place, directory) or "Name an .ipynb file, or a URL.")


def refuse_unreadable(name: str, error: OSError | UnicodeDecodeError) -> BadRequest:
    """Return the error for a text file that can't be read."""
    if isinstance(error, FileNotFoundError):
        directory = os.path.dirname(os.path.abspath(name))
        hint = suggest(name, os.getcwd()) or "Name a file that is here."
        return BadRequest(f"There is no file {os.path.basename(name)} {describe_place(directory)}.", hint=hint)
    why = error.strerror or str(error) if isinstance(error, OSError) else "it is not text in UTF-8"
    return BadRequest(f"The file {name} can't be read: {why}.", hint="Name another, or make it readable.")


def describe_place(directory: str) -> str:
    """Return a phrase for the directory that was searched."""
    return "here" if directory == os.getcwd() else f"in {directory}"


def suggest(name: str, directory: str) -> str:
    """Return a hint that names the most similar file; empty if none is similar."""
    folder, base = os.path.split(os.path.join(directory, os.path.expanduser(name)))
    try:
        near = difflib.get_close_matches(base, os.listdir(folder), 1, 0.75)
    except OSError:
        return ""
    return f"Did you mean {os.path.join(os.path.dirname(name), near[0])}?" if near else ""


def find_missing_program(line: Any, directory: str) -> str:
    """Return the relative path of a command's program file if it doesn't exist; otherwise ""."""
    name = _program_file(_split(line))
    if not name or os.path.isabs(name) or not PATH.match(name):
        return ""
    return "" if os.path.exists(os.path.join(directory, name)) else name


def check_programs(document: Mapping[str, Any], directories: Mapping[str, str]) -> str:
    """Raise BadRequest if a command's program file can't exist anywhere.

    Return the first missing one that may be in the image or in other data, or "".
    """
    for field in COMMANDS:
        for line in list_step_lines(document) if field == "steps" else _lines(document.get(field)):
            if line and (name := _check_program(line, document, directories[field])):
                return name
    return ""


def check_apart(line: Any, directory: str) -> None:
    """Raise BadRequest if a whole command line is given as a single word, which would be the program's name."""
    word = line[0] if isinstance(line, (list, tuple)) and len(line) == 1 else None
    if (
        not isinstance(word, str)
        or len(word.split()) < 2
        or "\0" in word
        or os.path.exists(os.path.join(directory, word))
    ):
        return
    raise BadRequest(
        f"There is no program called {quote_value(word)}; the whole line was given as one word.",
        hint=f"Write the words apart, as in -- {' '.join(word.split()[:2])} …; for a shell, -- sh -c '…' or --script.",
    )


def _check_program(line: Any, document: Mapping[str, Any], directory: str) -> str:
    name = find_missing_program(line, directory)
    may_be_there = any(document.get(field) for field in ("image", "data", "workdir"))
    if not name and not may_be_there and leads_up(above := _program_file(_split(line))):
        raise BadRequest(
            f"{above} is above the session's own directory, and can't be sent there.", hint=from_above(above)
        )
    if name and not may_be_there:
        near = suggest(name, directory)
        message = f"There is no file {name} {describe_place(directory)}."
        raise BadRequest(message, hint=f"{near} {ITS_OWN}".strip())
    return name


def from_above(name: str) -> str:
    """Return how to send a file that is named by a path that leads up."""
    last = os.path.basename(os.path.normpath(name))
    return f"Send it with --data {name}, and call it {last}; or type the command in a directory above it. {ITS_OWN}"


def _lines(value: Any) -> list[Any]:
    """Return the commands of `run` or `bag`."""
    if not isinstance(value, Mapping):
        return [value]
    tasks = value.get("tasks")
    argvs = (
        [task.get("argv") if isinstance(task, Mapping) else task for task in tasks] if isinstance(tasks, list) else []
    )
    return [value.get("template"), *argvs]


def _split(line: Any) -> Sequence[str]:
    try:
        words = shlex.split(line) if isinstance(line, str) else line
    except ValueError:
        return ()
    is_words = isinstance(words, (list, tuple)) and all(isinstance(word, str) for word in words)
    return words if is_words else ()


def _program_file(words: Sequence[str]) -> str:
    """Return the word that names the program's file: its own path, or the file that an interpreter will read."""
    if not words:
        return ""
    if "/" in words[0]:
        return words[0] if not INTERPRETERS.match(os.path.basename(words[0])) else _read_by_interpreter(words[1:])
    return _read_by_interpreter(words[1:]) if INTERPRETERS.match(words[0]) else ""


def _read_by_interpreter(words: Sequence[str]) -> str:
    rest = iter(words)
    for word in rest:
        if word in CODE or (word[:2] in ("-c", "-e", "-m") and len(word) > 2):
            return ""
        if word in WITH_VALUE:
            next(rest, "")
        elif not word.startswith("-"):
            return word if SUFFIX.search(word) or "/" in word else ""
    return ""
