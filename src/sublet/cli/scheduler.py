"""The command line's flags for scheduler options, made from the table of those options."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

import click

from sublet.booking.model.scheduler import Spec, scheduler_specs, type_option
from sublet.cli.command import with_options

F = TypeVar("F", bound=Callable[..., Any])


def scheduler_flags(leave_out: Collection[str] = ()) -> tuple[Callable[[Any], Any], ...]:
    """Return a flag for each scheduler option."""
    return tuple(_flag(spec) for name, spec in scheduler_specs().items() if name not in leave_out)


def scheduler_wishes(function: F) -> F:
    """Add all scheduler flags to a command."""
    return with_options(function, scheduler_flags())


def _flag(spec: Spec) -> Callable[[Any], Any]:
    names = (spec.flag_name, spec.name)
    if spec.kind is bool:
        return click.option(*names, is_flag=True, default=None, help=spec.help)
    return click.option(*names, metavar=spec.metavar, multiple=spec.kind is tuple, help=spec.help)


def read_scheduler_flags(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scheduler options that were typed, as fields of a request's document."""
    typed = {name: given[name] for name in scheduler_specs() if given.get(name) not in (None, ())}
    return {name: type_option(scheduler_specs()[name], value) for name, value in typed.items()}
