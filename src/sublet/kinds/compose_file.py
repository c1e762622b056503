"""Parses Compose files: services with images, commands, variables, volumes, order and one port."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sublet.kernel.document import parse_document
from sublet.kernel.errors import SubletError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
VARIABLE = re.compile(
    r"\$(?:(?P<dollar>\$)|(?P<plain>[A-Za-z_]\w*)|\{(?P<name>[A-Za-z_]\w*)(?::?-(?P<usual>[^}]*))?\})"
)
OF_FILE = ("version", "name", "services", "volumes")
OF_SERVICE = (
    *("image", "command", "entrypoint", "environment", "volumes", "depends_on", "ports", "working_dir"),
    *("container_name", "labels", "expose", "restart"),  # the first three have no effect here
)
STARTED, COMPLETED = "service_started", "service_completed_successfully"
MOST = 50  # services
BELOW = "a volume is a path below the working directory, as ./data:/data, or a name that the file declares"


class BadCompose(Exception):
    """What is wrong with a file: the field, and words."""

    def __init__(self, field: str, message: str, nearest: str = "") -> None:
        """Take the field's name as in the file."""
        super().__init__(message)
        self.field, self.message, self.nearest = field, message, nearest


@dataclass(frozen=True)
class ComposeVolume:
    """A part of the session's files that a service sees."""

    source: str  # below the working directory; for a named volume its name
    target: str
    read_only: bool = False
    is_named: bool = False


@dataclass(frozen=True)
class ComposeService:
    """One service of a Compose file."""

    name: str
    image: str
    command: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    volumes: tuple[ComposeVolume, ...] = ()
    after: Mapping[str, str] = field(default_factory=dict)  # another service → the condition to wait for
    port: int = 0  # the port to be reached
    directory: str = ""


def read_compose(given: Any, variables: Mapping[str, str]) -> tuple[ComposeService, ...]:
    """Return the services in start order; raise BadCompose for anything unsupported."""
    document = _parse(given)
    _refuse_others(document, OF_FILE, "")
    listed = document.get("services")
    if not isinstance(listed, Mapping) or not 0 < len(listed) <= MOST:
        raise BadCompose("services", f"services must be a map of 1 to {MOST} services.")
    named = document.get("volumes") or {}
    if not isinstance(named, Mapping) or any(value for value in named.values()):
        raise BadCompose("volumes", "volumes is a map of names without any options.", "volumes: {cache: }")
    services = [_read_service(str(name), value, set(named), variables) for name, value in listed.items()]
    if sum(bool(service.port) for service in services) > 1:
        raise BadCompose("services", "only one port of one service can be reached.", "ports of one service alone")
    return _put_in_order(services)


def _parse(given: Any) -> Mapping[str, Any]:
    if isinstance(given, Mapping):
        return given
    if not isinstance(given, str) or not given.strip():
        raise BadCompose("compose", "compose must be the text of a Compose file, or what it says.")
    try:
        return parse_document(given.encode())
    except SubletError as error:
        raise BadCompose("compose", f"the Compose file can't be read: {error.message}") from error


def _refuse_others(given: Mapping[Any, Any], known: Sequence[str], where: str) -> None:
    for name in given:
        if name not in known and not str(name).startswith("x-"):
            words = f"{where}{name} can't be done here; of a Compose file these can: {', '.join(known)}."
            raise BadCompose(f"{where}{name}", words, "leave it out")


def _read_service(name: str, given: Any, named: set[str], variables: Mapping[str, str]) -> ComposeService:
    where = f"services.{name}."
    if not NAME.fullmatch(name) or not isinstance(given, Mapping):
        raise BadCompose(f"services.{name}", f"{name!r} is no service: write its name, and below it its image.")
    given = _fill(given, variables, where)
    _refuse_others(given, OF_SERVICE, where)
    if not isinstance(given.get("image"), str) or not given["image"].strip():
        raise BadCompose(f"{where}image", f"{name} needs an image; nothing is built here.")
    if given.get("restart", "no") not in ("no", False):
        raise BadCompose(f"{where}restart", "nothing is started again here.", 'restart: "no"')
    return ComposeService(
        name,
        given["image"].strip(),
        _read_words(given.get("command"), f"{where}command"),
        _read_words(given.get("entrypoint"), f"{where}entrypoint"),
        _read_environment(given.get("environment"), variables, f"{where}environment"),
        tuple(_read_volume(volume, named, f"{where}volumes") for volume in _list(given.get("volumes"), where)),
        _read_order(given.get("depends_on"), f"{where}depends_on"),
        _read_port(_list(given.get("ports"), f"{where}ports"), f"{where}ports"),
        str(given.get("working_dir") or ""),
    )


