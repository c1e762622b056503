"""What a shell offers when Tab is pressed: files, and the names of what there is.

It is fast and silent: a service that doesn't run is not started, and what goes wrong completes to nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from sublet.booking.model.phases import ACTIVE, Phase
from sublet.client.call import Call

T = TypeVar("T")
Finder = Callable[[click.Context], Iterable[str | tuple[str, str]]]  # names, with what they are if that is known
BEGUN = "sublet.begun"  # what is typed so far of the word
WORD = re.compile(r"[\w.-]+")  # a name that is one word in every shell
PATIENCE = 2.0  # seconds; nobody waits longer for a Tab
ACTIVE_ONLY = frozenset({"cancel", "pause", "resume", "extend", "attach"})
OVER_ONLY = frozenset({"delete"})
OTHERS = {*Phase} - ACTIVE


def complete(ctx: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """What could stand for a parameter, as far as it is typed."""
    if kind := _path_kind(parameter):
        return [CompletionItem(begun, type=kind)]
    finder = finder_of(ctx, parameter)
    if finder is None:
        return []
    ctx.meta[BEGUN] = begun
    try:
        names = [(each, "") if isinstance(each, str) else each for each in finder(ctx)]
    except Exception:  # a shell's prompt is no place for errors
        return []
    typed = {str(word) for word in _words_of(ctx.params.get(parameter.name or ""))}
    return [CompletionItem(name, help=what) for name, what in names if name.startswith(begun) and name not in typed]


def finder_of(ctx: click.Context, parameter: click.Parameter) -> Finder | None:
    """Who knows the values of a parameter: by its group's name and its own."""
    group = ctx.parent.info_name if ctx.parent else ""
    name = parameter.name or ""
    return BY_GROUP.get((group or "", name)) or BY_NAME.get(name)


def _path_kind(parameter: click.Parameter) -> str:
    """`file` or `dir` for what names one."""
    metavar = (parameter.metavar or "").upper()
    if "DIR" in metavar:
        return "dir"
    is_file = "FILE" in metavar or metavar.startswith(("PATH", "WHERE", "[-- COMMAND"))
    return "file" if is_file or parameter.name == "file" else ""


