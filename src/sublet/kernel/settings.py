"""The operator's settings: from one TOML file, overridden by the environment, then by the command line."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, ValidationError

from sublet.apps.model.manifest import AppImage
from sublet.booking.model.prices import Prices
from sublet.booking.model.ranking import Preference
from sublet.booking.model.rules import Rule
from sublet.kernel.errors import BadSettings
from sublet.kernel.safe_paths import find_danger_to
from sublet.kernel.settings_lines import at_line, at_setting, describe_error, find_line
from sublet.kernel.settings_operation import (
    ConnectionSettings,
    LogSettings,
    RetentionSettings,
    ThrottleSettings,
    UploadSettings,
)
from sublet.kernel.settings_tables import (
    AnnexSettings,
    AppSettings,
    Duration,
    HookSettings,
    MailSettings,
    Maintainer,
    OidcSettings,
    RecipeSettings,
    RegistryLogin,
    SigningSettings,
    TokenSettings,
)
from sublet.kernel.settings_trust import IssuerSettings, Origin, PolicySettings


def _image(value: object) -> object:
    """Validate an image: `"docker://…/python:3.12@sha256:…"`, or a table with location and digest."""
    if isinstance(value, str):
        location, _, digest = value.partition("@")
        value = {"location": location, "digest": digest}
    if isinstance(value, dict):
        location, digest = str(value.get("location", "")), str(value.get("digest", ""))
        if not location or (digest and not re.fullmatch(r"sha256:[0-9a-f]{64}", digest)):
            raise ValueError("an image has a location, and as its digest sha256: and 64 hexadecimal digits")
    return value


NamedImage = Annotated[AppImage, BeforeValidator(_image)]

ENVIRONMENT = "SUBLET_"
FILE = "sublet.toml"
_NOT_PLAIN = {
    "home",
    "images",
    "standard_images",
    "prices",
    "proxies",
    "recipes",
    "scheduler_options",
    "registries",
    "connections",
    "rules",
    "annex",
    "apps",
    "maintainers",
    "mail",
    "hooks",
    "issuers",
    "oidc",
    "origins",
    "platforms",
    "policy",
    "tokens",
    "signing",
    "sessions_url",
    "logs",
    "retention",
    "throttle",
    "uploads",
    "url",
}


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
    port: int = Field(
        default=0,
        ge=0,
        le=65535,
        description="The TCP port; 0 takes a free one, and a personal service keeps it over restarts.",
    )
    url: str = Field(default="", description="How others reach this service, if not by host and port.")
    sessions_url: str = Field(
        default="",
        pattern=r"^(https?://[A-Za-z0-9.:{}-]+)?$",
        description="The address of interactive sessions, as in `https://{session}.sessions.example.org`. With a "
        "host name for each, what runs in a session can't act on the service's pages, or on other "
        "sessions, in your browser.",
    )
    proxies: tuple[str, ...] = Field(
        default=(),
        description="Addresses or networks of reverse proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` count.",
    )
    origins: tuple[Origin, ...] = Field(
        default=(),
        description="Sites whose pages may call this service in a browser (CORS), as in `https://portal.example.org`; "
        "`*`: any. Cookies are never sent along: such pages show a token.",
    )
    hold: Duration = Field(
        default=timedelta(minutes=5), description="How long offers can be accepted; booked ones are held until then."
    )
    most_held: int = Field(
        default=50, ge=1, description="For how many requests of one person a gateway holds offers at once."
    )
    offers: int = Field(
        default=6,
        ge=1,
        le=50,
        description="How many offers a platform makes at most, beyond one in each window that was named.",
    )
    scheduler_options: tuple[str, ...] = Field(
        default=(),
        description="Scheduler options that people of a gateway may use, in addition to `constraint`, `nice` and "
        "`gpu_type`: `queue`, `qos`, `project`, `reservation`, `licenses`, `exclusive`, `mail`, or an "
        "option of sbatch by its name.",
    )
    answer_within: Duration = Field(
        default=timedelta(seconds=3),
        gt=timedelta(0),
        description="How long a request waits for each platform's answer; all are asked at the same time. If a "
        "request names one platform, it waits four times as long.",
    )
    lost_after: Duration = Field(
        default=timedelta(minutes=10),
        gt=timedelta(0),
        description="How long a queue may have no record of a session that waited in it, until it ends as not started.",
    )
    prefer: Preference = Field(
        default="soonest",
        description="Which offer comes first: `soonest` (booked before predicted ones for about the same time), "
        "`here` (this machine first), or `cheapest`.",
    )
    longest: Duration | None = Field(default=None, description="The longest session that can be asked for.")
    horizon: Duration = Field(default=timedelta(days=400), description="How far ahead a start can be.")
    release: Duration = Field(default=timedelta(seconds=10), description="Time booked after the end, for releasing.")
    keep: Duration = Field(default=timedelta(days=30), description="How long an ended session's files are kept.")
    longest_keep: Duration = Field(
        default=timedelta(days=180),
        gt=timedelta(0),
        description="How long people can have an ended session's files kept, from that day: `sublet result keep`.",
    )
    keep_drafts: Duration = Field(
        default=timedelta(days=30),
        description="How long a job that an old client made and never submitted is kept after its last change.",
    )
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
    rucio_server: str = Field(
        default="",
        pattern=r"^(https?://[^\s?#]+)?$",
        description="The Rucio server that knows data which is named without one, as `rucio:SCOPE:NAME`: "
        "https://rucio.example.org.",
    )
    globus_transfer: str = Field(
        default="https://transfer.api.globus.org",
        pattern=r"^https?://[^\s?#]+$",
        description="Globus' Transfer service, which is asked about `globus:` data; another one for trials.",
    )
    globus_auth: str = Field(
        default="https://auth.globus.org",
        pattern=r"^https?://[^\s?#]+$",
        description="Globus' sign-in, which gives tokens for a refresh token or a client's secret.",
    )
    globus_client: str = Field(
        default="",
        pattern=r"^([0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})?$",
        description="The app of Globus (a native one) by which people sign in: `sublet credential add globus:// "
        "--sign-in`.",
    )
    ivo_resolver: str = Field(
        default="",
        pattern=r"^(https?://\S+\{ivoid\}\S*)?$",
        description="The service that resolves an IVOID to addresses: https://resolver.example.org/{ivoid}. It "
        "answers with a redirect, a VOTable or JSON.",
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
    operators_read: bool | None = Field(
        default=None,
        description="Whether operators may read output and results of other people's sessions, and connect to them; "
        "each access is in the audit log. Unset: yes if personal, no in a gateway.",
    )
    prices: Prices = Field(default_factory=Prices, description="The operator's price list.")
    rules: tuple[Rule, ...] = Field(
        default=(), description="Rules that refuse or cap requests, by pattern on any field."
    )
    policy: PolicySettings = Field(
        default_factory=PolicySettings,
        description="An external policy service, such as OPA, asked in addition to the rules here.",
    )
    annex: AnnexSettings = Field(
        default_factory=AnnexSettings, description="The access point that annexes have, and HTCondor itself."
    )
    oidc: dict[Annotated[str, Field(pattern="^[a-z][a-z0-9-]{0,30}$")], OidcSettings] = Field(
        default_factory=dict, description="Name → an OpenID provider by which people can sign in to a gateway."
    )
    issuers: dict[Annotated[str, Field(pattern="^[a-z][a-z0-9-]{0,30}$")], IssuerSettings] = Field(
        default_factory=dict, description="Name → an issuer, such as an IAM, whose tokens a gateway takes."
    )
    tokens: TokenSettings = Field(default_factory=TokenSettings, description="The tokens of a gateway.")
    mail: MailSettings = Field(default_factory=MailSettings, description="The mail server of a gateway.")
    images: dict[str, NamedImage] = Field(
        default_factory=dict,
        description='Images that apps and requests may name: `python = "ghcr.io/owner/python:3.12@sha256:…"`, or a '
        "table with `location` and `digest`.",
    )
    standard_images: dict[str, str] = Field(
        default_factory=dict,
        description="`notebook`, `lab`, `desktop`, `code`, `rstudio` or one of `recipes` → its default image, one "
        "of `images`. A gateway runs these in images only, and doesn't offer them without one.",
    )
    recipes: dict[Annotated[str, Field(pattern="^[a-z][a-z0-9-]{0,30}$")], RecipeSettings] = Field(
        default_factory=dict,
        description="Name → a web application that people can open: `sublet run --interactive NAME`.",
    )
    idle: Duration | None = Field(
        default=None,
        gt=timedelta(0),
        description="End interactive sessions after nobody has had them open for this long; a request can set less. "
        "Unset: only if a request sets it.",
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
    connections: ConnectionSettings = Field(
        default_factory=ConnectionSettings, description="How many TCP connections are served at a time."
    )
    logs: LogSettings = Field(default_factory=LogSettings, description="The service's log, and its rotation.")
    retention: RetentionSettings = Field(default_factory=RetentionSettings, description="How long records are kept.")
    throttle: ThrottleSettings = Field(
        default_factory=ThrottleSettings, description="How often one host or one person can try something."
    )
    uploads: UploadSettings = Field(
        default_factory=UploadSettings, description="Files that people upload: how much, and for how long."
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

    _text: str = PrivateAttr("")  # the text of the settings file
    _file: Path = PrivateAttr(Path(FILE))

    @property
    def database_url(self) -> str:
        """The database's address, with the default filled in."""
        return self.database or f"sqlite:///{self.home / 'sublet.db'}"

    def is_set(self, name: str) -> bool:
        """Whether a setting was given explicitly, and isn't the default."""
        return name in self.model_fields_set

    def take_up(self, new: Settings, names: Sequence[str]) -> None:
        """Change these settings in place, so that every object that holds them sees the new values."""
        self.__dict__.update({name: getattr(new, name) for name in names})

    @classmethod
    def load(cls, home: Path, config: Path | None = None, **overrides: Any) -> Settings:
        """Read the file (`sublet.toml` in `home`, or `config`), then the environment, then the overrides given here."""
        file = config or home / FILE
        text = _read(file) if config or file.exists() else ""
        values = _parse(file, text)
        others = _from_environment(os.environ)
        others |= {name: value for name, value in overrides.items() if value is not None}
        try:
            settings = cls(home=home, **(values | others))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            line = 0 if str(first["loc"][0]) in others else find_line(text, first["loc"])
            why = at_setting(first["loc"], describe_error(first, _list_known(first["loc"])))
            raise BadSettings(file=file, detail=at_line(line, why)) from error
        settings._text, settings._file = text, file
        return settings

    def refuse(self, path: Sequence[str | int], why: str, hint: str = "") -> BadSettings:
        """Return the error for an unacceptable value, with its line in the file."""
        detail = at_line(find_line(self._text, path), at_setting(path, why))
        return BadSettings(file=self._file, detail=detail, hint=hint)


