"""Has Globus' own client sign someone in by a code, and prints what it understood. It runs where the SDK is, and alone.

Arguments: the address of the service, an app's id, and a proof key. It prints the address where one signs in, reads the
code, and prints the refresh tokens by their services.
"""

import json
import sys

from globus_sdk import NativeAppAuthClient
from globus_sdk.scopes import TransferScopes


def main(address: str, client_id: str, verifier: str) -> None:
    """Begin, and finish with the code."""
    client = NativeAppAuthClient(client_id, base_url=f"{address}/")
    client.oauth2_start_flow(
        requested_scopes=str(TransferScopes.all),
        redirect_uri=f"{address}/v2/web/auth-code",
        verifier=verifier,
        refresh_tokens=True,
    )
    sys.stdout.write(client.oauth2_get_authorize_url() + "\n")
    sys.stdout.flush()
    tokens = client.oauth2_exchange_code_for_tokens(sys.stdin.readline().strip())
    json.dump({name: grant["refresh_token"] for name, grant in tokens.by_resource_server.items()}, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
