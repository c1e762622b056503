"""What the provider of the tests says of its people."""

from __future__ import annotations

import secrets
import time
from typing import Any

from oauth2_provider.oauth2_validators import OAuth2Validator

from tests.openid_server import GROUPS, PEOPLE


def make_access_token(request: Any) -> str:
    """An access token as an IAM makes them: a JWT, signed by the provider's key, for who asks for it."""
    from jwcrypto.jwt import JWT
    from oauth2_provider.settings import oauth2_settings
    from oauth2_provider.utils import jwk_from_pem

    key, now = jwk_from_pem(oauth2_settings.OIDC_RSA_PRIVATE_KEY), int(time.time())
    address, verified = PEOPLE[request.user.username]
    claims = {
        "iss": oauth2_settings.OIDC_ISS_ENDPOINT,
        "sub": f"u-{request.user.username}",
        "aud": getattr(request, "audience", None) or "everyone",
        "email": address,
        "email_verified": verified,
        "groups": GROUPS.get(request.user.username, []),
        "iat": now,
        "exp": now + request.expires_in if getattr(request, "expires_in", None) else now + 3600,
        "jti": secrets.token_hex(8),
    }
    made = JWT(header={"alg": "RS256", "typ": "at+jwt", "kid": key.thumbprint()}, claims=claims)
    made.make_signed_token(key)
    return str(made.serialize())


class Claims(OAuth2Validator):
    """The claims of an ID token."""

    oidc_claim_scope = None

    def get_additional_claims(self, request: Any) -> dict[str, Any]:
        """The address of whoever signed in, whether it is verified, and the groups that they are in."""
        address, verified = PEOPLE[request.user.username]
        who = {"sub": f"u-{request.user.username}", "email": address, "email_verified": verified}
        return who | {"groups": GROUPS.get(request.user.username, [])}

    def validate_device_code(self, client_id: str, code: str, request: Any, *args: Any, **more: Any) -> str:
        """Whose code was agreed to: oauthlib 4 asks for it, and django-oauth-toolkit 3.4 has looked at it before."""
        from oauth2_provider.utils import set_oauthlib_user_to_device_request_user
        from oauthlib.oauth2.rfc8628.grant_types import DeviceCodeGrant

        set_oauthlib_user_to_device_request_user(request)
        return str(DeviceCodeGrant.DEVICE_CODE_AUTHORIZED)
