"""How an image in a registry is named."""

from __future__ import annotations

import re

REFERENCE = re.compile(
    r"(?P<name>[a-zA-Z0-9][a-zA-Z0-9._-]*(:[0-9]+)?(/[a-z0-9._-]+)*)(:(?P<tag>[\w][\w.-]{0,127}))?"
    r"(@(?P<digest>sha256:[0-9a-f]{64}))?\Z"
)
