"""Each session's own secret, derived from the key of this home."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from pathlib import Path

from sublet.kernel.secret_key import read_or_make_key


@dataclass(frozen=True)
class SessionSecrets:
    """Secrets that are never stored, and are the same in every process that shares this home."""

    home: Path

    def of(self, session: str) -> str:
        """Return the secret of a session, or of anything else with this name."""
        return hmac.new(self.key(), session.encode(), hashlib.sha256).hexdigest()[:40]

    def key(self) -> bytes:
        """Return the key of this home, which is made when it is first needed."""
        return read_or_make_key(self.home / "key")
