"""Archives of images that go from here to nodes, each fetched once for all pools and annexes: `SUBLET_HOME/images`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from sublet.platforms.local.cache import LocalCache

QUOTA = 20 << 30  # bytes: beyond it those go that have not been needed for the longest time
UNUSED = timedelta(days=7)  # how long one stays that no session needs


def open_archives(name: str, home: Path) -> LocalCache:
    """The cache of archives of the service that a platform is of, whose directory is `SUBLET_HOME/platforms/NAME`."""
    platforms = home.parent

    def is_over(key: str) -> bool:
        return not any((place / "sessions" / key).is_dir() for place in platforms.iterdir())

    return LocalCache(name, platforms.parent / "images", QUOTA, True, is_over)
