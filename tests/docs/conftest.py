"""`--guide NAME` runs one guide: `make guide NAME=split`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDES = sorted(file.stem for file in (Path(__file__).parents[2] / "docs" / "guides").glob("*.md"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Which guide."""
    parser.addoption("--guide", metavar="NAME", help=f"run this guide alone: {', '.join(GUIDES)}")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests whose id names the guide."""
    name = config.getoption("--guide", default=None)
    if name is None:
        return
    require_guide(name)
    types_it = [item for item in items if name in guides_in(item.nodeid)]
    config.hook.pytest_deselected(items=[item for item in items if item not in types_it])
    items[:] = types_it


def require_guide(name: str) -> None:
    """Say which guides there are to whoever names another."""
    if name not in GUIDES:
        raise pytest.UsageError(f"There is no guide {name!r}. There are: {', '.join(GUIDES)}")


def guides_in(nodeid: str) -> list[str]:
    """The guides that a test types, by the id between its brackets: `test_x[gateway,contribute-an-app]`."""
    return re.split(r"[\[\],]", nodeid)[1:]
