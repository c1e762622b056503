"""What an operator can set: one TOML file, environment over it, the command line over both."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from sublet.core.amounts import parse_duration
from sublet.core.manifest import Image
from sublet.core.prices import Prices
from sublet.core.rules import Rule
from sublet.errors import BadSettings, SubletError


def _duration(value: object) -> object:
    try:
        return parse_duration(value) if isinstance(value, str) else value
    except SubletError as error:
        raise ValueError(f"{error.message} {error.advice}") from error


Duration = Annotated[timedelta, BeforeValidator(_duration)]


def _image(value: object) -> object:
    """`python = "docker://…/python:3.12@sha256:…"`, or a table with location and digest."""
    if isinstance(value, str):
        location, _, digest = value.partition("@")
        value = {"location": location, "digest": digest}
    if isinstance(value, dict):
        location, digest = str(value.get("location", "")), str(value.get("digest", ""))
        if not location or (digest and not re.fullmatch(r"sha256:[0-9a-f]{64}", digest)):
            raise ValueError("an image has a location, and as its digest sha256: and 64 hexadecimal digits")
    return value


NamedImage = Annotated[Image, BeforeValidator(_image)]

ENVIRONMENT = "SUBLET_"
FILE = "sublet.toml"
_NOT_PLAIN = {
    "home",
    "images",
    "prices",
    "proxies",
    "registries",
    "rules",
    "annex",
    "apps",
    "maintainers",
    "mail",
    "hooks",
    "oidc",
    "platforms",
    "tokens",
    "signing",
    "sessions_url",
    "url",
}


class AnnexSettings(BaseModel):
    """Where HTCondor jobs wait, and where pilots come to run them."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    use: Literal["any", "own", "machine"] = Field(
        default="any",
        description="Whose access point: the `machine`'s, your `own`, or `any`: the machine's if it takes your jobs.",
    )
    address: str = Field(
        default="", description="Where nodes connect to; empty: this machine's own address on the way to the system."
    )
    bind: str = Field(
        default="", description="This machine's own address, where `address` is another's that passes connections on."
    )
    port: int = Field(default=0, ge=0, le=65535, description="Its port; 0 takes the first that is free from 9618 on.")
    endpoint: int = Field(
        default=0,
        ge=0,
        le=65535,
        description="The port on which pilots ask the service, while there are leases; 0 takes, and keeps, the first "
        "that is free from 9718 on.",
    )
    renew: Duration = Field(
        default=timedelta(seconds=10),
        ge=timedelta(seconds=1),
        description="How often a pilot asks what has changed.",
    )
    tokens: Duration = Field(
        default=timedelta(hours=2),
        ge=timedelta(seconds=10),
        description="How long a pilot's tokens are good for; they are renewed when half of that is over.",
    )
    job_lease: Duration | None = Field(
        default=None,
        description="How long a job outlives a lost connection to its node; unset: 20 min on a laptop, else 2 min.",
    )
    release: str = Field(
        default="https://htcss-downloads.chtc.wisc.edu/tarball/25.x/25.14.1/release/"
        "condor-25.14.1-{arch}_{system}-stripped.tar.gz",
        description="The release of HTCondor that `sublet annex setup --fetch` brings, and that nodes without any are "
        "sent; `{arch}` and `{system}` are the machine's, as in `x86_64` and `AlmaLinux9`.",
    )
    release_sha256: str = Field(
        default="",
        pattern="^([0-9a-fA-F]{64})?$",
        description="Its checksum; empty: the one in `sha256sum.txt` beside it, which then has to come by https.",
    )


def _issuer(address: str) -> str:
    """An issuer's address: by https, or on this machine."""
    parts = urlsplit(address)
    near = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost")
    if not parts.hostname or not (parts.scheme == "https" or near) or parts.query or parts.fragment:
        raise ValueError("an issuer has an https: address, without a query")
    return address


