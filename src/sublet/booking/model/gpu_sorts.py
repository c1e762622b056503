"""The sorts of GPU that a session may be given: their type and the version of their driver, as its platform tells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

WHOLE = ("driver-version.full", "driver-version", "driver_version")  # how labels end that tell all of a version
PARTS = (".driver.major", ".driver.minor", ".driver.rev")  # how those end that tell a part of it each
NAMED = re.compile(r"driver[\W_]?v?(\d+(?:[._]\d+)*)", re.IGNORECASE)  # nvidia-driver-550.54, CUSTOM_DRIVER_550_54


@dataclass(frozen=True, slots=True, order=True)
class GpuSort:
    """One sort; what a platform doesn't tell of it is empty."""

    type: str = ""
    driver: str = ""

    def __str__(self) -> str:
        """In words."""
        driver = f"driver {self.driver}" if self.driver else ""
        return ", ".join(filter(None, (self.type, driver)))


def sort_gpus(sorts: Iterable[GpuSort]) -> tuple[GpuSort, ...]:
    """Each once, in order, without one of which nothing is known."""
    return tuple(sorted({each for each in sorts if each.type or each.driver}))


def describe_gpus(sorts: Sequence[GpuSort]) -> str:
    """In words; empty: nothing is known of them."""
    return " or ".join(map(str, sorts))


def find_driver(names: Iterable[str]) -> str:
    """The version of a driver among features of a node, or traits of a flavor; empty: none tells it."""
    versions = [match[1].replace("_", ".") for name in names if (match := NAMED.search(name))]
    return max(versions, key=len, default="")


def find_labelled_driver(labels: Mapping[str, str]) -> str:
    """The version of a driver among labels of a node, as GPU feature discovery writes them; empty: none tells it."""
    whole = [value for name, value in sorted(labels.items()) if name.endswith(WHOLE)]
    parts = [[value for name, value in sorted(labels.items()) if name.endswith(part)][:1] for part in PARTS]
    joined = ".".join(value for part in parts for value in part)
    return next(iter(whole), "") or joined or find_driver(f"{name}-{value}" for name, value in labels.items())
