"""The rules for use cases: composed, small, and each in the service once."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import get_type_hints

import pytest

from sublet.service import AccessCases, AnnexCases, AppCases, NoticeCases, PeopleCases, Service

MOST = 10
ROOMS = ("booking", "booking.loop", "booking.platforms", "data", "people", "access", "annexes", "apps", "notices")
SUBJECTS = (PeopleCases, AccessCases, AnnexCases, AppCases, NoticeCases)


def list_modules() -> Iterator[str]:
    """The modules of use cases: those of the subjects that are in no layer of theirs."""
    for room in ROOMS:
        package = importlib.import_module(f"sublet.{room}")
        for module in pkgutil.iter_modules(package.__path__, f"sublet.{room}."):
            if not module.ispkg:
                yield module.name


def list_classes() -> Iterator[type]:
    """The classes of the service's modules that do something: those with public methods."""
    for name in list_modules():
        found = importlib.import_module(name)
        for thing in vars(found).values():
            if inspect.isclass(thing) and thing.__module__ == found.__name__ and list_methods(thing):
                yield thing


def list_methods(thing: type) -> list[str]:
    return [name for name, value in vars(thing).items() if inspect.isfunction(value) and not name.startswith("_")]


def list_use_cases() -> Iterator[type]:
    """All that the service holds, its subjects taken apart."""
    modules = {*list_modules()}
    for holder in (Service, *SUBJECTS):
        hints = get_type_hints(holder)
        for field in fields(holder):
            kind = hints[field.name]
            if inspect.isclass(kind) and kind.__module__ in modules and kind not in SUBJECTS:
                yield kind


def test_the_service_holds_use_cases() -> None:
    assert len({*list_use_cases()}) > 50


@pytest.mark.parametrize("use_case", sorted({*list_use_cases()}, key=lambda kind: kind.__name__))
def test_a_use_case_inherits_no_other_and_is_built_from_what_it_names(use_case: type) -> None:
    bases = [base for base in use_case.__mro__[1:] if base.__module__.startswith("sublet.")]
    assert not bases, f"{use_case.__name__} inherits {bases}"
    assert is_dataclass(use_case) or "__init__" in vars(use_case)


@pytest.mark.parametrize("thing", sorted({*list_classes()}, key=lambda kind: kind.__name__))
def test_a_class_has_few_public_methods(thing: type) -> None:
    methods = list_methods(thing)
    assert len(methods) <= MOST, f"{thing.__name__} has {len(methods)}: {', '.join(methods)}"
