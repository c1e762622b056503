"""Opens a store, and prints whether that took the migration tool: `… URL`."""

from __future__ import annotations

import sys

from sublet.store import Store

if __name__ == "__main__":
    Store.open(sys.argv[1]).close()
    print("alembic" in sys.modules)
