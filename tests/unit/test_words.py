"""Functions are verbs, and variables say what they hold: no participles, and no more of the words that say nothing."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

from tests.source import PACKAGE, parse_source

IRREGULAR = frozenset(
    [
        "begun",
        "bought",
        "bound",
        "broken",
        "brought",
        "built",
        "caught",
        "chosen",
        "done",
        "drawn",
        "driven",
        "found",
        "frozen",
        "given",
        "gone",
        "grown",
        "heard",
        "held",
        "hidden",
        "kept",
        "known",
        "laid",
        "led",
        "left",
        "lent",
        "lost",
        "made",
        "meant",
        "met",
        "mine",
        "named",
        "paid",
        "seen",
        "sent",
        "shaken",
        "shown",
        "sold",
        "spent",
        "spoken",
        "stolen",
        "struck",
        "swept",
        "taken",
        "taught",
        "their",
        "theirs",
        "there",
        "thrown",
        "told",
        "thought",
        "understood",
        "woken",
        "won",
        "worn",
        "written",
    ]
)
PARTICIPLE = re.compile(r"[a-z]+ed")
VERBS = frozenset({"embed", "exceed", "feed", "heed", "need", "proceed", "seed", "speed", "succeed"})
# What people type and write: the words of the command line, of HTTP and of the SDK stay.
PUBLIC = frozenset({"fetched"})
# Decorators and steps of a transaction inside a function that says what they do.
INNER = frozenset(
    {"asked", "changed", "held", "judged", "made", "printed", "renamed", "shared", "shown", "told", "unshared"}
)
# Words that say nothing of what a variable holds, and how often they still stand; a number only ever gets smaller.
VAGUE = {"found": 41, "one": 32, "said": 21, "told": 16, "thing": 0}


def is_participle(name: str) -> bool:
    first = name.strip("_").partition("_")[0]
    return first in IRREGULAR or bool(PARTICIPLE.fullmatch(first) and first not in VERBS)


def list_functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            is_value = any("property" in ast.unparse(each) for each in node.decorator_list)
            if not is_value:
                yield node


def test_no_function_is_called_by_a_participle() -> None:
    wrong = [
        f"{file.relative_to(PACKAGE)}:{function.lineno} {function.name}"
        for file, tree in parse_source().items()
        if "migrations" not in file.parts
        for function in list_functions(tree)
        if is_participle(function.name) and function.name not in PUBLIC | INNER
    ]
    assert wrong == [], (
        "a function is a verb (`find_refusal`, `describe_end`), a question begins with is_, has_ or can_"
    )


def list_variables(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg


def test_no_more_variables_have_names_that_say_nothing() -> None:
    trees = [tree for file, tree in parse_source().items() if "migrations" not in file.parts]
    counts = Counter(name for tree in trees for name in list_variables(tree) if name in VAGUE)
    assert {name: count for name, count in counts.items() if count > VAGUE[name]} == {}, "say what a variable holds"
