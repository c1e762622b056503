"""A class name means one thing in the whole repository."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.source import PACKAGE, parse_source

# What programs call by these names, beside the values that they stand for; and two names in OpenAPI's schemas.
OF_THE_SDK = {"Annex", "Filters", "Job", "Offer", "Offers", "Session"}
ON_THE_WIRE = {"DrainAsk"}


def find_classes() -> dict[str, list[str]]:
    found = defaultdict(list)
    for path, tree in parse_source().items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                found[node.name].append(str(path.relative_to(PACKAGE)))
    return found


def test_no_two_classes_have_one_name() -> None:
    twice = {name for name, files in find_classes().items() if len(files) > 1}
    assert twice == OF_THE_SDK | ON_THE_WIRE
