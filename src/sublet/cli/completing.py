"""Shell completion of files, and of the names of sessions, platforms and other objects.

It is fast and silent: a service that isn't running isn't started, and errors complete to nothing.
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
Finder = Callable[[click.Context], Iterable[str | tuple[str, str]]]  # yields names, optionally with a description
BEGUN = "sublet.begun"  # key in a context's meta: the word typed so far
WORD = re.compile(r"[\w.-]+")  # names that need no quoting in any shell
PATH = re.compile(r"[\w./@%+-]+")  # paths that need none, and that no shell's script takes apart
PATIENCE = 2.0  # seconds; nobody waits longer after pressing Tab
ACTIVE_ONLY = frozenset({"cancel", "pause", "resume", "extend", "attach"})
OVER_ONLY = frozenset({"delete"})
OTHERS = {*Phase} - ACTIVE


def complete(ctx: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Return the completions of a parameter's value."""
    if kind := _path_kind(parameter):
        return [CompletionItem(begun, type=kind)]
    finder = finder_of(ctx, parameter)
    if finder is None:
        return []
    ctx.meta[BEGUN] = begun
    try:
        names = [(each, "") if isinstance(each, str) else each for each in finder(ctx)]
    except Exception:  # errors don't belong in a shell's prompt
        return []
    typed = {str(word) for word in _words_of(ctx.params.get(parameter.name or ""))}
    return [CompletionItem(name, help=what) for name, what in names if name.startswith(begun) and name not in typed]


def finder_of(ctx: click.Context, parameter: click.Parameter) -> Finder | None:
    """Return the function that finds a parameter's values, by the names of its group and of itself."""
    group = ctx.parent.info_name if ctx.parent else ""
    name = parameter.name or ""
    return BY_GROUP.get((group or "", name)) or BY_NAME.get(name)


def _path_kind(parameter: click.Parameter) -> str:
    """Return `file` or `dir` if a parameter is a path; otherwise ""."""
    metavar = (parameter.metavar or "").upper()
    if "DIR" in metavar:
        return "dir"
    is_file = "FILE" in metavar or metavar.startswith(("PATH", "WHERE", "[-- COMMAND"))
    return "file" if is_file or parameter.name == "file" else ""


def _words_of(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def ask_service(call: Call[T]) -> T:
    """Call the service, only if it is running."""
    from sublet.client.address import find_address
    from sublet.client.link import Link

    address = replace(find_address(), home=None)  # without a home, the service isn't started
    return Link(address).do(replace(call, patience=PATIENCE))


def sessions(ctx: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the sessions that suit the command: their ids and, once a letter is typed, their names."""
    from sublet.booking.calls import sessions as calls

    unwanted = {Phase.OFFERED, Phase.REJECTED, Phase.EXPIRED} | (ACTIVE if ctx.info_name in OVER_ONLY else set())
    for view in ask_service(calls.sessions(active=ctx.info_name in ACTIVE_ONLY, limit=200)).items:
        if view.phase not in unwanted:
            yield view.short, f"{view.name} ({view.phase})"
            if ctx.meta.get(BEGUN) and WORD.fullmatch(view.name):
                yield view.name, f"{view.short} ({view.phase})"


def offers(_: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the open offers."""
    from sublet.booking.calls import sessions as calls

    for view in ask_service(calls.sessions(phase=Phase.OFFERED, limit=200)).items:
        yield view.short, f"{view.name} on {view.platform}"


def results(ctx: click.Context) -> Iterator[str]:
    """Yield the result files of the session that was typed before, except those whose names need quoting."""
    from sublet.booking.calls import results as calls

    listed = ask_service(calls.results(ctx.params["session"])).items
    yield from (file.path for file in listed if PATH.fullmatch(file.path))


def platforms(_: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the platforms."""
    from sublet.booking.calls import platforms as calls

    yield from ((item.name, item.kind) for item in ask_service(calls.platforms()).items)


def systems(_: click.Context) -> list[str]:
    """Return the systems: the person's own, and those of the catalogue."""
    from sublet.kernel.home import sublet_home
    from sublet.systems.own import Systems

    return Systems(sublet_home().systems).names()


def queues(ctx: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the queues of the system that was typed before, or of all of the person's own systems."""
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
    """Yield the person's annexes."""
    from sublet.annexes.calls import annexes as calls

    yield from (item.name for item in ask_service(calls.annexes()).items)


def templates(_: click.Context) -> Iterator[str]:
    """Yield the templates for leases."""
    from sublet.annexes.calls import annexes as calls

    yield from (item.name for item in ask_service(calls.templates()).items)


def accounts(_: click.Context) -> Iterator[str]:
    """Yield the community accounts."""
    from sublet.access.calls import accounts as calls

    yield from (item.name for item in ask_service(calls.accounts()).items)


def apps(_: click.Context) -> Iterator[str]:
    """Yield the gateway's apps."""
    from sublet.apps.calls import apps as calls

    yield from (item.name for item in ask_service(calls.apps()).items)


def groups(_: click.Context) -> Iterator[str]:
    """Yield the gateway's groups."""
    from sublet.people.calls import profiles as calls

    yield from (item.name for item in ask_service(calls.groups()).items)


def jobs(_: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the jobs of the person's annexes."""
    from sublet.annexes.calls import jobs as calls

    yield from ((item.id, item.annex) for item in ask_service(calls.jobs()).items)


def hooks(_: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the person's notifications."""
    from sublet.notices.calls import hooks as calls

    yield from ((item.id[:8], item.address) for item in ask_service(calls.hooks()).items)


def tokens(_: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the person's tokens."""
    from sublet.people.calls import people as calls

    yield from ((item.id[:8], item.note) for item in ask_service(calls.tokens()).items)


def rules(_: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the gateway's access rules."""
    from sublet.access.calls import rules as calls

    yield from ((item.id[:8], f"{item.effect} {item.who}") for item in ask_service(calls.rules()).items)


def requests(_: click.Context) -> Iterator[tuple[str, str]]:
    """Yield the open requests for access."""
    from sublet.access.calls import access as calls

    yield from ((item.id[:8], f"{item.person}: {item.name}") for item in ask_service(calls.requests("open")).items)


def phases(_: click.Context) -> list[str]:
    """Return all phases."""
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
