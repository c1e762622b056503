"""A real OpenID provider on loopback, Django with django-oauth-toolkit: `-m tests.openid_server DIR HOST BACK`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

CLIENTS = ("gateway", "another")  # client ids
PEOPLE = {  # name → address, and whether that is verified
    "ann": ("ann@illinois.edu", True),
    "eve": ("ann@illinois.edu", False),
    "zoe": ("Zoe@Elsewhere.example", True),
    "zoe2": ("zoe+2@elsewhere.example", True),
    "gus": ("g.us@gmail.com", True),
    "gus2": ("Gus+2@GoogleMail.com", True),
}
GROUPS = {"ann": ["/srcnet", "/srcnet/uk"], "zoe": ["/srcnet"]}
CONTRIBUTED = ("auth", "contenttypes", "sessions")  # what of Django it needs
PASSWORD = "not a secret"
TERMINAL = "terminal"  # a public client, for programs that show a code
DEVICE = "oauth2_provider/device"
FORM = '<form method="post">{% csrf_token %}<input name="user_code"><button name="action">ok</button></form>'
LOGIN = '<form method="post">{% csrf_token %}<input name="username"><input name="password"><button>ok</button></form>'


PAGES = {
    "registration/login.html": LOGIN,
    f"{DEVICE}/user_code.html": FORM,
    f"{DEVICE}/accept_deny.html": FORM,
    f"{DEVICE}/device_grant_status.html": "{{ object.status }}",
}


def configure(directory: Path, issuer: str) -> None:
    """Django's settings."""
    from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    from django.conf import settings

    key = generate_private_key(65537, 2048).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    settings.configure(
        SECRET_KEY="of a test",
        DEBUG_PROPAGATE_EXCEPTIONS=True,  # what goes wrong is in its log
        ALLOWED_HOSTS=["127.0.0.1", "localhost"],
        ROOT_URLCONF="tests.openid_server",
        INSTALLED_APPS=[f"django.contrib.{name}" for name in CONTRIBUTED] + ["oauth2_provider"],
        MIGRATION_MODULES=dict.fromkeys((*CONTRIBUTED, "oauth2_provider")),  # tables as they are now, in one step
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
        ],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "OPTIONS": {
                    "loaders": [("django.template.loaders.locmem.Loader", PAGES)],
                    "context_processors": ["django.template.context_processors.request"],
                },
            }
        ],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(directory / "provider.db")}},
        PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"],  # quick, in a test
        LOGIN_URL="/login",
        USE_TZ=True,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        OAUTH2_PROVIDER={
            "OIDC_ENABLED": True,
            "OIDC_RSA_PRIVATE_KEY": key,
            "OIDC_ISS_ENDPOINT": issuer,
            "OAUTH2_VALIDATOR_CLASS": "tests.openid_claims.Claims",
            "SCOPES": {"openid": "who you are", "email": "your address", "offline_access": "stay"},
            "ACCESS_TOKEN_GENERATOR": "tests.openid_claims.make_access_token",
            "OAUTH_DEVICE_VERIFICATION_URI": f"{issuer}/device/",
            "DEVICE_FLOW_INTERVAL": 1,
            "PKCE_REQUIRED": True,
            "ALLOWED_REDIRECT_URI_SCHEMES": ["http", "https"],
        },
    )


def fill(redirects: list[str]) -> None:
    """The people, and the clients that may send them here."""
    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from oauth2_provider.models import get_application_model

    call_command("migrate", run_syncdb=True, verbosity=0)
    for name, (address, _) in PEOPLE.items():
        get_user_model().objects.create_user(name, address, PASSWORD)
    for client in CLIENTS:
        get_application_model().objects.create(
            name=client,
            client_id=client,
            client_secret=f"secret of {client}",
            client_type="confidential",
            authorization_grant_type="authorization-code",
            redirect_uris=" ".join(redirects),
            algorithm="RS256",
            skip_authorization=True,
        )


def add_terminal() -> None:
    """The client of programs at a terminal: without a secret, for the device grant."""
    from oauth2_provider.models import get_application_model

    model = get_application_model()
    model.objects.create(
        name=TERMINAL,
        client_id=TERMINAL,
        client_type="public",
        authorization_grant_type=model.GRANT_DEVICE_CODE,
        algorithm="RS256",
    )


class Quiet(WSGIRequestHandler):
    """Says nothing of what it answers."""

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


def serve(directory: Path, host: str, redirects: list[str]) -> None:
    """Serve until this is ended; the port is written to a file once all is ready."""
    import django
    from django.core.wsgi import get_wsgi_application

    server = make_server("127.0.0.1", 0, None, handler_class=Quiet)
    configure(directory, f"http://{host}:{server.server_port}/o")
    django.setup()
    fill(redirects)
    add_terminal()
    server.set_app(get_wsgi_application())
    part = directory / "port.part"
    part.write_text(str(server.server_port))
    part.rename(directory / "port")
    server.serve_forever()


def __getattr__(name: str) -> Any:
    """The addresses that it serves, as Django asks for them."""
    if name != "urlpatterns":
        raise AttributeError(name)
    from django.contrib.auth.views import LoginView
    from django.urls import include, path

    codes = path("o/device-authorization/", device_view().as_view())
    return [path("login", LoginView.as_view()), codes, path("o/", include("oauth2_provider.urls"))]


def device_view() -> Any:
    """Where codes are asked for; oauthlib 4 tells the scopes too, over which django-oauth-toolkit 3.4 stumbles."""
    from oauth2_provider.views.device import DeviceAuthorizationView

    class View(DeviceAuthorizationView):  # type: ignore[misc]
        def create_device_authorization_response(self, request: Any) -> Any:
            headers, answer, status = super().create_device_authorization_response(request)
            if isinstance(answer, dict):
                answer.pop("scope", None)
            return headers, answer, status

    return View


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3]))
