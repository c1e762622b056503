"""The tables of the settings file: each class is one `[table]`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from sublet.booking.model.amounts import parse_duration
from sublet.kernel.errors import SubletError
from sublet.people.model.mailboxes import Folding


def _duration(value: object) -> object:
    try:
        return parse_duration(value) if isinstance(value, str) else value
    except SubletError as error:
        raise ValueError(error.sentences) from error


Duration = Annotated[timedelta, BeforeValidator(_duration)]


class AnnexSettings(BaseModel):
    """The access point where HTCondor jobs are queued, and how pilots connect to it and to the service."""

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
    """Validate an issuer's address: https, or http on this machine."""
    parts = urlsplit(address)
    near = parts.scheme == "http" and parts.hostname in ("127.0.0.1", "::1", "localhost")
    if not parts.hostname or not (parts.scheme == "https" or near) or parts.query or parts.fragment:
        raise ValueError("an issuer has an https: address, without a query")
    return address


Issuer = Annotated[str, AfterValidator(_issuer)]


class OidcSettings(BaseModel):
    """One OpenID provider by which people can sign in to a gateway."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    issuer: Issuer = Field(description="Its address, exactly as it names itself.")
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
    """How long a gateway's tokens are valid."""

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

    host: str = Field(default="", description="The mail server; empty: no mail is sent, and sign-in by mail is off.")
    port: int = Field(default=0, ge=0, le=65535, description="Its port; 0: the usual one, 587, 465 or 25.")
    security: Literal["starttls", "tls", "none"] = Field(
        default="starttls",
        description="`starttls`: switch to TLS first; `tls`: TLS from the start; `none`: for a server on this machine.",
    )
    user: str = Field(default="", description="The user name; empty: no login.")
    password_file: Path | None = Field(
        default=None, description="The file with the password, readable only by the service's user."
    )
    sender: str = Field(default="", description="The address that mail is from; empty: `sublet@` and the host's name.")

    @property
    def usual_port(self) -> int:
        """The port, with the default filled in."""
        return self.port or {"starttls": 587, "tls": 465, "none": 25}[self.security]


class HookSettings(BaseModel):
    """Hooks, which notify people and programs of changes to sessions, by mail and by webhook."""

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
        description="Patterns of addresses allowed although they are `file:`, `http:` or on a private network.",
    )
    largest: int = Field(default=64 << 20, ge=1, description="The most bytes that the files of an app have together.")
    largest_fetch: int = Field(default=256 << 20, ge=1 << 20, description="The most bytes that are fetched to see it.")
    most_files: int = Field(default=5000, ge=1, description="The most files that an app has.")
    patience: Duration = Field(default=timedelta(minutes=2), description="How long git may take over one thing.")
    others: dict[str, tuple[str, ...]] = Field(
        default_factory=dict,
        description="Account → kinds of executable that may run under it in addition to apps, as `docker-container`.",
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
    """An account at a container registry whose images can be pulled only after signing in."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    user: str = Field(min_length=1, description="Who signs in.")
    password_file: Path = Field(
        description="The file with the password or token, readable only by the service's user (0600)."
    )


class SigningSettings(BaseModel):
    """Who can sign in to a gateway, and for how long. Signing in alone lets nobody use anything."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    allow: tuple[str, ...] = Field(
        default=(),
        description='Patterns of addresses, as in `["*@illinois.edu"]`; people added by an operator can sign in, '
        "too. Empty: anyone can.",
    )
    subaddresses: dict[str, Folding] = Field(
        default_factory=dict,
        description="Domain (or a pattern such as `*.edu`) → which of its addresses are one person's. `fold`, as on "
        "all domains that are not named: `ada+lab@x.org` is `ada@x.org`; `fold-dots`: `a.da@x.org` is too; `keep`: "
        "each address is a person's own. Of `gmail.com` and `googlemail.com`, if they are not named, it is known that "
        "they are one, and `fold-dots`.",
    )
    second_factor: tuple[Literal["operator", "reviewer"], ...] = Field(
        default=(),
        description="Roles that require a second factor (`sublet person totp on`). Other people are asked for "
        "theirs if they have one.",
    )
    lasts: Duration = Field(
        default=timedelta(days=30), ge=timedelta(minutes=1), description="How long the token of `sublet login` counts."
    )
    stay: Duration = Field(
        default=timedelta(hours=12), ge=timedelta(minutes=1), description="How long a browser stays signed in."
    )


class RecipeSettings(BaseModel):
    """A web application that people can open as an interactive session."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = Field(default="", description="What the page calls it; empty: its name.")
    run: tuple[str, ...] = Field(
        default=(),
        description="The command. `{port}`, `{socket}`, `{host}` and `{base_url}` are replaced where it runs, and "
        "are also in `SUBLET_PORT` and so on. Empty: the image's own command.",
    )
    programs: tuple[str, ...] = Field(
        default=(),
        description="Of these tools, as `sublet platform show` lists them, a machine must have one to run it without "
        "an image; empty: it runs only in images.",
    )
    serves: Literal["port", "socket", "vnc"] = Field(
        default="port",
        description="How it is reached: HTTP on a TCP `port`; HTTP on a Unix `socket`, which no other user of the "
        "machine can reach, and which every container tool can pass on; or `vnc` on such a socket, shown by noVNC.",
    )
    port: int = Field(default=0, ge=0, le=65535, description="The port on which it listens; 0: the one in `{port}`.")
    path: str = Field(default="/", description="Where visitors are led first.")
    keeps_path: bool = Field(
        default=False, description="Whether it wants to see the session's path (`{base_url}`) before its own."
    )