def _words_of(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def ask_service(call: Call[T]) -> T:
    """What a service answers that runs already."""
    from sublet.client.address import find_address
    from sublet.client.link import Link

    address = replace(find_address(), home=None)  # without a home it isn't started
    return Link(address).do(replace(call, patience=PATIENCE))


def sessions(ctx: click.Context) -> Iterator[tuple[str, str]]:
    """Sessions that the command can be about: by their ids, and by their names where something is typed already."""
    from sublet.booking.calls import sessions as calls

    unwanted = {Phase.OFFERED, Phase.REJECTED, Phase.EXPIRED} | (ACTIVE if ctx.info_name in OVER_ONLY else set())
    for view in ask_service(calls.sessions(active=ctx.info_name in ACTIVE_ONLY, limit=200)).items:
        if view.phase not in unwanted:
            yield view.short, f"{view.name} ({view.phase})"
            if ctx.meta.get(BEGUN) and WORD.fullmatch(view.name):
                yield view.name, f"{view.short} ({view.phase})"


def offers(_: click.Context) -> Iterator[tuple[str, str]]:
    """Offers that are open."""
    from sublet.booking.calls import sessions as calls

    for view in ask_service(calls.sessions(phase=Phase.OFFERED, limit=200)).items:
        yield view.short, f"{view.name} on {view.platform}"


def results(ctx: click.Context) -> Iterator[str]:
    """The files that the session left which is named before."""
    from sublet.booking.calls import results as calls

    yield from (file.path for file in ask_service(calls.results(ctx.params["session"])).items)


def platforms(_: click.Context) -> Iterator[tuple[str, str]]:
    """Platforms that the service asks."""
    from sublet.booking.calls import platforms as calls

    yield from ((item.name, item.kind) for item in ask_service(calls.platforms()).items)


def systems(_: click.Context) -> list[str]:
    """Clusters: the person's own, and those of the catalogue."""
    from sublet.kernel.home import sublet_home
    from sublet.systems.own import Systems

    return Systems(sublet_home().systems).names()


def queues(ctx: click.Context) -> Iterator[tuple[str, str]]:
    """Queues of the cluster that is named before, else of all that are the person's own."""
    from sublet.kernel.home import sublet_home
    from sublet.systems.own import Systems

    known = Systems(sublet_home().systems)
    params = ctx.params
    named = next(
        (params[option] for option in ("system", "platform", "hpc", "name") if params.get(option) in known.names()), ""
    )
    for name in [named] if named else known.own_names():
        yield from ((queue.name, name) for queue in known.find(name).queues)


def annexes(_: click.Context) -> Iterator[str]:
    """The person's annexes."""
    from sublet.annexes.calls import annexes as calls

    yield from (item.name for item in ask_service(calls.annexes()).items)


def templates(_: click.Context) -> Iterator[str]:
    """Templates for leases."""
    from sublet.annexes.calls import annexes as calls

    yield from (item.name for item in ask_service(calls.templates()).items)


def accounts(_: click.Context) -> Iterator[str]:
    """Community accounts."""
    from sublet.access.calls import accounts as calls

    yield from (item.name for item in ask_service(calls.accounts()).items)


def apps(_: click.Context) -> Iterator[str]:
    """Apps of the gateway."""
    from sublet.apps.calls import apps as calls

    yield from (item.name for item in ask_service(calls.apps()).items)


def groups(_: click.Context) -> Iterator[str]:
    """Groups of the gateway's people."""
    from sublet.people.calls import profiles as calls

    yield from (item.name for item in ask_service(calls.groups()).items)


def jobs(_: click.Context) -> Iterator[tuple[str, str]]:
    """Jobs of the person's annexes."""
    from sublet.annexes.calls import jobs as calls

    yield from ((item.id, item.annex) for item in ask_service(calls.jobs()).items)


def hooks(_: click.Context) -> Iterator[tuple[str, str]]:
    """Who is told of the person's sessions."""
    from sublet.notices.calls import hooks as calls

    yield from ((item.id[:8], item.address) for item in ask_service(calls.hooks()).items)


def tokens(_: click.Context) -> Iterator[tuple[str, str]]:
    """The person's tokens."""
    from sublet.people.calls import people as calls

    yield from ((item.id[:8], item.note) for item in ask_service(calls.tokens()).items)


def rules(_: click.Context) -> Iterator[tuple[str, str]]:
    """A gateway's rules."""
    from sublet.access.calls import rules as calls

    yield from ((item.id[:8], f"{item.effect} {item.who}") for item in ask_service(calls.rules()).items)


def requests(_: click.Context) -> Iterator[tuple[str, str]]:
    """Requests for access that are open."""
    from sublet.access.calls import access as calls

    yield from ((item.id[:8], f"{item.person}: {item.name}") for item in ask_service(calls.requests("open")).items)


def phases(_: click.Context) -> list[str]:
    """What a session can be."""
    return sorted(ACTIVE | OTHERS)


BY_GROUP: dict[tuple[str, str], Finder] = {
    ("platform", "name"): platforms,
    ("annex", "name"): annexes,
    ("annex", "like"): annexes,
    ("template", "name"): templates,
    ("account", "name"): accounts,
    ("group", "name"): groups,
    ("dag", "name"): annexes,
    ("job", "id"): jobs,
    ("job", "ids"): jobs,
    ("system", "name"): systems,
    ("result", "path"): results,
}
BY_NAME: dict[str, Finder] = {
    "session": sessions,
    "after": sessions,
    "offer": offers,
    "platform": platforms,
    "hpc": platforms,
    "queue": queues,
    "system": systems,
    "annex": annexes,
    "template": templates,
    "account": accounts,
    "app": apps,
    "hook": hooks,
    "token": tokens,
    "rule": rules,
    "request": requests,
    "phase": phases,
}
