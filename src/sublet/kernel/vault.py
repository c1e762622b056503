"""The vault: encrypts secrets that have to be stored and used again (AES-GCM), each for one purpose."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sublet.kernel.errors import NoMasterKey, NotSealedHere
from sublet.kernel.master_key import MasterKey, find, read

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

FORM = "sealed1"
HOME = "home"  # the id of the key derived from SUBLET_HOME/key, in personal mode
_NONCE = 12


class Vault:
    """Encrypts and decrypts secrets. The master key is read each time, so a changed file has effect at once."""

    def __init__(self, home: Path, master_key: str = "", own: Callable[[], bytes] | None = None) -> None:
        """`own` returns the home's key, with which a personal service encrypts most secrets if it has no master key."""
        self._home = home
        self._file = master_key
        self._own = own

    def check(self, purpose: str) -> None:
        """Raise NoMasterKey or BadMasterKey if nothing can be encrypted for this purpose."""
        self._keys(purpose)

    def seal(self, purpose: str, text: str) -> str:
        """Encrypt a text so that only this service can decrypt it, and only for the same purpose."""
        key = self._keys(purpose)[0]
        nonce = secrets.token_bytes(_NONCE)
        sealed = nonce + _cipher(key).encrypt(nonce, text.encode(), _context(key.id, purpose))
        return f"{FORM}.{key.id}.{base64.urlsafe_b64encode(sealed).decode()}"

    def open(self, purpose: str, sealed: str) -> str:
        """Decrypt a text that was encrypted for this purpose; raise NotSealedHere if that isn't possible."""
        from cryptography.exceptions import InvalidTag

        form, _, rest = sealed.partition(".")
        id, _, body = rest.partition(".")
        if form != FORM:
            raise NotSealedHere(purpose=purpose, why="it is no sealed text")
        key = next((key for key in self._keys(purpose, id) if key.id == id), None)
        if key is None:
            raise NotSealedHere(purpose=purpose, why=f"the master key {id} is not in the file")
        try:
            bytes = base64.urlsafe_b64decode(body)
            text = _cipher(key).decrypt(bytes[:_NONCE], bytes[_NONCE:], _context(id, purpose))
        except (InvalidTag, binascii.Error, ValueError) as error:
            raise NotSealedHere(purpose=purpose, why="it was changed, or sealed for something else") from error
        return text.decode()

    def reseal(self, purpose: str, sealed: str) -> str:
        """Encrypt a sealed text again with the newest key; return it unchanged if that is its key already."""
        newest = self._keys(purpose)[0]
        if sealed.startswith(f"{FORM}.{newest.id}."):
            return sealed
        return self.seal(purpose, self.open(purpose, sealed))

    def _keys(self, purpose: str, id: str = "") -> tuple[MasterKey, ...]:
        """Return the keys, newest first; the home's own key is last, to decrypt secrets from before a master key."""
        file = find(self._file)
        own = self._own is not None and not purpose.startswith("account:")
        keys = read(file, str(self._home)) if file and id != HOME else ()
        if not keys and not own:
            raise NoMasterKey(purpose=purpose)
        if own and self._own is not None:
            derived = hmac.new(self._own(), b"sublet vault", hashlib.sha256).digest()
            keys = (*keys, MasterKey(HOME, derived))
        return keys


def _cipher(key: MasterKey) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key.secret)


def _context(id: str, purpose: str) -> bytes:
    return f"{FORM} {id} {purpose}".encode()
