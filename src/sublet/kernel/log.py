"""The log of the service."""

from __future__ import annotations

import structlog

log = structlog.get_logger()
