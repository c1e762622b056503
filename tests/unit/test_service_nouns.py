"""How the service is put together: each question is answered by the noun that knows, and none is left out."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import pytest

from sublet.service.desk import Desk
from sublet.service.others import Others
from sublet.service.service import Service

NOUNS = [noun for noun in Service.__mro__ if issubclass(noun, Desk) and noun is not Desk]
QUESTIONS = [name for name in vars(Others) if not name.startswith("_")]


def methods() -> Iterator[tuple[str, list[type]]]:
    """Each method of the service that several classes have, and which, the one that is called first."""
    for name in sorted({name for noun in Service.__mro__ for name in vars(noun) if not name.startswith("__")}):
        having = [noun for noun in Service.__mro__ if callable(vars(noun).get(name))]
        if len(having) > 1:
            yield name, having


def passes_on(method: Callable[..., Any]) -> bool:
    """Whether a method uses `super()`."""
    return "__class__" in method.__code__.co_freevars


def own_names(noun: type[Desk]) -> set[str]:
    """What a noun has that the desk has not."""
    named = {name for one in noun.__mro__ if one not in Desk.__mro__ for name in vars(one)}
    had = {field.name for field in fields(noun)} - {field.name for field in fields(Desk)}
    return {name for name in named | had if not name.startswith("__")}


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_is_answered_by_a_noun_that_knows(name: str) -> None:
    first = next(one for one in Service.__mro__ if name in vars(one))
    assert first in NOUNS
    assert getattr(Service, name) is vars(first)[name]


def test_what_several_nouns_say_something_to_is_heard_from_all_of_them() -> None:
    for name, having in methods():
        for place, one in enumerate(having):
            if not passes_on(vars(one)[name]):
                unheard = [other.__name__ for other in having[place + 1 :] if not issubclass(one, other)]
                assert not unheard, f"{one.__name__}.{name} keeps {unheard} from being asked"


def test_the_service_lists_each_noun_once_and_needs_no_other() -> None:
    assert {*Service.__bases__} == {*NOUNS} - {Service}


def test_a_noun_names_only_what_no_other_that_it_names_is_built_upon() -> None:
    for noun in NOUNS:
        bases = noun.__bases__ if noun is not Service else ()
        assert not [base for base in bases if any(other is not base and issubclass(other, base) for other in bases)]


def test_a_noun_uses_each_that_it_is_built_upon() -> None:
    for noun in NOUNS:
        parts = ast.walk(ast.parse(inspect.getsource(noun)))
        used = {part.attr for part in parts if isinstance(part, ast.Attribute)}
        for base in noun.__bases__ if noun is not Service else ():
            assert base is Desk or used & own_names(base), f"{noun.__name__} needs no {base.__name__}"
