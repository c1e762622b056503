"""Container images: how one in a registry is named, and what an archive of one is."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

REFERENCE = re.compile(
    r"(?P<name>[a-zA-Z0-9][a-zA-Z0-9._-]*(:[0-9]+)?(/[a-z0-9._-]+)*)(:(?P<tag>[\w][\w.-]{0,127}))?"
    r"(@(?P<digest>sha256:[0-9a-f]{64}))?\Z"
)


@dataclass(frozen=True)
class ImageArchive:
    """A container image in one tar file, each layer of which is the one that its configuration names."""

    form: Literal["docker-archive", "oci-archive"]
    digests: tuple[str, ...]  # by which it can be told
