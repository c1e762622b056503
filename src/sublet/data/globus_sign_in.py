"""Signs in to Globus: the address where a person signs in, and the refresh token that their code is exchanged for."""

from __future__ import annotations

from dataclasses import dataclass

from sublet.data.credentials import Credentials
from sublet.data.model.credentials import GLOBUS, Credential, CredentialKind, SealedCredential, check_place
from sublet.kernel.errors import BadRequest, NotAllowed
from sublet.kernel.settings import Settings
from sublet.movers.globus_api import GlobusFailed
from sublet.movers.globus_sign_in import build_address, exchange_code, make_verifier
from sublet.movers.port import Interrupted
from sublet.people.model.person import Person

NO_CLIENT = "no app of Globus is known here by which someone could sign in"
REGISTER = "Register a native app at app.globus.org/settings/developers, and add its id: --client-id ID."


@dataclass(frozen=True, slots=True)
class GlobusVisit:
    """A sign-in that has begun; its verifier stays with the person who signs in."""

    address: str  # where the person signs in and gets a code
    client: str
    verifier: str


@dataclass
class GlobusSignIn:
    """Begins a sign-in to Globus, and finishes it with the code."""

    settings: Settings
    credentials: Credentials

    def begin(self, person: Person, place: str, client: str = "") -> GlobusVisit:
        """Return where the person signs in, for all collections or for one."""
        if person.guest:
            raise NotAllowed(why="Guests of a personal service keep no credentials here.", how="Use your own service.")
        if not place.lower().startswith(f"{GLOBUS}:"):
            raise BadRequest(detail=f"{place} is no address of Globus", hint="Write globus:// or globus://COLLECTION.")
        if why := check_place(place, CredentialKind.TOKEN, ""):
            raise BadRequest(detail=why)
        client = client or self.settings.globus_client
        if not client:
            raise BadRequest(detail=NO_CLIENT, hint=REGISTER)
        verifier = make_verifier()
        return GlobusVisit(build_address(self.settings.globus_auth, client, place, verifier), client, verifier)

    async def finish(
        self, person: Person, place: str, visit: GlobusVisit, code: str, host: str = ""
    ) -> SealedCredential:
        """Exchange the code, and store the refresh token sealed, replacing the credential for the same address."""
        try:
            token = await exchange_code(self.settings.globus_auth, visit.client, code.strip(), visit.verifier)
        except (GlobusFailed, Interrupted) as failed:
            raise BadRequest(detail=f"Globus did not take the code: {failed}", hint="Sign in again.") from failed
        new = Credential(place, CredentialKind.TOKEN, user=visit.client, secret=token)
        return await self.credentials.add(person, new, host)
