"""The words of the short form as keyword parameters, so that editors complete them and type checkers know them."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, TypedDict, TypeVar

from sublet.kernel.errors import BadRequest

F = TypeVar("F", bound=Callable[..., Any])
OF_THE_CALL = ("choose", "wait", "timeout", "keep_offers", "key")  # parameters of `ask` and `run` beside the request's
Count = int | str  # 4, or "4-16" for at least and at most
Place = str | os.PathLike[str]
Start = str | date  # a day, or with a datetime an instant
Word = Place | float  # of a command


class Wishes(TypedDict, total=False):
    """What a request can say; docs/reference/request.md has each of them."""

    # one thing to run
    run: Place | Sequence[Word]
    script: str
    image: str | Mapping[str, Any]
    notebook: Place
    compose: str | Mapping[str, Any]
    bag: Sequence[Any] | Mapping[str, Any]
    steps: Sequence[Any] | Mapping[str, Any]  # several commands in one session, one after another or together
    interactive: str | bool  # lab, shell, desktop, code, rstudio, or another of the operator's
    web: int | str | bool  # beside `run`: the port on which it listens, or "auto"
    idle: str | timedelta  # of what is opened: it ends when nobody has had it open for so long
    app: str
    # what it is given
    env: Mapping[str, Word]
    parameters: Mapping[str, Any]
    requirements: Sequence[str]
    entrypoint: str | Sequence[str]
    version: int | str
    tasks: Any
    each_node: bool  # of a command or a container on several nodes: started once on each
    data: Place | Mapping[str, Any] | Sequence[Place | Mapping[str, Any]]
    storage: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]
    volumes: Sequence[Mapping[str, Any]]
    workdir: Place | Mapping[str, Any]
    stay: bool  # bring nothing that the command names
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
    """What a sweep can say beside that."""

    table: Any  # rows: mappings, or a data frame
    lines: Iterable[str]
    zipped: bool
    retries: int
    parallel: int
    parts: int
    at_most: int


class Changes(TypedDict, total=False):
    """What `again` can change."""

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
    set: Mapping[str, Any]  # parameters, as they are
    words: Mapping[str, str]  # parameters as text, typed as what they replace
    scheduler: Mapping[str, Any]  # constraint, nice, …: as a request has them


class Filters(TypedDict, total=False):
    """Which sessions are listed."""

    phase: str | Sequence[str]
    kind: str
    platform: str
    name: str
    active: bool
    person: str  # for operators: an address, or `everyone`
    app: str  # NAME, or NAME@NUMBER
    annex: str
    since: str | datetime  # asked for then, or later
    until: str | datetime  # asked for before then
    limit: int


def refuse_misspelt(wishes: Mapping[str, Any], more: Iterable[str] = OF_THE_CALL) -> None:
    """Name the parameter that was meant, where it is one of the call itself; the service knows the request's fields."""
    own, known = set(more), set(Wishes.__annotations__)
    for name in wishes:
        if name in own or name in known:
            continue
        from difflib import get_close_matches  # only for a mistake

        if (meant := get_close_matches(name, own | known, 1)) and meant[0] in own:
            raise BadRequest(detail=f"there is no parameter {name}", hint=f"Did you mean {meant[0]}?")


def show_words(words: type) -> Callable[[F], F]:
    """Let `help` and interactive prompts see the keyword parameters of a method by their names."""

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