def _fill(value: Any, variables: Mapping[str, str], where: str) -> Any:
    """Substitute `${NAME}` by variables of the request, as Compose does."""
    if isinstance(value, Mapping):
        return {name: _fill(each, variables, where) for name, each in value.items()}
    if isinstance(value, list):
        return [_fill(each, variables, where) for each in value]
    if not isinstance(value, str):
        return value

    def replace(match: re.Match[str]) -> str:
        name = match["plain"] or match["name"]
        if match["dollar"]:
            return "$"
        if name not in variables and match["usual"] is None:
            raise BadCompose(where.rstrip("."), f"${name} is used, and not set.", f"--env {name}=VALUE")
        return variables.get(name) or match["usual"] or ""

    return VARIABLE.sub(replace, value)


def _list(value: Any, where: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise BadCompose(where.rstrip("."), "this must be a list.")
    return value


def _read_words(value: Any, where: str) -> tuple[str, ...]:
    if value is None:
        return ()
    try:
        words = shlex.split(value) if isinstance(value, str) else [str(word) for word in _list(value, where)]
    except ValueError as error:
        raise BadCompose(where, f"its words can't be told apart: {error}.") from error
    if any("\0" in word for word in words):
        raise BadCompose(where, "a word contains a NUL character.")
    return tuple(words)


def _read_environment(value: Any, variables: Mapping[str, str], where: str) -> dict[str, str]:
    pairs = value.items() if isinstance(value, Mapping) else (str(item).partition("=")[::2] for item in value or ())
    given = {str(name): "" if text is None else str(text) for name, text in pairs}
    for item in value if isinstance(value, list) else ():
        if "=" not in str(item):  # without a value: taken from the request's environment
            given[str(item)] = variables.get(str(item), "")
    if any(not name or "\0" in name + text for name, text in given.items()):
        raise BadCompose(where, "a variable has a name, and no NUL character.")
    return given


def _read_volume(given: Any, named: set[str], where: str) -> ComposeVolume:
    if isinstance(given, Mapping):
        parts = [str(given.get("source") or ""), str(given.get("target") or ""), "ro" if given.get("read_only") else ""]
    else:
        parts = [*str(given).split(":"), ""][:3]
    source, target, mode = parts if len(parts) == 3 else (*parts, "")
    if not target.startswith("/") or ".." in target.split("/") or target == "/" or "," in source + target:
        raise BadCompose(where, f"{given!r} can't be mounted: {BELOW}.")
    if source in named:
        return ComposeVolume(source, target, "ro" in mode.split(","), is_named=True)
    path = posixpath.normpath(source)
    if not source.startswith(".") or path.startswith(".."):
        raise BadCompose(where, f"{source or given!r} can't be mounted: {BELOW}.", f"./data:{target}")
    return ComposeVolume(path, target, "ro" in mode.split(","))


def _read_order(given: Any, where: str) -> dict[str, str]:
    if not isinstance(given, Mapping):
        return {str(name): STARTED for name in _list(given, where)}
    order = {str(name): (value or {}).get("condition", STARTED) for name, value in given.items()}
    for name, condition in order.items():
        if condition not in (STARTED, COMPLETED):
            raise BadCompose(where, f"{name}: {condition} can't be waited for here.", f"condition: {COMPLETED}")
    return order


def _read_port(given: list[Any], where: str) -> int:
    if not given:
        return 0
    if len(given) > 1:
        raise BadCompose(where, "only one port of one service can be reached.", str(given[0]))
    inner = given[0].get("target") if isinstance(given[0], Mapping) else str(given[0]).rpartition(":")[2]
    number = str(inner).removesuffix("/tcp")
    if not number.isdecimal() or not 0 < int(number) < 65536:
        raise BadCompose(where, f"{given[0]!r} is no port that can be reached here: write a number.", "8080")
    return int(number)


def _put_in_order(services: list[ComposeService]) -> tuple[ComposeService, ...]:
    """Sort the services so that each comes after those it waits for."""
    known, placed = {service.name for service in services}, dict[str, ComposeService]()
    for service in services:
        for name in service.after.keys() - known:
            raise BadCompose(f"services.{service.name}.depends_on", f"there is no service {name}.")
    while len(placed) < len(services):
        ready = [each for each in services if each.name not in placed and each.after.keys() <= placed.keys()]
        if not ready:
            waiting = ", ".join(each.name for each in services if each.name not in placed)
            raise BadCompose("services", f"these services wait for one another: {waiting}.")
        placed |= {each.name: each for each in ready}
    return tuple(placed.values())
