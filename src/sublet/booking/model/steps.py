"""Steps: several commands in one session, each with a name of its own."""

from __future__ import annotations

import re

STEP_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}")