class OidcSettings(BaseModel):
    """One OpenID provider by which people can sign in to a gateway."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    issuer: Annotated[str, AfterValidator(_issuer)] = Field(description="Its address, exactly as it names itself.")
    client_id: str = Field(min_length=1, description="What this gateway is called there.")
    client_secret_file: Path | None = Field(
        default=None, description="A file, for its owner alone (0600), with the client's secret; unset: it has none."
    )
    title: str = Field(default="", description="What the button to sign in says; empty: its name in the settings.")
    scopes: tuple[str, ...] = Field(default=("openid", "email"), description="What it is asked for.")
    address: str = Field(
        default="email",
        description="The claim that is the person's e-mail address; it counts only if `email_verified` is true.",
    )
    addresses: tuple[str, ...] = Field(
        default=("*",), description="Patterns of the addresses that this provider can speak for."
    )


class TokenSettings(BaseModel):
    """How long a gateway's tokens count."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    lasts: Duration = Field(
        default=timedelta(days=90), gt=timedelta(0), description="How long one counts whose maker says nothing."
    )
    longest: Duration = Field(
        default=timedelta(days=366), gt=timedelta(0), description="The longest time that its maker can say."
    )


class MailSettings(BaseModel):
    """How mail is sent: codes to sign in, requests for access, news of sessions."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    host: str = Field(default="", description="The mail server; empty: no mail is sent, and nobody signs in by mail.")
    port: int = Field(default=0, ge=0, le=65535, description="Its port; 0: the usual one, 587, 465 or 25.")
    security: Literal["starttls", "tls", "none"] = Field(
        default="starttls",
        description="`starttls`: the connection becomes private before anything is said; `tls`: it is from the start; "
        "`none`: for a server on this machine.",
    )
    user: str = Field(default="", description="Who signs in to it; empty: nobody does.")
    password_file: Path | None = Field(default=None, description="The file with the password, readable by nobody else.")
    sender: str = Field(default="", description="The address that mail is from; empty: `sublet@` and the host's name.")

    @property
    def usual_port(self) -> int:
        """The port, with the default filled in."""
        return self.port or {"starttls": 587, "tls": 465, "none": 25}[self.security]


class HookSettings(BaseModel):
    """Who is told of changes: calls to addresses, and letters."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    private: bool | None = Field(
        default=None,
        description="Whether calls go to private addresses, and by plain http, too; unset: if personal.",
    )
    lasts: Duration = Field(
        default=timedelta(days=30), gt=timedelta(0), description="How long a hook lasts that names no end."
    )
    longest: Duration = Field(default=timedelta(days=365), gt=timedelta(0), description="How long it can last at most.")
    most: int = Field(default=20, ge=1, description="How many hooks one person can have.")
    patience: Duration = Field(
        default=timedelta(seconds=10), gt=timedelta(0), description="How long an address may take to answer."
    )


class AppSettings(BaseModel):
    """Where the code of apps may come from, how much of it, and who decides on it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    repositories: tuple[str, ...] = Field(
        default=("https://*",), description="Patterns of the addresses that repositories may be proposed from."
    )
    private: tuple[str, ...] = Field(
        default=(),
        description="Patterns of addresses that are let in although they are `file:`, `http:` or on a private network.",
    )
    largest: int = Field(default=64 << 20, ge=1, description="The most bytes that the files of an app have together.")
    largest_fetch: int = Field(default=256 << 20, ge=1 << 20, description="The most bytes that are fetched to see it.")
    most_files: int = Field(default=5000, ge=1, description="The most files that an app has.")
    patience: Duration = Field(default=timedelta(minutes=2), description="How long git may take over one thing.")
    others: dict[str, tuple[str, ...]] = Field(
        default_factory=dict,
        description="Account → kinds of executable that may run under it beside apps, as in `docker-container`.",
    )
    own_review: bool = Field(default=False, description="Whether a reviewer may approve what they proposed themselves.")


class Maintainer(BaseModel):
    """A generic image, for approved repositories that bring no image of their own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    image: str = Field(description="The image that their code runs in.")
    digest: str = Field(
        default="", pattern="^(sha256:[0-9a-f]{64})?$", description="Its digest; empty: looked up at each proposal."
    )
    kind: Literal["python", "jupyter"] = Field(
        default="python",
        description="What it runs of a repository without a manifest: `python` its `main.py` or `entry.py`, `jupyter` "
        "its only notebook.",
    )
    hpc: tuple[str, ...] = Field(default=(), description="The accounts on which it may be used; empty: all.")


