"""Reads an endpoint's arguments from a request as FastAPI would, where that is simple, at a fraction of the cost."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from fastapi.dependencies.models import Dependant
from starlette.requests import Request

SIMPLE = (str, str | None, int, int | None, bool, bool | None)  # types of which a query has one value at most
Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Arguments:
    """What an endpoint, or a function that it depends on, takes from a request."""

    request: str | None  # the name of the argument that is the request itself
    path: tuple[str, ...]  # arguments that are text from the path
    defaults: Mapping[str, Any]  # arguments that may be in the query
    fields: Mapping[str, Any]  # FastAPI's fields of those, by their names in the query
    needed: tuple[tuple[str, Callable[..., Any], Arguments], ...]  # arguments that asynchronous functions return

    def read(self, request: Request) -> list[Values] | None:
        """Return the arguments of the endpoint and of all that it depends on; None if FastAPI has to check them."""
        all_values: list[Values] = []
        return all_values if self._read_into(all_values, request) else None

    def _read_into(self, all_values: list[Values], request: Request) -> bool:
        values = {name: deepcopy(default) for name, default in self.defaults.items()}
        if request.scope["query_string"] and self.fields and not self._read_query(values, request):
            return False
        values |= {name: request.path_params[name] for name in self.path}
        if self.request is not None:
            values[self.request] = request
        all_values.append(values)
        return all(arguments._read_into(all_values, request) for _, _, arguments in self.needed)

    def _read_query(self, values: Values, request: Request) -> bool:
        for name, text in request.query_params.items():  # the last of several values, which FastAPI takes, too
            field = self.fields.get(name)
            if field is None:
                continue
            if field.field_info.annotation not in SIMPLE:
                return False
            values[field.name], errors = field.validate(text, {}, loc=())
            if errors:
                return False
        return True

    async def complete(self, all_values: list[Values]) -> Values:
        """Call the functions that the endpoint depends on, in FastAPI's order, and return the endpoint's arguments."""
        values = all_values.pop(0)
        for name, function, arguments in self.needed:
            values[name] = await function(**await arguments.complete(all_values))
        return values


def find_arguments(dependant: Dependant) -> Arguments | None:
    """Return how to read what FastAPI found that a function takes; None if only FastAPI can."""
    others = (dependant.header_params, dependant.cookie_params, dependant.body_params)
    given = (dependant.response_param_name, dependant.background_tasks_param_name)
    others_given = (dependant.security_scopes_param_name, dependant.http_connection_param_name)
    query = dependant.query_params
    if any(others) or any((*given, *others_given)) or not all(map(_is_text, dependant.path_params)):
        return None
    if not all(_is_plain_query(field) for field in query):
        return None
    needed = []
    for each in dependant.dependencies:
        arguments = find_arguments(each)
        if arguments is None or not each.name or not each.call or not inspect.iscoroutinefunction(each.call):
            return None
        needed.append((each.name, each.call, arguments))
    return Arguments(
        request=dependant.request_param_name,
        path=tuple(field.name for field in dependant.path_params),
        defaults={field.name: field.get_default() for field in query},
        fields={field.alias: field for field in query},
        needed=tuple(needed),
    )


def _is_text(field: Any) -> bool:
    """Whether a path parameter is passed on unchanged."""
    info = field.field_info
    return info.annotation is str and not info.metadata and field.alias == field.name


def _is_plain_query(field: Any) -> bool:
    """Whether a parameter may be left out of the query, and has one name there."""
    info = field.field_info
    return not info.is_required() and not info.validate_default and field.validation_alias in (None, field.alias)
