"""Routing by the first two parts of a path, since there are too many routes to try one after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fastapi import APIRouter
from starlette.routing import BaseRoute, Match

DEPTH = 2  # parts of a path that are indexed
Parts = tuple[str | None, ...]  # None: a part of a path that no route names


class IndexedRouter(APIRouter):
    """A router that tries only the routes that begin like the path, in the order in which they were added."""

    def __init__(self, **more: Any) -> None:
        """Start with an empty index, which is filled by requests and cleared when routes are added."""
        super().__init__(**more)
        self._known: frozenset[str | None] = frozenset()
        self._index: dict[Parts, Sequence[BaseRoute]] = {}
        self._indexed = -1

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        """Call the first route that matches completely; FastAPI answers requests that match none, or only by path."""
        if scope["type"] == "http":
            scope.setdefault("router", self)
            for route in self._find_candidates(scope["path"]):
                match, child_scope = route.matches(scope)
                if match == Match.FULL:
                    scope.update(child_scope)
                    await route.handle(scope, receive, send)
                    return
        await super().app(scope, receive, send)

    def _find_candidates(self, path: str) -> Sequence[BaseRoute]:
        if self._indexed != len(self.routes):
            self._known = frozenset(part for route in self.routes for part in _read_literals(route))
            self._index, self._indexed = {}, len(self.routes)
        parts = tuple(part if part in self._known else None for part in _split(path))
        candidates = self._index.get(parts)
        if candidates is None:
            candidates = [route for route in self.routes if _may_match(_read_literals(route), parts)]
            self._index[parts] = candidates
        return candidates


def _split(path: str) -> list[str]:
    return path.split("/", DEPTH + 1)[1 : DEPTH + 1]


def _read_literals(route: BaseRoute) -> Parts:
    """Return the first parts of a route's path, up to the first part with a parameter."""
    path = getattr(route, "path", None)
    return tuple(_cut_at_parameter(_split(path))) if isinstance(path, str) else ()


def _cut_at_parameter(parts: list[str]) -> Iterator[str | None]:
    for part in parts:
        if "{" in part:
            return
        yield part


def _may_match(literals: Parts, parts: Parts) -> bool:
    return all(literal == part for literal, part in zip(literals, parts, strict=False))
