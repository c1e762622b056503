"""Credentials for other people's storage: sealed, private to a person, and shown only to the place each is for."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from uuid import uuid4

from sublet.data.model.credentials import (
    Credential,
    CredentialKind,
    SealedCredential,
    check_place,
    check_secret,
    credential_for,
)
from sublet.kernel.clock import Clock
from sublet.kernel.db.audit import AuditEntry
from sublet.kernel.errors import BadRequest, NotAllowed, NotFound
from sublet.kernel.ssh_keys import read_key
from sublet.kernel.vault import Vault
from sublet.people.model.person import Person
from sublet.store.store import Store
from sublet.store.tx import Tx

MOST = 100


@dataclass
class Credentials:
    """Adds, lists and removes credentials, and opens them for their owner's sessions."""

    store: Store
    now: Clock
    vault: Vault

    async def add(
        self, person: Person, credential: Credential, host: str = "", passphrase: str = "", session_token: str = ""
    ) -> SealedCredential:
        """Store a credential, replacing the one for the same address; an SSH key is stored without its passphrase."""
        if person.guest:
            raise NotAllowed(why="Guests of a personal service keep no credentials here.", how="Use your own service.")
        if why := check_place(credential.place, credential.kind, credential.endpoint):
            raise BadRequest(detail=why)
        if not credential.secret:
            raise BadRequest(detail="it has no secret", hint="Type the password, the token or the secret key.")
        if session_token and credential.kind is not CredentialKind.S3:
            raise BadRequest(detail="only temporary S3 keys have a session token", hint="Leave the session token out.")
        is_long = "\n" in credential.secret and credential.kind is CredentialKind.S3
        credential = credential.with_session_token(session_token)
        if why := "it is more than one line" if is_long else check_secret(credential):
            raise BadRequest(detail=why, hint="Give the password, the token or the secret key alone, on one line.")
        if credential.kind is CredentialKind.KEY:
            key, _ = await asyncio.to_thread(read_key, credential.secret, passphrase)
            credential = replace(credential, secret=key)
        new = SealedCredential(str(uuid4()), person.name, self.now(), credential)
        sealed = await asyncio.to_thread(self.vault.seal, new.purpose, credential.secret)
        new = replace(new, credential=replace(credential, secret=sealed))
        await self.store.write(lambda tx: self._add(tx, new, host))
        return new

    def _add(self, tx: Tx, new: SealedCredential, host: str) -> None:
        if len(tx.credentials.of(new.person)) >= MOST:
            raise BadRequest(detail=f"you have {MOST} credentials", hint="Remove one: sublet credential remove")
        tx.credentials.put(new)
        detail = {"place": new.credential.place, "kind": new.credential.kind.value}
        tx.audit.add(AuditEntry(new.created, new.person, "credential.add", "credential", new.id, detail, host))

    async def list(self, person: Person) -> list[SealedCredential]:
        """List a person's credentials, with their secrets sealed."""
        return await self.store.read(lambda tx: tx.credentials.of(person.name))

    async def remove(self, person: Person, place: str, host: str = "") -> None:
        """Remove the credential for a place."""

        def remove(tx: Tx) -> bool:
            gone = tx.credentials.remove(person.name, place)
            if gone:
                detail = {"place": place}
                tx.audit.add(
                    AuditEntry(self.now(), person.name, "credential.remove", "credential", place, detail, host)
                )
            return gone

        if not await self.store.write(remove):
            raise NotFound(noun="credential", name=place, hint="`sublet credential list` lists your credentials.")

    async def open(self, person: str) -> tuple[Credential, ...]:
        """Return a person's credentials with their secrets unsealed, without those that are unusable."""
        sealed = await self.store.read(lambda tx: tx.credentials.of(person))
        opened = [replace(kept.credential, secret=await self._open(kept)) for kept in sealed]
        return tuple(credential for credential in opened if not check_secret(credential))

    async def find_token(self, address: str, person: str) -> str:
        """Return the token that a person stored for an address, or an empty string."""
        credential = credential_for(await self.open(person), address) if person else None
        return credential.secret if credential and credential.kind is CredentialKind.TOKEN else ""

    async def _open(self, sealed: SealedCredential) -> str:
        return await asyncio.to_thread(self.vault.open, sealed.purpose, sealed.credential.secret)

    async def reseal(self) -> dict[str, int]:
        """Seal all secrets again, with the newest key."""
        old = await self.store.read(lambda tx: tx.credentials.secrets())
        new = {id: await asyncio.to_thread(self.vault.reseal, f"credential:{id}", secret) for id, secret in old.items()}

        def seal(tx: Tx) -> int:
            return sum(tx.credentials.seal(id, old[id], new[id]) for id in new)

        return {"credential": await self.store.write(seal)}
