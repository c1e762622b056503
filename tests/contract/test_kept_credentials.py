"""A credential that no server could be shown is never a part of what people and logs are told."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from sublet.booking.model.phases import Phase
from sublet.data.model.credentials import Credential, CredentialKind, SealedCredential
from sublet.service import Service
from tests.contract.services import ME, ask, over, serving
from tests.web_source import serve_source

pytestmark = pytest.mark.anyio
SECRET = "hush-hush"
HERE = {"kind": "local", "cores": 1, "memory": "1GiB"}


async def keep_as_before(service: Service, credential: Credential) -> None:
    """Keep it as a service did that did not look at what it kept."""
    kept = SealedCredential(str(uuid4()), ME.name, datetime.now(UTC), credential)
    sealed = service.credentials.vault.seal(kept.purpose, credential.secret)
    kept = replace(kept, credential=replace(credential, secret=sealed))
    await service.credentials.store.write(lambda tx: tx.credentials.put(kept))


@pytest.mark.parametrize("secret", [f"{SECRET}\r\nX-Other: 1", f"{SECRET}é", f"{SECRET}\0"])
async def test_a_token_that_no_header_can_carry_is_neither_shown_nor_told(tmp_path: Path, secret: str) -> None:
    with serve_source("127.0.0.1") as source:
        address = source.put("/open.txt", b"open")
        async with serving(tmp_path / "home", platforms={"here": HERE}) as service:
            await keep_as_before(service, Credential(address, CredentialKind.TOKEN, secret=secret))
            offers = await ask(
                service, run=["true"], data=[{"location": address, "path": "in"}], time="1m", memory="64MiB"
            )
            session = await over(service, (await service.sessions.accept(offers.offers[0].id, ME)).id, seconds=60)
        assert session.phase is Phase.COMPLETED, "what anybody may read comes without it"
        assert SECRET not in f"{session.end}"
        assert not any("Authorization" in headers or "X-Other" in headers for headers in source.gets("/open.txt"))
