"""Image archives that are sent to nodes, each fetched once for all pools and annexes: `SUBLET_HOME/images`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from sublet.platforms.local.cache import LocalCache

QUOTA = 20 << 30  # bytes: beyond it the least recently needed archives are removed
UNUSED = timedelta(days=7)  # how long an archive stays that no session needs


def open_archives(name: str, home: Path) -> LocalCache:
    """Open the service's cache of image archives; `home` is the platform's directory, `SUBLET_HOME/platforms/NAME`."""
    platforms = home.parent

    def is_over(key: str) -> bool:
        return not any((place / "sessions" / key).is_dir() for place in platforms.iterdir())

    return LocalCache(name, platforms.parent / "images", QUOTA, True, is_over)
