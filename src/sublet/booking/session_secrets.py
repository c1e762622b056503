"""Each session's own secret, made from the key of this home."""

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
        """The secret of a session, or of whatever else has this name."""
        return hmac.new(self.key(), session.encode(), hashlib.sha256).hexdigest()[:40]

    def key(self) -> bytes:
        """The key of this home; made when it is first needed."""
        return read_or_make_key(self.home / "key")
