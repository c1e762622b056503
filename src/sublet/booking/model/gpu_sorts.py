"""The sorts of GPU that a session may get: their type and driver version, as its platform reports them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

WHOLE = ("driver-version.full", "driver-version", "driver_version")  # endings of labels with a whole version
PARTS = (".driver.major", ".driver.minor", ".driver.rev")  # endings of labels with one part of it each
NAMED = re.compile(r"driver[\W_]?v?(\d+(?:[._]\d+)*)", re.IGNORECASE)  # nvidia-driver-550.54, CUSTOM_DRIVER_550_54


@dataclass(frozen=True, slots=True, order=True)
class GpuSort:
    """One sort of GPU; what its platform doesn't report is empty."""

    type: str = ""
    driver: str = ""

    def __str__(self) -> str:
        """Describe the type and the driver."""
        driver = f"driver {self.driver}" if self.driver else ""
        return ", ".join(filter(None, (self.type, driver)))


def sort_gpus(sorts: Iterable[GpuSort]) -> tuple[GpuSort, ...]:
    """Return each sort once, sorted, without those that are unknown."""
    return tuple(sorted({each for each in sorts if each.type or each.driver}))


def describe_gpus(sorts: Sequence[GpuSort]) -> str:
    """Describe the sorts of GPU; empty if nothing is known of them."""
    return " or ".join(map(str, sorts))


def find_driver(names: Iterable[str]) -> str:
    """Return the driver version among a node's features or a flavor's traits; empty if there is none."""
    versions = [match[1].replace("_", ".") for name in names if (match := NAMED.search(name))]
    return max(versions, key=len, default="")


def find_labelled_driver(labels: Mapping[str, str]) -> str:
    """Return the driver version among a node's labels, as GPU feature discovery writes them; empty if there is none."""
    whole = [value for name, value in sorted(labels.items()) if name.endswith(WHOLE)]
    parts = [[value for name, value in sorted(labels.items()) if name.endswith(part)][:1] for part in PARTS]
    joined = ".".join(value for part in parts for value in part)
    return next(iter(whole), "") or joined or find_driver(f"{name}-{value}" for name, value in labels.items())
