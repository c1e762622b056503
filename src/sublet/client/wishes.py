"""The short form's fields as keyword parameters, so that editors complete them and type checkers know them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, TypedDict, TypeVar

from sublet.kernel.errors import BadRequest

F = TypeVar("F", bound=Callable[..., Any])
OF_THE_CALL = ("choose", "wait", "timeout", "keep_offers", "key")  # parameters of `ask` and `run` themselves
Count = int | str  # 4, or "4-16" for a range
Place = str | os.PathLike[str]
Start = str | date  # a date, or a datetime for an instant
Word = Place | float  # a word of a command


class Wishes(TypedDict, total=False):
    """The fields of a request; docs/reference/request.md describes them."""

    # one thing to run
    run: Place | Sequence[Word]
    script: str
    image: str | Mapping[str, Any]
    notebook: Place
    compose: str | Mapping[str, Any]
    bag: Sequence[Any] | Mapping[str, Any]
    steps: Sequence[Any] | Mapping[str, Any]  # several commands in one session, in sequence or in parallel
    interactive: str | bool  # lab, shell, desktop, code, rstudio, or a recipe of the operator's
    web: int | str | bool  # in addition to `run`: the port that it listens on, or "auto"
    idle: str | timedelta  # end an interactive session that nobody has had open for this long
    app: str
    # its inputs
    env: Mapping[str, Word]
    parameters: Mapping[str, Any]
    requirements: Sequence[str]
    entrypoint: str | Sequence[str]
    version: int | str
    tasks: Any
    each_node: bool  # start a command or container once on each of its nodes
    data: Place | Mapping[str, Any] | Sequence[Place | Mapping[str, Any]]
    storage: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]
    volumes: Sequence[Mapping[str, Any]]
    workdir: Place | Mapping[str, Any]
    stay: bool  # don't send the files that the command names
    # how much, for how long, and when
    cores: Count
    memory: str
    gpus: Count
    disk: str
    nodes: Count
    time: str | timedelta
    start: Start | Sequence[Start]
    after: str | Sequence[str]
    places: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]
    outputs: Mapping[str, str] | Sequence[Mapping[str, str]]
    max_cost: float
    # where, and who pays
    platform: str
    pledge: str
    queue: str
    qos: str
    project: str
    constraint: str
    nice: int
    reservation: str
    licenses: str
    exclusive: bool
    mail: str
    gpu_type: str
    options: Mapping[str, str | int | bool] | Sequence[str]
    # what to call it
    name: str
    description: str


class SweepWishes(Wishes, total=False):
    """The additional fields of a sweep."""

    table: Any  # rows: mappings, or a data frame
    lines: Iterable[str]
    zipped: bool
    retries: int
    parallel: int
    parts: int
    at_most: int


class Changes(TypedDict, total=False):
    """The fields that `again` can change."""

    cores: Count
    memory: str
    gpus: Count
    disk: str
    nodes: Count
    time: str | timedelta
    start: Start | Sequence[Start]
    platform: str
    queue: str
    project: str
    name: str
    set: Mapping[str, Any]  # parameters
    words: Mapping[str, str]  # parameters as text, converted to the type that they replace
    scheduler: Mapping[str, Any]  # constraint, nice, …: as in a request


class Filters(TypedDict, total=False):
    """Which sessions to list."""

    phase: str | Sequence[str]
    kind: str
    platform: str
    name: str
    active: bool
    person: str  # for operators: an address, or `everyone`
    app: str  # NAME, or NAME@NUMBER
    annex: str
    since: str | datetime  # requested at or after this time
    until: str | datetime  # requested before this time
    limit: int


def refuse_misspelt(wishes: Mapping[str, Any], more: Iterable[str] = OF_THE_CALL) -> None:
    """Raise BadRequest for a misspelt parameter of the call itself; the service checks the request's fields."""
    own, known = set(more), set(Wishes.__annotations__)
    for name in wishes:
        if name in own or name in known:
            continue
        from difflib import get_close_matches  # only for a mistake

        if (meant := get_close_matches(name, own | known, 1)) and meant[0] in own:
            raise BadRequest(detail=f"there is no parameter {name}", hint=f"Did you mean {meant[0]}?")


def show_words(words: type) -> Callable[[F], F]:
    """Return a decorator that shows a method's keyword parameters by name in `help` and at prompts."""

    def shown(method: F) -> F:
        signature = inspect.signature(method)
        own = [
            parameter
            for parameter in signature.parameters.values()
            if parameter.kind is not inspect.Parameter.VAR_KEYWORD
        ]
        more = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=..., annotation=getattr(kind, "__forward_arg__", kind)
            )
            for name, kind in words.__annotations__.items()
        ]
        vars(method)["__signature__"] = signature.replace(parameters=[*own, *more])
        return method

    return shown