class RegistryLogin(BaseModel):
    """An account at a registry that shows its images only to those who sign in."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    user: str = Field(min_length=1, description="Who signs in.")
    password_file: Path = Field(description="The file with the password or token, readable by nobody else (0600).")


class SigningSettings(BaseModel):
    """Who can sign in to a gateway, and for how long. Signing in alone lets nobody use anything."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    allow: tuple[str, ...] = Field(
        default=(),
        description='Patterns of addresses, as in `["*@illinois.edu"]`; whom an operator added can sign in too. '
        "Empty: anybody can.",
    )
    second_factor: tuple[Literal["operator", "reviewer"], ...] = Field(
        default=(),
        description="Parts that count only for who has a second factor (`sublet person totp on`); others are asked for "
        "theirs if they have one.",
    )
    lasts: Duration = Field(
        default=timedelta(days=30), ge=timedelta(minutes=1), description="How long the token of `sublet login` counts."
    )
    stay: Duration = Field(
        default=timedelta(hours=12), ge=timedelta(minutes=1), description="How long a browser stays signed in."
    )


class Settings(BaseModel):
    """Everything that can be set, with its default."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    home: Path = Field(description="Where Sublet keeps all its state; from SUBLET_HOME.")
    mode: Literal["personal", "gateway"] = Field(
        default="personal",
        description="`personal`: one person, their own uid. `gateway`: for many; runs nothing uncontained.",
    )
    database: str = Field(default="", description="`sqlite:///…` or `postgresql://…`; empty: SQLite in SUBLET_HOME.")
    host: str = Field(default="127.0.0.1", description="The address that TCP listens on.")
    port: int = Field(default=0, ge=0, le=65535, description="The TCP port; 0 takes a free one.")
    url: str = Field(default="", description="How others reach this service, if not by host and port.")
    sessions_url: str = Field(
        default="",
        pattern=r"^(https?://[A-Za-z0-9.:{}-]+)?$",
        description="How interactive sessions are reached, as in `https://{session}.sessions.example.org`: by names of "
        "their own, what runs in them can't act on the pages, or on one another, in the browser of who opens them.",
    )
    proxies: tuple[str, ...] = Field(
        default=(),
        description="Addresses or networks of reverse proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` count.",
    )
    hold: Duration = Field(default=timedelta(minutes=5), description="How long offers are held for the asker.")
    most_held: int = Field(
        default=50, ge=1, description="For how many requests of one person a gateway holds offers at once."
    )
    offers: int = Field(default=6, ge=1, le=50, description="How many offers a platform makes at most.")
    longest: Duration | None = Field(default=None, description="The longest session that can be asked for.")
    horizon: Duration = Field(default=timedelta(days=400), description="How far ahead a start can be.")
    release: Duration = Field(default=timedelta(seconds=10), description="Time booked after the end, for releasing.")
    keep: Duration = Field(default=timedelta(days=30), description="How long an ended session's files are kept.")
    warn: Duration = Field(default=timedelta(minutes=5), description="How long before the end a session is warned.")
    claim: Duration = Field(default=timedelta(seconds=30), description="How long a process owns work that it claimed.")
    poll: Duration = Field(
        default=timedelta(seconds=30), description="How often a platform that brings no news is asked."
    )
    file_roots: tuple[Path, ...] | None = Field(
        default=None,
        description="Directories that `file:` data may come from; unset: anywhere if personal, nowhere in a gateway.",
    )
    private_data: bool = Field(
        default=False, description="Whether a gateway brings http(s) data from private and loopback addresses too."
    )
    largest_data: int = Field(
        default=100 << 30,
        ge=1,
        description="The most bytes that are downloaded as one file for people of a gateway, and for guests.",
    )
    master_key: str = Field(
        default="",
        description="A file outside SUBLET_HOME with the key that seals stored secrets; `sublet account key FILE` "
        "makes one. Empty: systemd's credential `sublet-master-key`, if there is one.",
    )
    prices: Prices = Field(default_factory=Prices, description="The operator's price list.")
    rules: tuple[Rule, ...] = Field(default=(), description="What is refused or capped, by pattern on any field.")
    annex: AnnexSettings = Field(
        default_factory=AnnexSettings, description="The access point that annexes have, and HTCondor itself."
    )
    oidc: dict[Annotated[str, Field(pattern="^[a-z][a-z0-9-]{0,30}$")], OidcSettings] = Field(
        default_factory=dict, description="Name → an OpenID provider by which people can sign in to a gateway."
    )
    tokens: TokenSettings = Field(default_factory=TokenSettings, description="The tokens of a gateway.")
    mail: MailSettings = Field(default_factory=MailSettings, description="The mail server of a gateway.")
    images: dict[str, NamedImage] = Field(
        default_factory=dict,
        description='Images that apps may name: `python = "ghcr.io/owner/python:3.12@sha256:…"`, or a table with '
        "`location` and `digest`.",
    )
    hooks: HookSettings = Field(default_factory=HookSettings, description="Calls and letters on changes of sessions.")
    apps: AppSettings = Field(default_factory=AppSettings, description="Reviewed code, and where it may come from.")
    maintainers: dict[str, Maintainer] = Field(
        default_factory=dict,
        description="Name → a generic image for approved repositories without one of their own.",
    )
    registries: dict[Annotated[str, Field(pattern=r"^[a-z0-9.-]+(:[0-9]+)?(/[a-z0-9._-]+)*$")], RegistryLogin] = Field(
        default_factory=dict,
        description="Registry, or the beginning of its images' names as in `ghcr.io/owner` → the account by which they "
        "are fetched; in a gateway for apps that were approved, and for nothing else.",
    )
    signing: SigningSettings = Field(
        default_factory=SigningSettings, description="Who can sign in to a gateway, and for how long."
    )
    cybergis: Literal["off", "on", "open"] = Field(
        default="on",
        description="Whether old clients of CyberGIS-Compute are answered under `/compat/cybergis`; `open`: its "
        "catalogues are shown without a token too, as their forms in notebooks need.",
    )
    platforms: dict[str, dict[str, Any]] = Field(
        default_factory=lambda: {"here": {"kind": "local"}},
        description="Name → kind and the settings of that kind of platform.",
    )

    @property
    def database_url(self) -> str:
        """The database's address, with the default filled in."""
        return self.database or f"sqlite:///{self.home / 'sublet.db'}"

    @classmethod
    def load(cls, home: Path, config: Path | None = None, **overrides: Any) -> Settings:
        """Read the file (`sublet.toml` in `home`, or another), then the environment, then what is given here."""
        file = config or home / FILE
        values: dict[str, Any] = _read(file) if config or file.exists() else {}
        values |= _from_environment(os.environ)
        values |= {name: value for name, value in overrides.items() if value is not None}
        try:
            return cls(home=home, **values)
        except ValidationError as error:
            raise BadSettings(file=file, detail=_sentence(error)) from error


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text())
    except OSError as error:
        raise BadSettings(file=file, detail=error.strerror or str(error)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadSettings(file=file, detail=str(error)) from error


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """`SUBLET_HOLD=10m` sets `hold`; only the plain ones can be set so."""
    plain = {name for name in Settings.model_fields if name not in _NOT_PLAIN}
    named = {f"{ENVIRONMENT}{name.upper()}": name for name in plain}
    return {named[key]: value for key, value in environment.items() if key in named}


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        return f"{where}: there is no such setting"
    return f"{where}: {first['msg'].removeprefix('Value error, ')}"
