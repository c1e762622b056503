"""`doctor`'s check of the database: it exists, is intact, isn't newer than this Sublet, and has all recorded events."""

from __future__ import annotations

import os

from sublet.kernel.db.record import SQLITE, find_damage, read_record, sqlite_file
from sublet.kernel.db.versions import NEWER, find_newer, read_version
from sublet.kernel.home import Home


def check_database(home: Home, named: str = "") -> tuple[str, str, str]:
    """Check the database that the service used last, or else the named one, or else the embedded one.

    Return `ok` or `bad`, the finding, and what to do.
    """
    record = read_record(home.root)
    address = record.database if record else named or f"{SQLITE}{home.database}"
    file, damage = sqlite_file(address), find_damage(home.root, address)
    if damage:
        return "bad", damage.why, damage.advice
    if file is None:
        return "ok", f"{address}; the service looks after it", ""
    if not os.path.exists(file):
        return "ok", "made at the first start", ""
    newer = find_newer(read_version(file))
    return ("bad", newer, NEWER) if newer else ("ok", file, "")