def _read(file: Path) -> str:
    if danger := find_danger_to(str(file)):  # settings start programs
        hint = "Settings start programs as you: keep them where only you, or root, can write."
        raise BadSettings(file=file, detail=f"it is not safe to use: {danger}", hint=hint)
    try:
        return file.read_text()
    except OSError as error:
        raise BadSettings(file=file, detail=error.strerror or str(error)) from error
    except UnicodeDecodeError as error:
        raise BadSettings(file=file, detail=str(error)) from error


def _parse(file: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadSettings(file=file, detail=str(error)) from error


def _list_known(path: Sequence[str | int]) -> list[str]:
    """Return the names of the settings in the table that a path leads to."""
    model: Any = Settings
    for part in path[:-1]:
        if isinstance(model, type) and issubclass(model, BaseModel):
            model = model.model_fields[str(part)].annotation
        else:  # a map from names to tables of settings
            model = (*get_args(model), None)[-1] if get_args(model) else None
    return list(model.model_fields) if isinstance(model, type) and issubclass(model, BaseModel) else []


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that the environment sets, as `SUBLET_HOLD=10m` does; only plain ones can be set so."""
    plain = {name for name in Settings.model_fields if name not in _NOT_PLAIN}
    named = {f"{ENVIRONMENT}{name.upper()}": name for name in plain}
    return {named[key]: value for key, value in environment.items() if key in named}
