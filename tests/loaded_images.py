"""Images that services of tests had loaded into Podman's own store, which outlives their homes."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from sublet.kinds.inside.container_images import alone

ELSEWHERE = {"sessions", "work", "trash", "logs", "uploads"}  # where no cache is, and many files may be


@pytest.fixture(scope="session", autouse=True)
def loaded_images_removed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Take away those of this run's services, as `sublet cache rm` would."""
    yield
    for record in _find_records(tmp_path_factory.getbasetemp()):
        with suppress(OSError, ValueError, KeyError):
            stored = json.loads(record.read_bytes())
            remove_image(stored["tool"], stored["name"])


def remove_image(tool: str, name: str) -> None:
    """Take a name of an image out of a store, while no session gives names there."""
    with alone():
        subprocess.run([tool, "rmi", name], capture_output=True, check=False, timeout=60)


def _find_records(root: Path) -> Iterator[Path]:
    for folder, folders, _ in os.walk(root):
        folders[:] = [name for name in folders if name not in ELSEWHERE]
        if os.path.basename(folder) == "kept":
            yield from Path(folder).glob("image-podman-*/content")
            folders.clear()
