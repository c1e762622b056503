"""Names files that are still arriving, so that they are never too long and never those of other files."""

from __future__ import annotations

import hashlib
import os

LONGEST = 200  # bytes of a name that its temporary name begins with


def name_part(path: str) -> str:
    """Return the temporary name of a file, or of its address, in the same folder."""
    folder, slash, name = path.rpartition("/")
    encoded = os.fsencode(name)
    digest = hashlib.sha256(encoded).hexdigest()[:16]
    return f"{folder}{slash}{name if len(encoded) <= LONGEST else 'sublet'}.{digest}.part"
