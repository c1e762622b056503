"""What the provider of the tests says of its people."""

from __future__ import annotations

from typing import Any

from oauth2_provider.oauth2_validators import OAuth2Validator

from tests.openid_server import PEOPLE


class Claims(OAuth2Validator):
    """The claims of an ID token."""

    oidc_claim_scope = None

    def get_additional_claims(self, request: Any) -> dict[str, Any]:
        """The address of whoever signed in, whether it is verified, and the groups that they are in."""
        address, verified = PEOPLE[request.user.username]
        who = {"sub": f"u-{request.user.username}", "email": address, "email_verified": verified}
        return who | {"groups": ["/srcnet"] if request.user.username == "ann" else []}
