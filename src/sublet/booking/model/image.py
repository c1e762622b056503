"""Container images: how an image in a registry is named, and what describes an archive of one."""

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
    """A container image in one tar file, with layers that match its configuration."""

    form: Literal["docker-archive", "oci-archive"]
    digests: tuple[str, ...]  # that identify the image
